//! Bindings of the contract: one small world per interface, which the component encoder unites, so that a plugin exports
//! the hooks it has and no others.

#![allow(missing_docs, reason = "generated from wit/0.1/policy.wit, documented there")]
#![allow(unreachable_pub, reason = "generated: visible where the export macros put it")]
#![allow(unsafe_code, reason = "generated: reads arguments from and writes answers to linear memory")]
#![allow(clippy::all, clippy::allow_attributes_without_reason, reason = "generated")]

pub mod lifecycle {
    wit_bindgen::generate!({
        path: "../../wit/0.1",
        inline: "
            package mortise:sdk;
            world guest-lifecycle {
                import mortise:policy/host-log@0.1.0;
                import mortise:policy/host-metrics@0.1.0;
                export mortise:policy/lifecycle@0.1.0;
            }
        ",
        world: "mortise:sdk/guest-lifecycle",
        additional_derives: [PartialEq, Clone],
        generate_unused_types: true,
        pub_export_macro: true,
        export_macro_name: "export_lifecycle",
        generate_all,
    });
}

pub mod filter {
    wit_bindgen::generate!({
        path: "../../wit/0.1",
        inline: "
            package mortise:sdk;
            world guest-filter { export mortise:policy/filter@0.1.0; }
        ",
        world: "mortise:sdk/guest-filter",
        additional_derives: [PartialEq, Clone],
        with: { "mortise:policy/types@0.1.0": crate::bindings::lifecycle::mortise::policy::types },
        pub_export_macro: true,
        export_macro_name: "export_filter",
        generate_all,
    });
}

pub mod score {
    wit_bindgen::generate!({
        path: "../../wit/0.1",
        inline: "
            package mortise:sdk;
            world guest-score { export mortise:policy/score@0.1.0; }
        ",
        world: "mortise:sdk/guest-score",
        with: { "mortise:policy/types@0.1.0": crate::bindings::lifecycle::mortise::policy::types },
        pub_export_macro: true,
        export_macro_name: "export_score",
        generate_all,
    });
}

pub mod consolidate {
    wit_bindgen::generate!({
        path: "../../wit/0.1",
        inline: "
            package mortise:sdk;
            world guest-consolidate { export mortise:policy/consolidate@0.1.0; }
        ",
        world: "mortise:sdk/guest-consolidate",
        additional_derives: [PartialEq, Clone],
        with: { "mortise:policy/types@0.1.0": crate::bindings::lifecycle::mortise::policy::types },
        pub_export_macro: true,
        export_macro_name: "export_consolidate",
        generate_all,
    });
}
