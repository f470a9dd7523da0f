//! Builds the tables that policies see from the snapshot, and translates their ids back.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::{Choices, Claims, Column, ExtraColumn, Fleet, Groups, Pods, RoundCatalog, Verdict};
use crate::catalog::{CapacityType, Catalog, View};
use crate::nodepool::{Limits, NodePool};
use crate::quantity::Resources;
use crate::requirement::key;
use crate::symbol::{Bits, SymbolSet, Symbols, ValueSet, id_of};

/// Bytes in a MiB.
const MIB: i64 = 1 << 20;

/// The tables of one round: catalogues laid end to end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tables {
    pub(crate) catalog: RoundCatalog,
    pub(crate) fleet: Fleet,
    /// Looked up only.
    symbols: HashMap<Arc<str>, u32>,
    /// First offering id of each view.
    bases: Vec<u32>,
    /// Row of the fleet by NodePool and offering.
    running: BTreeMap<(u32, u32), usize>,
}

impl Groups {
    /// The members of a row; empty for a row that is not there.
    pub fn row(&self, at: usize) -> &[u32] {
        let from = if at == 0 { 0 } else { self.end.get(at - 1).copied().unwrap_or(u32::MAX) as usize };
        let to = self.end.get(at).copied().unwrap_or(0) as usize;
        self.member.get(from..to).unwrap_or_default()
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.end.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.end.is_empty()
    }

    /// Adds a row.
    pub fn push(&mut self, members: impl IntoIterator<Item = u32>) {
        self.member.extend(members);
        self.end.push(id_of(self.member.len()));
    }
}

impl Choices {
    /// What row `at` may use.
    pub fn row(&self, at: usize) -> &[u32] {
        self.set_of.get(at).map_or(&[], |set| self.sets.row(*set as usize))
    }
}

impl Tables {
    /// Types and offerings of these catalogues. The first one's symbols and columns are kept with the catalogue.
    pub(crate) fn new(views: &[View<'_>]) -> Self {
        let mut tables = Self::default();
        for (at, view) in views.iter().enumerate() {
            if at == 0 {
                tables = view.columns.tables(view.catalog).clone();
            } else {
                tables.add_catalog(view.catalog);
            }
        }
        tables
    }

    pub(crate) fn symbol(&mut self, text: &Arc<str>) -> u32 {
        if let Some(id) = self.symbols.get(text) {
            return *id;
        }
        let id = id_of(self.catalog.symbols.len());
        self.catalog.symbols.push(text.to_string());
        self.symbols.insert(Arc::clone(text), id);
        id
    }

    /// Appends a catalogue.
    pub(crate) fn add_catalog(&mut self, catalog: &Catalog) {
        self.bases.push(id_of(self.catalog.offerings.instance_type.len()));
        // One number for several generations: it moves whenever one of them does.
        self.catalog.generation = if self.bases.len() == 1 {
            catalog.generation
        } else {
            self.catalog.generation.wrapping_mul(0x0100_0000_01b3).wrapping_add(catalog.generation)
        };
        for of_type in &catalog.types {
            let row = id_of(self.catalog.types.name.len());
            let single = |name: &str| {
                let found = of_type.requirements.iter().find(|requirement| &*requirement.key == name);
                found.and_then(|requirement| requirement.values.first()).cloned()
            };
            let family = single("karpenter.k8s.aws/instance-family")
                .unwrap_or_else(|| Arc::from(of_type.name.split('.').next().unwrap_or_default()));
            let generation = single("karpenter.k8s.aws/instance-generation").and_then(|text| text.parse().ok());
            let arch = single(key::ARCH).unwrap_or_default();
            let mut labels = Vec::new();
            for requirement in &of_type.requirements {
                for value in &requirement.values {
                    labels.push(self.symbol(&requirement.key));
                    labels.push(self.symbol(value));
                }
            }
            let (name, family, arch) = (self.symbol(&of_type.name), self.symbol(&family), self.symbol(&arch));
            let types = &mut self.catalog.types;
            types.name.push(name);
            types.family.push(family);
            types.arch.push(arch);
            types.generation.push(generation.unwrap_or(0));
            types.cpu_milli.push(unsigned(of_type.capacity.cpu_milli));
            types.memory_mib.push(unsigned(of_type.capacity.memory / MIB));
            types.ephemeral_mib.push(unsigned(of_type.capacity.ephemeral_storage / MIB));
            types.pods.push(id_of(usize::try_from(of_type.capacity.pods).unwrap_or(0)));
            types.gpu.push(gpus(&of_type.capacity));
            types.labels.push(labels);
            for offering in &of_type.offerings {
                let zone = self.symbol(&offering.zone);
                let offerings = &mut self.catalog.offerings;
                offerings.instance_type.push(row);
                offerings.zone.push(zone);
                offerings.capacity.push(market(offering.capacity_type));
                offerings.price_micro_usd.push(offering.price.map_or(u64::MAX, |price| price.0));
                let reserved = offering.capacity_type == CapacityType::Reserved;
                offerings.reserved_left.push(if reserved { offering.reserved_left.unwrap_or(0) } else { 0 });
            }
        }
        self.add_extra_columns(catalog);
    }

    /// Columns beyond the fixed ones, each only while some row has a value: `reservation-type` (0 default, 1
    /// capacity-block) and `reservation-interruptible` (0, 1) of offerings, `accelerators` (neuron, gaudi) of types.
    fn add_extra_columns(&mut self, catalog: &Catalog) {
        const TYPE: &str = "karpenter.k8s.aws/capacity-reservation-type";
        const INTERRUPTIBLE: &str = "karpenter.k8s.aws/capacity-reservation-interruptible";
        const ACCELERATORS: [&str; 3] = ["aws.amazon.com/neuron", "aws.amazon.com/neuroncore", "habana.ai/gaudi"];
        let offerings = || catalog.types.iter().flat_map(|of_type| &of_type.offerings);
        for (label, yes, name) in
            [(TYPE, "capacity-block", "reservation-type"), (INTERRUPTIBLE, "true", "reservation-interruptible")]
        {
            let has = |value: Option<&Arc<str>>| u32::from(value.is_some_and(|value| &**value == yes));
            let column: Vec<u32> = offerings().map(|offering| has(offering.labels.get(label))).collect();
            let rows = self.catalog.offerings.instance_type.len();
            extend_column(&mut self.catalog.offerings.extra, name, rows, column);
        }
        let count = |resources: &Resources| {
            id_of(ACCELERATORS.iter().filter_map(|name| usize::try_from(resources.get(name)).ok()).sum())
        };
        let column = catalog.types.iter().map(|of_type| count(&of_type.capacity)).collect();
        let rows = self.catalog.types.name.len();
        extend_column(&mut self.catalog.types.extra, "accelerators", rows, column);
    }

    /// Id of a text that is known.
    pub(crate) fn find_symbol(&self, text: &str) -> Option<u32> {
        self.symbols.get(text).copied()
    }

    /// Symbol of the key and count, for every key with minValues.
    pub(crate) fn min_values(&self, requirements: &SymbolSet, symbols: &Symbols) -> Vec<u32> {
        let pair =
            |(key, values): (u32, &ValueSet)| Some([self.find_symbol(&symbols.key_name(key))?, values.min_values?]);
        requirements.iter().filter_map(pair).flatten().collect()
    }

    /// Appends a NodePool. What is left of a limit is none at the largest value, and never below zero.
    pub(crate) fn add_nodepool(
        &mut self,
        pool: &NodePool,
        consolidation: u8,
        left: &Limits,
        (empty, underutilized): (u32, u32),
    ) {
        let name = self.symbol(&pool.name);
        let mut labels = Vec::new();
        for (key, value) in &pool.labels {
            labels.push(self.symbol(key));
            labels.push(self.symbol(value));
        }
        for requirement in &pool.requirements {
            // minValues name their key by symbol, also one that no type has.
            self.symbol(&requirement.key);
        }
        let amount = |name: &str, unit: i64| left.resources.get(name).map_or(u64::MAX, |left| unsigned(left / unit));
        let nodepools = &mut self.catalog.nodepools;
        nodepools.name.push(name);
        nodepools.weight.push(u32::try_from(pool.weight).unwrap_or(0));
        nodepools.consolidation.push(consolidation);
        nodepools
            .consolidate_after_s
            .push(pool.disruption.consolidate_after_ms.map_or(u64::MAX, |ms| unsigned(ms / 1000)));
        nodepools.cpu_left_milli.push(amount("cpu", 1));
        nodepools.memory_left_mib.push(amount("memory", MIB));
        nodepools.nodes_left.push(left.nodes.map_or(u32::MAX, |nodes| u32::try_from(nodes).unwrap_or(0)));
        nodepools.budget_empty.push(empty);
        nodepools.budget_underutilized.push(underutilized);
        nodepools.labels.push(labels);
    }

    /// Row of a NodePool by name; `u32::MAX` if it has none.
    pub(crate) fn nodepool_row(&self, name: &str) -> u32 {
        let Some(symbol) = self.find_symbol(name) else { return u32::MAX };
        self.catalog.nodepools.name.iter().position(|known| *known == symbol).map_or(u32::MAX, id_of)
    }

    /// Counts one running node.
    pub(crate) fn count_running(&mut self, nodepool: u32, offering: u32) {
        let row = self.running.entry((nodepool, offering)).or_insert_with(|| {
            self.fleet.nodepool.push(nodepool);
            self.fleet.offering.push(offering);
            self.fleet.count.push(0);
            self.fleet.count.len() - 1
        });
        if let Some(count) = self.fleet.count.get_mut(*row) {
            *count += 1;
        }
    }

    /// Global id of a view's offering.
    pub(crate) fn offering(&self, view: usize, offering: u32) -> u32 {
        self.bases.get(view).map_or(u32::MAX, |base| base.saturating_add(offering))
    }

    /// View and own id of a global offering.
    pub(crate) fn locate(&self, offering: u32) -> Option<(usize, u32)> {
        let view = self.bases.partition_point(|base| *base <= offering).checked_sub(1)?;
        Some((view, offering - self.bases.get(view)?))
    }

    /// What a filter drops from row `at`, by view.
    pub(crate) fn dropped(&self, verdict: &Verdict, at: usize) -> Vec<Bits> {
        let mut dropped = vec![Bits::default(); self.bases.len()];
        for offering in verdict.dropped.row(at) {
            if let Some((view, own)) = self.locate(*offering)
                && let Some(bits) = dropped.get_mut(view)
            {
                bits.insert(own);
            }
        }
        dropped
    }

    /// The reason that a filter gives for most of what it drops from row `at`; `None` when it gives none.
    pub(crate) fn reason(verdict: &Verdict, at: usize) -> Option<Arc<str>> {
        let start = if at == 0 { 0 } else { *verdict.dropped.end.get(at - 1)? as usize };
        let end = *verdict.dropped.end.get(at)? as usize;
        let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
        for reason in verdict.reason.get(start..end)? {
            *counts.entry(*reason).or_default() += 1;
        }
        let most = counts.into_iter().max_by_key(|(reason, count)| (*count, std::cmp::Reverse(*reason)))?.0;
        verdict.reasons.get(most as usize).filter(|reason| !reason.is_empty()).map(|reason| Arc::from(reason.as_str()))
    }

    /// List price of every member of every row: where scorers start.
    pub(crate) fn list_prices(&self, candidates: &Choices) -> Vec<i64> {
        let rows = (0..candidates.set_of.len()).flat_map(|row| candidates.row(row));
        rows.map(|offering| {
            let price = self.catalog.offerings.price_micro_usd.get(*offering as usize).copied().unwrap_or(u64::MAX);
            if price == u64::MAX { super::COST_UNKNOWN } else { crate::quantity::MicroUsd(price).as_cost() }
        })
        .collect()
    }
}

/// Collects the sets of offerings that rows may use; equal sets are sent once.
#[derive(Debug, Default)]
pub(crate) struct ChoicesBuilder {
    known: BTreeMap<Vec<(usize, Bits)>, u32>,
    choices: Choices,
}

impl ChoicesBuilder {
    /// A row that may use these offerings, by view in ascending order.
    pub(crate) fn push(&mut self, tables: &Tables, sets: Vec<(usize, Bits)>) {
        let set = match self.known.get(&sets) {
            Some(set) => *set,
            None => {
                let set = id_of(self.choices.sets.len());
                let members =
                    sets.iter().flat_map(|(view, bits)| bits.iter().map(|offering| tables.offering(*view, offering)));
                self.choices.sets.push(members);
                self.known.insert(sets, set);
                set
            }
        };
        self.choices.set_of.push(set);
    }

    pub(crate) fn finish(self) -> Choices {
        self.choices
    }
}

impl Claims {
    /// minValues of the rows: pairs of key symbol and count.
    pub(crate) fn set_min_values(&mut self, pairs: Groups) {
        if pairs.member.is_empty() {
            return;
        }
        let column = |name: &str, values| ExtraColumn { name: name.to_owned(), values: Column::U32(values) };
        self.extra.push(column("min-values", pairs.member));
        self.extra.push(column("min-values-end", pairs.end));
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, nodepool: u32, requests: &Resources, pods: u32, state: u32) {
        self.count.push(1);
        self.nodepool.push(nodepool);
        self.cpu_milli.push(unsigned(requests.cpu_milli));
        self.memory_mib.push(unsigned(mib_up(requests.memory)));
        self.gpu.push(gpus(requests));
        self.pods.push(pods);
        self.state.push(state);
    }
}

impl Pods {
    /// Adds a group of pods; `keys` are the label keys that policies read.
    pub(crate) fn push(&mut self, shape: &crate::pod::PodShape, count: u32, keys: &[String], tables: &mut Tables) {
        self.count.push(count);
        self.namespace.push(tables.symbol(&shape.namespace));
        self.priority.push(shape.priority);
        self.cpu_milli.push(unsigned(shape.requests.cpu_milli));
        self.memory_mib.push(unsigned(mib_up(shape.requests.memory)));
        self.gpu.push(gpus(&shape.requests));
        let mut labels = Vec::new();
        for (key, value) in &shape.labels {
            if keys.iter().any(|wanted| **wanted == **key) {
                labels.push(tables.symbol(key));
                labels.push(tables.symbol(value));
            }
        }
        self.labels.push(labels);
        self.annotations.push([]);
    }

    /// Adds a column for every resource that some group asks for and that has no column of its own.
    pub(crate) fn push_resources<'a>(&mut self, groups: impl Iterator<Item = &'a Resources> + Clone) {
        const OWN_COLUMN: [&str; 5] = ["cpu", "memory", "pods", "nvidia.com/gpu", "amd.com/gpu"];
        let names: BTreeSet<&str> = groups
            .clone()
            .flat_map(Resources::iter)
            .map(|(name, _)| name)
            .filter(|name| !OWN_COLUMN.contains(name))
            .collect();
        for name in names {
            let values = groups.clone().map(|requests| unsigned(requests.get(name))).collect();
            self.extra.push(ExtraColumn { name: name.to_owned(), values: Column::U64(values) });
        }
    }
}

/// Sets the last of `rows` rows of a named column; rows before are zero if it is new. A column of zeros is left out.
fn extend_column(columns: &mut Vec<ExtraColumn>, name: &str, rows: usize, values: Vec<u32>) {
    let at = columns.iter().position(|column| column.name == name);
    if at.is_none() && values.iter().all(|value| *value == 0) {
        return;
    }
    let at = at.unwrap_or_else(|| {
        columns.push(ExtraColumn { name: name.to_owned(), values: Column::U32(Vec::new()) });
        columns.len() - 1
    });
    if let Some(ExtraColumn { values: Column::U32(known), .. }) = columns.get_mut(at) {
        known.resize(rows - values.len().min(rows), 0);
        known.extend(values);
    }
}

/// Code of a market in the tables.
pub(crate) fn market(capacity_type: CapacityType) -> u8 {
    match capacity_type {
        CapacityType::Reserved => 0,
        CapacityType::Spot => 1,
        CapacityType::OnDemand => 2,
    }
}

/// GPUs of either vendor.
pub(crate) fn gpus(resources: &Resources) -> u32 {
    id_of(usize::try_from(resources.get("nvidia.com/gpu") + resources.get("amd.com/gpu")).unwrap_or(0))
}

pub(crate) fn unsigned(amount: i64) -> u64 {
    u64::try_from(amount).unwrap_or(0)
}

/// MiB, rounded up.
pub(crate) fn mib_up(bytes: i64) -> i64 {
    bytes / MIB + i64::from(bytes % MIB > 0)
}
