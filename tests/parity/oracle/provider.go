package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"unique"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"
)

// reservationID is the label that names a capacity reservation.
const reservationID = "karpenter.k8s.aws/capacity-reservation-id"

func init() {
	cloudprovider.ReservationIDLabel = reservationID
	cloudprovider.ReservedCapacityLabels.Insert(reservationID)
	group := schema.GroupVersion{Group: "karpenter.k8s.aws", Version: "v1"}
	metav1.AddToGroupVersion(scheme.Scheme, group)
	scheme.Scheme.AddKnownTypes(group, &EC2NodeClass{})
}

// EC2NodeClass gives the NodePools of a problem a class of the group and kind that they name. It has no content.
type EC2NodeClass struct {
	metav1.TypeMeta
	metav1.ObjectMeta
}

// DeepCopyObject implements runtime.Object.
func (c *EC2NodeClass) DeepCopyObject() runtime.Object {
	return &EC2NodeClass{TypeMeta: c.TypeMeta, ObjectMeta: *c.ObjectMeta.DeepCopy()}
}

// GetConditions implements status.Object.
func (c *EC2NodeClass) GetConditions() []status.Condition { return nil }

// SetConditions implements status.Object.
func (c *EC2NodeClass) SetConditions([]status.Condition) {}

// StatusConditions implements status.Object.
func (c *EC2NodeClass) StatusConditions(opts ...status.ForOption) status.ConditionSet {
	return status.NewReadyConditions().For(c, opts...)
}

var errNoCloud = errors.New("there is no cloud behind a problem")

// provider offers the instance types of a problem.
type provider struct {
	byPool map[string][]*cloudprovider.InstanceType
}

// newProvider makes the instance types anew for each NodePool, as a provider that resolves a NodePool does.
func newProvider(problem *Problem) (*provider, error) {
	byName := map[string]*InstanceType{}
	all := make([]string, len(problem.InstanceTypes))
	reservations := false
	for i := range problem.InstanceTypes {
		it := &problem.InstanceTypes[i]
		byName[it.Name] = it
		all[i] = it.Name
		for j := range it.Offerings {
			reservations = reservations || has(it.Offerings[j].Requirements, reservationID)
		}
	}
	p := &provider{byPool: map[string][]*cloudprovider.InstanceType{}}
	for i := range problem.NodePools {
		pool := problem.NodePools[i].Name
		names, some := problem.InstanceTypesOf[pool]
		if !some {
			names = all
		}
		for _, name := range names {
			it, err := byName[name].convert(reservations)
			if err != nil {
				return nil, err
			}
			p.byPool[pool] = append(p.byPool[pool], it)
		}
	}
	return p, nil
}

func has(requirements []corev1.NodeSelectorRequirement, key string) bool {
	for i := range requirements {
		if requirements[i].Key == key {
			return true
		}
	}
	return false
}

// convert makes Karpenter's form. With reservations in the problem every offering without one says so, as providers do.
func (it *InstanceType) convert(reservations bool) (*cloudprovider.InstanceType, error) {
	offerings := make(cloudprovider.Offerings, len(it.Offerings))
	for i := range it.Offerings {
		of := &it.Offerings[i]
		requirements := scheduling.NewNodeSelectorRequirements(of.Requirements...)
		for _, key := range []string{corev1.LabelTopologyZone, karpv1.CapacityTypeLabelKey} {
			if requirements.Get(key).Len() != 1 {
				return nil, fmt.Errorf("offering %d of instance type %s: want one value of %s", i, it.Name, key)
			}
		}
		if reservations && !requirements.Has(reservationID) {
			requirements.Add(scheduling.NewRequirement(reservationID, corev1.NodeSelectorOpDoesNotExist))
		}
		// A price that is not known ranks last.
		price := math.MaxFloat64
		if of.Price != nil {
			price = *of.Price
		}
		offerings[i] = &cloudprovider.Offering{
			Requirements:        requirements,
			Price:               price,
			Available:           of.Available,
			ReservationCapacity: of.ReservationCapacity,
		}
	}
	converted := &cloudprovider.InstanceType{
		Name:             it.Name,
		Requirements:     scheduling.NewNodeSelectorRequirements(it.Requirements...),
		Offerings:        offerings,
		Capacity:         it.Capacity.DeepCopy(),
		Overhead:         &cloudprovider.InstanceTypeOverhead{KubeReserved: it.Overhead.DeepCopy()},
		DynamicResources: it.devices(),
	}
	setVolumeLimits(converted, it.VolumeLimits)
	return converted, nil
}

func (it *InstanceType) devices() cloudprovider.DynamicResources {
	resources := cloudprovider.DynamicResources{}
	for i := range it.DeviceTemplates {
		template := &it.DeviceTemplates[i]
		slice := &cloudprovider.ResourceSliceTemplate{
			Driver:         unique.Make(template.Driver),
			Pool:           cloudprovider.ResourcePool{Name: unique.Make(template.Pool)},
			SharedCounters: template.SharedCounters,
		}
		for j := range template.Devices {
			device := &template.Devices[j]
			slice.Devices = append(slice.Devices, cloudprovider.Device{
				Name:                     unique.Make(device.Name),
				Attributes:               device.Attributes,
				Capacity:                 device.Capacity,
				AllowMultipleAllocations: device.AllowMultipleAllocations != nil && *device.AllowMultipleAllocations,
				ConsumesCounters:         device.ConsumesCounters,
			})
		}
		resources.ResourceSliceTemplates = append(resources.ResourceSliceTemplates, slice)
	}
	for i := range it.AttributeBindings {
		binding := &cloudprovider.AttributeBinding{Attribute: resourcev1.QualifiedName(it.AttributeBindings[i].Attribute)}
		for _, id := range it.AttributeBindings[i].Devices {
			binding.Devices = append(binding.Devices, cloudprovider.DeviceID{
				Driver: unique.Make(id.Driver),
				Pool:   unique.Make(id.Pool),
				Device: unique.Make(id.Device),
			})
		}
		resources.AttributeBindings = append(resources.AttributeBindings, binding)
	}
	return resources
}

// wellKnown are the keys that instance types and offerings define beyond those that Karpenter knows.
func (p *Problem) wellKnown() []string {
	seen := map[string]bool{}
	var keys []string
	note := func(requirements []corev1.NodeSelectorRequirement) {
		for i := range requirements {
			if key := requirements[i].Key; !seen[key] && !karpv1.WellKnownLabels.Has(key) {
				seen[key] = true
				keys = append(keys, key)
			}
		}
	}
	for i := range p.InstanceTypes {
		note(p.InstanceTypes[i].Requirements)
		for j := range p.InstanceTypes[i].Offerings {
			note(p.InstanceTypes[i].Offerings[j].Requirements)
		}
	}
	return keys
}

// GetInstanceTypes implements cloudprovider.CloudProvider.
func (p *provider) GetInstanceTypes(_ context.Context, pool *karpv1.NodePool) ([]*cloudprovider.InstanceType, error) {
	if pool == nil {
		return nil, errors.New("no NodePool named")
	}
	return p.byPool[pool.Name], nil
}

// GetSupportedNodeClasses implements cloudprovider.CloudProvider.
func (p *provider) GetSupportedNodeClasses() []status.Object { return []status.Object{&EC2NodeClass{}} }

// Name implements cloudprovider.CloudProvider.
func (p *provider) Name() string { return "oracle" }

// RepairPolicies implements cloudprovider.CloudProvider.
func (p *provider) RepairPolicies() []cloudprovider.RepairPolicy { return nil }

// Create implements cloudprovider.CloudProvider.
func (p *provider) Create(context.Context, *karpv1.NodeClaim) (*karpv1.NodeClaim, error) {
	return nil, errNoCloud
}

// Delete implements cloudprovider.CloudProvider.
func (p *provider) Delete(context.Context, *karpv1.NodeClaim) error { return errNoCloud }

// Get implements cloudprovider.CloudProvider.
func (p *provider) Get(context.Context, string) (*karpv1.NodeClaim, error) { return nil, errNoCloud }

// List implements cloudprovider.CloudProvider.
func (p *provider) List(context.Context) ([]*karpv1.NodeClaim, error) { return nil, errNoCloud }

// IsDrifted implements cloudprovider.CloudProvider.
func (p *provider) IsDrifted(context.Context, *karpv1.NodeClaim) (cloudprovider.DriftReason, error) {
	return "", errNoCloud
}

// Reboot implements cloudprovider.CloudProvider.
func (p *provider) Reboot(context.Context, *karpv1.NodeClaim, string) error { return errNoCloud }
