//! Sends Events, counting repetitions on the Event that is there already.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event as CoreEvent, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use tokio::sync::mpsc;

use super::{Counts, Event, Options};
use crate::backoff::random_u64;
use crate::status::{WriteError, retry};

/// Reason of the marker that ends the sender.
pub(super) const END: &str = "\u{0}end";

/// Longest message the API takes.
const MAX_MESSAGE: usize = 1024;

/// Events remembered for counting their repetitions.
const MAX_KNOWN: usize = 2048;

type Identity = (ObjectKey, String, String);
type ObjectKey = (Option<String>, Option<String>, Option<String>, Option<String>);

struct Known {
    namespace: String,
    name: String,
    count: i32,
}

/// Sends until the marker, or until nobody can publish any more.
pub(super) async fn run(client: Client, options: Options, mut events: mpsc::Receiver<Event>, counts: Arc<Counts>) {
    let mut known: HashMap<Identity, Known> = HashMap::new();
    while let Some(event) = events.recv().await {
        if event.reason == END {
            return;
        }
        match send(&client, &options, &mut known, event).await {
            Ok(()) => counts.sent.fetch_add(1, Ordering::Relaxed),
            Err(error) => {
                tracing::debug!(%error, "an Event was not recorded");
                counts.dropped.fetch_add(1, Ordering::Relaxed)
            }
        };
    }
}

async fn send(
    client: &Client,
    options: &Options,
    known: &mut HashMap<Identity, Known>,
    event: Event,
) -> Result<(), WriteError> {
    let message = cut(&event.message);
    let about = &event.about;
    let object = (about.kind.clone(), about.namespace.clone(), about.name.clone(), about.uid.clone());
    let identity = (object, event.reason.clone(), message.to_owned());
    let now = Time(Timestamp::now());
    if let Some(seen) = known.get_mut(&identity) {
        let api: Api<CoreEvent> = Api::namespaced(client.clone(), &seen.namespace);
        let count = seen.count.saturating_add(1);
        let patch = Patch::Merge(serde_json::json!({ "count": count, "lastTimestamp": now }));
        let params = PatchParams::default();
        match retry(|| api.patch(&seen.name, &params, &patch)).await {
            Ok(_) => {
                seen.count = count;
                return Ok(());
            }
            // Events live for an hour only.
            Err(WriteError::NotFound) => {
                known.remove(&identity);
            }
            Err(error) => return Err(error),
        }
    }
    let namespace = about.namespace.clone().filter(|n| !n.is_empty()).unwrap_or_else(|| options.namespace.clone());
    let name = format!("{}.{:016x}", about.name.as_deref().unwrap_or("event"), random_u64());
    let body = CoreEvent {
        metadata: ObjectMeta { name: Some(name.clone()), namespace: Some(namespace.clone()), ..ObjectMeta::default() },
        involved_object: ObjectReference { ..about.clone() },
        type_: Some(if event.warning { "Warning" } else { "Normal" }.to_owned()),
        reason: Some(event.reason.clone()),
        message: Some(message.to_owned()),
        source: Some(EventSource { component: Some(options.component.clone()), host: None }),
        reporting_component: Some(options.component.clone()),
        reporting_instance: Some(options.instance.clone()),
        first_timestamp: Some(now.clone()),
        last_timestamp: Some(now),
        count: Some(1),
        ..CoreEvent::default()
    };
    let api: Api<CoreEvent> = Api::namespaced(client.clone(), &namespace);
    let params = PostParams::default();
    match retry(|| api.create(&params, &body)).await {
        // The answer to an earlier attempt was lost.
        Ok(_) | Err(WriteError::AlreadyExists) => {}
        Err(error) => return Err(error),
    }
    if known.len() >= MAX_KNOWN {
        known.clear();
    }
    known.insert(identity, Known { namespace, name, count: 1 });
    Ok(())
}

/// The message, cut at a character within the API's limit.
fn cut(message: &str) -> &str {
    let mut end = message.len().min(MAX_MESSAGE);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    message.get(..end).unwrap_or_default()
}
