//! Asking filters and scorers about claims, whatever the claims come from.

use super::{Choices, ChoicesBuilder, Claims, PolicyRound, Round, Tables};
use crate::symbol::Bits;

/// Removes from each row's offerings (view and offerings of it) what filters drop; returns it by row.
pub(crate) fn filter_claims(
    tables: &Tables,
    round: &Round,
    claims: &Claims,
    candidates: &mut [(usize, Bits)],
    policies: &mut dyn PolicyRound,
) -> Vec<Bits> {
    let choices = choices(tables, candidates);
    let Some(verdict) = policies.admit_claims(round, claims, &choices) else {
        return vec![Bits::default(); candidates.len()];
    };
    let mut removed = Vec::with_capacity(candidates.len());
    for (row, (view, offerings)) in candidates.iter_mut().enumerate() {
        let mut dropped = tables.dropped(&verdict, row).into_iter().nth(*view).unwrap_or_default();
        dropped.and(offerings);
        offerings.and_not(&dropped);
        removed.push(dropped);
    }
    removed
}

/// Effective cost of every candidate, by row and in the order of its offerings.
pub(crate) fn score_claims(
    tables: &Tables,
    round: &Round,
    claims: &Claims,
    candidates: &[(usize, Bits)],
    policies: &mut dyn PolicyRound,
) -> Vec<Vec<i64>> {
    let choices = choices(tables, candidates);
    let base = tables.list_prices(&choices);
    let expected = base.len();
    let mut costs = policies.evaluate(round, claims, &choices, base);
    if costs.len() != expected {
        // Implementations promise the shape; without it list prices are the only safe answer.
        costs = tables.list_prices(&choices);
    }
    let mut costs = costs.into_iter();
    candidates.iter().map(|(_, offerings)| costs.by_ref().take(offerings.len()).collect()).collect()
}

fn choices(tables: &Tables, candidates: &[(usize, Bits)]) -> Choices {
    let mut choices = ChoicesBuilder::default();
    for (view, offerings) in candidates {
        choices.push(tables, vec![(*view, offerings.clone())]);
    }
    choices.finish()
}
