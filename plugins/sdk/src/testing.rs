//! A native test harness: a small catalogue by name, claims that may use it, and the hooks of a plugin called on them.
//!
//! ```
//! # use mortise_plugin_sdk::prelude::*;
//! # struct Half;
//! # impl Plugin for Half {
//! #     const NAME: &'static str = "half";
//! #     const VERSION: &'static str = "0.1.0";
//! #     fn configure(_: &Config) -> Result<Self, Invalid> { Ok(Self) }
//! # }
//! # impl Score for Half {
//! #     fn evaluate(&mut self, batch: &ClaimBatch<'_>, base: &[i64]) -> Result<Vec<i64>, PolicyError> {
//! #         Ok(batch.map(base, |c| c.cost / 2))
//! #     }
//! # }
//! use mortise_plugin_sdk::testing::Scene;
//!
//! let scene = Scene::new()
//!     .offer("m7i.large", "us-east-1a", Capacity::OnDemand, Some(100_800))
//!     .offer("m7i.large", "us-east-1b", Capacity::Spot, None);
//! let mut plugin = scene.start::<Half>("{}").unwrap();
//! assert_eq!(scene.score(&mut plugin), Ok(vec![50_400, COST_UNKNOWN]));
//! ```

use std::format;
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

use crate::batch::{ClaimBatch, NodeBatch};
use crate::catalog::{COST_UNKNOWN, Capacity, PRICE_UNKNOWN};
use crate::config::{Config, Invalid};
use crate::plugin::{Consolidate, Filter, Plugin, Score};
use crate::rows::{Candidates, Rows};
use crate::types::{
    Catalog, Claims, Column, ExtraColumn, Fleet, Groups, InstanceTypes, Nodepools, Nodes, Offerings, Outcomes,
    PolicyError, Round,
};

/// What a plugin is tested on.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Time, seed, explain (on).
    pub round: Round,
    /// The tables.
    pub catalog: Catalog,
    /// Claims: one by default, which may use every offering.
    pub claims: Claims,
    /// Nodes, for consolidation.
    pub nodes: Nodes,
    set: Vec<u32>,
}

impl Default for Scene {
    fn default() -> Self {
        Self::new()
    }
}

impl Scene {
    /// An empty catalogue with one nodepool, `default`, and one claim in it.
    #[must_use]
    pub fn new() -> Self {
        let groups = || Groups { end: Vec::new(), member: Vec::new() };
        let catalog = Catalog {
            generation: 1,
            symbols: vec!["default".to_string()],
            types: InstanceTypes {
                name: Vec::new(),
                family: Vec::new(),
                arch: Vec::new(),
                generation: Vec::new(),
                cpu_milli: Vec::new(),
                memory_mib: Vec::new(),
                ephemeral_mib: Vec::new(),
                pods: Vec::new(),
                gpu: Vec::new(),
                labels: groups(),
                extra: Vec::new(),
            },
            offerings: Offerings {
                instance_type: Vec::new(),
                zone: Vec::new(),
                capacity: Vec::new(),
                price_micro_usd: Vec::new(),
                reserved_left: Vec::new(),
                extra: Vec::new(),
            },
            nodepools: Nodepools {
                name: vec![0],
                weight: vec![0],
                consolidation: vec![1],
                consolidate_after_s: vec![0],
                cpu_left_milli: vec![u64::MAX],
                memory_left_mib: vec![u64::MAX],
                nodes_left: vec![u32::MAX],
                budget_empty: vec![u32::MAX],
                budget_underutilized: vec![u32::MAX],
                labels: Groups { end: vec![0], member: Vec::new() },
                extra: Vec::new(),
            },
        };
        let claims = Claims {
            count: vec![1],
            nodepool: vec![0],
            cpu_milli: vec![1_000],
            memory_mib: vec![1_024],
            gpu: vec![0],
            pods: vec![1],
            state: vec![0],
            extra: Vec::new(),
        };
        let nodes = Nodes {
            id: Vec::new(),
            nodepool: Vec::new(),
            offering: Vec::new(),
            price_micro_usd: Vec::new(),
            age_s: Vec::new(),
            idle_s: Vec::new(),
            used_cpu_milli: Vec::new(),
            used_memory_mib: Vec::new(),
            pods: Vec::new(),
            disruption_cost_milli: Vec::new(),
            last_moved_s: Vec::new(),
            state: Vec::new(),
            extra: Vec::new(),
        };
        let round = Round { id: 1, now_unix_ms: 0, seed: 0, steps: 0, explain: true };
        Self { round, catalog, claims, nodes, set: Vec::new() }
    }

    /// The symbol of a text, interned when new.
    pub fn intern(&mut self, text: &str) -> u32 {
        let known = self.catalog.symbol(text);
        known.unwrap_or_else(|| {
            self.catalog.symbols.push(text.to_string());
            symbol(self.catalog.symbols.len() - 1)
        })
    }

    /// Adds an offering, and its type (2 CPUs, 8 GiB, no GPU) when new. The claim may use it.
    #[must_use]
    pub fn offer(mut self, instance_type: &str, zone: &str, capacity: Capacity, price: Option<u64>) -> Self {
        let type_id = self.instance_type(instance_type);
        let zone = self.intern(zone);
        let offerings = &mut self.catalog.offerings;
        self.set.push(symbol(offerings.zone.len()));
        offerings.instance_type.push(type_id);
        offerings.zone.push(zone);
        offerings.capacity.push(capacity.code());
        offerings.price_micro_usd.push(price.unwrap_or(PRICE_UNKNOWN));
        offerings.reserved_left.push(if capacity == Capacity::Reserved { 1 } else { 0 });
        self
    }

    /// Sets the GPUs of a type that was offered.
    #[must_use]
    pub fn gpus(mut self, instance_type: &str, count: u32) -> Self {
        let id = self.instance_type(instance_type) as usize;
        if let Some(gpu) = self.catalog.types.gpu.get_mut(id) {
            *gpu = count;
        }
        self
    }

    /// Adds a standard extra column to the offerings.
    #[must_use]
    pub fn offering_column(mut self, name: &str, values: Vec<u32>) -> Self {
        self.catalog.offerings.extra.push(ExtraColumn { name: name.to_string(), values: Column::U32s(values) });
        self
    }

    /// The claim asks for at least `count` values of a label key.
    #[must_use]
    pub fn min_values(mut self, key: &str, count: u32) -> Self {
        let key = self.intern(key);
        self.claims.state = vec![1];
        let column = |name: &str, values| ExtraColumn { name: name.to_string(), values: Column::U32s(values) };
        self.claims.extra = vec![column("min-values-end", vec![2]), column("min-values", vec![key, count])];
        self
    }

    /// Adds a running node on an offering, by its index.
    #[must_use]
    pub fn node(mut self, offering: u32, state: u32) -> Self {
        let nodes = &mut self.nodes;
        nodes.id.push(1_000 + nodes.id.len() as u64);
        nodes.nodepool.push(0);
        nodes.offering.push(offering);
        nodes.price_micro_usd.push(self.catalog.price_of(offering).unwrap_or(PRICE_UNKNOWN));
        nodes.age_s.push(3_600);
        nodes.idle_s.push(600);
        nodes.used_cpu_milli.push(0);
        nodes.used_memory_mib.push(0);
        nodes.pods.push(0);
        nodes.disruption_cost_milli.push(1_000);
        nodes.last_moved_s.push(u64::MAX);
        nodes.state.push(state);
        self
    }

    /// Configures a plugin from JSON and begins a round.
    ///
    /// # Errors
    /// What the plugin finds wrong with its configuration, or with the round.
    pub fn start<P: Plugin>(&self, config: &str) -> Result<P, Invalid> {
        let mut plugin = P::configure(&Config::parse(config)?)?;
        let fleet = Fleet { nodepool: Vec::new(), offering: Vec::new(), count: Vec::new() };
        match plugin.begin_round(&self.catalog, &fleet, &[]) {
            Ok(()) => Ok(plugin),
            Err(error) => Err(Invalid::at("", format!("{error:?}"))),
        }
    }

    fn ends(&self) -> [u32; 1] {
        [symbol(self.set.len())]
    }

    /// The scorer's answer for the claim, one cost per offering in the order added.
    ///
    /// # Errors
    /// The plugin's own.
    pub fn score<P: Score>(&self, plugin: &mut P) -> Result<Vec<i64>, PolicyError> {
        let ends = self.ends();
        let candidates = Candidates { sets: Rows { end: &ends, member: &self.set }, set_of: &[0] };
        let base: Vec<i64> = (self.set.iter())
            .map(|o| self.catalog.price_of(*o).map_or(COST_UNKNOWN, |p| i64::try_from(p).unwrap_or(COST_UNKNOWN)))
            .collect();
        let batch = ClaimBatch { round: &self.round, catalog: &self.catalog, claims: &self.claims, candidates };
        plugin.evaluate(&batch, &base)
    }

    /// What the filter leaves of the claim's offerings, as `type/zone/market` in the order added.
    ///
    /// # Errors
    /// The plugin's own.
    pub fn kept<P: Filter>(&self, plugin: &mut P) -> Result<Vec<String>, PolicyError> {
        let ends = self.ends();
        let candidates = Candidates { sets: Rows { end: &ends, member: &self.set }, set_of: &[0] };
        let batch = ClaimBatch { round: &self.round, catalog: &self.catalog, claims: &self.claims, candidates };
        let verdict = plugin.admit_claims(&batch)?;
        let kept = self.set.iter().filter(|o| !verdict.dropped.member.contains(o));
        Ok(kept.map(|o| self.name(*o)).collect())
    }

    /// One propose and decide: the sets, and the priority of each when all are feasible.
    ///
    /// # Errors
    /// The plugin's own.
    pub fn consolidate<P: Consolidate>(
        &self,
        plugin: &mut P,
        max_sets: u32,
    ) -> Result<Vec<(Vec<u32>, i64)>, PolicyError> {
        let none = Outcomes {
            feasible: Vec::new(),
            saving_micro_usd: Vec::new(),
            new_nodes: Vec::new(),
            evictions: Vec::new(),
            replacement: Groups { end: Vec::new(), member: Vec::new() },
            reason: Vec::new(),
        };
        let (round, catalog, nodes) = (&self.round, &self.catalog, &self.nodes);
        let ask = NodeBatch { round, catalog, nodes, tried: Rows::default(), outcomes: &none };
        let sets = plugin.propose(&ask, max_sets)?;
        let rows = sets.end.len();
        let outcomes = Outcomes {
            feasible: vec![1; rows],
            saving_micro_usd: vec![0; rows],
            new_nodes: vec![0; rows],
            evictions: vec![0; rows],
            replacement: Groups { end: vec![0; rows], member: Vec::new() },
            reason: vec![0; rows],
        };
        let tried = Rows::from(&sets);
        let priorities = plugin.decide(&NodeBatch { round, catalog, nodes, tried, outcomes: &outcomes })?;
        Ok(tried.iter().map(<[u32]>::to_vec).zip(priorities).collect())
    }

    fn name(&self, offering: u32) -> String {
        let (catalog, at) = (&self.catalog, offering as usize);
        let type_id = catalog.type_of(offering).unwrap_or(u32::MAX) as usize;
        let name = catalog.types.name.get(type_id).map_or("", |n| catalog.text(*n));
        let zone = catalog.offerings.zone.get(at).map_or("", |z| catalog.text(*z));
        let market = match catalog.capacity_of(offering) {
            Capacity::Reserved => "reserved",
            Capacity::Spot => "spot",
            Capacity::OnDemand => "on-demand",
        };
        format!("{name}/{zone}/{market}")
    }

    fn instance_type(&mut self, name: &str) -> u32 {
        let symbol_of_name = self.intern(name);
        if let Some(id) = self.catalog.types.name.iter().position(|n| *n == symbol_of_name) {
            return symbol(id);
        }
        let family = self.intern(name.split('.').next().unwrap_or(name));
        let arch = self.intern("amd64");
        let keys = [self.intern("node.kubernetes.io/instance-type"), self.intern("karpenter.k8s.aws/instance-family")];
        let types = &mut self.catalog.types;
        types.name.push(symbol_of_name);
        types.family.push(family);
        types.arch.push(arch);
        types.generation.push(7);
        types.cpu_milli.push(2_000);
        types.memory_mib.push(8_192);
        types.ephemeral_mib.push(20_480);
        types.pods.push(29);
        types.gpu.push(0);
        types.labels.member.extend([keys[0], symbol_of_name, keys[1], family]);
        types.labels.end.push(symbol(types.labels.member.len()));
        symbol(types.name.len() - 1)
    }
}

fn symbol(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
