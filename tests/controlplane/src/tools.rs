//! The real programs that `tests/tools.sh` builds once per machine.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Where the programs are.
#[derive(Debug, Clone)]
pub struct Tools {
    cache: PathBuf,
}

impl Tools {
    /// Runs `tests/tools.sh`, which builds what is missing and otherwise only compares stamps. Once per process.
    ///
    /// # Errors
    /// A tool cannot be built: the message is the script's.
    pub fn get() -> Result<Self> {
        static TOOLS: OnceLock<std::result::Result<Tools, String>> = OnceLock::new();
        TOOLS.get_or_init(|| Self::build(&[]).map_err(|error| format!("{error:#}"))).clone().map_err(anyhow::Error::msg)
    }

    /// The original controller, for measurements beside ours; built on first use.
    ///
    /// # Errors
    /// It cannot be built.
    pub fn karpenter(&self) -> Result<PathBuf> {
        Self::build(&["karpenter"])?;
        Ok(self.cache.join("bin/karpenter-kwok"))
    }

    fn build(names: &[&str]) -> Result<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools.sh");
        let output = Command::new("bash")
            .arg(&script)
            .args(names)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("running {}", script.display()))?;
        if !output.status.success() {
            bail!("{} failed ({}): its messages above say what is missing", script.display(), output.status);
        }
        let text = String::from_utf8(output.stdout).context("tools.sh printed something that is not text")?;
        let cache = text.lines().last().context("tools.sh printed no cache directory")?;
        Ok(Self { cache: PathBuf::from(cache) })
    }

    /// The cache directory.
    pub fn cache(&self) -> &Path {
        &self.cache
    }

    /// A component of the multi-call control plane binary: `etcd`, `kube-apiserver`, `kubectl`, …
    pub fn kubernetes(&self, component: &str) -> Command {
        let mut command = Command::new(self.cache.join("bin/kubernetes"));
        command.arg(component);
        command
    }

    /// KWOK.
    pub fn kwok(&self) -> Command {
        Command::new(self.cache.join("bin/kwok"))
    }

    /// Helm.
    pub fn helm(&self) -> Command {
        Command::new(self.cache.join("bin/helm"))
    }

    /// The moto server.
    pub fn moto(&self) -> Command {
        Command::new(self.cache.join("moto/bin/moto_server"))
    }
}
