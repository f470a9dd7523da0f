//! What the counts of the moment leave for one more pod.

use super::Topology;
use super::counter::{Axis, Site, least};
use super::demand::{Constraint, Rule};
use super::reach::Around;
use crate::symbol::{Bits, KeyId, SymbolSet, id_of};

/// Domains of one key that are left.
#[derive(Clone, Debug)]
pub(crate) struct AxisRule {
    pub(crate) axis: u32,
    pub(crate) key: KeyId,
    /// Those allowed; `None` = all but the blocked ones, and nodes without the label.
    pub(crate) allowed: Option<Bits>,
    pub(crate) blocked: Bits,
    /// By value: pods that are there already, of all spreads; the fewest go first.
    pub(crate) crowd: Vec<u32>,
    /// The pod needs to know its domain.
    pub(crate) decides: bool,
    /// Spreads: counter and the most pods that a domain may have before this one.
    spreads: Vec<(u32, u32)>,
}

/// What a node must have of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HostRule {
    AtMost(u32),
    Some,
    None,
}

/// What one more pod may do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) axes: Vec<AxisRule>,
    hosts: Vec<(u32, HostRule)>,
}

impl AxisRule {
    fn new(axis: u32, key: KeyId) -> Self {
        Self {
            axis,
            key,
            allowed: None,
            blocked: Bits::default(),
            crowd: Vec::new(),
            decides: false,
            spreads: Vec::new(),
        }
    }

    fn allow_only(&mut self, domains: Bits) {
        match &mut self.allowed {
            Some(allowed) => allowed.and(&domains),
            None => self.allowed = Some(domains),
        }
    }

    /// A node of this value will do.
    pub(crate) fn admits(&self, value: u32) -> bool {
        !self.blocked.contains(value) && self.allowed.as_ref().is_none_or(|allowed| allowed.contains(value))
    }

    /// A node without the label will do.
    pub(crate) fn admits_absence(&self) -> bool {
        self.allowed.is_none()
    }

    /// Pods in a domain, for the order in which domains are tried.
    pub(crate) fn crowd_of(&self, value: u32) -> u32 {
        self.crowd.get(value as usize).copied().unwrap_or(0)
    }

    /// Nothing satisfies it.
    fn is_hopeless(&self) -> bool {
        self.allowed.as_ref().is_some_and(|allowed| allowed.is_subset(&self.blocked))
    }
}

impl Topology<'_> {
    /// What the constraints leave for a pod whose hard requirements are the set `strict`.
    ///
    /// # Errors
    /// The constraint that leaves nothing.
    pub(crate) fn verdict(
        &mut self,
        constraints: &[Constraint],
        strict: u32,
        around: Around<'_, '_>,
    ) -> Result<Verdict, Constraint> {
        let mut verdict = Verdict::default();
        for constraint in constraints {
            let Some(axis) = self.counter(constraint.counter).map(|counter| counter.axis) else { continue };
            match axis {
                Axis::Host => verdict.hosts.extend(self.on_hosts(*constraint)?),
                Axis::Key(axis) => {
                    let Some(key) = self.axes.get(axis as usize).map(|axis| axis.key) else { continue };
                    let rules = &mut verdict.axes;
                    let at = rules.iter().position(|rule| rule.axis == axis).unwrap_or_else(|| {
                        rules.push(AxisRule::new(axis, key));
                        rules.len() - 1
                    });
                    let Some(rule) = rules.get_mut(at) else { continue };
                    self.on_key(*constraint, rule, strict, around);
                    if rule.is_hopeless() {
                        return Err(*constraint);
                    }
                }
            }
        }
        // Nothing taken, nothing to hold off.
        verdict.axes.retain(|rule| rule.decides || rule.allowed.is_some() || !rule.blocked.is_empty());
        Ok(verdict)
    }

    fn on_hosts(&self, constraint: Constraint) -> Result<Option<(u32, HostRule)>, Constraint> {
        let Some(counter) = self.counter(constraint.counter) else { return Ok(None) };
        let rule = match constraint.rule {
            // A new node can always be made, so the emptiest domain has none.
            Rule::Spread { max_skew, counts_itself, .. } => match max_skew.checked_sub(u32::from(counts_itself)) {
                Some(most) => HostRule::AtMost(most),
                None => return Err(constraint),
            },
            Rule::Together { counts_itself } => match (counter.total, counts_itself) {
                (0, true) => return Ok(None),
                (0, false) => return Err(constraint),
                _ => HostRule::Some,
            },
            Rule::Apart { .. } => HostRule::None,
        };
        Ok(Some((constraint.counter, rule)))
    }

    fn on_key(&mut self, constraint: Constraint, rule: &mut AxisRule, strict: u32, around: Around<'_, '_>) {
        match constraint.rule {
            Rule::Spread { max_skew, min_domains, counts_itself, honors_affinity } => {
                let Some(filter) = self.counter(constraint.counter).map(|counter| counter.filter) else { return };
                let set = if honors_affinity { strict } else { around.sets.nothing };
                self.learn_universe(rule.axis, filter, set, around);
                let (Some(counter), Some(universe)) =
                    (self.counter(constraint.counter), self.universes.get(&(rule.axis, filter, set)))
                else {
                    return;
                };
                let least = least(counter, universe, min_domains);
                let most = (least + max_skew).checked_sub(u32::from(counts_itself));
                let mut domains = universe.clone();
                domains.retain(|domain| most.is_some_and(|most| counter.count(domain) <= most));
                for domain in domains.iter() {
                    let at = domain as usize;
                    if rule.crowd.len() <= at {
                        rule.crowd.resize(at + 1, 0);
                    }
                    if let Some(crowd) = rule.crowd.get_mut(at) {
                        *crowd = crowd.saturating_add(counter.count(domain));
                    }
                }
                rule.allow_only(domains);
                rule.spreads.extend(most.map(|most| (constraint.counter, most)));
                rule.decides = true;
            }
            Rule::Together { counts_itself } => {
                let Some(counter) = self.counter(constraint.counter) else { return };
                let own = around.sets.sets.get(strict as usize).and_then(|set| set.get(rule.key));
                let integers = around.symbols.integers(rule.key);
                let mut taken = counter.taken().clone();
                taken.retain(|value| own.is_none_or(|own| own.has(value, integers)));
                let elsewhere =
                    own.is_some_and(|own| !counter.perhaps_taken().iter().any(|value| own.has(value, integers)));
                if counts_itself && (counter.total == 0 || elsewhere) {
                    // The first of its kind, or none of the others is where it may go: any domain that exists.
                    let values = 0..id_of(around.symbols.values(rule.key).len());
                    rule.allow_only(values.collect());
                    rule.decides = true;
                } else {
                    rule.allow_only(taken);
                }
            }
            Rule::Apart { own } => {
                let Some(counter) = self.counter(constraint.counter) else { return };
                rule.blocked.or(&counter.perhaps_taken());
                if counter.waiting > 0 {
                    rule.blocked.or(&self.perhaps_decided(constraint.counter, rule.axis));
                }
                rule.decides |= own;
            }
        }
    }

    /// Values that claims with waiting pods may still decide on: those that could not be made to decide (minValues).
    fn perhaps_decided(&self, counter: u32, axis: u32) -> Bits {
        let waiting: Bits = self.waiting(counter).into_iter().collect();
        let by_value = self.axes.get(axis as usize).map_or(&[][..], |axis| axis.claims.as_slice());
        let reached = by_value.iter().enumerate().filter(|(_, claims)| claims.intersects(&waiting));
        reached.map(|(value, _)| id_of(value)).collect()
    }

    /// Existing nodes that the verdict leaves; those that have not decided on a domain are looked at one by one.
    pub(crate) fn nodes(&self, verdict: &Verdict, among: &Bits) -> Bits {
        let mut nodes = among.clone();
        for (counter, rule) in &verdict.hosts {
            let Some(counter) = self.counter(*counter) else { continue };
            match rule {
                HostRule::None => nodes.and_not(counter.taken()),
                HostRule::Some => nodes.and(counter.taken()),
                HostRule::AtMost(most) => nodes.retain(|node| counter.count(node) <= *most),
            }
        }
        for rule in &verdict.axes {
            let Some(axis) = self.axes.get(rule.axis as usize) else { continue };
            let mut suiting = Bits::default();
            for (_, with) in axis.nodes.iter().enumerate().filter(|(value, _)| rule.admits(id_of(*value))) {
                suiting.or(with);
            }
            if rule.admits_absence() {
                suiting.or(&axis.nodes_without);
            }
            for (node, open) in &axis.nodes_open {
                // Nobody decides for it, so a pod that needs to know its domain cannot go there.
                let decides = rule.decides && rule.allowed.is_some();
                if !decides && open.iter().all(|value| rule.admits(value)) {
                    suiting.insert(*node);
                }
            }
            nodes.and(&suiting);
        }
        nodes
    }

    /// Claims that the verdict may leave, out of those below `count` that are not in `skip`.
    pub(crate) fn claims(&self, verdict: &Verdict, count: usize, skip: &Bits) -> Bits {
        let mut claims = Bits::all(count);
        claims.and_not(skip);
        for (counter, rule) in &verdict.hosts {
            let Some(counter) = self.counter(*counter) else { continue };
            match rule {
                HostRule::None => claims.and_not(counter.taken_claims()),
                HostRule::Some => claims.and(counter.taken_claims()),
                HostRule::AtMost(most) => claims.retain(|claim| counter.on(Site::Claim(claim)) <= *most),
            }
        }
        for rule in &verdict.axes {
            let Some(axis) = self.axes.get(rule.axis as usize) else { continue };
            match &rule.allowed {
                Some(allowed) => {
                    let mut suiting = Bits::default();
                    for value in allowed.iter().filter(|value| rule.admits(*value)) {
                        if let Some(with) = axis.claims.get(value as usize) {
                            suiting.or(with);
                        }
                    }
                    claims.and(&suiting);
                }
                None => {
                    for value in rule.blocked.iter() {
                        if let Some(with) = axis.claims_decided.get(value as usize) {
                            claims.and_not(with);
                        }
                    }
                }
            }
        }
        claims
    }

    /// Whether a new node, which has no pod yet, suits the rules about single nodes.
    pub(crate) fn suits_new_node(&self, verdict: &Verdict) -> bool {
        !verdict.hosts.iter().any(|(_, rule)| *rule == HostRule::Some)
    }

    /// Whether a claim that has not decided may decide on a value, with its pods that wait for that.
    pub(crate) fn may_decide(&self, rule: &AxisRule, claim: Option<u32>, value: u32) -> bool {
        rule.admits(value)
            && claim.is_none_or(|claim| {
                rule.spreads.iter().all(|(counter, most)| {
                    let waiting = self.waiting_on(claim, *counter);
                    waiting == 0
                        || self.counter(*counter).is_some_and(|counter| counter.count(value) + waiting <= *most)
                })
            })
    }

    /// A required affinity of the constraints that no decided domain meets, though pods that wait may: its counter.
    pub(crate) fn waits_for(&self, constraint: Constraint, strict: &SymbolSet, around: Around<'_, '_>) -> Option<bool> {
        let counter = self.counter(constraint.counter).filter(|counter| counter.waiting > 0)?;
        let Axis::Key(axis) = counter.axis else { return None };
        let key = self.axes.get(axis as usize)?.key;
        match constraint.rule {
            Rule::Apart { .. } => Some(true),
            Rule::Together { .. } => {
                let own = strict.get(key);
                let integers = around.symbols.integers(key);
                let met = counter.taken().iter().any(|value| own.is_none_or(|own| own.has(value, integers)));
                (!met).then_some(false)
            }
            Rule::Spread { .. } => None,
        }
    }
}
