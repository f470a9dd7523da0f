package main

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func stored(t *testing.T) *store {
	t.Helper()
	s := newStore()
	pods := []corev1.Pod{}
	for _, of := range [][3]string{{"a", "one", ""}, {"a", "two", "n-1"}, {"b", "one", "n-1"}} {
		pod := corev1.Pod{}
		pod.Namespace, pod.Name, pod.Spec.NodeName = of[0], of[1], of[2]
		pod.Labels = map[string]string{"in": of[0]}
		pods = append(pods, pod)
	}
	if err := addAll(s, pods); err != nil {
		t.Fatal(err)
	}
	volume := &corev1.PersistentVolume{}
	volume.Name = "pv"
	if err := s.add(volume); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestReadsAreCopies(t *testing.T) {
	s, ctx := stored(t), context.Background()
	pod, list := &corev1.Pod{}, &corev1.PodList{}
	key := types.NamespacedName{Namespace: "a", Name: "one"}
	if err := s.Get(ctx, key, pod); err != nil {
		t.Fatal(err)
	}
	pod.Labels["in"] = "changed"
	if err := s.List(ctx, list, client.InNamespace("a")); err != nil {
		t.Fatal(err)
	}
	list.Items[0].Labels["in"] = "changed"
	if err := s.Get(ctx, key, pod); err != nil || pod.Labels["in"] != "a" {
		t.Errorf("%v, %v", pod.Labels, err)
	}
}

func TestListsByNamespaceFieldAndLabel(t *testing.T) {
	s := stored(t)
	for _, c := range []struct {
		opts []client.ListOption
		want int
	}{
		{nil, 3},
		{[]client.ListOption{client.InNamespace("a")}, 2},
		{[]client.ListOption{client.InNamespace("c")}, 0},
		{[]client.ListOption{client.MatchingFields{"spec.nodeName": "n-1"}}, 2},
		{[]client.ListOption{client.MatchingFields{"spec.nodeName": ""}}, 1},
		{[]client.ListOption{client.InNamespace("b"), client.MatchingLabels{"in": "b"}}, 1},
		{[]client.ListOption{client.InNamespace("b"), client.MatchingLabels{"in": "a"}}, 0},
	} {
		list := &corev1.PodList{}
		if err := s.List(context.Background(), list, c.opts...); err != nil || len(list.Items) != c.want {
			t.Errorf("%v: %d, %v", c.opts, len(list.Items), err)
		}
	}
	list := &corev1.PodList{}
	if err := s.List(context.Background(), list, client.MatchingFields{"spec.schedulerName": "x"}); err == nil {
		t.Error("a field without an index is listed by")
	}
	nodes := &corev1.NodeList{Items: make([]corev1.Node, 1)}
	if err := s.List(context.Background(), nodes); err != nil || len(nodes.Items) != 0 {
		t.Errorf("nodes where there are none: %v, %v", nodes.Items, err)
	}
}

func TestClusterWideKindsIgnoreTheNamespace(t *testing.T) {
	s := stored(t)
	key := types.NamespacedName{Namespace: "a", Name: "pv"}
	if err := s.Get(context.Background(), key, &corev1.PersistentVolume{}); err != nil {
		t.Error(err)
	}
	key.Name = "none"
	if err := s.Get(context.Background(), key, &corev1.PersistentVolume{}); !apierrors.IsNotFound(err) {
		t.Error(err)
	}
	if err := s.Get(context.Background(), key, &corev1.Service{}); !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}

func TestObjectsWithoutAPlaceAreErrors(t *testing.T) {
	s := stored(t)
	node := &corev1.Node{}
	if s.add(node) == nil {
		t.Error("a node without a name")
	}
	node.Name, node.Namespace = "n", "a"
	if s.add(node) == nil {
		t.Error("a node in a namespace")
	}
	pod := &corev1.Pod{}
	pod.Name, pod.Namespace = "one", "a"
	if s.add(pod) == nil {
		t.Error("a second pod of one name")
	}
}
