//! Builds the built-in policies to components and writes `builtins.rs` beside them.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Crates under `plugins/`, each named as in a ConfigMap's `builtin:`.
const BUILTINS: [&str; 3] = ["constraints", "price", "karpenter"];

fn main() -> ExitCode {
    match build() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("building the built-in policies: {message}");
            ExitCode::FAILURE
        }
    }
}

fn build() -> Result<(), String> {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").ok_or("CARGO_MANIFEST_DIR is not set")?);
    let plugins = here.parent().ok_or("the crate has no parent directory")?;
    for source in ["sdk/src", "sdk/Cargo.toml", "../wit/0.1", "../Cargo.lock"] {
        println!("cargo::rerun-if-changed={}", plugins.join(source).display());
    }
    println!("cargo::rerun-if-changed=build.rs");
    let mut table = String::from("/// Name, component, sha256 in hex of each built-in policy.\n");
    table.push_str("pub static BUILTINS: [(&str, &[u8], &str); 3] = [\n");
    for name in BUILTINS {
        let path = plugins.join(name);
        println!("cargo::rerun-if-changed={}", path.join("src").display());
        println!("cargo::rerun-if-changed={}", path.join("Cargo.toml").display());
        let component = mortise_plugin_build::build(&path, &target_dir(&out)).map_err(|e| e.to_string())?;
        let file = out.join(format!("{name}.wasm"));
        std::fs::write(&file, &component).map_err(|e| format!("{}: {e}", file.display()))?;
        let digest = mortise_plugin_build::sha256(&component);
        table.push_str(&format!(
            "    ({name:?}, include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{name}.wasm\")), {digest:?}),\n"
        ));
    }
    table.push_str("];\n");
    std::fs::write(out.join("builtins.rs"), table).map_err(|e| e.to_string())
}

/// A directory beside the profiles of the outer target directory, so that all profiles share one build of the plugins;
/// never one that the outer cargo holds a lock on. `OUT_DIR` is `<target>[/<triple>]/<profile>/build/<package>/out`.
fn target_dir(out: &Path) -> PathBuf {
    let outer = out.ancestors().skip(4).take(2).find(|dir| dir.join(".rustc_info.json").exists());
    outer.map_or_else(|| out.join("plugins"), |dir| dir.join("plugins"))
}
