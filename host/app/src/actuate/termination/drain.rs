//! Which pods of a draining node go next.

use std::sync::Arc;

use jiff::Timestamp;
use mortise_engine::pod::PodKey;
use mortise_kube::record::PodRecord;

use super::deletion_time;

/// Names shown in a message.
const SHOWN: usize = 5;

/// One pod to remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Removal {
    /// Ask the Eviction API.
    Evict(PodKey),
    /// Delete it with so many seconds of grace, because its node's termination time leaves no more.
    Delete(PodKey, i64),
}

impl Removal {
    /// The pod.
    pub(crate) fn pod(&self) -> &PodKey {
        match self {
            Self::Evict(key) | Self::Delete(key, _) => key,
        }
    }
}

/// The next removals: whatever is past the point where its grace no longer fits before `end`, of all tiers, and the
/// first tier that is not empty (ordinary pods, then DaemonSets', then critical ones, then critical DaemonSets').
pub(crate) fn removals(waiting: &[&Arc<PodRecord>], end: Option<Timestamp>, now: Timestamp) -> Vec<Removal> {
    let mut out = Vec::new();
    let mut tiers: [Vec<PodKey>; 4] = Default::default();
    for pod in waiting {
        if let Some(grace) = forced_grace(pod, end, now) {
            out.push(Removal::Delete(pod.key.clone(), grace));
            continue;
        }
        let tier = match (pod.critical, pod.daemon()) {
            (false, false) => &mut tiers[0],
            (false, true) => &mut tiers[1],
            (true, false) => &mut tiers[2],
            (true, true) => &mut tiers[3],
        };
        tier.push(pod.key.clone());
    }
    let now_ms = now.as_millisecond();
    let next = tiers.into_iter().find(|tier| !tier.is_empty()).unwrap_or_default();
    let evictable = |key: &PodKey| waiting.iter().any(|p| p.key == *key && p.evictable(now_ms));
    out.extend(next.into_iter().filter(evictable).map(Removal::Evict));
    out
}

/// Seconds of grace when the pod must be deleted now to end before `end`.
fn forced_grace(pod: &PodRecord, end: Option<Timestamp>, now: Timestamp) -> Option<i64> {
    let end = end?;
    let left = end.duration_since(now).as_secs().max(1);
    match deletion_time(pod) {
        // Already going, and in time: nothing to do.
        Some(deletion) if deletion <= end => None,
        Some(_) => Some(left),
        None => {
            let grace = pod.grace_seconds?;
            (end.duration_since(now).as_secs() < grace || now >= end).then_some(left)
        }
    }
}

/// What the drain waits for, in words.
pub(super) fn waiting_words(waiting: &[&Arc<PodRecord>]) -> String {
    let names: Vec<String> = waiting.iter().map(|p| format!("{}/{}", p.key.namespace, p.key.name)).collect();
    format!("{} pods are waiting to be evicted: {}", names.len(), listed(names.iter().map(String::as_str)))
}

/// The first few names, and how many more there are.
pub(super) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    let shown = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(SHOWN) {
        Some(more) if more > 0 => format!("{shown} and {more} more"),
        _ => shown,
    }
}
