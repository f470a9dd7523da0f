//! The engine with one rule switched off, to prove that the test would notice. A rule is switched off by taking away what
//! it looks at, so that the engine itself needs no switches: it decides as if nothing asked for the rule.

use std::collections::BTreeMap;
use std::sync::Arc;

use mortise_engine::catalog::{Catalog, InstanceType};
use mortise_engine::node::Node;
use mortise_engine::nodepool::NodePool;
use mortise_engine::pod::PodShape;
use mortise_engine::requirement::Operator;
use mortise_engine::snapshot::Snapshot;

/// Name of a rule, and what switches it off.
pub type Rule = (&'static str, fn(&mut Snapshot));

/// Every rule that can be switched off.
pub const RULES: &[Rule] = &[
    ("node selector", |s| pending(s, |p| p.node_selector.clear())),
    ("required node affinity", |s| pending(s, |p| p.required_affinity.clear())),
    ("node affinity: In and NotIn", |s| without_operators(s, &[Operator::In, Operator::NotIn])),
    ("node affinity: Gt and Lt", |s| without_operators(s, &[Operator::Gt, Operator::Lt])),
    ("node affinity: Exists and DoesNotExist", |s| {
        without_operators(s, &[Operator::Exists, Operator::DoesNotExist]);
    }),
    ("taints of NodePools", |s| pools(s, |p| p.taints.clear())),
    ("taints of nodes", |s| nodes(s, |n| n.taints.clear())),
    ("requests: CPU", |s| pending(s, |p| p.requests.set("cpu", 0))),
    ("requests: memory", |s| pending(s, |p| p.requests.set("memory", 0))),
    ("requests: number of pods", |s| pending(s, |p| p.requests.set("pods", 0))),
    ("requests: other resources", |s| pending(s, |p| p.requests.set("nvidia.com/gpu", 0))),
    ("what is used on nodes", |s| nodes(s, |n| n.used = Default::default())),
    ("overhead of instance types", |s| types(s, |t| t.allocatable = t.capacity.clone())),
    ("DaemonSets on new nodes", |s| s.daemons.clear()),
    ("requirements of NodePools", |s| pools(s, |p| p.requirements.clear())),
    ("offerings that are not available", |s| types(s, |t| t.offerings.iter_mut().for_each(|o| o.available = true))),
    ("limits", |s| pools(s, |p| p.limits.resources.clear())),
    ("limits.nodes", |s| pools(s, |p| p.limits.nodes = None)),
    ("minValues", |s| pools(s, |p| p.requirements.iter_mut().for_each(|r| r.min_values = None))),
    ("nodes going away take no pods", |s| nodes(s, |n| n.deleting = false)),
    ("spread", |s| pending(s, |p| p.spread.clear())),
    ("spread: maxSkew", |s| pending(s, |p| p.spread.iter_mut().for_each(|c| c.max_skew += 1))),
    ("spread: minDomains", |s| pending(s, |p| p.spread.iter_mut().for_each(|c| c.min_domains = None))),
    ("spread: second constraint", |s| pending(s, |p| p.spread.truncate(1))),
    ("spread: over hosts", |s| pending(s, |p| p.spread.retain(|c| &*c.topology_key != "kubernetes.io/hostname"))),
    ("spread: nodeAffinityPolicy", |s| {
        pending(s, |p| p.spread.iter_mut().for_each(|c| c.ignore_node_affinity = !c.ignore_node_affinity));
    }),
    ("spread: nodeTaintsPolicy", |s| {
        pending(s, |p| p.spread.iter_mut().for_each(|c| c.honor_node_taints = !c.honor_node_taints));
    }),
    ("topology: pods on nodes count", |s| running(s, |p| p.labels.clear())),
    ("pod affinity", |s| pending(s, |p| p.pod_affinity.clear())),
    ("pod anti-affinity", |s| pending(s, |p| p.pod_anti_affinity.clear())),
    ("pod anti-affinity of running pods", |s| running(s, |p| p.pod_anti_affinity.clear())),
    ("namespaces of terms", |s| {
        pending(s, |p| {
            for term in p.pod_affinity.iter_mut().chain(&mut p.pod_anti_affinity) {
                term.namespaces.clear();
                term.namespace_selector = None;
            }
        });
    }),
    ("namespace selectors", |s| s.namespaces.clear()),
    ("host ports", |s| pending(s, |p| p.host_ports.clear())),
    ("host ports: protocol", |s| {
        pending(s, |p| p.host_ports.iter_mut().for_each(|port| port.protocol = Arc::from("SCTP")));
    }),
    ("host ports of running pods", |s| running(s, |p| p.host_ports.clear())),
    ("host ports of DaemonSets", |s| {
        s.daemons = std::mem::take(&mut s.daemons).iter().map(|p| changed(p, &|p| p.host_ports.clear())).collect();
    }),
    ("zones of volumes", |s| pending(s, |p| p.volume_alternatives.clear())),
    ("attached volumes", |s| pending(s, |p| p.attachments = Default::default())),
    ("attach limits of nodes", |s| nodes(s, |n| n.volume_limits.values_mut().for_each(|limit| *limit = None))),
    ("attach limits of instance types", |s| types(s, |t| t.volume_limits.clear())),
    ("reservations", |s| {
        types(s, |t| t.offerings.iter_mut().for_each(|o| o.reserved_left = o.reserved_left.map(|_| 99)));
    }),
    ("what holds a pod whatever the node", |s| pending(s, |p| p.unsupported.clear())),
];

fn changed(shape: &Arc<PodShape>, change: &dyn Fn(&mut PodShape)) -> Arc<PodShape> {
    let mut shape = PodShape::clone(shape);
    change(&mut shape);
    Arc::new(shape)
}

/// Equal shapes stay one allocation, which is what makes their pods a group.
fn pending(snapshot: &mut Snapshot, change: impl Fn(&mut PodShape)) {
    let mut known: BTreeMap<*const PodShape, Arc<PodShape>> = BTreeMap::new();
    for pod in &mut snapshot.pending {
        let entry = known.entry(Arc::as_ptr(&pod.shape));
        pod.shape = Arc::clone(entry.or_insert_with(|| changed(&pod.shape, &change)));
    }
}

fn running(snapshot: &mut Snapshot, change: impl Fn(&mut PodShape)) {
    nodes(snapshot, |node| {
        for pod in &mut node.pods {
            pod.shape = changed(&pod.shape, &change);
        }
        for shape in &mut node.fixed_pods {
            *shape = changed(shape, &change);
        }
    });
}

fn without_operators(snapshot: &mut Snapshot, operators: &[Operator]) {
    pending(snapshot, |shape| {
        for term in &mut shape.required_affinity {
            term.retain(|requirement| !operators.contains(&requirement.operator));
        }
    });
}

fn nodes(snapshot: &mut Snapshot, change: impl Fn(&mut Node)) {
    for node in snapshot.nodes.values_mut() {
        change(Arc::make_mut(node));
    }
}

fn pools(snapshot: &mut Snapshot, change: impl Fn(&mut NodePool)) {
    for pool in &mut snapshot.nodepools {
        change(Arc::make_mut(pool));
    }
}

fn types(snapshot: &mut Snapshot, change: impl Fn(&mut InstanceType)) {
    pools(snapshot, |pool| {
        let mut types = pool.catalog.types.clone();
        types.iter_mut().for_each(&change);
        pool.catalog = Arc::new(Catalog::new(pool.catalog.generation, types));
    });
}
