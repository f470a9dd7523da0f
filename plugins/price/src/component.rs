//! List price as a component.

use mortise_plugin_sdk::prelude::*;

struct Policy {
    changes_costs: bool,
}

impl Plugin for Policy {
    const NAME: &'static str = "price";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");

    fn configure(_: &Config) -> Result<Self, Invalid> {
        Ok(Self { changes_costs: true })
    }

    fn begin_round(&mut self, catalog: &Catalog, _: &Fleet, _: &[u8]) -> Result<(), PolicyError> {
        let offerings = &catalog.offerings;
        self.changes_costs = crate::changes_costs(&offerings.capacity, &offerings.price_micro_usd);
        Ok(())
    }
}

impl Score for Policy {
    fn evaluate(&mut self, batch: &ClaimBatch<'_>, base: &[i64]) -> Result<Vec<i64>, PolicyError> {
        if !self.changes_costs {
            return Ok(base.to_vec());
        }
        let offerings = &batch.catalog.offerings;
        Ok(crate::evaluate(&offerings.capacity, &offerings.price_micro_usd, batch.candidates, base))
    }
}

mortise_plugin_sdk::export_plugin!(Policy: Score);
