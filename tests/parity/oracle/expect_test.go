package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// expectation is what must hold of every right answer to a problem under ../problems (../FORMAT.md).
type expectation struct {
	Nodes           span                         `json:"nodes"`
	Placed          int                          `json:"placed"`
	Unplaced        []string                     `json:"unplaced"`
	Existing        map[string][]string          `json:"existing"`
	Apart           [][]string                   `json:"apart"`
	Together        [][]string                   `json:"together"`
	Zones           map[string][]string          `json:"zones"`
	Domains         map[string]int               `json:"domains"`
	Types           map[string][]string          `json:"types"`
	Cheapest        map[string]string            `json:"cheapest"`
	Pools           map[string]string            `json:"pools"`
	Requests        map[string]map[string]string `json:"requests"`
	Reserved        map[string][]string          `json:"reserved"`
	UnplacedBuffers int                          `json:"unplacedBuffers"`
	BufferPods      int                          `json:"bufferPods"`
	Since           string                       `json:"since"`
	Why             string                       `json:"why"`
}

// span is a number, or the least and the most.
type span struct{ least, most int }

func (s *span) UnmarshalJSON(data []byte) error {
	var ends [2]int
	if err := json.Unmarshal(data, &ends[0]); err == nil {
		s.least, s.most = ends[0], ends[0]
		return nil
	}
	err := json.Unmarshal(data, &ends)
	s.least, s.most = ends[0], ends[1]
	return err
}

// breaches lists what of the expectation does not hold.
func (e *expectation) breaches(a *Answer) []string {
	var found []string
	want := func(holds bool, format string, args ...any) {
		if !holds {
			found = append(found, fmt.Sprintf(format, args...))
		}
	}
	want(a.Error == "", "no answer: %s", a.Error)
	want(len(a.Claims) >= e.Nodes.least && len(a.Claims) <= e.Nodes.most, "%d new nodes", len(a.Claims))

	host := map[string]string{}
	claimOf := map[string]*Claim{}
	buffers := 0
	for i := range a.Claims {
		for _, pod := range a.Claims[i].Pods {
			want(host[pod] == "", "%s is placed twice", pod)
			host[pod] = fmt.Sprintf("claim %d", i)
			claimOf[pod] = &a.Claims[i]
		}
	}
	for _, existing := range a.Existing {
		for _, pod := range existing.Pods {
			want(host[pod] == "", "%s is placed twice", pod)
			host[pod] = existing.Node
		}
	}
	for pod := range host {
		if strings.Contains(pod, "/capacity-buffer-") {
			buffers++
		}
	}
	want(len(host)-buffers == e.Placed, "%d pods are placed", len(host)-buffers)
	want(buffers == e.BufferPods, "%d pods of buffers are placed", buffers)
	want(len(a.UnplacedBuffers) == e.UnplacedBuffers, "unplaced pods of buffers: %v", a.UnplacedBuffers)
	for _, pod := range e.Unplaced {
		want(a.Errors[pod] != "", "%s has no error", pod)
	}
	for node, pods := range e.Existing {
		at := slices.IndexFunc(a.Existing, func(x Existing) bool { return x.Node == node })
		want(at >= 0 && slices.Equal(a.Existing[at].Pods, pods), "%s does not get %v alone", node, pods)
	}
	want(e.Existing == nil || len(e.Existing) == len(a.Existing), "existing nodes that get pods: %v", a.Existing)
	for _, pair := range e.Apart {
		want(host[pair[0]] != host[pair[1]], "%v share %s", pair, host[pair[0]])
	}
	for _, pair := range e.Together {
		want(host[pair[0]] == host[pair[1]], "%v do not share a node", pair)
	}
	for pod, pool := range e.Pools {
		want(claimOf[pod] != nil && claimOf[pod].NodePool == pool, "%s is not on NodePool %s", pod, pool)
	}
	for pod, zones := range e.Zones {
		got := claimOf[pod].values(corev1.LabelTopologyZone)
		want(len(got) > 0 && subset(got, zones), "%s may be in zones %v", pod, got)
	}
	for pod, types := range e.Types {
		want(claimOf[pod] != nil && len(claimOf[pod].InstanceTypes) > 0 && subset(claimOf[pod].InstanceTypes, types), "%s: types", pod)
	}
	for pod, first := range e.Cheapest {
		want(claimOf[pod] != nil && claimOf[pod].InstanceTypes[0] == first, "%s: the cheapest type is not %s", pod, first)
	}
	for pod, ids := range e.Reserved {
		want(claimOf[pod] != nil && slices.Equal(claimOf[pod].Reservations, ids), "%s does not hold %v", pod, ids)
	}
	for pod, requests := range e.Requests {
		for name, text := range requests {
			got := resource.Quantity{}
			if claimOf[pod] != nil {
				got = claimOf[pod].Requests[corev1.ResourceName(name)]
			}
			want(got.Cmp(resource.MustParse(text)) == 0, "%s: the claim requests %s of %s", pod, got.String(), name)
		}
	}
	for key, count := range e.Domains {
		distinct := map[string]bool{}
		for i := range a.Claims {
			if values := a.Claims[i].values(key); len(values) == 1 {
				distinct[values[0]] = true
			}
		}
		want(len(distinct) == count, "claims are settled on %d values of %s", len(distinct), key)
	}
	return found
}

// values are those of the In requirement on a key.
func (c *Claim) values(key string) []string {
	if c == nil {
		return nil
	}
	for i := range c.Requirements {
		if r := &c.Requirements[i]; r.Key == key && r.Operator == corev1.NodeSelectorOpIn {
			return r.Values
		}
	}
	return nil
}

func subset(of, all []string) bool {
	return !slices.ContainsFunc(of, func(x string) bool { return !slices.Contains(all, x) })
}
