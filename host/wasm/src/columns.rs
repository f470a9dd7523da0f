//! The engine's columns as arguments of the contract: borrowed, nothing is copied but the list of symbols' addresses.

use mortise_engine::policy as core;

use crate::bindings::v0_1::exports::mortise::policy::consolidate as wit_nodes;
use crate::bindings::v0_1::mortise::policy::types as wit;

pub(crate) mod check;

/// Extra columns, whose list is the one thing that the contract's types cannot borrow as it is.
type Extra<'a> = Vec<wit::ExtraColumn<'a>>;

pub(crate) fn extra(columns: &[core::ExtraColumn]) -> Extra<'_> {
    fn values(column: &core::Column) -> wit::Column<'_> {
        match column {
            core::Column::U32(values) => wit::Column::U32s(values),
            core::Column::U64(values) => wit::Column::U64s(values),
            core::Column::S64(values) => wit::Column::S64s(values),
        }
    }
    columns.iter().map(|c| wit::ExtraColumn { name: &c.name, values: values(&c.values) }).collect()
}

/// The catalogue of a round, prepared once for all plugins.
pub(crate) struct CatalogColumns<'a> {
    catalog: &'a core::RoundCatalog,
    fleet: &'a core::Fleet,
    symbols: Vec<&'a str>,
    types: Extra<'a>,
    offerings: Extra<'a>,
    nodepools: Extra<'a>,
}

impl<'a> CatalogColumns<'a> {
    pub(crate) fn new(catalog: &'a core::RoundCatalog, fleet: &'a core::Fleet) -> Self {
        Self {
            catalog,
            fleet,
            symbols: catalog.symbols.iter().map(String::as_str).collect(),
            types: extra(&catalog.types.extra),
            offerings: extra(&catalog.offerings.extra),
            nodepools: extra(&catalog.nodepools.extra),
        }
    }

    /// Rows that `begin-round` may want to look at.
    pub(crate) fn rows(&self) -> usize {
        let catalog = self.catalog;
        catalog.symbols.len() + catalog.types.name.len() + catalog.offerings.zone.len() + catalog.nodepools.name.len()
    }

    pub(crate) fn fleet(&self) -> wit::Fleet<'_> {
        let fleet = self.fleet;
        wit::Fleet { nodepool: &fleet.nodepool, offering: &fleet.offering, count: &fleet.count }
    }

    pub(crate) fn catalog(&self) -> wit::Catalog<'_> {
        wit::Catalog {
            generation: self.catalog.generation,
            symbols: &self.symbols,
            types: self.types(),
            offerings: self.offerings(),
            nodepools: self.nodepools(),
        }
    }

    fn types(&self) -> wit::InstanceTypes<'_> {
        let t = &self.catalog.types;
        wit::InstanceTypes {
            name: &t.name,
            family: &t.family,
            arch: &t.arch,
            generation: &t.generation,
            cpu_milli: &t.cpu_milli,
            memory_mib: &t.memory_mib,
            ephemeral_mib: &t.ephemeral_mib,
            pods: &t.pods,
            gpu: &t.gpu,
            labels: groups(&t.labels),
            extra: &self.types,
        }
    }

    fn offerings(&self) -> wit::Offerings<'_> {
        let o = &self.catalog.offerings;
        wit::Offerings {
            instance_type: &o.instance_type,
            zone: &o.zone,
            capacity: &o.capacity,
            price_micro_usd: &o.price_micro_usd,
            reserved_left: &o.reserved_left,
            extra: &self.offerings,
        }
    }

    fn nodepools(&self) -> wit::Nodepools<'_> {
        let p = &self.catalog.nodepools;
        wit::Nodepools {
            name: &p.name,
            weight: &p.weight,
            consolidation: &p.consolidation,
            consolidate_after_s: &p.consolidate_after_s,
            cpu_left_milli: &p.cpu_left_milli,
            memory_left_mib: &p.memory_left_mib,
            nodes_left: &p.nodes_left,
            budget_empty: &p.budget_empty,
            budget_underutilized: &p.budget_underutilized,
            labels: groups(&p.labels),
            extra: &self.nodepools,
        }
    }
}

pub(crate) fn groups(groups: &core::Groups) -> wit::GroupsParam<'_> {
    wit::GroupsParam { end: &groups.end, member: &groups.member }
}

pub(crate) fn choices(choices: &core::Choices) -> wit::Choices<'_> {
    wit::Choices { sets: groups(&choices.sets), set_of: &choices.set_of }
}

pub(crate) fn round(round: &core::Round) -> wit::Round {
    wit::Round {
        id: round.id,
        now_unix_ms: round.now_unix_ms,
        seed: round.seed,
        steps: round.steps,
        explain: round.explain,
    }
}

pub(crate) fn pods<'a>(pods: &'a core::Pods, extra: &'a [wit::ExtraColumn<'a>]) -> wit::Pods<'a> {
    wit::Pods {
        count: &pods.count,
        namespace: &pods.namespace,
        priority: &pods.priority,
        cpu_milli: &pods.cpu_milli,
        memory_mib: &pods.memory_mib,
        gpu: &pods.gpu,
        labels: groups(&pods.labels),
        annotations: groups(&pods.annotations),
        extra,
    }
}

pub(crate) fn claims<'a>(claims: &'a core::Claims, extra: &'a [wit::ExtraColumn<'a>]) -> wit::Claims<'a> {
    wit::Claims {
        count: &claims.count,
        nodepool: &claims.nodepool,
        cpu_milli: &claims.cpu_milli,
        memory_mib: &claims.memory_mib,
        gpu: &claims.gpu,
        pods: &claims.pods,
        state: &claims.state,
        extra,
    }
}

pub(crate) fn nodes<'a>(nodes: &'a core::Nodes, extra: &'a [wit::ExtraColumn<'a>]) -> wit_nodes::Nodes<'a> {
    wit_nodes::Nodes {
        id: &nodes.id,
        nodepool: &nodes.nodepool,
        offering: &nodes.offering,
        price_micro_usd: &nodes.price_micro_usd,
        age_s: &nodes.age_s,
        idle_s: &nodes.idle_s,
        used_cpu_milli: &nodes.used_cpu_milli,
        used_memory_mib: &nodes.used_memory_mib,
        pods: &nodes.pods,
        disruption_cost_milli: &nodes.disruption_cost_milli,
        last_moved_s: &nodes.last_moved_s,
        state: &nodes.state,
        extra,
    }
}

pub(crate) fn outcomes(outcomes: &core::Outcomes) -> wit_nodes::Outcomes<'_> {
    wit_nodes::Outcomes {
        feasible: &outcomes.feasible,
        saving_micro_usd: &outcomes.saving_micro_usd,
        new_nodes: &outcomes.new_nodes,
        evictions: &outcomes.evictions,
        replacement: groups(&outcomes.replacement),
        reason: &outcomes.reason,
    }
}
