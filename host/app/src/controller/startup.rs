//! What must be there before the controller can work.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;

use crate::health::Health;

/// How often missing CRDs are looked for.
const POLL: Duration = Duration::from_secs(5);

/// Waits for the custom resources and tells the readiness probe.
pub(super) async fn crds(client: Client, health: Arc<Health>) {
    let mut told = false;
    loop {
        match missing(&client).await {
            Ok(missing) if missing.is_empty() => {
                health.crds_present();
                return;
            }
            Ok(missing) if !told => {
                tracing::error!(
                    "custom resources are not installed: {}; install the chart mortise-crd",
                    missing.join(", ")
                );
                told = true;
            }
            Ok(_) => {}
            Err(error) => tracing::error!(%error, "failed looking for custom resources"),
        }
        tokio::time::sleep(POLL).await;
    }
}

async fn missing(client: &Client) -> kube::Result<Vec<&'static str>> {
    let wanted =
        [("karpenter.sh/v1", &["nodepools", "nodeclaims"][..]), ("karpenter.k8s.aws/v1", &["ec2nodeclasses"][..])];
    let mut missing = Vec::new();
    for (group, plurals) in wanted {
        let found = match client.list_api_group_resources(group).await {
            Ok(list) => list.resources.into_iter().map(|r| r.name).collect(),
            Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
            Err(error) => return Err(error),
        };
        missing.extend(plurals.iter().filter(|p| !found.iter().any(|f| f == *p)));
    }
    Ok(missing)
}
