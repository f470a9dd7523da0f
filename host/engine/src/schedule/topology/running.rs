//! Pods that run now and stay where they are, each distinct shape once.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::node::{Node, NodePod};
use crate::pod::{PodShape, PodTerm};
use crate::schedule::is_moving;
use crate::snapshot::Snapshot;

/// What counters look at in a running pod.
type Looks<'a> = (&'a Arc<str>, &'a BTreeMap<Arc<str>, Arc<str>>, &'a [PodTerm]);

/// The running pods that count: bound, not terminating, and not about to be placed anew.
#[derive(Debug, Default)]
pub(crate) struct Running<'a> {
    /// Distinct as far as counting goes.
    pub(super) shapes: Vec<&'a Arc<PodShape>>,
    /// By node, in the order of the snapshot: shape and number of pods.
    pub(super) on: Vec<(&'a Node, Vec<(u32, u32)>)>,
}

impl<'a> Running<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot) -> Self {
        let mut running = Self::default();
        // By address first: the edge interns shapes.
        let mut by_address: HashMap<*const PodShape, u32> = HashMap::new();
        let mut by_content: BTreeMap<Looks<'a>, u32> = BTreeMap::new();
        for node in snapshot.nodes.values() {
            let leaves = |pod: &NodePod| pod.terminating || (node.deleting && is_moving(pod));
            let shapes = node.pods.iter().filter(|pod| !leaves(pod)).map(|pod| &pod.shape).chain(&node.fixed_pods);
            let mut on: Vec<(u32, u32)> = Vec::new();
            for shape in shapes {
                let at = *by_address.entry(Arc::as_ptr(shape)).or_insert_with(|| {
                    let looks = (&shape.namespace, &shape.labels, shape.pod_anti_affinity.as_slice());
                    *by_content.entry(looks).or_insert_with(|| {
                        running.shapes.push(shape);
                        crate::symbol::id_of(running.shapes.len() - 1)
                    })
                });
                match on.last_mut() {
                    Some((last, pods)) if *last == at => *pods += 1,
                    _ => on.push((at, 1)),
                }
            }
            running.on.push((node, on));
        }
        running
    }

    /// Label keys that running pods' anti-affinity looks at.
    pub(crate) fn selector_keys(&self) -> impl Iterator<Item = &'a str> {
        let terms = self.shapes.iter().flat_map(|shape| &shape.pod_anti_affinity);
        terms.flat_map(|term| &term.selector).flat_map(|selector| &selector.requirements).map(|one| &*one.key)
    }
}
