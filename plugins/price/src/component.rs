//! List price as a component.

use mortise_plugin_sdk::prelude::*;

struct Policy;

impl Plugin for Policy {
    const NAME: &'static str = "price";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");

    fn configure(_: &Config) -> Result<Self, Invalid> {
        Ok(Self)
    }
}

impl Score for Policy {
    fn evaluate(&mut self, batch: &ClaimBatch<'_>, base: &[i64]) -> Result<Vec<i64>, PolicyError> {
        let offerings = &batch.catalog.offerings;
        Ok(crate::evaluate(&offerings.capacity, &offerings.price_micro_usd, batch.candidates, base))
    }
}

mortise_plugin_sdk::export_plugin!(Policy: Score);
