package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	kjson "sigs.k8s.io/json"
	autoscalingv1beta1 "sigs.k8s.io/karpenter/pkg/apis/autoscaling/v1beta1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/apis/v1alpha1"
)

// Problem is one scheduling problem as ../FORMAT.md describes it.
type Problem struct {
	Name            string              `json:"name"`
	Now             time.Time           `json:"now"`
	Options         Options             `json:"options"`
	InstanceTypes   []InstanceType      `json:"instanceTypes"`
	InstanceTypesOf map[string][]string `json:"instanceTypesOf,omitempty"`

	NodePools              []karpv1.NodePool                   `json:"nodePools"`
	NodeClaims             []karpv1.NodeClaim                  `json:"nodeClaims,omitempty"`
	Nodes                  []corev1.Node                       `json:"nodes,omitempty"`
	Pods                   []corev1.Pod                        `json:"pods"`
	DaemonSets             []appsv1.DaemonSet                  `json:"daemonSets,omitempty"`
	Namespaces             []corev1.Namespace                  `json:"namespaces,omitempty"`
	PersistentVolumeClaims []corev1.PersistentVolumeClaim      `json:"persistentVolumeClaims,omitempty"`
	PersistentVolumes      []corev1.PersistentVolume           `json:"persistentVolumes,omitempty"`
	StorageClasses         []storagev1.StorageClass            `json:"storageClasses,omitempty"`
	CSINodes               []storagev1.CSINode                 `json:"csiNodes,omitempty"`
	Services               []corev1.Service                    `json:"services,omitempty"`
	Deployments            []appsv1.Deployment                 `json:"deployments,omitempty"`
	ReplicaSets            []appsv1.ReplicaSet                 `json:"replicaSets,omitempty"`
	StatefulSets           []appsv1.StatefulSet                `json:"statefulSets,omitempty"`
	ReplicationControllers []corev1.ReplicationController      `json:"replicationControllers,omitempty"`
	PodDisruptionBudgets   []policyv1.PodDisruptionBudget      `json:"podDisruptionBudgets,omitempty"`
	PodTemplates           []corev1.PodTemplate                `json:"podTemplates,omitempty"`
	NodeOverlays           []v1alpha1.NodeOverlay              `json:"nodeOverlays,omitempty"`
	CapacityBuffers        []autoscalingv1beta1.CapacityBuffer `json:"capacityBuffers,omitempty"`
	ResourceClaims         []resourcev1.ResourceClaim          `json:"resourceClaims,omitempty"`
	ResourceClaimTemplates []resourcev1.ResourceClaimTemplate  `json:"resourceClaimTemplates,omitempty"`
	DeviceClasses          []resourcev1.DeviceClass            `json:"deviceClasses,omitempty"`
	ResourceSlices         []resourcev1.ResourceSlice          `json:"resourceSlices,omitempty"`
}

// Options are the settings of the controller that change its decisions. Absent ones take Karpenter's defaults.
type Options struct {
	PreferencePolicy  string          `json:"preferencePolicy,omitempty"`
	MinValuesPolicy   string          `json:"minValuesPolicy,omitempty"`
	IgnoreDRARequests *bool           `json:"ignoreDRARequests,omitempty"`
	ReservedCapacity  *bool           `json:"reservedCapacity,omitempty"`
	SchedulerConfig   json.RawMessage `json:"schedulerConfig,omitempty"`
}

// InstanceType is what the cloud provider would list.
type InstanceType struct {
	Name              string                           `json:"name"`
	Requirements      []corev1.NodeSelectorRequirement `json:"requirements"`
	Capacity          corev1.ResourceList              `json:"capacity"`
	Overhead          corev1.ResourceList              `json:"overhead,omitempty"`
	VolumeLimits      map[string]int                   `json:"volumeLimits,omitempty"`
	DeviceTemplates   []DeviceTemplate                 `json:"deviceTemplates,omitempty"`
	AttributeBindings []AttributeBinding               `json:"attributeBindings,omitempty"`
	Offerings         []Offering                       `json:"offerings"`
}

// Offering is one way to buy an instance type. Price is USD per hour, nil if unknown.
type Offering struct {
	Requirements        []corev1.NodeSelectorRequirement `json:"requirements"`
	Price               *float64                         `json:"price"`
	Available           bool                             `json:"available"`
	ReservationCapacity int                              `json:"reservationCapacity,omitempty"`
}

// DeviceTemplate is a ResourceSlice that a node of the instance type is expected to publish.
type DeviceTemplate struct {
	Driver         string                  `json:"driver"`
	Pool           string                  `json:"pool"`
	Devices        []resourcev1.Device     `json:"devices,omitempty"`
	SharedCounters []resourcev1.CounterSet `json:"sharedCounters,omitempty"`
}

// AttributeBinding names devices of one instance type which share an attribute whose value is known only at run time.
type AttributeBinding struct {
	Attribute string     `json:"attribute"`
	Devices   []DeviceID `json:"devices"`
}

// DeviceID names one device.
type DeviceID struct {
	Driver string `json:"driver"`
	Pool   string `json:"pool"`
	Device string `json:"device"`
}

// parseProblem decodes one problem. Unknown, repeated or differently spelled fields are errors. The name is returned
// even then, if it can be read, so that the error can be told apart from that of other problems.
func parseProblem(data []byte) (*Problem, string, error) {
	problem := &Problem{}
	strict, err := kjson.UnmarshalStrict(data, problem)
	if err != nil {
		named := struct {
			Name string `json:"name"`
		}{}
		_ = json.Unmarshal(data, &named)
		return nil, named.Name, err
	}
	if len(strict) > 0 {
		return nil, problem.Name, errors.Join(strict...)
	}
	return problem, problem.Name, problem.check()
}

// check refuses what would make Karpenter wait rather than answer, or read one thing as another.
func (p *Problem) check() error {
	known := map[string]bool{}
	for i := range p.InstanceTypes {
		it := &p.InstanceTypes[i]
		if it.Name == "" || known[it.Name] {
			return fmt.Errorf("instanceTypes[%d].name: %q is empty or not the first of its name", i, it.Name)
		}
		known[it.Name] = true
		for j := range it.Offerings {
			if price := it.Offerings[j].Price; price != nil && *price < 0 {
				return fmt.Errorf("instanceTypes[%d].offerings[%d].price: %v is negative", i, j, *price)
			}
		}
	}
	pools := map[string]bool{}
	for i := range p.NodePools {
		pools[p.NodePools[i].Name] = true
	}
	for pool, names := range p.InstanceTypesOf {
		if !pools[pool] {
			return fmt.Errorf("instanceTypesOf: there is no NodePool %q", pool)
		}
		for _, name := range names {
			if !known[name] {
				return fmt.Errorf("instanceTypesOf[%s]: there is no instance type %q", pool, name)
			}
		}
	}
	uids := map[string]string{}
	for i := range p.Pods {
		pod := &p.Pods[i]
		if pod.UID == "" {
			return fmt.Errorf("pods[%d]: %s has no uid", i, pod.Name)
		}
		if other, taken := uids[string(pod.UID)]; taken {
			return fmt.Errorf("pods[%d]: %s has the uid of %s", i, pod.Name, other)
		}
		uids[string(pod.UID)] = pod.Name
	}
	return nil
}

// isBlank tells a line without a problem.
func isBlank(line []byte) bool { return len(bytes.TrimSpace(line)) == 0 }
