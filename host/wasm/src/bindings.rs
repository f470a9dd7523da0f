//! Host bindings, one module per minor version of the contract. Policy code is written against the newest; when there are
//! two, the older converts upward.

pub(crate) mod v0_1;
