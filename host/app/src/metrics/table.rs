//! The table of metrics.

use super::Kind;

/// A metric's definition.
#[derive(Debug)]
pub struct Metric {
    /// Name.
    pub name: &'static str,
    /// Kind and buckets.
    pub kind: Kind,
    /// Label names.
    pub labels: &'static [&'static str],
    /// What it says. Names kept for older dashboards begin with "Deprecated".
    pub help: &'static str,
}

macro_rules! metrics {
    ($($id:ident = $kind:expr, $name:literal, [$($label:literal),*], $help:literal;)*) => {
        /// Names of the metrics in code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[expect(missing_docs, reason = "each is described by its help text in the table")]
        pub enum Id { $($id),* }

        /// All metrics, in the order of [`Id`].
        pub static TABLE: &[Metric] = &[$(Metric { name: $name, kind: $kind, labels: &[$($label),*], help: $help }),*];
    };
}

impl Id {
    /// Definition.
    #[must_use]
    pub fn metric(self) -> &'static Metric {
        // `Id` and `TABLE` come out of one macro, so the index is always in range.
        &TABLE[self as usize]
    }
}

/// Bounds of Karpenter's duration histograms, seconds.
const D: Kind = Kind::Histogram(&[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
    1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0, 120.0,
    150.0, 300.0, 450.0, 600.0,
]);
/// Bounds of instance termination, seconds.
const INSTANCE_TERMINATION: Kind =
    Kind::Histogram(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0]);
/// Bounds of NodeClaim and Node termination, seconds.
const TERMINATION: Kind = Kind::Histogram(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0]);
/// Bounds of the Go client library's histograms, seconds.
const DEFAULT: Kind = Kind::Histogram(&[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0]);
/// Bounds of node lifetimes: 15 minutes to 30 days, seconds.
const LIFETIME: Kind = Kind::Histogram(&[
    900.0,
    1800.0,
    2700.0,
    3600.0,
    7200.0,
    14_400.0,
    21_600.0,
    28_800.0,
    36_000.0,
    43_200.0,
    57_600.0,
    72_000.0,
    86_400.0,
    172_800.0,
    259_200.0,
    432_000.0,
    864_000.0,
    1_296_000.0,
    1_728_000.0,
    2_160_000.0,
    2_592_000.0,
]);
/// Bounds of the path from the end of a batch to the launch call, seconds: finer than `D` where our target lies.
const LATENCY: Kind =
    Kind::Histogram(&[0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0]);
const C: Kind = Kind::Counter;
const G: Kind = Kind::Gauge;

metrics! {
    BuildInfo = G, "karpenter_build_info", ["version", "goversion", "goarch", "commit"], "Always 1; labels tell what is running.";

    NodeclaimsCreatedTotal = C, "karpenter_nodeclaims_created_total", ["reason", "nodepool", "min_values_relaxed"], "NodeClaims created, by reason.";
    NodeclaimsTerminatedTotal = C, "karpenter_nodeclaims_terminated_total", ["nodepool", "capacity_type", "zone"], "NodeClaims that are gone.";
    NodeclaimsDisruptedTotal = C, "karpenter_nodeclaims_disrupted_total", ["reason", "nodepool", "capacity_type", "consolidation_policy", "termination_mode"], "NodeClaims deleted by the controller, by reason.";
    NodeclaimsTerminationDuration = TERMINATION, "karpenter_nodeclaims_termination_duration_seconds", ["nodepool"], "From the deletion of a NodeClaim to the removal of its finalizer.";
    NodeclaimsInstanceTerminationDuration = INSTANCE_TERMINATION, "karpenter_nodeclaims_instance_termination_duration_seconds", ["nodepool"], "From the first request to terminate an instance until it is gone.";
    NodeclaimsLaunched = C, "karpenter_nodeclaims_launched", ["nodepool"], "Deprecated, for older dashboards: NodeClaims whose instance was launched. Today: condition Launched of karpenter_nodeclaims_created_total's claims.";
    NodeclaimsRegistered = C, "karpenter_nodeclaims_registered", ["nodepool"], "Deprecated, for older dashboards: NodeClaims whose node registered. Today: karpenter_nodes_created_total.";
    NodeclaimsDisrupted = C, "karpenter_nodeclaims_disrupted", ["nodepool", "type"], "Deprecated, for older dashboards: NodeClaims disrupted. Today: karpenter_nodeclaims_disrupted_total.";

    NodesCreatedTotal = C, "karpenter_nodes_created_total", ["nodepool", "zone"], "Nodes that registered.";
    NodesTerminatedTotal = C, "karpenter_nodes_terminated_total", ["nodepool", "zone"], "Nodes that are gone.";
    NodesTerminationDuration = TERMINATION, "karpenter_nodes_termination_duration_seconds", ["nodepool"], "From the deletion of a Node to the removal of its finalizer.";
    NodesDrainedTotal = C, "karpenter_nodes_drained_total", ["nodepool"], "Nodes drained.";
    NodesLifetimeDuration = LIFETIME, "karpenter_nodes_lifetime_duration_seconds", ["nodepool"], "Age of nodes when they went.";
    NodesAllocatable = G, "karpenter_nodes_allocatable", ["node_name", "nodepool", "zone", "instance_type", "capacity_type", "arch", "phase", "managed", "resource_type"], "Allocatable resources of each node.";
    NodesTotalPodRequests = G, "karpenter_nodes_total_pod_requests", ["node_name", "nodepool", "zone", "instance_type", "capacity_type", "arch", "phase", "managed", "resource_type"], "Requests of the pods on each node, DaemonSets left out.";
    NodesTotalDaemonRequests = G, "karpenter_nodes_total_daemon_requests", ["node_name", "nodepool", "zone", "instance_type", "capacity_type", "arch", "phase", "managed", "resource_type"], "Requests of the DaemonSet pods on each node.";
    ClusterUtilizationPercent = G, "karpenter_cluster_utilization_percent", ["resource_type"], "Requests as percent of allocatable over all nodes.";

    PodsState = G, "karpenter_pods_state", ["name", "namespace", "owner", "node", "scheduled", "nodepool", "zone", "arch", "capacity_type", "instance_type", "phase", "ready", "managed"], "One series per pod; the labels tell its state.";
    PodsSchedulingDecisionDuration = D, "karpenter_pods_scheduling_decision_duration_seconds", [], "From the first sight of a pending pod to the first decision about it.";
    PodsEvictionRequestsTotal = C, "karpenter_pods_eviction_requests_total", ["code"], "Evictions asked for, by answer.";
    PodsDrainedTotal = C, "karpenter_pods_drained_total", ["reason"], "Pods evicted or deleted while a node was drained.";
    PodsDisruptionInitiatedTotal = C, "karpenter_pods_disruption_initiated_total", ["reason", "nodepool", "capacity_type", "consolidation_policy", "termination_mode"], "Pods that had to move because their node was disrupted.";

    NodepoolsLimit = G, "karpenter_nodepools_limit", ["resource_type", "nodepool"], "Limits of each NodePool, in base units.";
    NodepoolsUsage = G, "karpenter_nodepools_usage", ["resource_type", "nodepool"], "What each NodePool has provisioned, in base units.";
    NodepoolsAllowedDisruptions = G, "karpenter_nodepools_allowed_disruptions", ["nodepool", "reason"], "Nodes that budgets allow to disrupt now.";
    NodepoolsNodesConsumingBudgets = G, "karpenter_nodepools_nodes_consuming_budgets", ["nodepool", "reason"], "Nodes that count against the budgets now.";
    NodepoolsCostTotal = G, "karpenter_nodepools_cost_total", ["nodepool"], "List price of the NodePool's nodes, USD per hour.";

    SchedulingDuration = D, "karpenter_scheduler_scheduling_duration_seconds", ["controller"], "Duration of one scheduling run.";
    SchedulerQueueDepth = G, "karpenter_scheduler_queue_depth", ["controller", "scheduling_id"], "Pods in the current scheduling run.";
    SchedulerIgnoredPods = G, "karpenter_scheduler_ignored_pods_count", [], "Pending pods left out of scheduling because of what they ask.";
    SchedulerUnschedulablePods = G, "karpenter_scheduler_unschedulable_pods_count", ["controller"], "Pods for which the last run found no place.";

    DisruptionEvaluationDuration = D, "karpenter_voluntary_disruption_decision_evaluation_duration_seconds", ["reason", "consolidation_type"], "Duration of one disruption evaluation.";
    DisruptionEvaluationDurationOld = D, "karpenter_disruption_evaluation_duration_seconds", ["method", "reason", "consolidation_type"], "Deprecated, for older dashboards. Today: karpenter_voluntary_disruption_decision_evaluation_duration_seconds.";
    VoluntaryDisruptionDecisionsTotal = C, "karpenter_voluntary_disruption_decisions_total", ["decision", "reason", "consolidation_type"], "Disruption decisions carried out.";
    VoluntaryDisruptionDecisionsByNodepoolTotal = C, "karpenter_voluntary_disruption_decisions_by_nodepool_total", ["nodepool", "decision", "reason", "consolidation_type"], "Disruption decisions carried out, by NodePool.";
    VoluntaryDisruptionEligibleNodes = G, "karpenter_voluntary_disruption_eligible_nodes", ["reason"], "Nodes that could be disrupted for the reason.";
    VoluntaryDisruptionConsolidationTimeoutsTotal = C, "karpenter_voluntary_disruption_consolidation_timeouts_total", ["consolidation_type"], "Consolidation searches cut short.";
    VoluntaryDisruptionFailedValidationsTotal = C, "karpenter_voluntary_disruption_failed_validations_total", ["consolidation_type"], "Decisions that no longer held when they were to be carried out.";
    VoluntaryDisruptionQueueFailuresTotal = C, "karpenter_voluntary_disruption_queue_failures_total", ["decision", "reason", "consolidation_type"], "Decisions whose execution failed.";

    ClusterStateNodeCount = G, "karpenter_cluster_state_node_count", [], "Nodes and NodeClaims known.";
    ClusterStateSynced = G, "karpenter_cluster_state_synced", [], "1 once every kind has been listed.";
    ClusterStateUnsyncedTime = G, "karpenter_cluster_state_unsynced_time_seconds", [], "How long the state has not been synced.";

    CloudproviderDuration = DEFAULT, "karpenter_cloudprovider_duration_seconds", ["controller", "method", "provider"], "Duration of calls to the cloud provider.";
    CloudproviderErrorsTotal = C, "karpenter_cloudprovider_errors_total", ["controller", "method", "provider", "error", "nodepool"], "Errors of calls to the cloud provider.";
    InstanceTypeCpuCores = G, "karpenter_cloudprovider_instance_type_cpu_cores", ["instance_type"], "vCPUs of each instance type.";
    InstanceTypeMemoryBytes = G, "karpenter_cloudprovider_instance_type_memory_bytes", ["instance_type"], "Memory of each instance type.";
    OfferingAvailable = G, "karpenter_cloudprovider_instance_type_offering_available", ["instance_type", "capacity_type", "zone"], "1 when the offering may be launched now.";
    OfferingPriceEstimate = G, "karpenter_cloudprovider_instance_type_offering_price_estimate", ["instance_type", "capacity_type", "zone"], "USD per hour of the offering; absent when unknown.";
    InstanceTypePriceEstimate = G, "karpenter_cloudprovider_instance_type_price_estimate", ["instance_type", "capacity_type", "zone"], "Deprecated, for older dashboards. Today: karpenter_cloudprovider_instance_type_offering_price_estimate.";
    InstanceLaunchFailuresTotal = C, "karpenter_cloudprovider_instance_launch_failures_total", ["zone", "zone_id", "capacity_type", "reason"], "Offerings that could not be launched, by reason.";

    AwsRequestsTotal = C, "mortise_aws_requests_total", ["call", "code"], "Calls to AWS, retries inside the client counted as one; code is ok or the error's.";
    AwsRequestDuration = DEFAULT, "mortise_aws_request_duration_seconds", ["call"], "Duration of calls to AWS, retries included.";

    LeaderElectionMasterStatus = G, "leader_election_master_status", ["name"], "1 while this replica holds the lease.";

    PolicyRevision = G, "mortise_policies_revision", ["revision"], "Always 1; the label is the digest of the active policies, or defaults.";
    PolicyAdmissionsTotal = C, "mortise_policies_admissions_total", ["result"], "Policy ConfigMaps seen: admitted, rejected or defaults.";
    PolicyFaultsTotal = C, "mortise_policy_faults_total", [], "Policy answers that could not be used and were replaced by a fallback.";
    PolicyDisruptionPaused = G, "mortise_policies_disruption_paused", [], "1 while the policies pause all voluntary disruption.";
    BatchDuration = D, "mortise_batch_duration_seconds", [], "How long pending pods were gathered before a run.";
    BatchToLaunch = LATENCY, "mortise_batch_to_launch_seconds", [], "From the end of a batch to the launch call of each of its NodeClaims.";
    EngineDuration = LATENCY, "mortise_engine_duration_seconds", ["call"], "Time in the engine, policies included.";
    LaunchesInFlight = G, "mortise_launches_in_flight", [], "Launch calls under way.";
    ReconcileErrorsTotal = C, "mortise_reconcile_errors_total", ["controller"], "Reconciliations that failed and are tried again.";
    WriteConflictsTotal = C, "mortise_write_conflicts_total", ["controller"], "Writes refused because the object had changed; tried again.";
}

/// The table as a Markdown page, for the documentation.
#[must_use]
pub fn markdown() -> String {
    let mut out = String::from("| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n");
    for m in TABLE {
        let kind = match m.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram(_) => "histogram",
        };
        out.push_str(&format!("| {} | {kind} | {} | {} |\n", m.name, m.labels.join(", "), m.help));
    }
    out
}
