//! Bindings of `wit/0.1`. Arguments are borrowed, so that columns go to a guest's memory in one copy.

#![allow(missing_docs, unreachable_pub, dead_code, reason = "generated from wit/0.1/policy.wit, documented there")]
#![allow(clippy::all, clippy::allow_attributes_without_reason, reason = "generated")]

wasmtime::component::bindgen!({
    path: "../../wit/0.1",
    world: "policy-plugin",
    ownership: Borrowing { duplicate_if_necessary: true },
});
