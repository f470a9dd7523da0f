//! The engine, the independent checker and the real Karpenter on the same generated problems.
//!
//! ```text
//! seed ─► generate ─► Problem ─┬─► ours (production conversion, engine) ─► Answer ─┬─► judge ─► report
//!                              ├─► oracle (the real Karpenter, five times) ────────┤     │
//!                              └─► checker (rules written anew, by others) ────────┘     └─► shrink ─► a file
//! ```

pub mod ablate;
pub mod features;
pub mod generate;
pub mod intended;
pub mod judge;
pub mod oracle;
pub mod ours;
pub mod random;
pub mod run;
pub mod shrink;

mod catalog;

use mortise_problem::Answer;

/// Names of the pods that an answer places.
pub(crate) fn placed(answer: &Answer) -> impl Iterator<Item = &str> {
    let claims = answer.claims.iter().flat_map(|claim| &claim.pods);
    let existing = answer.existing.iter().flat_map(|node| &node.pods);
    claims.chain(existing).map(String::as_str)
}
