//! Installing the charts with the real Helm, and reading back what they rendered.

use crate::process;
use crate::tools::Tools;
use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Container, EnvVar};
use kube::{Api, Client};
use std::path::{Path, PathBuf};

/// The charts of this repository.
pub fn charts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts")
}

/// Helm against one cluster.
#[derive(Debug, Clone)]
pub struct Helm {
    tools: Tools,
    kubeconfig: PathBuf,
    home: PathBuf,
}

impl Helm {
    /// Helm that acts as the user of `kubeconfig` and keeps its own files in `home`.
    pub fn new(tools: &Tools, kubeconfig: &Path, home: PathBuf) -> Self {
        Self { tools: tools.clone(), kubeconfig: kubeconfig.to_owned(), home }
    }

    /// Runs Helm; a refusal is not an error.
    ///
    /// # Errors
    /// It cannot be started.
    pub async fn try_run(&self, arguments: &[&str]) -> Result<process::Output> {
        let mut command = self.tools.helm();
        command.args(arguments).env("KUBECONFIG", &self.kubeconfig);
        for name in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
            command.env(name, self.home.join(name));
        }
        process::output(command, None).await
    }

    /// `helm upgrade --install` of a chart directory; returns what Helm printed (the notes).
    ///
    /// # Errors
    /// Helm fails: the message carries what it printed.
    pub async fn install(&self, release: &str, namespace: &str, chart: &Path, values: &[&Path]) -> Result<String> {
        let chart = chart.display().to_string();
        let values: Vec<String> = values.iter().map(|path| path.display().to_string()).collect();
        let mut arguments =
            vec!["upgrade", "--install", release, &chart, "--namespace", namespace, "--create-namespace"];
        for path in &values {
            arguments.extend(["--values", path]);
        }
        let output = self.try_run(&arguments).await?;
        anyhow::ensure!(output.success, "helm could not install {chart}:\n{}{}", output.stderr, output.stdout);
        Ok(output.stdout)
    }
}

/// What an installed chart says about running the controller.
#[derive(Debug, Clone)]
pub struct Installation {
    /// Namespace of the release.
    pub namespace: String,
    /// The pods' ServiceAccount.
    pub service_account: String,
    /// The Deployment's `spec.replicas`.
    pub replicas: i32,
    /// The controller container's environment with field and resource references resolved.
    pub env: Vec<(String, String)>,
    /// The controller container's arguments.
    pub args: Vec<String>,
}

impl Installation {
    /// Reads the controller's Deployment back from the API server.
    ///
    /// # Errors
    /// There is not exactly one Deployment with a container named `controller`, or its environment refers to something
    /// that cannot be resolved here.
    pub async fn read(client: &Client, namespace: &str) -> Result<Self> {
        let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
        let all = deployments.list(&kube::api::ListParams::default()).await?.items;
        let [deployment] = all.as_slice() else {
            anyhow::bail!("the chart made {} Deployments in {namespace} and not one", all.len());
        };
        let spec = deployment.spec.as_ref().context("the Deployment has no spec")?;
        let pod = spec.template.spec.as_ref().context("the Deployment's pods have no spec")?;
        let container = pod
            .containers
            .iter()
            .find(|container| container.name == "controller")
            .context("the Deployment has no container named controller")?;
        let mut env = Vec::new();
        for variable in container.env.iter().flatten() {
            if let Some(value) = resolve(variable, container, namespace)? {
                env.push((variable.name.clone(), value));
            }
        }
        Ok(Self {
            namespace: namespace.to_owned(),
            service_account: pod.service_account_name.clone().context("the pods have no ServiceAccount")?,
            replicas: spec.replicas.unwrap_or(1),
            env,
            args: container.args.clone().unwrap_or_default(),
        })
    }

    /// A variable of the environment.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.env.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// What the kubelet would put into the variable.
fn resolve(variable: &EnvVar, container: &Container, namespace: &str) -> Result<Option<String>> {
    let Some(source) = &variable.value_from else { return Ok(Some(variable.value.clone().unwrap_or_default())) };
    if let Some(field) = &source.field_ref {
        return match field.field_path.as_str() {
            "metadata.namespace" => Ok(Some(namespace.to_owned())),
            // The test names each process itself.
            "metadata.name" => Ok(None),
            other => anyhow::bail!("{} refers to the field {other}, which is not resolved here", variable.name),
        };
    }
    let reference =
        source.resource_field_ref.as_ref().with_context(|| format!("{} has an unknown source", variable.name))?;
    let resources = container.resources.as_ref();
    let (list, name) = match reference.resource.split_once('.') {
        Some(("requests", name)) => (resources.and_then(|it| it.requests.as_ref()), name),
        Some(("limits", name)) => (resources.and_then(|it| it.limits.as_ref()), name),
        _ => anyhow::bail!("{} refers to the resource {}", variable.name, reference.resource),
    };
    let Some(quantity) = list.and_then(|list| list.get(name)) else { return Ok(None) };
    let divisor = reference.divisor.as_ref().map_or("1", |divisor| divisor.0.as_str());
    let value = quantity_value(&quantity.0)? / quantity_value(if divisor == "0" { "1" } else { divisor })?;
    // The kubelet rounds up to whole units.
    Ok(Some(format!("{:.0}", value.ceil())))
}

fn quantity_value(text: &str) -> Result<f64> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = match unit {
        "" => 1.0,
        "m" => 1e-3,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "Ki" => 1024.0,
        "Mi" => 1024.0 * 1024.0,
        "Gi" => 1024.0 * 1024.0 * 1024.0,
        other => anyhow::bail!("quantity {text:?} has the unknown unit {other:?}"),
    };
    Ok(number.parse::<f64>().with_context(|| format!("quantity {text:?}"))? * factor)
}
