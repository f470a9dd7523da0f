//! The smallest problem that still fails: one that a person can read.

use mortise_problem::Problem;
use mortise_problem::k8s_openapi::api::core::v1::{Pod, PodSpec};

/// Takes away what the failure does not need, as long as `fails` says that it stays. Asks at most `budget` times.
pub fn shrink(problem: &Problem, budget: usize, fails: &mut dyn FnMut(&Problem) -> bool) -> Problem {
    let mut search = Search { best: problem.clone(), left: budget, fails };
    loop {
        let before = search.best.clone();
        search.lists();
        search.constraints();
        search.pools_and_types();
        if search.best == before || search.left == 0 {
            return search.best;
        }
    }
}

struct Search<'a> {
    best: Problem,
    left: usize,
    fails: &'a mut dyn FnMut(&Problem) -> bool,
}

impl Search<'_> {
    /// Keeps a smaller problem if it still fails.
    fn accept(&mut self, smaller: Problem) -> bool {
        if self.left == 0 || smaller == self.best {
            return false;
        }
        self.left -= 1;
        let fails = (self.fails)(&smaller);
        if fails {
            self.best = smaller;
        }
        fails
    }

    fn lists(&mut self) {
        self.thin(|p| &mut p.pods);
        self.thin(|p| &mut p.nodes);
        self.thin(|p| &mut p.node_claims);
        self.thin(|p| &mut p.node_pools);
        self.thin(|p| &mut p.daemon_sets);
        self.thin(|p| &mut p.instance_types);
        self.thin(|p| &mut p.services);
        self.thin(|p| &mut p.csi_nodes);
        self.thin(|p| &mut p.persistent_volume_claims);
        self.thin(|p| &mut p.persistent_volumes);
        self.thin(|p| &mut p.storage_classes);
        self.thin(|p| &mut p.namespaces);
    }

    /// Removes elements: halves first, then quarters, down to single ones.
    fn thin<T: Clone>(&mut self, list: fn(&mut Problem) -> &mut Vec<T>) {
        let mut chunk = list(&mut self.best).len();
        while chunk > 0 {
            let mut from = 0;
            while from < list(&mut self.best).len() {
                let mut smaller = self.best.clone();
                let elements = list(&mut smaller);
                let end = (from + chunk).min(elements.len());
                elements.drain(from..end);
                tidy(&mut smaller);
                if !self.accept(smaller) {
                    from += chunk;
                }
            }
            chunk /= 2;
        }
    }

    /// Takes constraints off all pods of a deployment at once.
    fn constraints(&mut self) {
        let mut owners: Vec<Option<String>> = self.best.pods.iter().map(owner).collect();
        owners.sort();
        owners.dedup();
        for of in &owners {
            for clear in CONSTRAINTS {
                let mut smaller = self.best.clone();
                for pod in smaller.pods.iter_mut().filter(|pod| owner(pod) == *of) {
                    if let Some(spec) = &mut pod.spec {
                        clear(spec);
                    }
                }
                self.accept(smaller);
            }
        }
        for clear in CONSTRAINTS {
            let mut smaller = self.best.clone();
            for daemon in &mut smaller.daemon_sets {
                if let Some(spec) = daemon.spec.as_mut().and_then(|spec| spec.template.spec.as_mut()) {
                    clear(spec);
                }
            }
            self.accept(smaller);
        }
    }

    fn pools_and_types(&mut self) {
        for at in 0..self.best.node_pools.len() {
            for requirement in (0..self.best.node_pools[at].spec.template.spec.requirements.len()).rev() {
                let mut smaller = self.best.clone();
                smaller.node_pools[at].spec.template.spec.requirements.remove(requirement);
                self.accept(smaller);
            }
            for clear in POOL {
                let mut smaller = self.best.clone();
                clear(&mut smaller.node_pools[at].spec);
                self.accept(smaller);
            }
        }
        for at in 0..self.best.instance_types.len() {
            for offering in (0..self.best.instance_types[at].offerings.len()).rev() {
                let mut smaller = self.best.clone();
                smaller.instance_types[at].offerings.remove(offering);
                self.accept(smaller);
            }
            let mut smaller = self.best.clone();
            smaller.instance_types[at].volume_limits.clear();
            self.accept(smaller);
        }
        let mut smaller = self.best.clone();
        smaller.instance_types_of.clear();
        self.accept(smaller);
        let mut smaller = self.best.clone();
        smaller.options = mortise_problem::Options::default();
        self.accept(smaller);
    }
}

const CONSTRAINTS: &[fn(&mut PodSpec)] = &[
    |spec| spec.affinity = None,
    |spec| {
        if let Some(affinity) = &mut spec.affinity {
            affinity.node_affinity = None;
        }
    },
    |spec| {
        if let Some(affinity) = &mut spec.affinity {
            affinity.pod_affinity = None;
        }
    },
    |spec| {
        if let Some(affinity) = &mut spec.affinity {
            affinity.pod_anti_affinity = None;
        }
    },
    |spec| spec.node_selector = None,
    |spec| spec.topology_spread_constraints = None,
    |spec| {
        if let Some(constraints) = spec.topology_spread_constraints.as_mut().filter(|c| c.len() > 1) {
            constraints.pop();
        }
    },
    |spec| {
        if let Some(constraints) = spec.topology_spread_constraints.as_mut().filter(|c| c.len() > 1) {
            constraints.remove(0);
        }
    },
    |spec| spec.tolerations = None,
    |spec| spec.volumes = None,
    |spec| spec.init_containers = None,
    |spec| spec.containers.iter_mut().for_each(|container| container.ports = None),
    |spec| {
        let affinity = spec.affinity.as_mut().and_then(|a| a.node_affinity.as_mut());
        if let Some(required) = affinity.and_then(|a| a.required_during_scheduling_ignored_during_execution.as_mut())
            && required.node_selector_terms.len() > 1
        {
            required.node_selector_terms.pop();
        }
    },
];

const POOL: &[fn(&mut mortise_problem::api::nodepool::NodePoolSpec)] = &[
    |spec| spec.limits = None,
    |spec| spec.weight = None,
    |spec| spec.template.spec.taints.clear(),
    |spec| spec.template.spec.startup_taints.clear(),
    |spec| spec.template.metadata.labels.clear(),
];

fn owner(pod: &Pod) -> Option<String> {
    pod.metadata.labels.as_ref()?.get("app").cloned()
}

/// What names something that is gone goes too, or the problem would be none.
fn tidy(problem: &mut Problem) {
    let node = |name: &str| problem.nodes.iter().any(|node| node.metadata.name.as_deref() == Some(name));
    problem.pods.retain(|pod| pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).is_none_or(node));
    let pools: Vec<String> = problem.node_pools.iter().filter_map(|pool| pool.metadata.name.clone()).collect();
    problem.instance_types_of.retain(|pool, _| pools.contains(pool));
    let types: Vec<&String> = problem.instance_types.iter().map(|of_type| &of_type.name).collect();
    for names in problem.instance_types_of.values_mut() {
        names.retain(|name| types.contains(&name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_failure_needs_is_left() -> anyhow::Result<()> {
        let problem = (0..).map(crate::generate::problem).find(|p| p.as_ref().is_ok_and(|p| p.pods.len() > 20));
        let problem = problem.ok_or_else(|| anyhow::anyhow!("no problem"))??;
        let wanted = problem.pods[7].metadata.name.clone();
        let small = shrink(&problem, 5000, &mut |p| p.pods.iter().any(|pod| pod.metadata.name == wanted));
        assert_eq!(small.pods.len(), 1);
        assert_eq!(small.pods[0].metadata.name, wanted);
        assert!(small.nodes.is_empty() && small.instance_types.is_empty() && small.daemon_sets.is_empty());
        Ok(())
    }
}
