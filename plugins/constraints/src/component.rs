//! The rules as a component.

use alloc::vec::Vec;

use mortise_plugin_sdk::prelude::*;
use mortise_plugin_sdk::u32s;

use crate::{
    ACCELERATORS, Constraints, MinValues, Offerings, RESERVATION_INTERRUPTIBLE, RESERVATION_TYPE, Tables, Types,
};

struct Policy {
    rules: Constraints,
}

/// Borrows the columns of the catalogue.
fn tables(catalog: &Catalog) -> Tables<'_> {
    let (types, offerings) = (&catalog.types, &catalog.offerings);
    Tables {
        symbols: &catalog.symbols,
        types: Types {
            name: &types.name,
            gpu: &types.gpu,
            accelerators: u32s(&types.extra, ACCELERATORS),
            labels: (&types.labels).into(),
        },
        offerings: Offerings {
            instance_type: &offerings.instance_type,
            zone: &offerings.zone,
            capacity: &offerings.capacity,
            price_micro_usd: &offerings.price_micro_usd,
            reserved_left: &offerings.reserved_left,
            reservation_type: u32s(&offerings.extra, RESERVATION_TYPE),
            interruptible: u32s(&offerings.extra, RESERVATION_INTERRUPTIBLE),
        },
    }
}

impl Plugin for Policy {
    const NAME: &'static str = "constraints";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");

    fn configure(_: &Config) -> Result<Self, Invalid> {
        Ok(Self { rules: Constraints::default() })
    }

    fn begin_round(&mut self, catalog: &Catalog, _: &Fleet, _: &[u8]) -> Result<(), PolicyError> {
        self.rules = Constraints::new(&tables(catalog));
        Ok(())
    }

    fn end_round(&mut self) -> Vec<u8> {
        Vec::new()
    }
}

impl Filter for Policy {
    fn admit_claims(&mut self, batch: &ClaimBatch<'_>) -> Result<Verdict, PolicyError> {
        let extra = &batch.claims.extra;
        let min_values = u32s(extra, MinValues::END).zip(u32s(extra, MinValues::PAIRS));
        let min_values = min_values.map(|(end, pairs)| MinValues::new(end, pairs));
        let (state, explain) = (&batch.claims.state, batch.round.explain);
        Ok(self.rules.admit(&tables(batch.catalog), state, min_values, batch.candidates, explain))
    }
}

mortise_plugin_sdk::export_plugin!(Policy: Filter);
