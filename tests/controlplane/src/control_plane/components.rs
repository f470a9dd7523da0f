//! The command line of each component.

use super::{Options, SERVICE_CIDR};
use crate::process::Daemon;
use crate::tools::Tools;
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::process::Command;

/// Who does what, without bodies: enough to tell which permissions were used and which were refused. The health checks
/// and the components' own traffic would be most of the file.
const AUDIT_POLICY: &str = r#"
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: None
    users: [admin, "system:kube-controller-manager", "system:kube-scheduler", "system:apiserver"]
  - level: None
    nonResourceURLs: ["/healthz*", "/livez*", "/readyz*", "/version"]
  - level: Metadata
"#;

/// What is needed to start, and to start again, each component.
#[derive(Debug)]
pub(super) struct Start {
    pub tools: Tools,
    pub directory: PathBuf,
    pub etcd_port: u16,
    pub etcd_peer_port: u16,
    pub port: u16,
    pub options: Options,
}

impl Start {
    fn path(&self, name: &str) -> String {
        self.directory.join(name).display().to_string()
    }

    fn spawn(&self, component: &str, mut command: Command, arguments: &[String]) -> Result<Daemon> {
        command.args(arguments);
        if component != "etcd" && !self.options.feature_gates.is_empty() {
            command.arg(format!("--feature-gates={}", self.options.feature_gates.join(",")));
        }
        Daemon::spawn(component, command, &self.directory.join(format!("{component}.log")))
    }

    pub(super) fn etcd(&self) -> Result<Daemon> {
        let client = format!("http://127.0.0.1:{}", self.etcd_port);
        let peer = format!("http://127.0.0.1:{}", self.etcd_peer_port);
        let arguments = [
            format!("--data-dir={}", self.path("etcd")),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
            "--log-level=warn".to_owned(),
            // The store dies with the test.
            "--unsafe-no-fsync".to_owned(),
            "--quota-backend-bytes=4294967296".to_owned(),
        ];
        self.spawn("etcd", self.tools.kubernetes("etcd"), &arguments)
    }

    pub(super) fn apiserver(&self) -> Result<Daemon> {
        let policy = self.directory.join("audit-policy.yaml");
        std::fs::write(&policy, AUDIT_POLICY).context("writing the audit policy")?;
        let arguments = [
            format!("--etcd-servers=http://127.0.0.1:{}", self.etcd_port),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", self.port),
            format!("--cert-dir={}", self.directory.display()),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={}", self.path("service-account.pub")),
            format!("--service-account-signing-key-file={}", self.path("service-account.key")),
            format!("--service-cluster-ip-range={SERVICE_CIDR}"),
            format!("--token-auth-file={}", self.path("tokens.csv")),
            "--authorization-mode=RBAC".to_owned(),
            "--endpoint-reconciler-type=none".to_owned(),
            format!("--audit-policy-file={}", policy.display()),
            format!("--audit-log-path={}", self.path("audit.log")),
            // Blocking, so that what a scenario did is in the file when the scenario ends.
            "--audit-log-mode=blocking".to_owned(),
            "--max-requests-inflight=1000".to_owned(),
            "--max-mutating-requests-inflight=500".to_owned(),
        ];
        self.spawn("kube-apiserver", self.tools.kubernetes("kube-apiserver"), &arguments)
    }

    pub(super) fn controller_manager(&self) -> Result<Daemon> {
        let mut arguments = vec![
            format!("--kubeconfig={}", self.path("controller-manager.kubeconfig")),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
            format!("--node-monitor-grace-period={}s", self.options.node_grace.as_secs()),
            format!("--root-ca-file={}", self.path("apiserver.crt")),
            // There is no kubelet whose certificates could be signed and no cloud whose routes could be set.
            "--controllers=*,-certificatesigningrequest-signing-controller,-node-route-controller,\
             -cloud-node-lifecycle-controller,-service-lb-controller"
                .replace(' ', ""),
        ];
        if let Some(qps) = self.options.client_qps {
            arguments.push(format!("--kube-api-qps={qps}"));
            arguments.push(format!("--kube-api-burst={}", qps * 2));
        }
        self.spawn("kube-controller-manager", self.tools.kubernetes("kube-controller-manager"), &arguments)
    }

    pub(super) fn scheduler(&self) -> Result<Daemon> {
        let mut arguments = vec!["--secure-port=0".to_owned()];
        if let Some(qps) = self.options.client_qps {
            // The scheduler takes its rate from a configuration file only.
            let configuration = serde_json::json!({
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "leaderElection": {"leaderElect": false},
                "clientConnection": {
                    "kubeconfig": self.path("scheduler.kubeconfig"), "qps": qps, "burst": qps * 2,
                },
            });
            let path = self.directory.join("scheduler.yaml");
            std::fs::write(&path, configuration.to_string()).context("writing the scheduler's configuration")?;
            arguments.push(format!("--config={}", path.display()));
        } else {
            arguments.push(format!("--kubeconfig={}", self.path("scheduler.kubeconfig")));
            arguments.push("--leader-elect=false".to_owned());
        }
        self.spawn("kube-scheduler", self.tools.kubernetes("kube-scheduler"), &arguments)
    }
}
