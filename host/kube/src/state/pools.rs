//! NodePools as the engine sees them, beside those of a snapshot.

use std::collections::BTreeMap;
use std::sync::Arc;

use mortise_engine::catalog::Catalog;
use mortise_engine::nodepool::NodePool;

use super::ClusterState;

impl ClusterState {
    /// Every NodePool, as the next snapshot holds it. `catalogs` by EC2NodeClass.
    pub fn pools(&mut self, catalogs: &BTreeMap<Arc<str>, Arc<Catalog>>) -> Vec<Arc<NodePool>> {
        self.engine_pools(catalogs)
    }

    /// The node of this NodeClaim (or Node) was chosen for deletion in this process.
    pub fn marked_for_deletion(&self, name: &str) -> bool {
        self.slots.named(name).is_some_and(|slot| slot.marked)
    }
}
