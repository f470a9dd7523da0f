//! Native twins of the built-in policies: the same libraries without a sandbox.

use mortise_engine::policy::{Fleet, NoPolicy, PolicyRound, PolicySet, RoundCatalog};

/// The built-in policies run natively: the fallback when a component cannot answer, the yardstick of what Wasm costs,
/// and a policy set that is ready without compiling anything.
#[derive(Clone, Copy, Debug, Default)]
pub struct NativePolicies;

impl PolicySet for NativePolicies {
    fn begin<'a>(&'a self, catalog: &'a RoundCatalog, fleet: &'a Fleet) -> Box<dyn PolicyRound + 'a> {
        NoPolicy.begin(catalog, fleet)
    }
}
