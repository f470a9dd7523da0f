//! Problems by seed, weighted to the corners where schedulers differ. A seed means the same problem for ever.
//!
//! Objects are written as JSON and read back strictly, so a field that Kubernetes does not know is found at once.

mod affinity;
mod catalog;
mod daemons;
mod nodes;
mod pods;
mod pools;
mod spread;
mod volumes;

use anyhow::{Context as _, Result};
use mortise_problem::Problem;
use serde_json::{Value, json};

use crate::random::Random;

/// Zones of the region.
pub(crate) const ZONES: [&str; 3] = ["zone-1", "zone-2", "zone-3"];
/// Namespaces, by the labels that selectors find.
pub(crate) const NAMESPACES: [(&str, &str); 3] = [("default", "prod"), ("team-a", "prod"), ("team-b", "dev")];
/// The moment of every problem.
pub(crate) const NOW: &str = "2026-01-01T12:00:00Z";

/// Kinds of constraints that a problem is made of. A problem has few of them, so that they meet in every combination
/// and a failure stays readable.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mix {
    pub(crate) selectors: bool,
    pub(crate) node_affinity: bool,
    pub(crate) preferred: bool,
    pub(crate) taints: bool,
    pub(crate) spread: bool,
    pub(crate) default_spread: bool,
    pub(crate) pod_affinity: bool,
    pub(crate) pod_anti_affinity: bool,
    pub(crate) ports: bool,
    pub(crate) volumes: bool,
    pub(crate) daemons: bool,
    pub(crate) nodes: bool,
    pub(crate) limits: bool,
    pub(crate) min_values: bool,
    pub(crate) gpu: bool,
    pub(crate) reserved: bool,
}

impl Mix {
    fn draw(random: &mut Random) -> Self {
        Self {
            selectors: random.chance(50),
            node_affinity: random.chance(40),
            preferred: random.chance(25),
            taints: random.chance(40),
            spread: random.chance(45),
            default_spread: random.chance(8),
            pod_affinity: random.chance(25),
            pod_anti_affinity: random.chance(30),
            ports: random.chance(20),
            volumes: random.chance(20),
            daemons: random.chance(40),
            nodes: random.chance(50),
            limits: random.chance(25),
            min_values: random.chance(20),
            gpu: random.chance(20),
            reserved: random.chance(15),
        }
    }
}

/// The problem of a seed.
///
/// # Errors
/// The generator wrote something that is no problem: a fault of this crate.
pub fn problem(seed: u64) -> Result<Problem> {
    let value = value(seed);
    Problem::read(&value.to_string()).with_context(|| format!("the problem of seed {seed}"))
}

fn value(seed: u64) -> Value {
    let mut random = Random::new(seed);
    let random = &mut random;
    let mix = Mix::draw(random);
    let types = catalog::types(random, &mix);
    let pools = pools::pools(random, &mix, &types);
    let daemons = daemons::daemons(random, &mix, &pools);
    let mut volumes = volumes::Volumes::draw(random, &mix);
    let deployments = pods::deployments(random, &mix, &pools, &types);
    let nodes = nodes::Nodes::draw(random, &mix, &pools, &types, &deployments, &daemons);
    let pods = pods::pods(random, &deployments, &nodes, &mut volumes);
    let services = spread::services(random, &mix, &deployments);
    let one_in_eight = |random: &mut Random, usual: &str, other: &str| -> String {
        if random.chance(12) { other } else { usual }.to_owned()
    };
    json!({
        "name": format!("seed-{seed}"),
        "now": NOW,
        "options": {
            "preferencePolicy": one_in_eight(random, "Respect", "Ignore"),
            "minValuesPolicy": if mix.min_values && random.chance(40) { "BestEffort".to_owned() } else { "Strict".into() },
            "schedulerConfig": spread::defaults(random, &mix),
        },
        "instanceTypes": types.iter().map(|of_type| &of_type.value).collect::<Vec<_>>(),
        "instanceTypesOf": pools.iter().filter_map(|pool| Some((pool.name.clone(), json!(pool.offered.as_ref()?))))
            .collect::<serde_json::Map<_, _>>(),
        "nodePools": pools.iter().map(|pool| &pool.value).collect::<Vec<_>>(),
        "nodeClaims": nodes.claims,
        "nodes": nodes.nodes,
        "csiNodes": nodes.csi_nodes(&volumes),
        "pods": pods,
        "daemonSets": daemons.iter().map(|daemon| &daemon.value).collect::<Vec<_>>(),
        "namespaces": NAMESPACES.iter().map(|(name, env)| json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name, "env": env}},
        })).collect::<Vec<_>>(),
        "services": services,
        "storageClasses": volumes.classes(),
        "persistentVolumes": volumes.volumes,
        "persistentVolumeClaims": volumes.claims,
    })
}

/// A Kubernetes requirement.
pub(crate) fn requirement(key: &str, operator: &str, values: &[&str]) -> Value {
    if values.is_empty() {
        json!({"key": key, "operator": operator})
    } else {
        json!({"key": key, "operator": operator, "values": values})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seed_is_a_problem_and_always_the_same() -> Result<()> {
        for seed in 0..300 {
            let made = problem(seed)?;
            assert!(!made.node_pools.is_empty() && !made.instance_types.is_empty() && !made.pods.is_empty(), "{seed}");
            assert_eq!(value(seed), value(seed));
        }
        Ok(())
    }
}
