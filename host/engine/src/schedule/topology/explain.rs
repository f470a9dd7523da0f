//! Why the counts leave a pod nothing.

use std::sync::Arc;

use super::counter::{Axis, least};
use super::demand::{Constraint, Rule};
use super::reach::{Around, reach};
use super::{Counter, Topology};
use crate::explain::{Blocker, TopologyRule};
use crate::requirement::key;
use crate::schedule::claim::Surroundings;
use crate::symbol::{Bits, id_of};

/// Domains named in a reason.
const NAMED: usize = 5;

/// What one constraint makes of the domains.
struct Finding {
    constraint: Constraint,
    key: Arc<str>,
    considered: Vec<(Arc<str>, u32)>,
    domains: u32,
    /// Domains that the counts alone allow.
    allowed: u32,
}

impl Topology<'_> {
    /// The constraint that leaves a pod with the hard requirements `strict` the fewest domains of new nodes of a pool.
    pub(crate) fn explain(
        &self,
        constraints: &[Constraint],
        strict: u32,
        around: Around<'_, '_>,
        pool: Surroundings<'_, '_>,
        nodes: u32,
    ) -> Option<Blocker> {
        let findings = constraints.iter().filter_map(|one| self.finding(*one, strict, around, pool, nodes));
        let worst = findings.min_by_key(|finding| finding.allowed)?;
        let rule = match worst.constraint.rule {
            Rule::Spread { max_skew, .. } => TopologyRule::Spread { max_skew },
            Rule::Together { .. } => TopologyRule::Affinity,
            Rule::Apart { own: true } => TopologyRule::AntiAffinity,
            Rule::Apart { own: false } => TopologyRule::AntiAffinityOfOthers,
        };
        let mut counts = worst.considered;
        counts.sort();
        counts.truncate(NAMED);
        Some(Blocker::Topology {
            rule,
            key: worst.key,
            domains: worst.domains,
            by_rule: worst.domains.saturating_sub(worst.allowed),
            by_capacity: worst.allowed,
            counts,
        })
    }

    fn finding(
        &self,
        constraint: Constraint,
        strict: u32,
        around: Around<'_, '_>,
        pool: Surroundings<'_, '_>,
        nodes: u32,
    ) -> Option<Finding> {
        let counter = self.counter(constraint.counter)?;
        let Axis::Key(axis) = counter.axis else { return Some(on_hosts(constraint, counter, nodes)) };
        let key = self.axes.get(axis as usize)?.key;
        let set = around.sets.sets.get(strict as usize)?;
        let own = set.get(key);
        let integers = around.symbols.integers(key);
        let may_be = |value: u32| own.is_none_or(|own| own.has(value, integers));
        let (domains, allowed): (Bits, Bits) = match constraint.rule {
            Rule::Spread { max_skew, min_domains, counts_itself, honors_affinity } => {
                let set = if honors_affinity { strict } else { around.sets.nothing };
                let universe = self.universes.get(&(axis, counter.filter, set))?.clone();
                let most = (least(counter, &universe, min_domains) + max_skew).checked_sub(u32::from(counts_itself));
                let allowed = universe.iter().filter(|at| most.is_some_and(|most| counter.count(*at) <= most));
                let allowed = allowed.collect();
                (universe, allowed)
            }
            Rule::Together { .. } => {
                let taken = counter.taken().clone();
                let allowed = taken.iter().filter(|value| may_be(*value)).collect();
                (taken, allowed)
            }
            Rule::Apart { .. } => {
                let domains = reach(pool, set, key);
                let mut allowed = domains.clone();
                allowed.and_not(&counter.perhaps_taken());
                (domains, allowed)
            }
        };
        let named = |value: u32| (around.symbols.value_name(key, value), counter.count(value));
        Some(Finding {
            constraint,
            key: around.symbols.key_name(key),
            domains: id_of(domains.len()),
            allowed: id_of(allowed.len()),
            considered: domains.iter().map(named).collect(),
        })
    }
}

/// Single nodes: of them only their number is told.
fn on_hosts(constraint: Constraint, counter: &Counter, nodes: u32) -> Finding {
    let taken = id_of(counter.taken().len() + counter.taken_claims().len());
    let (domains, allowed) = match constraint.rule {
        Rule::Together { .. } => (taken, taken),
        // A new node is always one more.
        _ => (nodes, nodes.saturating_sub(taken) + 1),
    };
    Finding { constraint, key: Arc::from(key::HOSTNAME), considered: Vec::new(), domains, allowed }
}
