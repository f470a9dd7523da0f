//! What the rules judge: pods, and the places that they are put on.

pub(crate) mod buffers;
pub(crate) mod default_spread;
pub(crate) mod launch;
pub(crate) mod machine;
pub(crate) mod place;
pub(crate) mod pod;
pub(crate) mod quantity;
pub(crate) mod selector;
pub(crate) mod values;
pub(crate) mod volume;
pub(crate) mod world;

use mortise_problem::Problem;

/// The problem with what it says by the way spelt out: pods of buffers, and default topology spread.
pub(crate) fn complete(problem: &Problem) -> Problem {
    default_spread::with_default_spread(buffers::with_buffers(problem))
}
