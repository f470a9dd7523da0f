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
            use $crate::bindings::lifecycle::exports::mortise::policy::lifecycle as hook;
            impl hook::Guest for $component {
                fn describe() -> hook::Manifest {
                    STATE.describe()
                }
                fn configure(
                    config: $crate::alloc::string::String,
                ) -> Result<(), $crate::alloc::vec::Vec<hook::Diagnostic>> {
                    STATE.configure(&config)
                }
                fn begin_round(
                    catalog: hook::Catalog,
                    fleet: hook::Fleet,
                    memo: $crate::alloc::vec::Vec<u8>,
                ) -> Result<(), hook::PolicyError> {
                    STATE.begin_round(catalog, &fleet, &memo)
                }
                fn end_round() -> $crate::alloc::vec::Vec<u8> {
                    STATE.end_round()
        }
            }
            $crate::bindings::lifecycle::export_lifecycle!($component with_types_in $crate::bindings::lifecycle);
        };
    };
    (Filter $component:ident) => {
        const _: () = {
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
    $crate::bindings::filter::export_filter!($component with_types_in $crate::bindings::filter);
        };
    };
    (Score $component:ident) => {
        const _: () = {
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
    $crate::bindings::score::export_score!($component with_types_in $crate::bindings::score);
        };
    };
    (Consolidate $component:ident) => {
        const _: () = {
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
    $crate::bindings::consolidate::export_consolidate!($component with_types_in $crate::bindings::consolidate);
        };
    };
}
