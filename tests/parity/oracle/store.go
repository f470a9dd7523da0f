package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/apis/v1alpha1"
)

var errReadOnly = errors.New("the problem is read only")

// store answers reads as an informer's cache does: from memory, by namespace and by the field indexes that Karpenter's
// operator registers, with a copy for the caller. Writes of a status are taken and forgotten, any other is an error.
type store struct {
	kinds map[reflect.Type]*kind
}

// kind holds the objects of one Go type, in the order of the problem.
type kind struct {
	resource    schema.GroupResource
	byName      map[types.NamespacedName]client.Object
	all         []client.Object
	byNamespace map[string][]client.Object
	byField     map[string]map[string][]client.Object
}

func newStore() *store { return &store{kinds: map[reflect.Type]*kind{}} }

// add stores an object; a second one of the same name is an error.
func (s *store) add(obj client.Object) error {
	of := s.kindOf(reflect.TypeOf(obj))
	key := client.ObjectKeyFromObject(obj)
	if key.Name == "" || (key.Namespace == "") != isClusterWide(obj) {
		return fmt.Errorf("%s %q: a name, and a namespace if and only if its kind has one", of.resource.Resource, key)
	}
	if _, taken := of.byName[key]; taken {
		return fmt.Errorf("%s %s is there twice", of.resource.Resource, key)
	}
	of.byName[key] = obj
	of.all = append(of.all, obj)
	of.byNamespace[key.Namespace] = append(of.byNamespace[key.Namespace], obj)
	for field, value := range indexed(obj) {
		if of.byField[field] == nil {
			of.byField[field] = map[string][]client.Object{}
		}
		of.byField[field][value] = append(of.byField[field][value], obj)
	}
	return nil
}

// isClusterWide tells kinds without namespaces.
func isClusterWide(obj client.Object) bool {
	switch obj.(type) {
	case *corev1.Namespace, *corev1.Node, *corev1.PersistentVolume, *storagev1.StorageClass, *storagev1.CSINode,
		*resourcev1.DeviceClass, *resourcev1.ResourceSlice,
		*karpv1.NodePool, *karpv1.NodeClaim, *v1alpha1.NodeOverlay, *EC2NodeClass:
		return true
	default:
		return false
	}
}

func (s *store) kindOf(typ reflect.Type) *kind {
	of, ok := s.kinds[typ]
	if !ok {
		of = &kind{
			resource:    schema.GroupResource{Resource: typ.Elem().Name()},
			byName:      map[types.NamespacedName]client.Object{},
			byNamespace: map[string][]client.Object{},
			byField:     map[string]map[string][]client.Object{},
		}
		s.kinds[typ] = of
	}
	return of
}

// indexed gives the values under which Karpenter's field indexes find an object.
func indexed(obj client.Object) map[string]string {
	switch o := obj.(type) {
	case *corev1.Pod:
		return map[string]string{"spec.nodeName": o.Spec.NodeName}
	case *corev1.Node:
		return map[string]string{"spec.providerID": o.Spec.ProviderID}
	case *karpv1.NodeClaim:
		return map[string]string{"status.providerID": o.Status.ProviderID}
	default:
		return nil
	}
}

// Get implements client.Reader.
func (s *store) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	// Reads may come from several workers at once, so an unknown kind is not added here.
	of, ok := s.kinds[reflect.TypeOf(into)]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: reflect.TypeOf(into).Elem().Name()}, key.String())
	}
	// Karpenter asks for some of these with the namespace of a pod, which the API server does not mind.
	if isClusterWide(into) {
		key.Namespace = ""
	}
	found, ok := of.byName[key]
	if !ok {
		return apierrors.NewNotFound(of.resource, key.String())
	}
	switch into := into.(type) {
	case *corev1.Pod:
		found.(*corev1.Pod).DeepCopyInto(into)
	case *corev1.Node:
		found.(*corev1.Node).DeepCopyInto(into)
	default:
		reflect.ValueOf(into).Elem().Set(reflect.ValueOf(found.DeepCopyObject()).Elem())
	}
	return nil
}

// List implements client.Reader.
func (s *store) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	options := client.ListOptions{}
	options.ApplyOptions(opts)
	items := reflect.ValueOf(into).Elem().FieldByName("Items")
	if !items.IsValid() {
		return fmt.Errorf("%T has no items", into)
	}
	of, ok := s.kinds[reflect.PointerTo(items.Type().Elem())]
	if !ok {
		items.SetZero()
		return nil
	}
	found, err := of.matching(&options)
	if err != nil {
		return err
	}
	shared := options.UnsafeDisableDeepCopy != nil && *options.UnsafeDisableDeepCopy
	if list, ok := into.(*corev1.PodList); ok {
		list.Items = make([]corev1.Pod, len(found))
		for i, obj := range found {
			if shared {
				list.Items[i] = *obj.(*corev1.Pod)
			} else {
				obj.(*corev1.Pod).DeepCopyInto(&list.Items[i])
			}
		}
		return nil
	}
	values := reflect.MakeSlice(items.Type(), len(found), len(found))
	for i, obj := range found {
		if !shared {
			obj = obj.DeepCopyObject().(client.Object)
		}
		values.Index(i).Set(reflect.ValueOf(obj).Elem())
	}
	items.Set(values)
	return nil
}

func (k *kind) matching(options *client.ListOptions) ([]client.Object, error) {
	found := k.all
	if options.Namespace != "" {
		found = k.byNamespace[options.Namespace]
	}
	if options.FieldSelector != nil && !options.FieldSelector.Empty() {
		requirements := options.FieldSelector.Requirements()
		if len(requirements) != 1 || options.Namespace != "" {
			return nil, fmt.Errorf("field selector %s of namespace %q is not indexed", options.FieldSelector, options.Namespace)
		}
		index, ok := k.byField[requirements[0].Field]
		if !ok {
			return nil, fmt.Errorf("field %s of %s is not indexed", requirements[0].Field, k.resource.Resource)
		}
		found = index[requirements[0].Value]
	}
	if options.LabelSelector == nil || options.LabelSelector.Empty() {
		return found, nil
	}
	var selected []client.Object
	for _, obj := range found {
		if options.LabelSelector.Matches(labels.Set(obj.GetLabels())) {
			selected = append(selected, obj)
		}
	}
	return selected, nil
}

// Create implements client.Writer.
func (s *store) Create(context.Context, client.Object, ...client.CreateOption) error {
	return errReadOnly
}

// Delete implements client.Writer.
func (s *store) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	return errReadOnly
}

// Update implements client.Writer.
func (s *store) Update(context.Context, client.Object, ...client.UpdateOption) error {
	return errReadOnly
}

// Patch implements client.Writer.
func (s *store) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return errReadOnly
}

// Apply implements client.Writer.
func (s *store) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return errReadOnly
}

// DeleteAllOf implements client.Writer.
func (s *store) DeleteAllOf(context.Context, client.Object, ...client.DeleteAllOfOption) error {
	return errReadOnly
}

// Status implements client.StatusClient.
func (s *store) Status() client.SubResourceWriter { return statusSink{} }

// SubResource implements client.SubResourceClientConstructor. Nothing that the oracle runs asks for one.
func (s *store) SubResource(string) client.SubResourceClient { return nil }

// Scheme implements client.Client.
func (s *store) Scheme() *runtime.Scheme { return scheme.Scheme }

// RESTMapper implements client.Client. Nothing that the oracle runs asks for one.
func (s *store) RESTMapper() meta.RESTMapper { return nil }

// GroupVersionKindFor implements client.Client.
func (s *store) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(obj, scheme.Scheme)
}

// IsObjectNamespaced implements client.Client. Nothing that the oracle runs asks for it.
func (s *store) IsObjectNamespaced(obj runtime.Object) (bool, error) {
	return false, fmt.Errorf("the scope of %T is not known here", obj)
}

// statusSink takes status writes and forgets them.
type statusSink struct{}

func (statusSink) Create(context.Context, client.Object, client.Object, ...client.SubResourceCreateOption) error {
	return errReadOnly
}

func (statusSink) Update(context.Context, client.Object, ...client.SubResourceUpdateOption) error {
	return nil
}

func (statusSink) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return nil
}

func (statusSink) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	return errReadOnly
}
