//! The macros that make a component of a plugin.

/// Exports a plugin with the hooks that it implements: `export_plugin!(Licences: Filter + Score);`. Once per crate.
///
/// On targets other than wasm32 it only checks that the traits are implemented.
#[macro_export]
macro_rules! export_plugin {
    ($plugin:ty : $first:ident $(+ $hook:ident)*) => {
        #[cfg(not(target_arch = "wasm32"))]
        const _: () = {
            const fn implements<P: $crate::$first $(+ $crate::$hook)*>() {}
            implements::<$plugin>();
        };

        #[cfg(target_arch = "wasm32")]
        #[allow(unsafe_code, reason = "the component's exports, generated")]
        const _: () = {
            static STATE: $crate::glue::State<$plugin> = $crate::glue::State::new();
            struct Component;
            $crate::__export_hook!(Plugin Component);
            $crate::__export_hook!($first Component);
            $($crate::__export_hook!($hook Component);)*
        };
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __export_hook {
    (Plugin $component:ident) => {
        const _: () = {
            use $crate::alloc::string::String;
            use $crate::alloc::vec::Vec;
            use $crate::bindings::lifecycle as root;
            use $crate::bindings::lifecycle::exports::mortise::policy::lifecycle as hook;
            impl hook::Guest for $component {
                fn describe() -> hook::Manifest {
                    STATE.describe()
                }
                fn configure(config: String) -> Result<(), Vec<hook::Diagnostic>> {
                    STATE.configure(&config)
                }
                fn begin_round(
                    catalog: hook::Catalog,
                    fleet: hook::Fleet,
                    memo: Vec<u8>,
                ) -> Result<(), hook::PolicyError> {
                    STATE.begin_round(catalog, &fleet, &memo)
                }
                fn end_round() -> Vec<u8> {
                    STATE.end_round()
                }
            }
    root::export_lifecycle!($component with_types_in root);
        };
    };
    (Filter $component:ident) => {
        const _: () = {
            use $crate::bindings::filter as root;
            use $crate::bindings::filter::exports::mortise::policy::filter as hook;
            impl hook::Guest for $component {
                fn admit_pods(
                    round: hook::Round,
                    pods: hook::Pods,
                    candidates: hook::Choices,
                ) -> Result<hook::Verdict, hook::PolicyError> {
                    STATE.admit_pods(&round, &pods, &candidates)
                }
                fn admit_claims(
                    round: hook::Round,
                    claims: hook::Claims,
                    candidates: hook::Choices,
                ) -> Result<hook::Verdict, hook::PolicyError> {
                    STATE.admit_claims(&round, &claims, &candidates)
                }
            }
    root::export_filter!($component with_types_in root);
        };
    };
    (Score $component:ident) => {
        const _: () = {
            use $crate::bindings::score as root;
            use $crate::bindings::score::exports::mortise::policy::score as hook;
            impl hook::Guest for $component {
                fn evaluate(
                    round: hook::Round,
                    claims: hook::Claims,
                    candidates: hook::Choices,
                    base: $crate::alloc::vec::Vec<i64>,
                ) -> Result<$crate::alloc::vec::Vec<i64>, hook::PolicyError> {
                    STATE.evaluate(&round, &claims, &candidates, &base)
                }
            }
    root::export_score!($component with_types_in root);
        };
    };
    (Consolidate $component:ident) => {
        const _: () = {
            use $crate::bindings::consolidate as root;
            use $crate::bindings::consolidate::exports::mortise::policy::consolidate as hook;
            impl hook::Guest for $component {
                fn propose(
                    round: hook::Round,
                    nodes: hook::Nodes,
                    tried: hook::Groups,
                    outcomes: hook::Outcomes,
                    max_sets: u32,
                ) -> Result<hook::Groups, hook::PolicyError> {
                    STATE.propose(&round, &nodes, &tried, &outcomes, max_sets)
                }
                fn decide(
                    round: hook::Round,
                    nodes: hook::Nodes,
                    tried: hook::Groups,
                    outcomes: hook::Outcomes,
                ) -> Result<$crate::alloc::vec::Vec<i64>, hook::PolicyError> {
                    STATE.decide(&round, &nodes, &tried, &outcomes)
                }
            }
    root::export_consolidate!($component with_types_in root);
        };
    };
}
