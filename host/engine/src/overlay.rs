//! NodeOverlays: what somebody knows better than the catalogue about prices and extended resources.
//!
//! [`apply`] turns the catalogue of each NodePool into the one that decisions about it see, and says of every overlay
//! whether it is in effect. Overlays are applied by weight: a lighter one changes only what no heavier one has changed.
//! Two of equal weight that change the same thing contradict one another, even if they agree on the value: the later one
//! by name descending is left out as a whole.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::catalog::Catalog;
use crate::nodepool::NodePool;
use crate::quantity::{MicroUsd, Resources};
use crate::requirement::{Requirement, Requirements};

mod change;
mod select;
#[cfg(test)]
mod tests;

use change::Changes;
use select::{Subject, Touch};

/// An overlay as its edge read it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Overlay {
    /// Name.
    pub name: Arc<str>,
    /// Higher goes first; missing = 0.
    pub weight: i32,
    /// Which NodePools (by `karpenter.sh/nodepool` and the labels of their templates), instance types and offerings are
    /// meant. A label that none of those has selects nothing.
    pub requirements: Vec<Requirement>,
    /// What becomes of the price.
    pub price: Option<PriceChange>,
    /// Extended resources that nodes have besides: capacity and allocatable alike.
    pub capacity: Resources,
    /// What the edge found wrong with it, in words; it is then left out.
    pub invalid: Option<Arc<str>>,
}

/// A change of a price per hour. No price falls below zero, and a change of an unknown price leaves it unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum PriceChange {
    /// The price is this.
    Set(MicroUsd),
    /// So much is added, micro-USD; may be negative.
    Add(i64),
    /// This share of the price is added, in millionths: 100,000 is +10 %; may be negative.
    Scale(i64),
}

impl PriceChange {
    /// The price after the change.
    pub fn of(self, price: Option<MicroUsd>) -> Option<MicroUsd> {
        const WHOLE: i128 = 1_000_000;
        let changed = |old: MicroUsd| match self {
            Self::Set(new) => i128::from(new.0),
            Self::Add(amount) => i128::from(old.0) + i128::from(amount),
            Self::Scale(share) => (i128::from(old.0) * (WHOLE + i128::from(share)) + WHOLE / 2).div_euclid(WHOLE),
        };
        match (self, price) {
            (Self::Set(new), _) => Some(new),
            (_, None) => None,
            (_, Some(old)) => Some(MicroUsd(u64::try_from(changed(old).max(0)).unwrap_or(u64::MAX))),
        }
    }
}

/// Whether an overlay is in effect.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub enum OverlayStatus {
    /// It is (wherever a heavier one does not change the same thing).
    Ready,
    /// Another one of the same weight changes the same thing: nothing of this one is in effect.
    Conflict {
        /// The other one.
        with: Arc<str>,
        /// NodePool in which they meet.
        nodepool: Arc<str>,
        /// Instance type on which they meet.
        instance_type: Arc<str>,
        /// What both change: `price`, or the resource.
        what: Arc<str>,
    },
    /// It cannot be applied to anything: why.
    Invalid(Arc<str>),
}

impl fmt::Display for OverlayStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready => write!(f, "in effect"),
            Self::Conflict { with, nodepool, instance_type, what } => write!(
                f,
                "NodeOverlay {with} of the same weight changes {what} of {instance_type} in NodePool {nodepool} too"
            ),
            Self::Invalid(why) => write!(f, "{why}"),
        }
    }
}

/// Catalogues with overlays applied.
#[derive(Clone, Debug, Default)]
pub struct Overlaid {
    /// By NodePool. A pool that no overlay touches keeps its own allocation, and pools of one catalogue with equal
    /// changes share one.
    pub catalogs: BTreeMap<Arc<str>, Arc<Catalog>>,
    /// By overlay, in order of name.
    pub statuses: BTreeMap<Arc<str>, OverlayStatus>,
}

/// Applies overlays to the catalogue of every NodePool.
///
/// `previous`: an earlier answer, whose catalogues (and the columns made for them) are taken again where nothing changed.
pub fn apply(overlays: &[Overlay], pools: &[Arc<NodePool>], previous: Option<&Overlaid>) -> Overlaid {
    let mut overlaid = Overlaid::default();
    if overlays.is_empty() {
        overlaid.catalogs = pools.iter().map(|pool| (Arc::clone(&pool.name), Arc::clone(&pool.catalog))).collect();
        return overlaid;
    }
    let subjects: Vec<Subject<'_>> = pools.iter().map(Subject::new).collect();
    let mut changes: Vec<Changes> = pools.iter().map(|_| Changes::default()).collect();
    let mut ordered: Vec<&Overlay> = overlays.iter().collect();
    ordered.sort_by(|a, b| (b.weight, &b.name).cmp(&(a.weight, &a.name)));
    ordered.dedup_by(|later, first| later.name == first.name);
    for overlay in ordered {
        let status = invalid(overlay).map_or_else(
            || {
                let asked = Requirements::new(&overlay.requirements);
                let touches: Vec<Vec<Touch>> =
                    subjects.iter().map(|subject| subject.touched(overlay, &asked)).collect();
                let places = || subjects.iter().zip(&changes).zip(&touches);
                let conflict = places().find_map(|((subject, changes), touches)| {
                    let (touch, with) = changes.conflict(overlay, touches)?;
                    Some(OverlayStatus::Conflict {
                        with,
                        nodepool: Arc::clone(&subject.pool.name),
                        instance_type: subject.type_name(touch),
                        what: touch.what(),
                    })
                });
                if conflict.is_none() {
                    for (changes, touches) in changes.iter_mut().zip(touches) {
                        changes.add(overlay, touches);
                    }
                }
                conflict.unwrap_or(OverlayStatus::Ready)
            },
            OverlayStatus::Invalid,
        );
        overlaid.statuses.insert(Arc::clone(&overlay.name), status);
    }
    let mut made: Vec<Arc<Catalog>> =
        previous.map_or_else(Vec::new, |known| known.catalogs.values().cloned().collect());
    for (pool, changes) in pools.iter().zip(&changes) {
        let catalog = if changes.is_empty() {
            Arc::clone(&pool.catalog)
        } else {
            let generation = changes.generation(pool.catalog.generation);
            let known = made.iter().find(|known| known.generation == generation).cloned();
            known.unwrap_or_else(|| {
                let new = Arc::new(changes.apply(&pool.catalog, generation));
                made.push(Arc::clone(&new));
                new
            })
        };
        overlaid.catalogs.insert(Arc::clone(&pool.name), catalog);
    }
    overlaid
}

/// What makes an overlay meaningless wherever it is applied.
fn invalid(overlay: &Overlay) -> Option<Arc<str>> {
    if let Some(why) = &overlay.invalid {
        return Some(Arc::clone(why));
    }
    let asked = Requirements::new(&overlay.requirements);
    if let Some(key) = asked.contradiction() {
        return Some(format!("its requirements on {key} exclude one another").into());
    }
    let Resources { cpu_milli, memory, ephemeral_storage, pods, extended } = &overlay.capacity;
    let basic = [("cpu", cpu_milli), ("memory", memory), ("ephemeral-storage", ephemeral_storage), ("pods", pods)];
    if let Some((name, _)) = basic.into_iter().find(|(_, amount)| **amount != 0) {
        return Some(format!("capacity may hold extended resources only, not {name}").into());
    }
    let negative = extended.iter().find(|(_, amount)| **amount < 0);
    negative.map(|(name, _)| format!("its capacity of {name} is negative").into())
}
