//! KWOK: the kubelets of nodes that have no machine.

use crate::process::Daemon;
use crate::tools::Tools;
use crate::workspace::Workspace;
use anyhow::Result;
use std::path::Path;

/// The annotation that hands a node to KWOK; a value other than [`MANAGED`] takes it away again.
pub const ANNOTATION: &str = "kwok.x-k8s.io/node";
/// The value of [`ANNOTATION`] on nodes that KWOK runs.
pub const MANAGED: &str = "fake";

const STAGES: [&str; 2] = [include_str!("../stages/node.yaml"), include_str!("../stages/pod.yaml")];

/// Starts KWOK with our stages: nodes become Ready and keep their Lease, pods bound to them run, complete (Jobs) and go
/// when deleted.
///
/// # Errors
/// The stages cannot be written or the program cannot be started.
pub fn start(tools: &Tools, workspace: &Workspace, kubeconfig: &Path) -> Result<Daemon> {
    let stages = workspace.write("kwok.yaml", STAGES.join("\n---\n"))?;
    let mut command = tools.kwok();
    command
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .arg("--config")
        .arg(stages)
        .arg("--manage-all-nodes=false")
        .arg(format!("--manage-nodes-with-annotation-selector={ANNOTATION}={MANAGED}"))
        .args(["--node-lease-duration-seconds", "40", "--cidr", "10.200.0.0/16", "--node-ip", "10.0.0.1"]);
    Daemon::spawn("kwok", command, &workspace.file("kwok.log"))
}
