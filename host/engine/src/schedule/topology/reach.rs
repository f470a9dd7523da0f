//! Which domains new nodes could be in, for pods with given requirements.

use super::register::Filter;
use super::{KeyAxis, Topology};
use crate::catalog::View;
use crate::schedule::claim::{Surroundings, narrow};
use crate::schedule::group::RequirementSets;
use crate::schedule::pool::Pool;
use crate::symbol::{Bits, KeyId, SymbolSet, Symbols, ValueSet, id_of};
use crate::taint::untolerated;

/// What domains depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Around<'r, 'a> {
    pub(crate) pools: &'r [Pool<'a>],
    pub(crate) views: &'r [View<'a>],
    pub(crate) symbols: &'r Symbols,
    pub(crate) sets: &'r RequirementSets,
}

/// Values of a key that a new node of the pool may get under these requirements: some launchable offering of some type
/// has them.
pub(crate) fn reach(around: Surroundings<'_, '_>, asked: &SymbolSet, key: KeyId) -> Bits {
    let pool = around.pool;
    let start = (&pool.template, &pool.types, &pool.offerings);
    let Some(left) = narrow(around, start, asked, None) else { return Bits::default() };
    let own = left.requirements.get(key);
    let candidates: Vec<u32> = match own {
        Some(own) if !own.complement => own.bits.iter().collect(),
        _ => around.view.known_values(key).to_vec(),
    };
    let integers = around.symbols.integers(key);
    let offered = |value: &u32| {
        if own.is_some_and(|own| !own.has(*value, integers)) {
            return false;
        }
        let one = ValueSet::one(*value);
        let mut types = around.view.types_agreeing(key, &one);
        types.and(&left.types);
        if let Some(mut offerings) = around.view.offerings_agreeing(key, &one) {
            offerings.and(&left.offerings);
            types.and(&around.view.columns.types_with(&offerings));
        }
        !types.is_empty()
    };
    candidates.into_iter().filter(offered).collect()
}

impl Topology<'_> {
    /// Works out the domains that a spread compares, unless they are known: those that new nodes could be in, and those
    /// of existing nodes that pass its filter. `set` are the requirements of the pod (with its volumes).
    pub(super) fn learn_universe(&mut self, axis_at: u32, filter: u32, set: u32, around: Around<'_, '_>) {
        let known = (axis_at, filter, set);
        if self.universes.contains_key(&known) {
            return;
        }
        let Some(axis) = self.axes.get(axis_at as usize) else { return };
        let mut universe = Bits::default();
        if let (Some(asked), Some(by)) = (around.sets.sets.get(set as usize), self.filters.get(filter as usize)) {
            for pool in around.pools.iter().chain(&self.at_limit).filter(|pool| reachable(pool, by)) {
                let Some(view) = around.views.get(pool.view) else { continue };
                universe.or(&reach(
                    Surroundings { pool, view, symbols: around.symbols, reservations: None },
                    asked,
                    axis.key,
                ));
            }
        }
        if let Some(passing) = self.filter_nodes.get(filter as usize) {
            universe.or(&axis.values_of(passing, &self.real_nodes));
        }
        self.universes.insert(known, universe);
    }
}

impl KeyAxis {
    /// Values that some node of both sets has.
    fn values_of(&self, nodes: &Bits, real: &Bits) -> Bits {
        let mut both = nodes.clone();
        both.and(real);
        let with = self.nodes.iter().enumerate().filter(|(_, of_value)| of_value.intersects(&both));
        with.map(|(value, _)| id_of(value)).collect()
    }
}

fn reachable(pool: &Pool<'_>, filter: &Filter<'_>) -> bool {
    filter.tolerations.is_none_or(|tolerations| untolerated(&pool.source.taints, tolerations, true).is_none())
}
