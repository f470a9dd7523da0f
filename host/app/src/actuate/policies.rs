//! The policy ConfigMap: every replica admits it, the leader reports on it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mortise_kube::policies::StatusWriter;
use mortise_kube::record::PolicyData;
use mortise_wasm::ConfigMapData;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::metrics::Id;
use crate::notes::{Note, Subject};
use crate::route::PolicyFeed;

/// How often the status is looked at for news (faults, breaker states) besides changes of the ConfigMap.
const REFRESH: Duration = Duration::from_secs(30);

/// Follows the ConfigMap until stopped, and tells which version of it has been dealt with.
pub(crate) async fn run(
    ctx: Arc<Context>,
    mut feed: watch::Receiver<PolicyFeed>,
    handled: watch::Sender<u64>,
    stop: CancellationToken,
) {
    gauges(&ctx);
    let mut last: Option<Arc<PolicyData>> = None;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            changed = feed.changed() => if changed.is_err() { return },
        }
        let PolicyFeed { version, data: latest } = feed.borrow_and_update().clone();
        match latest.clone() {
            Some(found) => admit(&ctx, found).await,
            None if last.is_some() => {
                ctx.policies.reset_to_defaults();
                ctx.metrics.inc(Id::PolicyAdmissionsTotal, &["defaults"]);
                tracing::info!(
                    ConfigMap = config_map(&ctx),
                    "policies are back to the built-in defaults, the ConfigMap is gone"
                );
            }
            None => {}
        }
        last = latest;
        gauges(&ctx);
        handled.send_replace(version);
        // What the policies say has changed: look at everything that waits for a decision again.
        ctx.trigger.trigger_now();
        ctx.disruption.notify_one();
        ctx.policy_news.notify_one();
    }
}

async fn admit(ctx: &Arc<Context>, found: Arc<PolicyData>) {
    let name = config_map(ctx);
    let host = ctx.policies.clone();
    let content = ConfigMapData { data: found.data.clone(), binary_data: found.binary_data.clone() };
    // Admission compiles components: seconds for a large one.
    let result = tokio::task::spawn_blocking(move || host.admit(&content)).await;
    match result {
        Ok(Ok(admitted)) => {
            ctx.metrics.inc(Id::PolicyAdmissionsTotal, &["admitted"]);
            if admitted.changed {
                tracing::info!(ConfigMap = name, revision = admitted.revision, "policies are active");
                ctx.notify_leading([Note::PoliciesActive { subject: subject(ctx), revision: admitted.revision }]);
            }
        }
        Ok(Err(rejections)) => {
            ctx.metrics.inc(Id::PolicyAdmissionsTotal, &["rejected"]);
            let reasons = rejections.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
            tracing::error!(ConfigMap = name, error = reasons, "policies are refused, the previous ones stay active");
            ctx.notify_leading([Note::PoliciesRefused { subject: subject(ctx), reasons }]);
        }
        Err(error) => {
            tracing::error!(ConfigMap = name, %error, "admission of the policies ended abnormally, the previous ones stay active")
        }
    }
}

fn subject(ctx: &Context) -> Subject {
    Subject::ConfigMap(ctx.namespace.clone(), ctx.settings.policies_configmap.clone())
}

fn config_map(ctx: &Context) -> String {
    format!("{}/{}", ctx.namespace, ctx.settings.policies_configmap)
}

fn gauges(ctx: &Context) {
    let paused = if ctx.policies.disruption_paused() { 1.0 } else { 0.0 };
    ctx.metrics.set(Id::PolicyDisruptionPaused, &[], paused);
    ctx.metrics.retain(Id::PolicyRevision, |_| false);
    ctx.metrics.set(Id::PolicyRevision, &[&ctx.policies.status().revision], 1.0);
}

/// Keeps the status ConfigMap up to date; only while leading.
pub(crate) async fn report(ctx: Arc<Context>, stop: CancellationToken) {
    let name = format!("{}-status", ctx.settings.policies_configmap);
    let mut writer = StatusWriter::new(ctx.client.clone(), &ctx.namespace, &name);
    loop {
        let status = ctx.policies.status();
        let text = serde_norway::to_string(&status).unwrap_or_else(|e| format!("error: {e}\n"));
        let data = BTreeMap::from([("status.yaml".to_owned(), text)]);
        if let Err(error) = writer.write(data).await {
            tracing::error!(ConfigMap = format!("{}/{name}", ctx.namespace), %error, "failed writing the status of the policies");
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = ctx.policy_news.notified() => {}
            () = tokio::time::sleep(REFRESH) => {}
        }
    }
}
