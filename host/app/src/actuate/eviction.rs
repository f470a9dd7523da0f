//! Removing pods from draining nodes: evictions through the API, one pod at a time per key, each with its own back-off,
//! so that a pod which may not go holds up no other.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::Eviction;
use kube::api::{DeleteParams, ObjectMeta, Preconditions};
use kube::core::request::Request as Builder;
use kube::{Resource, ResourceExt};
use mortise_api::NodeClaim;
use mortise_api::condition::{Conditions, nodeclaim as kind};
use mortise_engine::pod::PodKey;
use mortise_kube::record::ObjectName;
use mortise_kube::state;

use super::lifecycle::termination_time;
use super::termination::{Removal, removals};
use crate::context::Context;
use crate::metrics::Id;
use crate::notes::Note;
use crate::queue::Next;

/// A pod to remove from a draining node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// The pod; its UID keeps a pod made anew under the same name out of it.
    pub pod: PodKey,
    /// Its node.
    pub node: Arc<str>,
}

/// Reason shown when nothing else caused the drain.
const FORCEFUL: &str = "Forceful Termination";

/// Asks for removals.
pub(crate) fn ask(ctx: &Context, node: &Arc<str>, claim: &NodeClaim, wanted: &[Removal]) {
    tracing::debug!(Node = %node, NodeClaim = claim.name_any(), pods = wanted.len(), "draining node");
    for removal in wanted {
        ctx.queues.evictions.add_if_idle(Key { pod: removal.pod().clone(), node: node.clone() });
    }
}

/// Removes one pod, if it still is to go.
pub(crate) async fn reconcile(ctx: Arc<Context>, key: Key) -> Next {
    let name = ObjectName { namespace: key.pod.namespace.clone(), name: key.pod.name.clone() };
    let now = ctx.clock.now();
    let Some((pod, claim, budgets)) = ctx.state.with(|s| {
        let pod = s.pod(&name).filter(|p| p.key.uid == key.pod.uid)?.clone();
        let node = s.node(&key.node).filter(|n| n.deletion_unix_ms.is_some())?;
        let claim = s.claim_of_node(&node.name)?.clone();
        let budgets = s.eviction(&pod);
        Some((pod, claim, budgets))
    }) else {
        return Next::Done;
    };
    let reason = claim
        .condition(kind::DISRUPTION_REASON)
        .filter(|_| claim.is_true(kind::DISRUPTION_REASON))
        .map_or(FORCEFUL, |c| c.reason.as_str());
    let removal = removals(&[&pod], termination_time(&claim), now).into_iter().next();
    match removal {
        None => Next::Done,
        Some(Removal::Delete(_, grace)) => delete(&ctx, &key, grace, reason).await,
        Some(Removal::Evict(_)) => evict(&ctx, &key, budgets, reason).await,
    }
}

async fn evict(ctx: &Context, key: &Key, budgets: state::Eviction, reason: &str) -> Next {
    let (namespace, name) = (key.pod.namespace.to_string(), key.pod.name.to_string());
    let builder = Builder::new(Pod::url_path(&(), Some(&namespace)));
    let eviction = Eviction {
        metadata: ObjectMeta { name: Some(name.clone()), namespace: Some(namespace.clone()), ..ObjectMeta::default() },
        delete_options: Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::DeleteOptions {
            preconditions: Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Preconditions {
                uid: Some(key.pod.uid.to_string()),
                resource_version: None,
            }),
            ..Default::default()
        }),
    };
    let answer = match serde_json::to_vec(&eviction) {
        Ok(body) => {
            let request = builder.create_subresource("eviction", &name, &kube::api::PostParams::default(), body);
            match request {
                Ok(request) => ctx.client.request::<serde_json::Value>(request).await.map(|_| ()),
                Err(error) => Err(kube::Error::BuildRequest(error)),
            }
        }
        Err(error) => Err(kube::Error::SerdeError(error)),
    };
    let code = code(&answer);
    ctx.metrics.inc(Id::PodsEvictionRequestsTotal, &[&code]);
    match answer {
        Ok(()) => {
            ctx.metrics.inc(Id::PodsDrainedTotal, &[reason]);
            ctx.notify([Note::Evicted { namespace, pod: name, reason: reason.to_owned() }]);
            Next::Done
        }
        // Gone, or another pod of that name: either way this one needs no eviction.
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Next::Done,
        Err(kube::Error::Api(status)) if status.code == 429 || several_budgets(&status.message) => {
            let because = match budgets {
                state::Eviction::Blocked(names) => {
                    format!("the PodDisruptionBudget {} allows no eviction", names.join(", "))
                }
                state::Eviction::Allowed => status.message.clone(),
            };
            let message = format!("evicting pod {namespace}/{name} is not allowed now: {because}");
            ctx.notify([Note::FailedDraining { node: key.node.to_string(), message }]);
            Next::Retry
        }
        Err(error) => {
            tracing::error!(Pod = format!("{namespace}/{name}"), Node = %key.node, %error, "failed evicting pod");
            Next::Retry
        }
    }
}

/// The API server refuses a pod with several budgets by a 500 whose text says so.
fn several_budgets(message: &str) -> bool {
    message.contains("more than one PodDisruptionBudget")
}

async fn delete(ctx: &Context, key: &Key, grace: i64, reason: &str) -> Next {
    let (namespace, name) = (key.pod.namespace.to_string(), key.pod.name.to_string());
    let params = DeleteParams {
        grace_period_seconds: u32::try_from(grace).ok(),
        preconditions: Some(Preconditions { uid: Some(key.pod.uid.to_string()), resource_version: None }),
        ..DeleteParams::default()
    };
    let pods: kube::Api<Pod> = kube::Api::namespaced(ctx.client.clone(), &namespace);
    match pods.delete(&name, &params).await {
        Ok(_) => {
            ctx.metrics.inc(Id::PodsDrainedTotal, &[reason]);
            ctx.notify([Note::ForceDeleted { namespace, pod: name, grace_seconds: grace }]);
            Next::Done
        }
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Next::Done,
        Err(error) => {
            tracing::error!(Pod = format!("{namespace}/{name}"), Node = %key.node, %error, "failed deleting pod");
            Next::Retry
        }
    }
}

fn code(answer: &Result<(), kube::Error>) -> String {
    match answer {
        Ok(()) => "201".into(),
        Err(kube::Error::Api(status)) => status.code.to_string(),
        Err(_) => "0".into(),
    }
}
