//! Components built for the tests, and ConfigMaps that name them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use mortise_plugin_build::sha256;
use mortise_wasm::ConfigMapData;

/// `tests/evil`: does what its configuration says.
pub static EVIL: LazyLock<Vec<u8>> = LazyLock::new(|| build("tests/evil"));
/// `examples/plugins/zone-discount`.
pub static ZONE_DISCOUNT: LazyLock<Vec<u8>> = LazyLock::new(|| build("examples/plugins/zone-discount"));

fn build(path: &str) -> Vec<u8> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // Where the built-ins are built too, so that the SDK is compiled once.
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("plugins");
    mortise_plugin_build::build(&root.join(path), &target).unwrap_or_else(|error| panic!("{error}"))
}

/// A ConfigMap with this `policies.yaml`. `{evil}` and `{zone}` stand for the digests of the two components, which are
/// under the keys `evil.wasm` and `zone.wasm`.
pub fn config_map(policies: &str) -> ConfigMapData {
    let policies = policies.replace("{evil}", &sha256(&EVIL)).replace("{zone}", &sha256(&ZONE_DISCOUNT));
    let policies = format!("apiVersion: mortise.dev/v1alpha1\n{policies}");
    ConfigMapData {
        data: BTreeMap::from([("policies.yaml".to_owned(), policies)]),
        binary_data: BTreeMap::from([
            ("evil.wasm".to_owned(), EVIL.clone()),
            ("zone.wasm".to_owned(), ZONE_DISCOUNT.clone()),
        ]),
    }
}

/// An entry of a chain with the evil plugin.
pub fn evil(config: &str, rest: &str) -> String {
    format!("{{ name: evil, source: {{ inline: evil.wasm }}, sha256: \"{{evil}}\", config: {config}{rest} }}")
}
