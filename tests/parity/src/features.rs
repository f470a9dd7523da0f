//! Which features a problem exercises, so that a generator that has lost one is seen.

use mortise_problem::k8s_openapi::api::core::v1::{Affinity, PodSpec, TopologySpreadConstraint};
use mortise_problem::{MinValuesPolicy, PreferencePolicy, Problem};

/// Name, and whether a problem has it.
type Feature = (&'static str, fn(&Problem) -> bool);

/// Every feature that is counted.
pub const FEATURES: &[Feature] = &[
    ("several NodePools", |p| p.node_pools.len() > 1),
    ("NodePool taints", |p| p.node_pools.iter().any(|n| !n.spec.template.spec.taints.is_empty())),
    ("startup taints", |p| p.node_pools.iter().any(|n| !n.spec.template.spec.startup_taints.is_empty())),
    ("tolerations", |p| specs(p).any(|s| s.tolerations.as_ref().is_some_and(|t| !t.is_empty()))),
    ("limits", |p| p.node_pools.iter().any(|n| n.spec.limits.is_some())),
    ("limits.nodes", |p| p.node_pools.iter().any(|n| n.spec.limits.iter().flatten().any(|(k, _)| k == "nodes"))),
    ("minValues", |p| {
        p.node_pools.iter().flat_map(|n| &n.spec.template.spec.requirements).any(|r| r.min_values.is_some())
    }),
    ("minValues BestEffort", |p| p.options.min_values_policy == MinValuesPolicy::BestEffort),
    ("types of a NodePool", |p| !p.instance_types_of.is_empty()),
    ("unavailable offerings", |p| p.instance_types.iter().flat_map(|t| &t.offerings).any(|o| !o.available)),
    ("reservations", |p| p.instance_types.iter().flat_map(|t| &t.offerings).any(|o| o.reservation_capacity > 0)),
    ("GPUs asked for", |p| {
        let mut requests = specs(p).flat_map(|s| &s.containers).filter_map(|c| c.resources.as_ref()?.requests.as_ref());
        requests.any(|r| r.contains_key("nvidia.com/gpu"))
    }),
    ("init containers", |p| specs(p).any(|s| s.init_containers.is_some())),
    ("node selector", |p| specs(p).any(|s| s.node_selector.is_some())),
    ("required node affinity", |p| {
        node_affinity(p).any(|n| n.required_during_scheduling_ignored_during_execution.is_some())
    }),
    ("several affinity terms", |p| {
        let required = node_affinity(p).filter_map(|n| n.required_during_scheduling_ignored_during_execution.as_ref());
        required.into_iter().any(|r| r.node_selector_terms.len() > 1)
    }),
    ("preferred node affinity", |p| {
        node_affinity(p).any(|n| n.preferred_during_scheduling_ignored_during_execution.is_some())
    }),
    ("spread", |p| spread(p).next().is_some()),
    ("spread over zones", |p| spread(p).any(|c| c.topology_key == "topology.kubernetes.io/zone")),
    ("spread over hosts", |p| spread(p).any(|c| c.topology_key == "kubernetes.io/hostname")),
    ("spread over markets", |p| spread(p).any(|c| c.topology_key == "karpenter.sh/capacity-type")),
    ("spread over other labels", |p| {
        spread(p).any(|c| matches!(&*c.topology_key, "kubernetes.io/arch" | "example.com/tier"))
    }),
    ("several spread constraints", |p| {
        specs(p).any(|s| s.topology_spread_constraints.as_ref().is_some_and(|c| c.len() > 1))
    }),
    ("ScheduleAnyway", |p| spread(p).any(|c| c.when_unsatisfiable == "ScheduleAnyway")),
    ("minDomains", |p| spread(p).any(|c| c.min_domains.is_some())),
    ("nodeAffinityPolicy", |p| spread(p).any(|c| c.node_affinity_policy.is_some())),
    ("nodeTaintsPolicy", |p| spread(p).any(|c| c.node_taints_policy.is_some())),
    ("matchLabelKeys", |p| spread(p).any(|c| c.match_label_keys.is_some())),
    ("default spread", |p| p.options.scheduler_config.is_some()),
    ("pod affinity", |p| {
        affinity(p)
            .filter_map(|a| a.pod_affinity.as_ref())
            .any(|a| a.required_during_scheduling_ignored_during_execution.is_some())
    }),
    ("preferred pod affinity", |p| {
        affinity(p)
            .filter_map(|a| a.pod_affinity.as_ref())
            .any(|a| a.preferred_during_scheduling_ignored_during_execution.is_some())
    }),
    ("pod anti-affinity", |p| {
        affinity(p)
            .filter_map(|a| a.pod_anti_affinity.as_ref())
            .any(|a| a.required_during_scheduling_ignored_during_execution.is_some())
    }),
    ("preferred pod anti-affinity", |p| {
        affinity(p)
            .filter_map(|a| a.pod_anti_affinity.as_ref())
            .any(|a| a.preferred_during_scheduling_ignored_during_execution.is_some())
    }),
    ("host ports", |p| {
        specs(p).flat_map(|s| &s.containers).flat_map(|c| c.ports.iter().flatten()).any(|port| port.host_port.is_some())
    }),
    ("bound volumes", |p| !p.persistent_volumes.is_empty()),
    ("volumes that wait", |p| {
        p.persistent_volume_claims.iter().any(|c| c.spec.as_ref().is_some_and(|s| s.volume_name.is_none()))
    }),
    ("attach limits of types", |p| p.instance_types.iter().any(|t| !t.volume_limits.is_empty())),
    ("attach limits of nodes", |p| !p.csi_nodes.is_empty()),
    ("DaemonSets", |p| !p.daemon_sets.is_empty()),
    ("nodes", |p| !p.nodes.is_empty()),
    ("nodes in flight", |p| p.node_claims.iter().any(|c| c.status.as_ref().is_some_and(|s| s.node_name.is_none()))),
    ("nodes starting", |p| {
        p.nodes.iter().any(|n| {
            let labels = n.metadata.labels.as_ref();
            labels.is_some_and(|l| {
                l.contains_key("karpenter.sh/registered") && !l.contains_key("karpenter.sh/initialized")
            })
        })
    }),
    ("nodes going away", |p| p.node_claims.iter().any(|c| c.metadata.deletion_timestamp.is_some())),
    ("unmanaged nodes", |p| {
        p.nodes.iter().any(|n| !n.metadata.labels.as_ref().is_some_and(|l| l.contains_key("karpenter.sh/nodepool")))
    }),
    ("PREFERENCE_POLICY Ignore", |p| p.options.preference_policy == PreferencePolicy::Ignore),
];

fn specs(problem: &Problem) -> impl Iterator<Item = &PodSpec> {
    problem.pods.iter().filter_map(|pod| pod.spec.as_ref())
}

fn affinity(problem: &Problem) -> impl Iterator<Item = &Affinity> {
    specs(problem).filter_map(|spec| spec.affinity.as_ref())
}

fn node_affinity(
    problem: &Problem,
) -> impl Iterator<Item = &mortise_problem::k8s_openapi::api::core::v1::NodeAffinity> {
    affinity(problem).filter_map(|affinity| affinity.node_affinity.as_ref())
}

fn spread(problem: &Problem) -> impl Iterator<Item = &TopologySpreadConstraint> {
    specs(problem).flat_map(|spec| spec.topology_spread_constraints.iter().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A feature that no seed has is not tested by any number of seeds.
    #[test]
    fn two_hundred_seeds_have_every_feature() -> anyhow::Result<()> {
        let problems = (0..200).map(crate::generate::problem).collect::<anyhow::Result<Vec<_>>>()?;
        for (name, has) in FEATURES {
            let count = problems.iter().filter(|problem| has(problem)).count();
            assert!(count >= 4, "{name}: {count} of 200");
        }
        Ok(())
    }
}
