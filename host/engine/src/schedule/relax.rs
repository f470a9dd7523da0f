//! The ladder of preference relaxation: what a pod asks for at each step, strictest first.

use crate::pod::{PodShape, PodTerm, Spread};
use crate::requirement::{Operator, Requirement};
use crate::symbol::{SymbolSet, Symbols};

/// One step.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// Node requirements, one set per volume alternative.
    pub(crate) alternatives: Vec<SymbolSet>,
    /// The same without preferences.
    pub(crate) strict: Vec<SymbolSet>,
    /// Preferences about other pods that are still kept, of those in [`softest_last`].
    pub(crate) soft: usize,
    /// `PreferNoSchedule` taints no longer count.
    pub(crate) ignore_preferred_taints: bool,
}

/// A preference about other pods.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Soft<'a> {
    Together(&'a PodTerm),
    Apart(&'a PodTerm),
    Spread(&'a Spread),
}

/// Preferences about other pods, the one given up first last: preferred pod affinity from the heaviest, preferred
/// anti-affinity from the heaviest, then `ScheduleAnyway` spreads (each time the first, its place taken by the last
/// constraint).
pub(crate) fn softest_last(shape: &PodShape) -> Vec<Soft<'_>> {
    let mut out: Vec<Soft<'_>> = by_weight(&shape.preferred_pod_affinity).map(Soft::Together).collect();
    out.extend(by_weight(&shape.preferred_pod_anti_affinity).map(Soft::Apart));
    let mut spreads: Vec<&Spread> = shape.spread.iter().collect();
    while let Some(at) = spreads.iter().position(|spread| spread.schedule_anyway) {
        out.push(Soft::Spread(spreads.swap_remove(at)));
    }
    out.reverse();
    out
}

fn by_weight(terms: &[(i32, PodTerm)]) -> impl Iterator<Item = &PodTerm> {
    let mut sorted: Vec<&(i32, PodTerm)> = terms.iter().collect();
    sorted.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    sorted.into_iter().map(|(_, term)| term)
}

/// The steps of a shape: required terms are dropped from the front (one stays), then preferences: pod affinity, pod
/// anti-affinity and node affinity, each from the heaviest, then spreads; then the dropped terms are tried without preferences; at last, if some NodePool
/// has such a taint, `PreferNoSchedule` is tolerated.
pub(crate) fn ladder(
    shape: &PodShape,
    ignore_preferences: bool,
    preferred_taints: bool,
    symbols: &mut Symbols,
) -> Vec<Step> {
    let mut preferred: Vec<&(i32, Vec<Requirement>)> =
        if ignore_preferences { Vec::new() } else { shape.preferred_affinity.iter().collect() };
    preferred.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    let terms = shape.preferred_pod_affinity.len() + shape.preferred_pod_anti_affinity.len();
    let anyway = shape.spread.iter().filter(|spread| spread.schedule_anyway).count();
    let (terms, anyway) = if ignore_preferences { (0, 0) } else { (terms, anyway) };
    let mut steps = Vec::new();
    let heaviest = preferred.first().map(|(_, term)| term.as_slice());
    let last_term = shape.required_affinity.len().saturating_sub(1);
    for term in 0..=last_term {
        let required = shape.required_affinity.get(term).map(Vec::as_slice);
        steps.push(step(shape, required, heaviest, terms + anyway, symbols));
    }
    let required = shape.required_affinity.last().map(Vec::as_slice);
    let last = steps.last().cloned();
    for dropped in 1..=terms {
        steps.extend(last.iter().map(|last| Step { soft: terms + anyway - dropped, ..last.clone() }));
    }
    for dropped in 1..=preferred.len() {
        let preference = preferred.get(dropped).map(|(_, term)| term.as_slice());
        steps.push(step(shape, required, preference, anyway, symbols));
    }
    let last = steps.last().cloned();
    for dropped in 1..=anyway {
        steps.extend(last.iter().map(|last| Step { soft: anyway - dropped, ..last.clone() }));
    }
    // The terms given up first are alternatives all the same: without the preferences one of them may do.
    let mut plain: Vec<Step> = steps.last().cloned().into_iter().collect();
    for term in shape.required_affinity.iter().take(last_term) {
        plain.push(step(shape, Some(term), None, 0, symbols));
    }
    if terms + anyway + preferred.len() > 0 {
        steps.extend(plain.iter().skip(1).cloned());
    }
    if preferred_taints {
        steps.extend(plain.into_iter().map(|step| Step { ignore_preferred_taints: true, ..step }));
    }
    steps
}

fn step(
    shape: &PodShape,
    required: Option<&[Requirement]>,
    preferred: Option<&[Requirement]>,
    soft: usize,
    symbols: &mut Symbols,
) -> Step {
    let with_preference = alternatives(shape, required, preferred, symbols);
    let strict = match preferred {
        Some(_) => alternatives(shape, required, None, symbols),
        None => with_preference.clone(),
    };
    Step { alternatives: with_preference, strict, soft, ignore_preferred_taints: false }
}

fn alternatives(
    shape: &PodShape,
    required: Option<&[Requirement]>,
    preferred: Option<&[Requirement]>,
    symbols: &mut Symbols,
) -> Vec<SymbolSet> {
    let mut base = SymbolSet::default();
    for (key, value) in &shape.node_selector {
        base.add_label(key, value, symbols);
    }
    for requirement in required.unwrap_or_default().iter().chain(preferred.unwrap_or_default()) {
        base.add_requirement(requirement, symbols);
    }
    let mut alternatives: Vec<SymbolSet> = Vec::new();
    for volume in &shape.volume_alternatives {
        let mut set = base.clone();
        for requirement in volume {
            set.add_requirement(requirement, symbols);
        }
        alternatives.push(set);
    }
    if alternatives.is_empty() {
        alternatives.push(base);
    }
    alternatives
}

/// Node requirements that a shape may have at all, in any step: what a policy may be asked about.
pub(crate) fn every_requirement(shape: &PodShape) -> impl Iterator<Item = Requirement> + '_ {
    let selector = shape.node_selector.iter().map(|(key, value)| Requirement {
        key: key.clone(),
        operator: Operator::In,
        values: vec![value.clone()],
        min_values: None,
    });
    selector.chain(shape.required_affinity.iter().flatten().cloned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn term(key: &str, value: &str) -> Vec<Requirement> {
        vec![Requirement::new(key, Operator::In, [value])]
    }

    fn shown(steps: &[Step], symbols: &Symbols) -> Vec<String> {
        let one = |step: &Step| {
            let sets = step.alternatives.iter().map(|set| {
                let keys = set
                    .iter()
                    .map(|(key, values)| format!("{}={}", symbols.key_name(key), values.to_values(key, symbols)));
                keys.collect::<Vec<_>>().join(",")
            });
            sets.collect::<Vec<_>>().join("|") + if step.ignore_preferred_taints { " tolerating" } else { "" }
        };
        steps.iter().map(one).collect()
    }

    #[test]
    fn required_terms_go_first_then_preferences_then_taints() {
        let mut symbols = Symbols::default();
        let shape = PodShape {
            required_affinity: vec![term("z", "a"), term("z", "b")],
            preferred_affinity: vec![(1, term("p", "light")), (9, term("p", "heavy"))],
            ..PodShape::default()
        };
        let steps = ladder(&shape, false, true, &mut symbols);
        assert_eq!(
            shown(&steps, &symbols),
            [
                "z=In [a],p=In [heavy]",
                "z=In [b],p=In [heavy]",
                "z=In [b],p=In [light]",
                "z=In [b]",
                "z=In [a]",
                "z=In [b] tolerating",
                "z=In [a] tolerating",
            ]
        );
        assert_eq!(shown(&ladder(&shape, true, false, &mut symbols), &symbols), ["z=In [a]", "z=In [b]"]);
    }

    #[test]
    fn volumes_are_never_relaxed() {
        let mut symbols = Symbols::default();
        let shape = PodShape {
            volume_alternatives: vec![term("z", "a"), term("z", "b")],
            preferred_affinity: vec![(1, term("p", "x"))],
            ..PodShape::default()
        };
        let steps = ladder(&shape, false, false, &mut symbols);
        assert_eq!(shown(&steps, &symbols), ["p=In [x],z=In [a]|p=In [x],z=In [b]", "z=In [a]|z=In [b]"]);
    }
}
