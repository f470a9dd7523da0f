//! Changes that overlays make to the catalogue of one NodePool.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use super::select::Touch;
use super::{Overlay, PriceChange};
use crate::catalog::Catalog;

/// Who changes what.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    by: BTreeMap<Touch, By>,
}

/// The heaviest overlay on one thing.
#[derive(Clone, Debug)]
struct By {
    weight: i32,
    name: Arc<str>,
    to: To,
}

#[derive(Clone, Copy, Debug, Hash)]
enum To {
    Price(PriceChange),
    Amount(i64),
}

impl Changes {
    pub(crate) fn is_empty(&self) -> bool {
        self.by.is_empty()
    }

    /// The first thing that an overlay of equal weight changes already, and that overlay's name.
    pub(crate) fn conflict<'t>(&self, overlay: &Overlay, touches: &'t [Touch]) -> Option<(&'t Touch, Arc<str>)> {
        touches.iter().find_map(|touch| {
            let by = self.by.get(touch).filter(|by| by.weight == overlay.weight)?;
            Some((touch, Arc::clone(&by.name)))
        })
    }

    /// Adds what no heavier overlay has changed.
    pub(crate) fn add(&mut self, overlay: &Overlay, touches: Vec<Touch>) {
        for touch in touches {
            let to = match &touch {
                Touch::Price(..) => overlay.price.map(To::Price),
                Touch::Capacity(_, name) => Some(To::Amount(overlay.capacity.get(name))),
            };
            if let Some(to) = to {
                let by = || By { weight: overlay.weight, name: Arc::clone(&overlay.name), to };
                self.by.entry(touch).or_insert_with(by);
            }
        }
    }

    /// Generation of the changed catalogue: equal for equal changes to equal content, as generations must be.
    pub(crate) fn generation(&self, of: u64) -> u64 {
        let mut hasher = DefaultHasher::new();
        of.hash(&mut hasher);
        for (touch, by) in &self.by {
            match touch {
                Touch::Price(of_type, offering) => (0, of_type, offering).hash(&mut hasher),
                Touch::Capacity(of_type, name) => (1, of_type, name).hash(&mut hasher),
            }
            by.to.hash(&mut hasher);
        }
        hasher.finish()
    }

    /// The changed catalogue.
    pub(crate) fn apply(&self, catalog: &Catalog, generation: u64) -> Catalog {
        let mut types = catalog.types.clone();
        for (touch, by) in &self.by {
            match (touch, by.to) {
                (Touch::Price(of_type, own), To::Price(change)) => {
                    let Some(of_type) = types.get_mut(*of_type) else { continue };
                    let Some(offering) = of_type.offerings.get_mut(*own) else { continue };
                    offering.price = change.of(offering.price);
                    if matches!(change, PriceChange::Set(_)) {
                        offering.price_estimated = false;
                    }
                    of_type.price_overlaid = true;
                }
                (Touch::Capacity(of_type, name), To::Amount(amount)) => {
                    let Some(of_type) = types.get_mut(*of_type) else { continue };
                    of_type.capacity.set(name, amount);
                    of_type.allocatable.set(name, amount);
                    of_type.capacity_overlaid = true;
                }
                // A touch and its change are made together.
                (Touch::Price(..), To::Amount(_)) | (Touch::Capacity(..), To::Price(_)) => {}
            }
        }
        Catalog::new(generation, types)
    }
}
