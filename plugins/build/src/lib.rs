//! Builds a plugin crate to a component.
//!
//! `cargo rustc --target wasm32-unknown-unknown` in a target directory of its own (so that it may run inside a build
//! script without waiting for the outer cargo's lock), then `wit-component`. The same source gives the same bytes wherever
//! it lies: paths are remapped, flags and profiles of the outer build are not inherited.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::Digest as _;

/// Target triple of plugins.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// Settings of the release profile for plugins: fast loops over columns, one unit, no unwinding.
const PROFILE: [&str; 8] = [
    "profile.release.opt-level=3",
    "profile.release.package.'*'.opt-level=3",
    "profile.release.lto='fat'",
    "profile.release.codegen-units=1",
    "profile.release.panic='abort'",
    "profile.release.strip=true",
    "profile.release.debug=false",
    "profile.release.overflow-checks=false",
];

/// Why a plugin could not be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The Rust target is not installed.
    #[error("the Rust target {TARGET} is not installed; run: rustup target add {TARGET}")]
    TargetMissing,
    /// A program could not be run.
    #[error("running {program}: {source}")]
    Run {
        /// Which.
        program: String,
        /// Why.
        source: std::io::Error,
    },
    /// cargo failed; its messages.
    #[error("cargo could not build {manifest}:\n{messages}")]
    Cargo {
        /// Manifest of the crate.
        manifest: PathBuf,
        /// What it printed.
        messages: String,
    },
    /// cargo built no module.
    #[error("{0} has no library target that becomes a Wasm module")]
    NoModule(PathBuf),
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The module is no plugin.
    #[error("{manifest} does not make a component (is `export_plugin!` there?): {message}")]
    Encode {
        /// Manifest of the crate.
        manifest: PathBuf,
        /// What the encoder says.
        message: String,
    },
}

/// Builds the plugin crate in `crate_dir` and returns its component. `target_dir` is kept between calls: a second build of
/// the same source takes a fraction of a second. It must not be the target directory of a cargo that waits for this.
///
/// # Errors
/// When the target is missing, the crate does not compile or is no plugin.
pub fn build(crate_dir: &Path, target_dir: &Path) -> Result<Vec<u8>, BuildError> {
    let manifest = crate_dir.join("Cargo.toml");
    let manifest = manifest.canonicalize().map_err(|source| BuildError::File { path: manifest.clone(), source })?;
    require_target()?;
    let module = compile(&manifest, target_dir)?;
    let module = std::fs::read(&module).map_err(|source| BuildError::File { path: module, source })?;
    componentize(&module).map_err(|message| BuildError::Encode { manifest, message })
}

/// Makes a component of a core module that carries its component type.
///
/// # Errors
/// What the encoder says: a missing or wrong export, most of the time.
pub fn componentize(module: &[u8]) -> Result<Vec<u8>, String> {
    let mut encoder = wit_component::ComponentEncoder::default();
    encoder.validate(true);
    encoder.module(module).and_then(|encoder| encoder.encode()).map_err(|error| format!("{error:#}"))
}

/// sha256 in lower-case hex, as `policies.yaml` wants it.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    sha2::Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn require_target() -> Result<(), BuildError> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(&rustc);
    command.args(["--print", "target-libdir", "--target", TARGET]);
    let output = run(&mut command)?;
    let libdir = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    if output.status.success() && libdir.is_dir() { Ok(()) } else { Err(BuildError::TargetMissing) }
}

fn compile(manifest: &Path, target_dir: &Path) -> Result<PathBuf, BuildError> {
    let cargo = cargo();
    let mut command = Command::new(&cargo);
    command.args(["rustc", "--lib", "--release", "--crate-type", "cdylib", "--target", TARGET]);
    command.args(["--message-format", "json-render-diagnostics", "--manifest-path"]).arg(manifest);
    command.arg("--target-dir").arg(target_dir);
    for setting in PROFILE {
        command.args(["--config", setting]);
    }
    isolate(&mut command);
    command.env("CARGO_ENCODED_RUSTFLAGS", remap(manifest)?);
    let output = run(&mut command)?;
    if !output.status.success() {
        let messages = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(BuildError::Cargo { manifest: manifest.to_path_buf(), messages });
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let artifacts = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let of_crate =
        artifacts.filter(|m| m.get("manifest_path").and_then(|p| p.as_str()).map(Path::new) == Some(manifest));
    let files = of_crate.filter_map(|m| m.get("filenames").and_then(|f| f.as_array()).cloned()).flatten();
    let module =
        files.filter_map(|f| f.as_str().map(PathBuf::from)).find(|f| f.extension().is_some_and(|e| e == "wasm"));
    module.ok_or_else(|| BuildError::NoModule(manifest.to_path_buf()))
}

/// Takes out of the environment what an outer cargo or a user's flags would change in the result.
fn isolate(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let Some(text) = name.to_str() else { continue };
        let inherited =
            ["CARGO_PROFILE_", "CARGO_BUILD_", "CARGO_CFG_", "CARGO_FEATURE_", "CARGO_TARGET_", "CARGO_PKG_"];
        let single =
            ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "RUSTC_WORKSPACE_WRAPPER", "CARGO_MANIFEST_DIR", "OUT_DIR"];
        if inherited.iter().any(|prefix| text.starts_with(prefix)) || single.contains(&text) {
            command.env_remove(&name);
        }
    }
}

/// Flags that keep this machine's paths out of panic locations.
fn remap(manifest: &Path) -> Result<OsString, BuildError> {
    let mut locate = Command::new(cargo());
    locate.args(["locate-project", "--workspace", "--message-format", "plain", "--manifest-path"]).arg(manifest);
    let output = run(&mut locate)?;
    let root = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    let mut flags = OsString::new();
    let mut add = |from: &Path, to: &str| {
        if !flags.is_empty() {
            flags.push("\u{1f}");
        }
        flags.push("--remap-path-prefix=");
        flags.push(from);
        flags.push(to);
    };
    if let Some(home) = std::env::var_os("HOME") {
        add(&PathBuf::from(home).join(".cargo"), "=/cargo");
    }
    if let Some(cargo_home) = std::env::var_os("CARGO_HOME") {
        add(Path::new(&cargo_home), "=/cargo");
    }
    if let Some(root) = root.parent() {
        add(root, "=/plugin");
    }
    Ok(flags)
}

fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn run(command: &mut Command) -> Result<std::process::Output, BuildError> {
    let program = command.get_program().to_string_lossy().into_owned();
    command.output().map_err(|source| BuildError::Run { program, source })
}
