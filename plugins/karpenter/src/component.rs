//! Emptiness as a component.

use mortise_plugin_sdk::prelude::*;

use crate::Nodes;

struct Policy;

fn nodes<'a>(batch: &NodeBatch<'a>) -> Nodes<'a> {
    Nodes {
        state: &batch.nodes.state,
        nodepool: &batch.nodes.nodepool,
        price_micro_usd: &batch.nodes.price_micro_usd,
        consolidate_after_s: &batch.catalog.nodepools.consolidate_after_s,
    }
}

impl Plugin for Policy {
    const NAME: &'static str = "karpenter";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");

    fn configure(_: &Config) -> Result<Self, Invalid> {
        Ok(Self)
    }
}

impl Consolidate for Policy {
    fn propose(&mut self, batch: &NodeBatch<'_>, max_sets: u32) -> Result<Groups, PolicyError> {
        Ok(crate::propose(nodes(batch), batch.tried, max_sets))
    }

    fn decide(&mut self, batch: &NodeBatch<'_>) -> Result<Vec<i64>, PolicyError> {
        Ok(crate::decide(nodes(batch), batch.tried, &batch.outcomes.feasible))
    }
}

mortise_plugin_sdk::export_plugin!(Policy: Consolidate);
