package main

import (
	"fmt"
	"math/rand"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// began is the `now` of every exported problem, and when its pods were created.
var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// mixes are the kinds of pods that can be exported. Karpenter places all pods of each.
var mixes = map[string]func(*draws, int) []corev1.Pod{
	// Its own benchmark: fifths of plain pods, zone spread, hostname spread, zone affinity and hostname anti-affinity.
	"diverse": diverse,
	// Its own benchmark of preferences: equal pods which prefer a zone and to be apart, by zone and by node.
	"preference": preference,
	// Workloads of 20, each spread by two keys, or by one with the other as a preference.
	"topology": topologyHeavy,
	// Workloads of 10: together in a zone and apart by node, together in a market and apart from the nodes of the workload
	// before, or followers of another one's zone.
	"affinity": affinityHeavy,
	// No two pods request the same, nor have the same labels; a fifth each is spread by zone and by hostname.
	"shapes": shapes,
}

// draws makes pods from one stream of random numbers: the same seed gives the same problem.
type draws struct {
	random *rand.Rand
	made   int
}

func newDraws(seed int64) *draws { return &draws{random: rand.New(rand.NewSource(seed))} }

// letter is one of seven label values.
func (d *draws) letter() string { return string("abcdefg"[d.random.Intn(7)]) }

// requests are one of five by six sizes: cpu first, so that a stream of draws is Karpenter's.
func (d *draws) requests() corev1.ResourceList {
	cpu := []int64{100, 250, 500, 1000, 1500}[d.random.Intn(5)]
	memory := []int64{100, 256, 512, 1024, 2048, 4096}[d.random.Intn(6)]
	return sized(cpu, memory)
}

func sized(milliCPU, mebibytes int64) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(milliCPU, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(mebibytes<<20, resource.BinarySI),
	}
}

// pod is a pending pod. Its phase is left out, as in Karpenter's benchmark: with one, its scheduler would also work out
// a metric per pod.
func (d *draws) pod(labels map[string]string, requests corev1.ResourceList) corev1.Pod {
	d.made++
	all := map[string]string{"testing/cluster": "unspecified"}
	for key, value := range labels {
		all[key] = value
	}
	return corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace:         "default",
			Name:              fmt.Sprintf("p-%05d", d.made),
			UID:               types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", d.made)),
			CreationTimestamp: metav1.NewTime(began),
			Labels:            all,
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name:      "main",
			Image:     "pause",
			Resources: corev1.ResourceRequirements{Requests: requests},
		}}},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
			Type:   corev1.PodScheduled,
			Status: corev1.ConditionFalse,
			Reason: corev1.PodReasonUnschedulable,
		}}},
	}
}

func spread(key string, maxSkew int32, selector map[string]string) corev1.TopologySpreadConstraint {
	return corev1.TopologySpreadConstraint{
		MaxSkew:           maxSkew,
		TopologyKey:       key,
		WhenUnsatisfiable: corev1.DoNotSchedule,
		LabelSelector:     &metav1.LabelSelector{MatchLabels: selector},
	}
}

func term(key string, selector map[string]string) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: selector}, TopologyKey: key}
}

func together(terms ...corev1.PodAffinityTerm) *corev1.Affinity {
	return &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
}

func apart(terms ...corev1.PodAffinityTerm) *corev1.PodAntiAffinity {
	return &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}
}

func diverse(d *draws, count int) []corev1.Pod {
	fifth := count / 5
	pods := d.plain(fifth)
	pods = append(pods, d.spread(fifth, corev1.LabelTopologyZone)...)
	pods = append(pods, d.spread(fifth, corev1.LabelHostname)...)
	for range fifth {
		labels := map[string]string{"my-affininity": d.letter()}
		pod := d.pod(labels, d.requests())
		pod.Spec.Affinity = together(term(corev1.LabelTopologyZone, labels))
		pods = append(pods, pod)
	}
	for range fifth {
		labels := map[string]string{"app": "nginx"}
		pod := d.pod(labels, d.requests())
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: apart(term(corev1.LabelHostname, labels))}
		pods = append(pods, pod)
	}
	return append(pods, d.plain(count-len(pods))...)
}

func (d *draws) plain(count int) []corev1.Pod {
	var pods []corev1.Pod
	for range count {
		labels := map[string]string{"my-label": d.letter()}
		pods = append(pods, d.pod(labels, d.requests()))
	}
	return pods
}

// spread pods select a label value of their own draw, so that one in seven selects itself.
func (d *draws) spread(count int, key string) []corev1.Pod {
	var pods []corev1.Pod
	for range count {
		labels := map[string]string{"my-label": d.letter()}
		selector := map[string]string{"my-label": d.letter()}
		pod := d.pod(labels, d.requests())
		pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{spread(key, 1, selector)}
		pods = append(pods, pod)
	}
	return pods
}

func preference(d *draws, count int) []corev1.Pod {
	labels := map[string]string{"app": "nginx"}
	requests := d.requests()
	var pods []corev1.Pod
	for range count {
		pod := d.pod(labels, requests)
		pod.Spec.Affinity = &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
				Weight: 1,
				Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"test-zone-1"},
				}}},
			}}},
			PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
				{Weight: 10, PodAffinityTerm: term(corev1.LabelTopologyZone, labels)},
				{Weight: 1, PodAffinityTerm: term(corev1.LabelHostname, labels)},
			}},
		}
		pods = append(pods, pod)
	}
	return pods
}

func topologyHeavy(d *draws, count int) []corev1.Pod {
	var pods []corev1.Pod
	for workload := 0; len(pods) < count; workload++ {
		labels := map[string]string{"app": fmt.Sprintf("w-%d", workload)}
		var constraints []corev1.TopologySpreadConstraint
		switch workload % 5 {
		case 0, 1, 2:
			constraints = append(constraints, spread(corev1.LabelTopologyZone, 1, labels), spread(corev1.LabelHostname, 2, labels))
		case 3:
			constraints = append(constraints, spread("karpenter.sh/capacity-type", 1, labels), spread(corev1.LabelHostname, 3, labels))
		default:
			constraints = append(constraints, spread(corev1.LabelTopologyZone, 1, labels), spread(corev1.LabelHostname, 1, labels))
			constraints[0].WhenUnsatisfiable = corev1.ScheduleAnyway
		}
		for range min(20, count-len(pods)) {
			pod := d.pod(labels, d.requests())
			pod.Spec.TopologySpreadConstraints = constraints
			pods = append(pods, pod)
		}
	}
	return pods
}

func affinityHeavy(d *draws, count int) []corev1.Pod {
	var pods []corev1.Pod
	for workload := 0; len(pods) < count; workload++ {
		labels := map[string]string{"app": fmt.Sprintf("w-%d", workload)}
		var affinity *corev1.Affinity
		switch workload % 4 {
		case 0, 1:
			affinity = together(term(corev1.LabelTopologyZone, labels))
			affinity.PodAntiAffinity = apart(term(corev1.LabelHostname, labels))
		case 2:
			before := map[string]string{"app": fmt.Sprintf("w-%d", workload-1)}
			affinity = together(term("karpenter.sh/capacity-type", labels))
			affinity.PodAntiAffinity = apart(term(corev1.LabelHostname, before))
		default:
			// Three before, there is a workload that is together in a zone.
			leader := map[string]string{"app": fmt.Sprintf("w-%d", workload-3)}
			affinity = together(term(corev1.LabelTopologyZone, leader))
		}
		for range min(10, count-len(pods)) {
			pod := d.pod(labels, d.requests())
			pod.Spec.Affinity = affinity
			pods = append(pods, pod)
		}
	}
	return pods
}

func shapes(d *draws, count int) []corev1.Pod {
	var pods []corev1.Pod
	for i := range count {
		labels := map[string]string{"app": fmt.Sprintf("s-%d", i), "my-label": d.letter()}
		// Distinct by their memory alone, whatever the draw.
		pod := d.pod(labels, sized(100+int64(d.random.Intn(4000)), 128+int64(i)))
		switch i % 5 {
		case 1:
			pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
				spread(corev1.LabelTopologyZone, 1, map[string]string{"my-label": labels["my-label"]}),
			}
		case 2:
			pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
				spread(corev1.LabelHostname, 2, map[string]string{"my-label": labels["my-label"]}),
			}
		}
		pods = append(pods, pod)
	}
	return pods
}
