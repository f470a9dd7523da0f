//! Example scoring plugin: offerings of one zone count as cheaper by some percent, as when its traffic stays local.
#![no_std]

use mortise_plugin_sdk::prelude::*;

struct ZoneDiscount {
    zone: String,
    percent: i64,
}

impl Plugin for ZoneDiscount {
    const NAME: &'static str = "zone-discount";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const CONFIG_SCHEMA: &'static str = r#"{
      "type": "object", "required": ["zone", "percent"], "additionalProperties": false,
      "properties": {
        "zone": { "type": "string", "minLength": 1, "description": "Zone that is favoured, such as us-east-1a." },
        "percent": { "type": "integer", "minimum": 0, "maximum": 100, "description": "How much cheaper it counts." }
      }
    }"#;

    fn configure(config: &Config) -> Result<Self, Invalid> {
        Ok(Self { zone: config.text("zone")?.to_owned(), percent: config.integer("percent")? })
    }
}

impl Score for ZoneDiscount {
    fn evaluate(&mut self, batch: &ClaimBatch<'_>, base: &[i64]) -> Result<Vec<i64>, PolicyError> {
        let zone = batch.catalog.symbol(&self.zone);
        let keep = 100 - self.percent;
        Ok(batch.map(base, |c| if zone.is_some() && c.zone_id() == zone { c.cost / 100 * keep } else { c.cost }))
    }
}

export_plugin!(ZoneDiscount: Score);

#[cfg(test)]
mod tests {
    use mortise_plugin_sdk::testing::Scene;

    use super::*;

    #[test]
    fn its_zone_counts_as_cheaper() {
        let scene = Scene::new()
            .offer("m7i.large", "us-east-1a", Capacity::OnDemand, Some(100_800))
            .offer("m7i.large", "us-east-1b", Capacity::OnDemand, Some(100_800))
            .offer("m7i.large", "us-east-1b", Capacity::Spot, None);
        let mut plugin = scene.start::<ZoneDiscount>(r#"{"zone":"us-east-1b","percent":30}"#).unwrap();
        assert_eq!(scene.score(&mut plugin), Ok(vec![100_800, 70_560, COST_UNKNOWN]));
    }
}
