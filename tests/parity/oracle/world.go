package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/awslabs/operatorpkg/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/overlay"
	"sigs.k8s.io/karpenter/pkg/controllers/capacitybuffer"
	"sigs.k8s.io/karpenter/pkg/controllers/dynamicresources/deviceallocation"
	"sigs.k8s.io/karpenter/pkg/controllers/nodeoverlay"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/state/virtualpods"
)

// world is a controller's memory of the cluster of a problem, made as its informers and controllers would.
type world struct {
	ctx         context.Context
	store       *store
	cluster     *state.Cluster
	provisioner *provisioning.Provisioner
	clock       *clocktesting.FakeClock
	settings    *options.Options
}

// silent drops Events.
type silent struct{}

// Publish implements events.Recorder.
func (silent) Publish(...events.Event) {}

// noTrigger stands for the provisioner's batcher, which a single run does not have.
type noTrigger struct{}

// Trigger implements capacitybuffer.ProvisionerTrigger.
func (noTrigger) Trigger(types.UID) {}

// TriggerReconcile implements capacitybuffer.ProvisionerTrigger.
func (noTrigger) TriggerReconcile() {}

// newWorld builds everything anew from the problem, which it does not change.
func newWorld(problem *Problem, workers int) (*world, error) {
	settings, err := problem.settings(workers)
	if err != nil {
		return nil, err
	}
	ctx := options.ToContext(injection.WithControllerName(context.Background(), "provisioner"), settings)
	objects, err := problem.store()
	if err != nil {
		return nil, err
	}
	cloud, err := newProvider(problem)
	if err != nil {
		return nil, err
	}
	clock := clocktesting.NewFakeClock(problem.Now)
	overlays := nodeoverlay.NewInstanceTypeStore()
	decorated := overlay.Decorate(cloud, objects, overlays)
	cluster := state.NewCluster(clock, objects, decorated)
	if err := observe(ctx, problem, objects, cluster, decorated); err != nil {
		return nil, err
	}
	if settings.FeatureGates.NodeOverlay {
		if _, err := nodeoverlay.NewController(clock, objects, cloud, overlays, cluster).Reconcile(ctx, reconcile.Request{}); err != nil {
			return nil, fmt.Errorf("applying nodeOverlays: %w", err)
		}
	}
	virtual := virtualpods.NewVirtualPodCache(objects)
	// The first read fills it by the status that buffers have, which is the problem's; what follows works it out.
	virtual.GetAll(ctx)
	buffers := capacitybuffer.NewController(objects, noTrigger{}, virtual)
	for i := range problem.CapacityBuffers {
		request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&problem.CapacityBuffers[i])}
		if _, err := buffers.Reconcile(ctx, request); err != nil {
			return nil, fmt.Errorf("resolving capacityBuffers[%d]: %w", i, err)
		}
	}
	devices := deviceallocation.NewController(objects)
	devices.Hydrate(ctx)
	return &world{
		ctx:         ctx,
		store:       objects,
		cluster:     cluster,
		provisioner: provisioning.NewProvisioner(objects, silent{}, decorated, cluster, clock, devices, virtual),
		clock:       clock,
		settings:    settings,
	}, nil
}

// observe feeds cluster state what its informers would report, NodeClaims and Nodes before the pods on them.
func observe(ctx context.Context, problem *Problem, objects *store, cluster *state.Cluster, cloud cloudprovider.CloudProvider) error {
	for i := range problem.NodeClaims {
		claim := problem.NodeClaims[i].DeepCopy()
		if claim.Status.ProviderID == "" {
			return fmt.Errorf("nodeClaims[%d]: %s has no status.providerID, so Karpenter would wait for its launch", i, claim.Name)
		}
		cluster.UpdateNodeClaim(claim)
	}
	for i := range problem.Nodes {
		if err := cluster.UpdateNode(ctx, problem.Nodes[i].DeepCopy()); err != nil {
			return fmt.Errorf("nodes[%d]: %w", i, err)
		}
	}
	for i := range problem.Pods {
		// A pod on a node that is gone is asked for again and again; it counts nowhere.
		if err := cluster.UpdatePod(ctx, problem.Pods[i].DeepCopy()); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("pods[%d]: %w", i, err)
		}
	}
	for i := range problem.DaemonSets {
		if err := cluster.UpdateDaemonSet(ctx, problem.DaemonSets[i].DeepCopy()); err != nil {
			return fmt.Errorf("daemonSets[%d]: %w", i, err)
		}
	}
	if !cluster.Synced(ctx) {
		return fmt.Errorf("cluster state is not synced: a managed Node lacks a provider ID or its instance type")
	}
	return nil
}

// settings are the controller's, with its defaults where the problem names none.
func (p *Problem) settings(workers int) (*options.Options, error) {
	settings := &options.Options{
		// What the number of workers is made from.
		CPURequests:       int64(workers) * 1000,
		BatchMaxDuration:  10 * time.Second,
		BatchIdleDuration: time.Second,
		PreferencePolicy:  options.PreferencePolicyRespect,
		MinValuesPolicy:   options.MinValuesPolicyStrict,
		IgnoreDRARequests: p.Options.IgnoreDRARequests == nil || *p.Options.IgnoreDRARequests,
	}
	switch policy := options.PreferencePolicy(p.Options.PreferencePolicy); policy {
	case "":
	case options.PreferencePolicyRespect, options.PreferencePolicyIgnore:
		settings.PreferencePolicy = policy
	default:
		return nil, fmt.Errorf("options.preferencePolicy: %q is neither Respect nor Ignore", policy)
	}
	switch policy := options.MinValuesPolicy(p.Options.MinValuesPolicy); policy {
	case "":
	case options.MinValuesPolicyStrict, options.MinValuesPolicyBestEffort:
		settings.MinValuesPolicy = policy
	default:
		return nil, fmt.Errorf("options.minValuesPolicy: %q is neither Strict nor BestEffort", policy)
	}
	settings.FeatureGates.ReservedCapacity = p.Options.ReservedCapacity == nil || *p.Options.ReservedCapacity
	settings.FeatureGates.NodeOverlay = len(p.NodeOverlays) > 0
	settings.FeatureGates.CapacityBuffer = len(p.CapacityBuffers) > 0
	settings.FeatureGates.StaticCapacity = true
	raw := string(p.Options.SchedulerConfig)
	if raw == "null" {
		raw = ""
	}
	if err := setSchedulerConfig(settings, raw); err != nil {
		return nil, err
	}
	return settings, nil
}

// store holds the objects of the problem. They are shared with it: reads copy.
func (p *Problem) store() (*store, error) {
	objects := newStore()
	class := &EC2NodeClass{}
	class.Name = "default"
	return objects, errors.Join(
		objects.add(class),
		addAll(objects, readyPools(p.NodePools)),
		addAll(objects, p.NodeClaims),
		addAll(objects, p.Nodes),
		addAll(objects, p.Pods),
		addAll(objects, p.DaemonSets),
		addAll(objects, p.Namespaces),
		addAll(objects, p.PersistentVolumeClaims),
		addAll(objects, p.PersistentVolumes),
		addAll(objects, p.StorageClasses),
		addAll(objects, p.CSINodes),
		addAll(objects, p.Services),
		addAll(objects, p.Deployments),
		addAll(objects, p.ReplicaSets),
		addAll(objects, p.StatefulSets),
		addAll(objects, p.ReplicationControllers),
		addAll(objects, p.PodDisruptionBudgets),
		addAll(objects, p.PodTemplates),
		addAll(objects, p.NodeOverlays),
		addAll(objects, p.CapacityBuffers),
		addAll(objects, p.ResourceClaims),
		addAll(objects, p.ResourceClaimTemplates),
		addAll(objects, p.DeviceClasses),
		addAll(objects, p.ResourceSlices),
	)
}

// readyPools are the NodePools with the conditions that Ready is made of, except where a NodePool says that it is not.
func readyPools(pools []karpv1.NodePool) []karpv1.NodePool {
	ready := make([]karpv1.NodePool, len(pools))
	for i := range pools {
		pools[i].DeepCopyInto(&ready[i])
		if slices.ContainsFunc(pools[i].Status.Conditions, func(c status.Condition) bool {
			return c.Type == status.ConditionReady && !c.IsTrue()
		}) {
			continue
		}
		conditions := ready[i].StatusConditions()
		conditions.SetTrue(karpv1.ConditionTypeValidationSucceeded)
		conditions.SetTrue(karpv1.ConditionTypeNodeClassReady)
	}
	return ready
}

// addAll stores a list.
func addAll[T any, O interface {
	*T
	client.Object
}](objects *store, list []T) error {
	for i := range list {
		if err := objects.add(O(&list[i])); err != nil {
			return err
		}
	}
	return nil
}
