//! The real kubectl, as a user runs it.

use crate::process::{self, Output};
use crate::tools::Tools;
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};

/// kubectl with a kubeconfig.
#[derive(Debug, Clone)]
pub struct Kubectl {
    tools: Tools,
    kubeconfig: PathBuf,
}

impl Kubectl {
    /// kubectl that acts as the user of `kubeconfig`.
    pub fn new(tools: &Tools, kubeconfig: &Path) -> Self {
        Self { tools: tools.clone(), kubeconfig: kubeconfig.to_owned() }
    }

    /// Runs it with standard input; a refusal is not an error.
    ///
    /// # Errors
    /// It cannot be started.
    pub async fn try_run(&self, arguments: &[&str], input: Option<&str>) -> Result<Output> {
        let mut command = self.tools.kubernetes("kubectl");
        command.arg("--kubeconfig").arg(&self.kubeconfig).args(arguments);
        process::output(command, input).await
    }

    /// Runs it and returns its standard output.
    ///
    /// # Errors
    /// It fails: the message carries what it printed.
    pub async fn run(&self, arguments: &[&str]) -> Result<String> {
        self.run_with(arguments, None).await
    }

    /// Applies manifests, server-side, as `kubectl apply -f -` does.
    ///
    /// # Errors
    /// The API server refuses something: the message is its own.
    pub async fn apply(&self, manifests: &str) -> Result<String> {
        self.run_with(&["apply", "--server-side", "--force-conflicts", "-f", "-"], Some(manifests)).await
    }

    async fn run_with(&self, arguments: &[&str], input: Option<&str>) -> Result<String> {
        let output = self.try_run(arguments, input).await?;
        if !output.success {
            bail!("kubectl {} failed: {}{}", arguments.join(" "), output.stderr, output.stdout);
        }
        Ok(output.stdout)
    }
}
