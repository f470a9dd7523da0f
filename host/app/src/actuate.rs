//! Carrying decisions out. One module per kind of object or duty; in each, what to do is a pure function of the
//! objects and the time, and what remains is to write it.

pub(crate) mod buffer;
pub(crate) mod claims;
pub(crate) mod disrupted;
pub(crate) mod disruption;
pub(crate) mod eviction;
pub(crate) mod garbage;
pub(crate) mod launch;
pub(crate) mod lifecycle;
pub(crate) mod nodeclass;
pub(crate) mod nodeedit;
pub(crate) mod nodepool;
pub(crate) mod overlay;
pub(crate) mod policies;
pub(crate) mod static_pool;
pub(crate) mod termination;
pub(crate) mod volumes;
