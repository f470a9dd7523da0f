//! `cargo xtask plugins`: a plugin crate to a component, a component to a policies ConfigMap.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use serde_json::{Value, json};

/// Build plugins and make ConfigMaps of them.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(clap::Subcommand)]
enum Task {
    /// Build a plugin crate to a component and print its size and sha256.
    Build {
        /// Directory of the crate.
        #[arg(long)]
        path: PathBuf,
        /// File to write the component to.
        #[arg(short, long)]
        output: PathBuf,
    },
    /// Print a policies ConfigMap that runs one plugin after the built-in of its hook: pipe it into
    /// `kubectl apply --server-side -f -`.
    #[command(name = "configmap")]
    ConfigMap(ConfigMap),
}

#[derive(clap::Args)]
struct ConfigMap {
    /// Directory of the plugin's crate, or a component built before.
    #[arg(long)]
    path: PathBuf,
    /// Name of the plugin in the chain.
    #[arg(long)]
    name: String,
    /// Which hook it serves.
    #[arg(long, value_enum, default_value_t = Hook::Score)]
    hook: Hook,
    /// Its configuration, a JSON object.
    #[arg(long, default_value = "{}")]
    config: String,
    /// Namespace of the release.
    #[arg(long, default_value = "kube-system")]
    namespace: String,
    /// Name of the ConfigMap.
    #[arg(long, default_value = "mortise-policies")]
    config_map: String,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Hook {
    Filter,
    Score,
    Consolidate,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    match &args.task {
        Task::Build { path, output } => {
            let component = build(path)?;
            std::fs::write(output, &component).with_context(|| format!("writing {}", output.display()))?;
            let (size, digest) = (component.len(), mortise_plugin_build::sha256(&component));
            println!("{}\t{size} bytes\tsha256 {digest}", output.display());
            Ok(())
        }
        Task::ConfigMap(config_map) => {
            print!("{}", config_map.render()?);
            Ok(())
        }
    }
}

fn build(path: &Path) -> Result<Vec<u8>> {
    // Where the built-in policies are built too, so that the SDK is compiled once.
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    Ok(mortise_plugin_build::build(path, &target.join("plugins"))?)
}

impl ConfigMap {
    fn render(&self) -> Result<String> {
        let component = match self.path.is_dir() {
            true => build(&self.path)?,
            false => std::fs::read(&self.path).with_context(|| format!("reading {}", self.path.display()))?,
        };
        let config: Value = serde_json::from_str(&self.config).context("--config")?;
        if !config.is_object() {
            bail!("--config: expected a JSON object, found {config}");
        }
        let key = format!("{}.wasm.gz", self.name);
        let entry = json!({
            "name": self.name,
            "source": { "inline": key },
            "sha256": mortise_plugin_build::sha256(&component),
            "config": config,
        });
        let builtin = |name: &str| json!({ "name": name, "source": { "builtin": name } });
        let mut policies = json!({ "apiVersion": "mortise.dev/v1alpha1", "disruption": "active" });
        match self.hook {
            Hook::Filter => policies["filter"] = json!([builtin("constraints"), entry]),
            Hook::Score => policies["score"] = json!([builtin("price"), entry]),
            Hook::Consolidate => policies["consolidate"] = entry,
        }
        let packed = gzip(&component)?;
        let manifest = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": self.config_map,
                "namespace": self.namespace,
                "labels": { "mortise.dev/policies": "true" },
            },
            "data": { "policies.yaml": serde_norway::to_string(&policies)? },
            "binaryData": { key: base64::engine::general_purpose::STANDARD.encode(packed) },
        });
        Ok(serde_norway::to_string(&manifest)?)
    }
}

/// Packs without a time stamp, so that the same component gives the same ConfigMap.
fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = flate2::GzBuilder::new().mtime(0).write(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_config_map_pins_what_it_carries() {
        let file = std::env::temp_dir().join(format!("xtask-plugins-{}.wasm", std::process::id()));
        std::fs::write(&file, b"component").unwrap();
        let config_map = ConfigMap {
            path: file.clone(),
            name: "mine".into(),
            hook: Hook::Score,
            config: r#"{"percent":3}"#.into(),
            namespace: "ns".into(),
            config_map: "mortise-policies".into(),
        };
        let text = config_map.render().unwrap();
        std::fs::remove_file(&file).unwrap();
        let manifest: Value = serde_norway::from_str(&text).unwrap();
        let policies: Value = serde_norway::from_str(manifest["data"]["policies.yaml"].as_str().unwrap()).unwrap();
        assert_eq!(policies["score"][0]["source"]["builtin"], "price");
        assert_eq!(policies["score"][1]["sha256"], mortise_plugin_build::sha256(b"component"));
        assert_eq!(policies["score"][1]["config"]["percent"], 3);
        let packed = manifest["binaryData"]["mine.wasm.gz"].as_str().unwrap();
        assert!(base64::engine::general_purpose::STANDARD.decode(packed).unwrap().starts_with(&[0x1f, 0x8b]));
        assert!(ConfigMap { config: "3".into(), ..config_map }.render().is_err());
    }
}
