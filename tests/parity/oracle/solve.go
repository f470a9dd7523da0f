package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	nodeutils "sigs.k8s.io/karpenter/pkg/utils/node"
)

// run is a scheduler that is ready to solve, with the pods that it is to place.
type run struct {
	world     *world
	scheduler *scheduling.Scheduler
	pods      []*corev1.Pod
	// refused are pods that never reach the scheduler, with Karpenter's reason.
	refused map[*corev1.Pod]error
}

// prepare does what the Provisioner does before Solve, in its order: nodes first, then pending pods, then the pods of
// nodes that go away. A run without a scheduler has no pods, or no NodePool to put them on.
func (w *world) prepare() (*run, error) {
	nodes := w.cluster.DeepCopyNodes()
	refused, err := w.refused()
	if err != nil {
		return nil, err
	}
	pending, err := w.provisioner.GetPendingPods(w.ctx)
	if err != nil {
		return nil, err
	}
	leaving, err := nodes.Deleting().CurrentlyReschedulablePods(w.ctx, w.store, w.clock, silent{})
	if err != nil {
		return nil, err
	}
	r := &run{world: w, pods: append(pending, leaving...), refused: refused}
	if len(r.pods) == 0 {
		return r, nil
	}
	uids := sets.New[types.UID]()
	for _, pod := range leaving {
		uids.Insert(pod.UID)
	}
	opts := []scheduling.Options{
		scheduling.DisableReservedCapacityFallback,
		scheduling.NumConcurrentReconciles(int(math.Ceil(float64(w.settings.CPURequests) / 1000.0))),
		scheduling.MinValuesPolicy(w.settings.MinValuesPolicy),
	}
	if w.settings.PreferencePolicy == options.PreferencePolicyIgnore {
		opts = append(opts, scheduling.IgnorePreferences)
	}
	r.scheduler, err = w.provisioner.NewScheduler(w.ctx, r.pods, nodes.Active(), uids, opts...)
	if errors.Is(err, provisioning.ErrNodePoolsNotFound) {
		for _, pod := range r.pods {
			r.refused[pod] = errors.New("no dynamic nodepools found")
		}
		return r, nil
	}
	return r, err
}

// refused are the provisionable pods that validation keeps from the scheduler. GetPendingPods only logs them.
func (w *world) refused() (map[*corev1.Pod]error, error) {
	pods, err := nodeutils.GetProvisionablePods(w.ctx, w.store)
	if err != nil {
		return nil, err
	}
	refused := map[*corev1.Pod]error{}
	for _, pod := range pods {
		if err := w.provisioner.Validate(w.ctx, pod); err != nil {
			refused[pod] = err
		}
	}
	return refused, nil
}

// solve places the pods and gives the time that Solve alone took. A run over the limit is an error, though Karpenter
// would go on with what it has after a minute: half an answer compares with nothing.
func (r *run) solve(limit time.Duration) (scheduling.Results, time.Duration, error) {
	if r.scheduler == nil {
		return scheduling.Results{}, 0, nil
	}
	ctx, cancel := context.WithTimeout(r.world.ctx, limit)
	defer cancel()
	start := time.Now()
	results, err := r.scheduler.Solve(ctx, r.pods)
	took := time.Since(start)
	if err != nil {
		return results, took, fmt.Errorf("solving: %w", err)
	}
	return results.TruncateInstanceTypes(ctx, scheduling.MaxInstanceTypes), took, nil
}

// withWellKnown makes the problem's own label keys well-known while fn runs. Karpenter keeps them for the process, so
// problems are solved one after another.
func (p *Problem) withWellKnown(fn func()) {
	keys := p.wellKnown()
	karpv1.WellKnownLabels.Insert(keys...)
	defer karpv1.WellKnownLabels.Delete(keys...)
	fn()
}

// answer solves the problem from scratch. Errors and panics become part of the answer.
func (p *Problem) answer(workers int, limit time.Duration) (answer *Answer) {
	defer func() {
		if cause := recover(); cause != nil {
			answer = &Answer{Name: p.Name, Error: fmt.Sprintf("panic: %v\n%s", cause, debug.Stack())}
		}
	}()
	p.withWellKnown(func() {
		var err error
		if answer, err = p.attempt(workers, limit); err != nil {
			answer = &Answer{Name: p.Name, Error: err.Error()}
		}
	})
	return answer
}

func (p *Problem) attempt(workers int, limit time.Duration) (*Answer, error) {
	w, err := newWorld(p, workers)
	if err != nil {
		return nil, err
	}
	r, err := w.prepare()
	if err != nil {
		return nil, err
	}
	results, took, err := r.solve(limit)
	if err != nil {
		return nil, err
	}
	return newAnswer(p.Name, results, r.refused, took), nil
}
