package main

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

var testZones = []string{"test-zone-1", "test-zone-2", "test-zone-3"}

// benchmarkCluster is that of Karpenter's benchmark: one NodePool which takes anything, and 400 instance types.
func benchmarkCluster() *Problem {
	ignore, reserved := true, true
	pool := karpv1.NodePool{
		TypeMeta:   metav1.TypeMeta{APIVersion: "karpenter.sh/v1", Kind: "NodePool"},
		ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "11111111-0000-4000-8000-000000000001", CreationTimestamp: metav1.NewTime(began)},
	}
	pool.Spec.Template.Labels = map[string]string{"testing/cluster": "unspecified"}
	pool.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}
	pool.Spec.Template.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{}
	pool.Spec.Limits = karpv1.Limits{
		corev1.ResourceCPU:    resource.MustParse("10000000"),
		corev1.ResourceMemory: resource.MustParse("10000000Gi"),
	}
	pool.Status.Conditions = conditions(status.ConditionReady)
	problem := &Problem{
		Now: began,
		Options: Options{
			MinValuesPolicy:   "Strict",
			IgnoreDRARequests: &ignore,
			ReservedCapacity:  &reserved,
			SchedulerConfig:   json.RawMessage("null"),
		},
		NodePools: []karpv1.NodePool{pool},
	}
	for i := range 400 {
		problem.InstanceTypes = append(problem.InstanceTypes, benchmarkType(i))
	}
	return problem
}

// benchmarkType is the i-th: i+1 cpu, twice as many Gi, ten times as many pods, a price in proportion.
func benchmarkType(i int) InstanceType {
	cpu := int64(i + 1)
	memory := resource.NewQuantity(2*cpu<<30, resource.BinarySI)
	price := 0.1*float64(cpu) + 0.1*float64(memory.Value())/1e9
	in := func(key string, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	name := fmt.Sprintf("fake-it-%d", i)
	size, special := in("size", "small"), corev1.NodeSelectorRequirement{Key: "special", Operator: corev1.NodeSelectorOpDoesNotExist}
	if cpu > 4 && memory.Value() > 8<<30 {
		size, special = in("size", "large"), in("special", "optional")
	}
	it := InstanceType{
		Name: name,
		Requirements: []corev1.NodeSelectorRequirement{
			in(corev1.LabelInstanceTypeStable, name),
			in(corev1.LabelArchStable, "amd64"),
			in(corev1.LabelOSStable, "linux", "windows", "darwin"),
			in(corev1.LabelTopologyZone, testZones...),
			in(karpv1.CapacityTypeLabelKey, karpv1.CapacityTypeSpot, karpv1.CapacityTypeOnDemand),
			size,
			special,
			in("integer", strconv.FormatInt(cpu, 10)),
		},
		Capacity: corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewQuantity(cpu, resource.DecimalSI),
			corev1.ResourceMemory: *memory,
			corev1.ResourcePods:   *resource.NewQuantity(10*cpu, resource.DecimalSI),
		},
		Overhead: sized(100, 10),
	}
	for _, market := range []string{karpv1.CapacityTypeSpot, karpv1.CapacityTypeOnDemand} {
		for _, zone := range testZones {
			if market == karpv1.CapacityTypeSpot && zone == "test-zone-3" {
				continue
			}
			it.Offerings = append(it.Offerings, Offering{
				Requirements: []corev1.NodeSelectorRequirement{in(karpv1.CapacityTypeLabelKey, market), in(corev1.LabelTopologyZone, zone)},
				Price:        &price,
				Available:    true,
			})
		}
	}
	return it
}

// addNodes adds initialised nodes of 16 cpu, zones in turn, and plain pods running on them in turn: with ten a node, as in
// the 2,000 nodes with 20,000 pods of the warm case, about two fifths of the cpu is taken.
func (p *Problem) addNodes(d *draws, nodes, running int) {
	const at = 15
	it := benchmarkType(at)
	allocatable := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("15900m"),
		corev1.ResourceMemory: *resource.NewQuantity(32<<30-10<<20, resource.BinarySI),
		corev1.ResourcePods:   it.Capacity[corev1.ResourcePods],
	}
	for i := range nodes {
		name := fmt.Sprintf("n-%05d", i)
		labels := map[string]string{
			karpv1.NodePoolLabelKey:          "default",
			karpv1.CapacityTypeLabelKey:      karpv1.CapacityTypeOnDemand,
			karpv1.NodeRegisteredLabelKey:    "true",
			karpv1.NodeInitializedLabelKey:   "true",
			"karpenter.k8s.aws/ec2nodeclass": "default",
			corev1.LabelInstanceTypeStable:   it.Name,
			corev1.LabelArchStable:           "amd64",
			corev1.LabelOSStable:             "linux",
			corev1.LabelTopologyZone:         testZones[i%len(testZones)],
			corev1.LabelHostname:             name,
			"testing/cluster":                "unspecified",
			"size":                           "large",
			"special":                        "optional",
			"integer":                        strconv.Itoa(at + 1),
		}
		node := corev1.Node{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(fmt.Sprintf("22222222-0000-4000-8000-%012d", i)), CreationTimestamp: metav1.NewTime(began), Labels: labels},
			Spec:       corev1.NodeSpec{ProviderID: "test:///" + name},
			Status: corev1.NodeStatus{
				Capacity:    it.Capacity,
				Allocatable: allocatable,
				Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}},
			},
		}
		claim := karpv1.NodeClaim{
			TypeMeta:   metav1.TypeMeta{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim"},
			ObjectMeta: metav1.ObjectMeta{Name: "c-" + name, UID: types.UID(fmt.Sprintf("33333333-0000-4000-8000-%012d", i)), CreationTimestamp: metav1.NewTime(began), Labels: labels},
		}
		claim.Spec.NodeClassRef = p.NodePools[0].Spec.Template.Spec.NodeClassRef
		claim.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{}
		claim.Status.ProviderID = node.Spec.ProviderID
		claim.Status.NodeName = name
		claim.Status.Capacity = it.Capacity
		claim.Status.Allocatable = allocatable
		claim.Status.Conditions = conditions(
			karpv1.ConditionTypeLaunched, karpv1.ConditionTypeRegistered, karpv1.ConditionTypeInitialized, status.ConditionReady,
		)
		p.Nodes = append(p.Nodes, node)
		p.NodeClaims = append(p.NodeClaims, claim)
	}
	for i, pod := range d.plain(running) {
		pod.Spec.NodeName = p.Nodes[i%nodes].Name
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning}
		p.Pods = append(p.Pods, pod)
	}
}

// conditions are true since the problem's beginning.
func conditions(types ...string) []status.Condition {
	var all []status.Condition
	for _, t := range types {
		all = append(all, status.Condition{Type: t, Status: metav1.ConditionTrue, Reason: t, LastTransitionTime: metav1.NewTime(began)})
	}
	return all
}
