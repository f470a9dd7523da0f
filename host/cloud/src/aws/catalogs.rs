//! Catalogues of node classes, built anew only when something they depend on moved.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

use mortise_api::EC2NodeClass;
use mortise_engine::catalog::Catalog;
use tokio::sync::watch;

use super::clients::Clients;
use super::error::ApiError;
use super::market::{Ec2Market, fetch_spot_prices};
use super::types::{ZonesByType, fetch_types, fetch_zones};
use crate::catalog_build::{ClassShape, ShapeSettings, TypeRow, build_catalog};
use crate::error::CloudError;
use crate::price::{OnDemandPrices, SpotPrices};
use crate::unavailable::{Mark, Unavailable};

/// Facts shared by all classes.
#[derive(Default)]
struct Facts {
    types: Arc<Vec<TypeRow>>,
    zones: Arc<ZonesByType>,
    spot: Option<Arc<SpotPrices>>,
    /// Moves with every change of the above.
    version: u64,
}

/// A class's catalogue and what it was built from.
struct Entry {
    shape: ClassShape,
    subnets: Vec<(String, String)>,
    facts_version: u64,
    marks_sequence: u64,
    catalog: Arc<Catalog>,
}

/// Catalogues by class.
pub(crate) struct Catalogs {
    clients: Clients,
    settings: ShapeSettings,
    on_demand: OnDemandPrices,
    facts: RwLock<Facts>,
    entries: Mutex<BTreeMap<String, Entry>>,
    generation: AtomicU64,
    pub(crate) unavailable: Unavailable,
    changed: watch::Sender<u64>,
}

impl Catalogs {
    pub(crate) fn new(clients: Clients, settings: ShapeSettings) -> Self {
        Self {
            on_demand: OnDemandPrices::for_region(&settings.region),
            clients,
            settings,
            facts: RwLock::default(),
            entries: Mutex::default(),
            generation: AtomicU64::new(0),
            unavailable: Unavailable::default(),
            changed: watch::Sender::new(0),
        }
    }

    pub(crate) fn changed(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    pub(crate) fn settings(&self) -> &ShapeSettings {
        &self.settings
    }

    fn notify(&self) {
        self.changed.send_modify(|n| *n = n.wrapping_add(1));
    }

    /// Reads types and zones anew.
    pub(crate) async fn refresh_types(&self) -> Result<(), ApiError> {
        let (types, zones) = tokio::try_join!(fetch_types(&self.clients), fetch_zones(&self.clients))?;
        let mut facts = self.facts.write().unwrap_or_else(PoisonError::into_inner);
        // An empty answer is no market that closed, but an answer gone wrong.
        if !types.is_empty() && *facts.types != types {
            facts.types = Arc::new(types);
            facts.version += 1;
        }
        if !zones.is_empty() && *facts.zones != zones {
            facts.zones = Arc::new(zones);
            facts.version += 1;
        }
        drop(facts);
        self.notify();
        Ok(())
    }

    /// Reads spot prices anew.
    pub(crate) async fn refresh_spot(&self) -> Result<(), ApiError> {
        let spot = fetch_spot_prices(&self.clients).await?;
        if spot.is_empty() {
            return Ok(());
        }
        let mut facts = self.facts.write().unwrap_or_else(PoisonError::into_inner);
        if facts.spot.as_deref() != Some(&spot) {
            facts.spot = Some(Arc::new(spot));
            facts.version += 1;
            drop(facts);
            self.notify();
        }
        Ok(())
    }

    /// Types are known.
    pub(crate) fn is_loaded(&self) -> bool {
        let facts = self.facts.read().unwrap_or_else(PoisonError::into_inner);
        !facts.types.is_empty() && !facts.zones.is_empty()
    }

    /// Marks what could not be had.
    pub(crate) fn mark(&self, marks: impl IntoIterator<Item = Mark>) {
        let before = self.unavailable.sequence();
        for mark in marks {
            self.unavailable.mark(mark, Instant::now());
        }
        if self.unavailable.sequence() != before {
            self.notify();
        }
    }

    /// Lets marks go whose time is over.
    pub(crate) fn expire(&self) {
        if self.unavailable.expire(Instant::now()) {
            self.notify();
        }
    }

    /// A class's catalogue as of now.
    pub(crate) fn get(&self, class: &EC2NodeClass) -> Result<Arc<Catalog>, CloudError> {
        let name = class.metadata.name.clone().unwrap_or_default();
        let shape =
            ClassShape::from_class(class, &self.settings).map_err(|e| CloudError::Class { message: e.to_string() })?;
        let subnets: Vec<(String, String)> =
            class.status.iter().flat_map(|s| &s.subnets).map(|s| (s.zone.clone(), s.id.clone())).collect();
        if subnets.is_empty() {
            return Err(CloudError::Class {
                message: format!("EC2NodeClass {name}: no subnets; its SubnetsReady condition says why"),
            });
        }
        let facts = self.facts.read().unwrap_or_else(PoisonError::into_inner);
        if facts.types.is_empty() || facts.zones.is_empty() {
            return Err(CloudError::Transient {
                call: "DescribeInstanceTypes",
                message: "instance types are not known yet".to_owned(),
                retry_after: None,
            });
        }
        // The lock is held while building, so that two callers do not build the same.
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        self.unavailable.expire(now);
        let marks_sequence = self.unavailable.sequence();
        if let Some(entry) = entries.get(&name)
            && entry.shape == shape
            && entry.subnets == subnets
            && entry.facts_version == facts.version
            && entry.marks_sequence == marks_sequence
        {
            return Ok(Arc::clone(&entry.catalog));
        }
        let market = Ec2Market {
            zones: &facts.zones,
            on_demand: &self.on_demand,
            spot: facts.spot.as_deref(),
            unavailable: &self.unavailable,
            full_zones: Ec2Market::full_zones(
                subnets.iter().map(|(z, s)| (z.as_str(), s.as_str())),
                &self.unavailable,
                now,
            ),
            now,
        };
        let next = self.generation.load(Ordering::Relaxed) + 1;
        let built = build_catalog(&facts.types, &shape, &market, next);
        let catalog = match entries.get(&name) {
            // Nothing that this class sees has changed.
            Some(entry) if entry.catalog.types == built.types => Arc::clone(&entry.catalog),
            _ => {
                self.generation.store(next, Ordering::Relaxed);
                Arc::new(built)
            }
        };
        let facts_version = facts.version;
        let entry = Entry { shape, subnets, facts_version, marks_sequence, catalog: Arc::clone(&catalog) };
        entries.insert(name, entry);
        Ok(catalog)
    }

    /// Forgets a class that is gone.
    pub(crate) fn forget(&self, class: &str) {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).remove(class);
    }
}
