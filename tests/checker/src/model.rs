//! What the rules judge: pods, and the places that they are put on.

pub(crate) mod buffers;
pub(crate) mod launch;
pub(crate) mod machine;
pub(crate) mod place;
pub(crate) mod pod;
pub(crate) mod quantity;
pub(crate) mod selector;
pub(crate) mod values;
pub(crate) mod volume;
pub(crate) mod world;
