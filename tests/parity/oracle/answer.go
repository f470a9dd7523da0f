package main

import (
	"sort"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
)

// Answer is what was decided for one problem, or why nothing could be.
type Answer struct {
	Name            string            `json:"name"`
	Error           string            `json:"error,omitempty"`
	Claims          []Claim           `json:"claims"`
	Existing        []Existing        `json:"existing"`
	Errors          map[string]string `json:"errors"`
	UnplacedBuffers []string          `json:"unplacedBuffers"`
	Millis          float64           `json:"millis"`
}

// MarshalJSON writes a failure as its name and error alone.
func (a *Answer) MarshalJSON() ([]byte, error) {
	if a.Error != "" {
		return marshal(struct {
			Name  string `json:"name"`
			Error string `json:"error"`
		}{a.Name, a.Error})
	}
	type plain Answer
	return marshal((*plain)(a))
}

// Claim is a NodeClaim to create.
type Claim struct {
	NodePool      string                                        `json:"nodePool"`
	Requirements  []karpv1.NodeSelectorRequirementWithMinValues `json:"requirements"`
	Labels        map[string]string                             `json:"labels"`
	InstanceTypes []string                                      `json:"instanceTypes"`
	Requests      corev1.ResourceList                           `json:"requests"`
	Pods          []string                                      `json:"pods"`
	Reservations  []string                                      `json:"reservations"`
}

// Existing is a Node, or a NodeClaim in flight, that gets pods.
type Existing struct {
	Node string   `json:"node"`
	Pods []string `json:"pods"`
}

func newAnswer(name string, results scheduling.Results, refused map[*corev1.Pod]error, took time.Duration) *Answer {
	a := &Answer{
		Name:            name,
		Claims:          []Claim{},
		Existing:        []Existing{},
		Errors:          map[string]string{},
		UnplacedBuffers: []string{},
		Millis:          float64(took.Microseconds()) / 1000,
	}
	for _, claim := range results.NewNodeClaims {
		a.Claims = append(a.Claims, newClaim(claim))
	}
	sort.Slice(a.Claims, func(i, j int) bool { return a.Claims[i].Pods[0] < a.Claims[j].Pods[0] })
	for _, node := range results.ExistingNodes {
		if len(node.Pods) > 0 {
			a.Existing = append(a.Existing, Existing{Node: node.Name(), Pods: podNames(node.Pods)})
		}
	}
	sort.Slice(a.Existing, func(i, j int) bool { return a.Existing[i].Node < a.Existing[j].Node })
	for _, failures := range []map[*corev1.Pod]error{results.PodErrors, refused} {
		for pod, err := range failures {
			if key := client.ObjectKeyFromObject(pod).String(); provisioning.IsVirtualPod(pod) {
				a.UnplacedBuffers = append(a.UnplacedBuffers, key)
			} else {
				a.Errors[key] = err.Error()
			}
		}
	}
	sort.Strings(a.UnplacedBuffers)
	return a
}

func newClaim(claim *scheduling.NodeClaim) Claim {
	// Making the object orders the instance types by price and settles what the provider would be asked for.
	object := claim.ToNodeClaim()
	c := Claim{
		NodePool:      claim.NodePoolName,
		Requirements:  object.Spec.Requirements,
		Labels:        object.Labels,
		InstanceTypes: []string{},
		Requests:      object.Spec.Resources.Requests,
		Pods:          podNames(claim.Pods),
		Reservations:  []string{},
	}
	for _, it := range claim.InstanceTypeOptions {
		c.InstanceTypes = append(c.InstanceTypes, it.Name)
	}
	for i := range c.Requirements {
		requirement := &c.Requirements[i]
		switch {
		case requirement.Key == corev1.LabelInstanceTypeStable && requirement.Operator == corev1.NodeSelectorOpIn:
			requirement.Values = c.InstanceTypes
		case requirement.Key == reservationID && requirement.Operator == corev1.NodeSelectorOpIn:
			c.Reservations = requirement.Values
		}
	}
	sort.Slice(c.Requirements, func(i, j int) bool {
		a, b := &c.Requirements[i], &c.Requirements[j]
		return a.Key < b.Key || a.Key == b.Key && a.Operator < b.Operator
	})
	return c
}

func podNames(pods []*corev1.Pod) []string {
	names := make([]string, len(pods))
	for i, pod := range pods {
		names[i] = client.ObjectKeyFromObject(pod).String()
	}
	sort.Strings(names)
	return names
}
