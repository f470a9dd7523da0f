//! NodeOverlays in memory, and the catalogues that they make of what the provider offers. Lives only while the feature
//! gate NodeOverlay is on.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use kube::Client;
use mortise_api::{NodeOverlay, annotations};
use mortise_engine::catalog::Catalog;
use mortise_engine::decision::{Claim, LaunchList};
use mortise_engine::nodepool::NodePool;
use mortise_engine::overlay::{Overlaid, Overlay, OverlayStatus, apply};
use mortise_engine::quantity::Resources;
use mortise_engine::requirement::key;
use mortise_engine::snapshot::Snapshot;
use mortise_kube::convert;
use mortise_kube::mirror::Mirror;
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// Everything about NodeOverlays.
#[derive(Default)]
pub(crate) struct Overlays {
    pub objects: Mirror<NodeOverlay>,
    /// An overlay changed or went.
    pub changed: Arc<Notify>,
    last: Mutex<Last>,
}

/// The last answer, and what it is an answer to.
#[derive(Default)]
struct Last {
    overlays: Vec<Arc<NodeOverlay>>,
    pools: Vec<Arc<NodePool>>,
    overlaid: Overlaid,
    /// The pools on their overlaid catalogues.
    answer: Vec<Arc<NodePool>>,
}

impl Overlays {
    /// Watches the overlays.
    pub(crate) fn watch(&self, client: &Client, tasks: &mut JoinSet<()>) {
        let changed = Arc::clone(&self.changed);
        tasks.spawn(self.objects.clone().run(client.clone(), |o: NodeOverlay| o, move |_| changed.notify_one()));
    }

    /// Puts pools on their overlaid catalogues. The same pools under the same overlays are the same allocations, so that
    /// what was worked out for them is not worked out again.
    pub(crate) fn overlay(&self, pools: &mut Vec<Arc<NodePool>>) {
        let overlays = self.objects.all();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if !(same(&last.overlays, &overlays) && same(&last.pools, pools)) {
            let read: Vec<Overlay> = overlays
                .iter()
                .filter(|o| o.metadata.deletion_timestamp.is_none())
                .map(|o| convert::overlay(o))
                .collect();
            let overlaid = apply(&read, pools, Some(&last.overlaid));
            let answer = pools.iter().map(|pool| on(pool, overlaid.catalogs.get(&pool.name))).collect();
            *last = Last { overlays, pools: pools.clone(), overlaid, answer };
        }
        pools.clone_from(&last.answer);
    }

    /// What became of each overlay in the last answer.
    pub(crate) fn statuses(&self) -> BTreeMap<Arc<str>, OverlayStatus> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).overlaid.statuses.clone()
    }
}

/// A pool on a catalogue.
fn on(pool: &Arc<NodePool>, catalog: Option<&Arc<Catalog>>) -> Arc<NodePool> {
    match catalog {
        Some(catalog) if !Arc::ptr_eq(catalog, &pool.catalog) => {
            Arc::new(NodePool { catalog: Arc::clone(catalog), ..NodePool::clone(pool) })
        }
        _ => Arc::clone(pool),
    }
}

fn same<T>(a: &[Arc<T>], b: &[Arc<T>]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| Arc::ptr_eq(a, b))
}

/// Which of these instance types an overlay changed: price, capacity.
pub(crate) fn applied<'a>(catalog: &Catalog, types: impl IntoIterator<Item = &'a str>) -> (bool, bool) {
    types.into_iter().filter_map(|name| catalog.get(name)).fold((false, false), |(price, capacity), of_type| {
        (price || of_type.price_overlaid, capacity || of_type.capacity_overlaid)
    })
}

/// The provider knows list prices only: where an overlay changed one, it must be told the order.
pub(crate) fn prioritize(list: &mut LaunchList, catalog: &Catalog) {
    let (price, _) = applied(catalog, list.choices.iter().map(|choice| &*choice.instance_type));
    list.prioritized |= price;
}

/// Resources that overlays add to nodes of an instance type, besides what the provider says of it.
pub(crate) fn added(catalog: &Catalog, instance_type: &str, provided: &Resources) -> Resources {
    let mut added = Resources::default();
    if let Some(of_type) = catalog.get(instance_type).filter(|t| t.capacity_overlaid) {
        for (name, amount) in &of_type.capacity.extended {
            if provided.get(name) == 0 {
                added.set(name, *amount);
            }
        }
    }
    added
}

/// Notes on claims that an overlay changed the price or the capacity of a type that they name.
pub(crate) fn annotate(snapshot: &Snapshot, claims: &mut [Claim]) {
    for claim in claims {
        let Some(pool) = snapshot.nodepools.iter().find(|p| p.name == claim.nodepool) else { continue };
        let types = claim.requirements.iter().filter(|r| &*r.key == key::INSTANCE_TYPE).flat_map(|r| &r.values);
        let (price, capacity) = applied(&pool.catalog, types.map(|t| &**t));
        let notes = [(price, annotations::PRICE_OVERLAY_APPLIED), (capacity, annotations::CAPACITY_OVERLAY_APPLIED)];
        for (_, note) in notes.into_iter().filter(|(applies, _)| *applies) {
            claim.annotations.insert(note.into(), annotations::TRUE.into());
        }
    }
}

#[cfg(test)]
mod tests;
