//! A NodeClaim from launch to an initialised node: what to write next, as a pure function of claim, node and time.
//!
//! ```text
//! finalizer → Launched → Registered → Initialized → (Consolidatable)      expired, never launched, never registered
//! ```

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use mortise_api::condition::{self, Conditions, Status, nodeclaim as kind};
use mortise_api::nodeclaim::NodeClaim;
use mortise_api::nodepool::NodePool;
use mortise_api::{annotations, finalizers, labels};
use mortise_cloud::Instance;
use mortise_kube::record::NodeRecord;

use super::nodeedit::NodeEdit;
use crate::clock::timestamp;
use crate::notes::Note;
use crate::quantity::quantities;

pub(crate) use registration::engine_taint;

mod initialization;
mod registration;
#[cfg(test)]
mod tests;

/// A claim that is not launched after this time is given up (from creation: retries do not extend it).
pub(crate) const LAUNCH_TIMEOUT: Duration = Duration::from_secs(5 * 60);
/// A claim whose node has not registered after this time is given up.
pub(crate) const REGISTRATION_TIMEOUT: Duration = Duration::from_secs(15 * 60);
/// `status.lastPodEventTime` is written at most this often per claim.
const POD_EVENT_INTERVAL: Duration = Duration::from_secs(10);
/// Messages from the cloud are cut at this many bytes.
pub(crate) const MESSAGE_LIMIT: usize = 1024;

/// Where the launch of a claim stands, as far as this process knows.
#[derive(Clone, Debug, Default)]
pub(crate) enum Launch {
    /// Not asked for yet.
    #[default]
    NotAsked,
    /// Waiting in line or a call is under way.
    InFlight,
    /// There is an instance.
    Done(Arc<Instance>),
    /// The last try failed and another is due later.
    Failed {
        /// Reason for the condition.
        reason: Arc<str>,
        /// What the provider said.
        message: String,
    },
}

/// Everything the decision depends on.
pub(crate) struct Input<'a> {
    /// The claim; not being deleted.
    pub claim: &'a NodeClaim,
    /// Nodes with its provider id; none when it has none.
    pub nodes: &'a [Arc<NodeRecord>],
    /// Its NodePool, if it exists.
    pub pool: Option<&'a NodePool>,
    /// Its launch.
    pub launch: Launch,
    /// When a pod last came to its node or left it, as seen by this process.
    pub pod_event_unix_ms: Option<i64>,
    /// Now.
    pub now: Timestamp,
}

/// Why a claim is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deletion {
    /// Older than `expireAfter`.
    Expired,
    /// Not launched in time.
    LaunchTimeout,
    /// Not registered in time.
    RegistrationTimeout,
    /// Its Node is being deleted.
    NodeDeleted,
}

impl Deletion {
    /// Value of the metric label `reason`, when it counts as a disruption.
    pub(crate) fn metric(self) -> Option<&'static str> {
        match self {
            Self::Expired => Some("expired"),
            Self::LaunchTimeout => Some("launch_timeout"),
            Self::RegistrationTimeout => Some("registration_timeout"),
            Self::NodeDeleted => None,
        }
    }
}

/// What happened in this pass, for metrics and logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Milestone {
    /// Launched became True.
    Launched,
    /// Registered became True.
    Registered,
    /// Initialized became True.
    Initialized,
}

/// What to do.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The claim as it should be; metadata and status are written where they differ.
    pub claim: NodeClaim,
    /// Changes of its Node.
    pub node: Option<NodeEdit>,
    /// Delete the claim instead of anything else.
    pub delete: Option<Deletion>,
    /// Ask for an instance.
    pub launch: bool,
    /// Stages reached in this pass.
    pub milestones: Vec<Milestone>,
    /// Events.
    pub notes: Vec<Note>,
    /// Look again after this time.
    pub again: Option<Duration>,
}

impl Plan {
    /// Shortens the time until the next look.
    fn again_in(&mut self, wait: Duration) {
        self.again = Some(self.again.map_or(wait, |a| a.min(wait)));
    }
}

/// Decides what to do with one claim.
pub(crate) fn plan(input: &Input<'_>) -> Plan {
    let mut plan = Plan {
        claim: input.claim.clone(),
        node: None,
        delete: None,
        launch: false,
        milestones: Vec::new(),
        notes: Vec::new(),
        again: None,
    };
    if let Some(deletion) = deletion(input, &mut plan) {
        plan.delete = Some(deletion);
        return plan;
    }
    if !input.claim.finalizers().iter().any(|f| f == finalizers::TERMINATION) {
        // Nothing is launched before the finalizer stands, so nothing is ever left behind.
        plan.claim.finalizers_mut().push(finalizers::TERMINATION.to_owned());
    }
    plan.claim.initialize_conditions(created(input.claim));
    launch(input, &mut plan);
    if plan.claim.is_true(kind::LAUNCHED) {
        registration::register(input, &mut plan);
        initialization::initialize(input, &mut plan);
    }
    settle(&mut plan.claim, input.now);
    consolidatable(input, &mut plan);
    plan
}

/// Creation time of a claim.
pub(crate) fn created(claim: &NodeClaim) -> Timestamp {
    claim.metadata.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |t| t.0)
}

/// `later - earlier`, zero when negative.
pub(crate) fn since(later: Timestamp, earlier: Timestamp) -> Duration {
    Duration::try_from(later.duration_since(earlier)).unwrap_or(Duration::ZERO)
}

/// Expiry, liveness, and the Node's own deletion.
fn deletion(input: &Input<'_>, plan: &mut Plan) -> Option<Deletion> {
    let (claim, now) = (input.claim, input.now);
    if input.nodes.iter().any(|n| n.deletion_unix_ms.is_some()) {
        return Some(Deletion::NodeDeleted);
    }
    let age = since(now, created(claim));
    if let Some(expire) = claim.spec.expire_after.or_never() {
        match expire.checked_sub(age) {
            None | Some(Duration::ZERO) => return Some(Deletion::Expired),
            Some(left) => plan.again_in(left),
        }
    }
    let unsettled = |type_: &str| match claim.condition(type_) {
        Some(c) if condition::is_true(c) => None,
        Some(c) => Some(since(now, c.last_transition_time.0)),
        None => Some(age),
    };
    if let Some(waited) = unsettled(kind::LAUNCHED)
        && !matches!(input.launch, Launch::Done(_))
    {
        match LAUNCH_TIMEOUT.checked_sub(waited) {
            // A call that is under way ends first: its outcome decides.
            None | Some(Duration::ZERO) if !matches!(input.launch, Launch::InFlight) => {
                return Some(Deletion::LaunchTimeout);
            }
            left => plan.again_in(left.unwrap_or_default().max(Duration::from_secs(1))),
        }
    } else if let Some(waited) = unsettled(kind::REGISTERED) {
        match REGISTRATION_TIMEOUT.checked_sub(waited) {
            None | Some(Duration::ZERO) => return Some(Deletion::RegistrationTimeout),
            Some(left) => plan.again_in(left),
        }
    }
    None
}

/// The launch stage: takes the outcome over, or asks for a launch.
fn launch(input: &Input<'_>, plan: &mut Plan) {
    if plan.claim.is_true(kind::LAUNCHED) {
        plan.claim.set_true(kind::LAUNCHED, input.now);
        return;
    }
    match &input.launch {
        Launch::NotAsked => plan.launch = true,
        Launch::InFlight => {}
        Launch::Failed { reason, message } => {
            let message = cut(message);
            plan.claim.set_condition(kind::LAUNCHED, Status::Unknown, reason, &message, input.now);
            plan.launch = true;
        }
        Launch::Done(instance) => {
            take_over(&mut plan.claim, instance);
            plan.claim.set_true(kind::LAUNCHED, input.now);
            plan.milestones.push(Milestone::Launched);
        }
    }
}

/// Writes what the instance is into the claim: its labels where the claim has none of that key, its annotations, and
/// the status.
fn take_over(claim: &mut NodeClaim, instance: &Instance) {
    let labels = claim.labels_mut();
    for (key, value) in &instance.labels {
        labels.entry(key.to_string()).or_insert_with(|| value.to_string());
    }
    let annotations = claim.annotations_mut();
    for (key, value) in &instance.annotations {
        annotations.insert(key.to_string(), value.to_string());
    }
    let status = claim.status.get_or_insert_default();
    status.provider_id = Some(instance.provider_id.to_string());
    status.image_id = Some(instance.image_id.to_string()).filter(|id| !id.is_empty());
    status.capacity = quantities(&instance.capacity);
    status.allocatable = quantities(&instance.allocatable);
}

/// Cuts a message at the limit, on a character boundary.
pub(crate) fn cut(message: &str) -> String {
    if message.len() <= MESSAGE_LIMIT {
        return message.to_owned();
    }
    let mut end = MESSAGE_LIMIT - 3;
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}...", message.get(..end).unwrap_or_default())
}

/// The later dependents of Ready are re-judged with every pass; `set_condition` keeps the root up to date. A claim read
/// without any status gets its root here.
fn settle(claim: &mut NodeClaim, now: Timestamp) {
    let generation = claim.metadata.generation;
    condition::roll_up(claim.conditions_mut(), NodeClaim::DEPENDENTS, generation, now);
}

/// `lastPodEventTime` and the condition Consolidatable.
fn consolidatable(input: &Input<'_>, plan: &mut Plan) {
    let now = input.now;
    let status = plan.claim.status.get_or_insert_default();
    let stored = status.last_pod_event_time.as_ref().map(|t| t.0);
    let seen = input.pod_event_unix_ms.map(timestamp);
    if let Some(seen) = seen
        && stored.is_none_or(|stored| since(seen, stored) >= POD_EVENT_INTERVAL)
    {
        status.last_pod_event_time = Some(Time(whole_second(seen)));
    }
    let initialized = plan.claim.condition(kind::INITIALIZED).filter(|c| condition::is_true(c));
    let after = input.pool.filter(|p| !p.is_static()).and_then(|p| p.spec.disruption.consolidate_after.or_never());
    let (Some(initialized), Some(after)) = (initialized, after) else {
        condition::clear(plan.claim.conditions_mut(), kind::CONSOLIDATABLE);
        return;
    };
    let quiet_since = seen.into_iter().chain(stored).max().unwrap_or(initialized.last_transition_time.0);
    match after.checked_sub(since(now, quiet_since)) {
        Some(left) if !left.is_zero() => {
            condition::clear(plan.claim.conditions_mut(), kind::CONSOLIDATABLE);
            plan.again_in(left);
        }
        _ => {
            plan.claim.set_true(kind::CONSOLIDATABLE, now);
        }
    }
}

/// Kubernetes times are whole seconds.
pub(crate) fn whole_second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// Name of the NodePool of a claim, empty when it has none.
pub(crate) fn pool_of(claim: &NodeClaim) -> &str {
    claim.metadata.labels.as_ref().and_then(|l| l.get(labels::NODEPOOL)).map(String::as_str).unwrap_or_default()
}

/// The end of the drain, when the claim sets one.
pub(crate) fn termination_time(claim: &NodeClaim) -> Option<Timestamp> {
    claim.annotations().get(annotations::NODECLAIM_TERMINATION_TIMESTAMP)?.parse().ok()
}

/// When the last change of the claim's condition was, for durations.
pub(crate) fn transition(claim: &NodeClaim, type_: &str) -> Option<Timestamp> {
    claim.condition(type_).map(|c| c.last_transition_time.0)
}
