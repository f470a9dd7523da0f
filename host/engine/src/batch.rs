//! Folds pods into groups of equal needs and puts them in the order in which they are placed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::device::PodClaim;
use crate::pod::{Attachments, HostPort, PodKey, PodShape, PodTerm, Spread, Term};
use crate::quantity::Resources;
use crate::schedule::selector_keys;
use crate::taint::Toleration;

/// Pods to place, folded.
#[derive(Debug, Default)]
pub(crate) struct Batch<'a> {
    /// Distinct shapes, by the order in which their first pod is placed.
    pub(crate) groups: Vec<&'a Arc<PodShape>>,
    /// Pods in order of placement.
    pub(crate) pods: Vec<Queued<'a>>,
    /// Pods per group.
    pub(crate) counts: Vec<u32>,
    /// So many pods at the front of the queue are real; those of buffers follow.
    pub(crate) real: u32,
}

/// A pod to place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting<'a> {
    pub(crate) key: &'a PodKey,
    pub(crate) shape: &'a Arc<PodShape>,
    pub(crate) created_unix_ms: i64,
    /// The buffer that it stands for; `None` = a real pod.
    pub(crate) buffer: Option<&'a Arc<str>>,
}

impl<'a> From<(&'a PodKey, &'a Arc<PodShape>, i64)> for Waiting<'a> {
    fn from((key, shape, created_unix_ms): (&'a PodKey, &'a Arc<PodShape>, i64)) -> Self {
        Self { key, shape, created_unix_ms, buffer: None }
    }
}

/// A pod in the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queued<'a> {
    pub(crate) key: &'a PodKey,
    pub(crate) group: u32,
    pub(crate) buffer: Option<&'a Arc<str>>,
    created_unix_ms: i64,
}

impl<'a> Batch<'a> {
    /// `label_keys`: pod labels that tell groups apart, besides those that selectors of these pods look at; others play
    /// no part in placing.
    ///
    /// Order: real pods before those of buffers, then CPU request descending, memory request descending, oldest first, UID. A pod seen twice counts once.
    pub(crate) fn new(pods: impl Iterator<Item = impl Into<Waiting<'a>>>, mut label_keys: BTreeSet<&'a str>) -> Self {
        // By address first: the edge interns shapes, so most pods cost one look-up and no comparison of content.
        let mut by_address: HashMap<*const PodShape, u32> = HashMap::new();
        let mut addresses: Vec<&'a Arc<PodShape>> = Vec::new();
        let mut queue: Vec<Queued<'a>> = pods
            .map(|pod| {
                let Waiting { key, shape, created_unix_ms, buffer } = pod.into();
                let group = *by_address.entry(Arc::as_ptr(shape)).or_insert_with(|| {
                    addresses.push(shape);
                    crate::symbol::id_of(addresses.len() - 1)
                });
                Queued { key, group, buffer, created_unix_ms }
            })
            .collect();
        label_keys.extend(addresses.iter().flat_map(|shape| selector_keys(shape)).map(|key| &**key));
        let mut by_content: BTreeMap<Needs<'a>, u32> = BTreeMap::new();
        let mut shapes: Vec<&'a Arc<PodShape>> = Vec::new();
        let content: Vec<u32> = addresses
            .into_iter()
            .map(|shape| {
                *by_content.entry(Needs::new(shape, &label_keys)).or_insert_with(|| {
                    shapes.push(shape);
                    crate::symbol::id_of(shapes.len() - 1)
                })
            })
            .collect();
        for queued in &mut queue {
            queued.group = content.get(queued.group as usize).copied().unwrap_or(u32::MAX);
        }
        let size = |group: u32| {
            let requests = shapes.get(group as usize).map(|shape| &shape.requests);
            requests.map_or((0, 0), |requests| (requests.cpu_milli, requests.memory))
        };
        queue.sort_unstable_by(|a, b| {
            let order = if a.group == b.group { std::cmp::Ordering::Equal } else { size(b.group).cmp(&size(a.group)) };
            a.buffer
                .is_some()
                .cmp(&b.buffer.is_some())
                .then(order)
                .then(a.created_unix_ms.cmp(&b.created_unix_ms))
                .then_with(|| {
                    (&a.key.uid, &a.key.namespace, &a.key.name).cmp(&(&b.key.uid, &b.key.namespace, &b.key.name))
                })
        });
        queue.dedup_by(|later, first| later.key == first.key);
        // Group ids follow the queue, so that they do not depend on the order in which pods arrived.
        let mut renamed: Vec<Option<u32>> = vec![None; shapes.len()];
        let mut batch = Self::default();
        for queued in &mut queue {
            let Some(slot) = renamed.get_mut(queued.group as usize) else { continue };
            let group = *slot.get_or_insert_with(|| {
                batch.groups.extend(shapes.get(queued.group as usize));
                batch.counts.push(0);
                crate::symbol::id_of(batch.groups.len() - 1)
            });
            queued.group = group;
            if let Some(count) = batch.counts.get_mut(group as usize) {
                *count += 1;
            }
        }
        batch.real = crate::symbol::id_of(queue.iter().filter(|pod| pod.buffer.is_none()).count());
        batch.pods = queue;
        batch
    }

    /// Every place of the queue.
    pub(crate) fn places(&self) -> std::ops::Range<u32> {
        0..crate::symbol::id_of(self.pods.len())
    }

    /// These places of the queue as runs: neighbours of one group together, real pods and those of buffers apart.
    pub(crate) fn runs(&self, places: impl IntoIterator<Item = u32>) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for at in places {
            let Some(pod) = self.pods.get(at as usize) else { continue };
            match runs.last_mut() {
                Some(run) if run.group == pod.group && run.to == at && at != self.real => run.to = at + 1,
                _ => runs.push(Run { group: pod.group, from: at, to: at + 1 }),
            }
        }
        runs
    }
}

/// What placing and policies look at in a pod: without it, the pods of a StatefulSet, each with its name as a label,
/// would be a group each.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Needs<'a> {
    namespace: &'a str,
    priority: i32,
    requests: &'a Resources,
    node_selector: &'a BTreeMap<Arc<str>, Arc<str>>,
    required_affinity: &'a [Term],
    preferred_affinity: &'a [(i32, Term)],
    tolerations: &'a [Toleration],
    volume_alternatives: &'a [Term],
    unsupported: &'a [Arc<str>],
    about_others: AboutOthers<'a>,
    holds: (&'a [HostPort], &'a Attachments, &'a [PodClaim]),
    labels: Vec<(&'a Arc<str>, &'a Arc<str>)>,
}

/// Constraints that look at other pods: spreads, required and preferred affinity, required and preferred anti-affinity.
type AboutOthers<'a> = (&'a [Spread], &'a [PodTerm], &'a [(i32, PodTerm)], &'a [PodTerm], &'a [(i32, PodTerm)]);

impl<'a> Needs<'a> {
    fn new(shape: &'a PodShape, label_keys: &BTreeSet<&str>) -> Self {
        Self {
            namespace: &shape.namespace,
            priority: shape.priority,
            requests: &shape.requests,
            node_selector: &shape.node_selector,
            required_affinity: &shape.required_affinity,
            preferred_affinity: &shape.preferred_affinity,
            tolerations: &shape.tolerations,
            volume_alternatives: &shape.volume_alternatives,
            unsupported: &shape.unsupported,
            about_others: (
                &shape.spread,
                &shape.pod_affinity,
                &shape.preferred_pod_affinity,
                &shape.pod_anti_affinity,
                &shape.preferred_pod_anti_affinity,
            ),
            holds: (&shape.host_ports, &shape.attachments, &shape.device_claims),
            labels: shape.labels.iter().filter(|(key, _)| label_keys.contains(&***key)).collect(),
        }
    }
}

/// Pods `from..to` of the queue, all of one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) group: u32,
    pub(crate) from: u32,
    pub(crate) to: u32,
}

impl Run {
    pub(crate) fn len(&self) -> u32 {
        self.to - self.from
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::Resources;

    fn key(uid: &str) -> PodKey {
        PodKey { namespace: "default".into(), name: format!("pod-{uid}").into(), uid: uid.into() }
    }

    fn shape(cpu_milli: i64, memory: i64) -> Arc<PodShape> {
        let requests = Resources { cpu_milli, memory, pods: 1, ..Resources::default() };
        Arc::new(PodShape { requests, ..PodShape::default() })
    }

    fn order(batch: &Batch<'_>) -> Vec<String> {
        batch.pods.iter().map(|pod| pod.key.uid.to_string()).collect()
    }

    #[test]
    fn largest_first_then_oldest_then_uid() {
        let (big, wide, small) = (shape(2000, 1), shape(1000, 9), shape(1000, 1));
        let keys: Vec<PodKey> = ["a", "b", "c", "d", "e"].map(key).to_vec();
        let pods = [(0, &small, 5), (1, &wide, 9), (2, &small, 4), (3, &big, 9), (4, &small, 4)];
        let pods = pods.map(|(at, shape, created)| (&keys[at], shape, created));
        let batch = Batch::new(pods.into_iter(), BTreeSet::new());
        assert_eq!(order(&batch), ["d", "b", "c", "e", "a"]);
        assert_eq!(batch.counts, [1, 1, 3]);
        assert_eq!(batch.runs(batch.places()).len(), 3);
        let reversed = Batch::new(pods.into_iter().rev(), BTreeSet::new());
        assert_eq!(order(&reversed), order(&batch));
        assert_eq!(reversed.counts, batch.counts);
    }

    #[test]
    fn equal_shapes_fold_whether_shared_or_not() {
        let shapes = [shape(1, 1), shape(1, 1), shape(1, 2)];
        let keys = ["a", "b", "c", "d"].map(key);
        let batch = Batch::new(
            [(0, 0), (1, 0), (2, 1), (3, 2)].iter().map(|(k, s)| (&keys[*k], &shapes[*s], 0)),
            BTreeSet::new(),
        );
        assert_eq!(batch.groups.len(), 2);
        assert_eq!(batch.counts, [1, 3]);
    }

    #[test]
    fn pods_of_buffers_come_last_and_share_groups_with_real_ones() {
        let (big, small) = (shape(2000, 1), shape(1000, 1));
        let (keys, buffer) = (["a", "b", "c"].map(key), Arc::from("default/spare"));
        let waiting = |at: usize, shape, buffer| Waiting { key: &keys[at], shape, created_unix_ms: 0, buffer };
        let pods = [waiting(0, &big, Some(&buffer)), waiting(1, &small, None), waiting(2, &small, Some(&buffer))];
        let batch = Batch::new(pods.into_iter(), BTreeSet::new());
        assert_eq!((order(&batch), batch.real, batch.groups.len()), (vec!["b".into(), "a".into(), "c".into()], 1, 2));
        let equal = [waiting(0, &big, Some(&buffer)), waiting(1, &big, None)];
        let batch = Batch::new(equal.into_iter(), BTreeSet::new());
        assert_eq!(batch.runs(batch.places()).len(), 2, "a run is real or not");
    }

    #[test]
    fn a_pod_named_twice_is_one() {
        let shape = shape(1, 1);
        let key = key("a");
        assert_eq!(Batch::new([(&key, &shape, 0), (&key, &shape, 0)].into_iter(), BTreeSet::new()).pods.len(), 1);
    }
    #[test]
    fn labels_tell_groups_apart_only_when_somebody_reads_them() {
        let named = |name: &str| {
            let labels = [("app", "db"), ("pod-name", name)].map(|(key, value)| (key.into(), value.into())).into();
            Arc::new(PodShape { labels, ..(*shape(1, 1)).clone() })
        };
        let (keys, shapes) = (["a", "b"].map(key), ["db-0", "db-1"].map(named));
        let groups = |label_keys: &[&'static str]| {
            Batch::new(
                keys.iter().zip(&shapes).map(|(key, shape)| (key, shape, 0)),
                label_keys.iter().copied().collect(),
            )
            .groups
            .len()
        };
        assert_eq!((groups(&[]), groups(&["app"]), groups(&["pod-name"])), (1, 1, 2));
    }
}
