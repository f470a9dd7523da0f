//! The AWS provider from settings.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use mortise_cloud::aws::{AwsProvider, AwsSettings};
use mortise_cloud::{CallObserver, CloudProvider};

use crate::metrics::{Id, Registry};
use crate::settings::Settings;

/// Counts calls to AWS.
struct Calls(Arc<Registry>);

impl CallObserver for Calls {
    fn observe(&self, call: &'static str, duration: Duration, error_code: Option<&str>) {
        self.0.inc(Id::AwsRequestsTotal, &[call, error_code.unwrap_or("ok")]);
        self.0.observe_duration(Id::AwsRequestDuration, &[call], duration);
    }
}

/// Connects.
///
/// # Errors
/// No region, no credentials.
pub(super) async fn provider(
    client: &Client,
    settings: &Settings,
    metrics: &Arc<Registry>,
) -> anyhow::Result<Arc<dyn CloudProvider>> {
    let text = |text: &Option<String>| text.as_deref().map(Arc::from);
    let aws = AwsSettings {
        cluster_endpoint: text(&settings.cluster_endpoint),
        cluster_ca_bundle: text(&settings.cluster_ca_bundle),
        kubernetes_version: version(client).await,
        // Parts per million: a share above one is refused long before it overflows.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        vm_memory_overhead_ppm: (settings.vm_memory_overhead_percent * 1e6).round().clamp(0.0, 1e9) as u32,
        reserved_enis: settings.reserved_enis,
        isolated_vpc: settings.isolated_vpc,
        disable_dry_run: settings.disable_dry_run,
        ami_refresh: settings.ami_refresh,
        subnet_refresh: settings.subnet_refresh,
        security_group_refresh: settings.security_group_refresh,
        ..AwsSettings::new(&settings.cluster_name)
    };
    let provider = AwsProvider::connect(aws, Arc::new(Calls(metrics.clone()))).await?;
    tracing::info!(region = provider.region(), "discovered region");
    Ok(Arc::new(provider))
}

/// `major.minor` of the API server; decides which images an alias means.
async fn version(client: &Client) -> Option<Arc<str>> {
    match client.apiserver_version().await {
        Ok(info) => {
            let minor: String = info.minor.chars().take_while(char::is_ascii_digit).collect();
            Some(format!("{}.{minor}", info.major).into())
        }
        Err(error) => {
            tracing::error!(%error, "the API server does not tell its version, EKS is asked instead");
            None
        }
    }
}
