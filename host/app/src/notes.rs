//! Every Kubernetes Event that this program sends: reason, type and words in one place.

use mortise_kube::record::ObjectName;

/// Object that an Event is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    /// A NodeClaim.
    Claim(String),
    /// A Node.
    Node(String),
    /// A NodePool.
    Pool(String),
    /// An EC2NodeClass.
    Class(String),
    /// A Pod: namespace and name.
    Pod(String, String),
    /// A NodeOverlay.
    Overlay(String),
    /// A CapacityBuffer.
    Buffer(ObjectName),
    /// A ConfigMap: namespace and name.
    ConfigMap(String, String),
}

/// Type of an Event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Severity {
    /// All is well.
    Normal,
    /// Somebody may want to look.
    Warning,
}

/// Something worth an Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    UnregisteredTaintMissing { claim: String },
    InsufficientCapacity { claim: String, message: String },
    NodeClassNotReady { claim: String, message: String },
    Nominated { namespace: String, pod: String, target: String, existing: bool },
    FailedScheduling { namespace: String, pod: String, message: String },
    NoCompatibleInstanceTypes { pool: String, message: String },
    DisruptionTerminating { node: String, claim: String, reason: String },
    DisruptionBlocked { node: String, claim: String, message: String },
    BudgetBlocked { pool: String, message: String },
    Evicted { namespace: String, pod: String, reason: String },
    ForceDeleted { namespace: String, pod: String, grace_seconds: i64 },
    FailedDraining { node: String, message: String },
    TerminationGracePeriodExpiring { node: Option<String>, claim: String, at: String },
    AwaitingVolumeDetachment { node: String, message: String },
    InvalidDoNotDisrupt { namespace: String, pod: String, value: String },
    WaitingOnNodeClaimTermination { class: String, claims: String },
    ConditionChanged { subject: Subject, condition: String, from: String, to: String, detail: String },
    Finalized { subject: Subject },
    PoliciesActive { subject: Subject, revision: String },
    PoliciesRefused { subject: Subject, reasons: String },
}

/// An Event as sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rendered {
    /// One or two objects.
    pub subjects: Vec<Subject>,
    /// Reason.
    pub reason: String,
    /// Type.
    pub severity: Severity,
    /// Text.
    pub message: String,
}

impl Note {
    /// What tells two notes of one kind about one object apart, when it is not the whole text: numbers and name lists in
    /// a text change while the matter stays the same. Empty = the text.
    pub(crate) fn key(&self) -> Vec<String> {
        match self {
            Self::FailedDraining { node, message } => {
                // "3 pods are waiting…" is one matter whatever the number; an eviction refused names its pod.
                let matter = message.split_once(" pods are waiting").map_or(message.as_str(), |_| "waiting");
                vec![node.clone(), matter.to_owned()]
            }
            Self::AwaitingVolumeDetachment { node, .. } => vec![node.clone()],
            Self::ConditionChanged { condition, to, detail, .. } => vec![condition.clone(), to.clone(), detail.clone()],
            _ => Vec::new(),
        }
    }

    /// Renders it.
    pub(crate) fn render(&self) -> Rendered {
        use Severity::{Normal, Warning};
        let claim = |name: &String| Subject::Claim(name.clone());
        let node = |name: &String| Subject::Node(name.clone());
        let pod = |namespace: &String, name: &String| Subject::Pod(namespace.clone(), name.clone());
        let make = |subjects: Vec<Subject>, reason: &str, severity, message: String| Rendered {
            subjects,
            reason: reason.to_owned(),
            severity,
            message,
        };
        match self {
            Self::UnregisteredTaintMissing { claim: c } => make(
                vec![claim(c)],
                "UnregisteredTaintMissing",
                Warning,
                "The node came up without the taint karpenter.sh/unregistered:NoExecute, so pods may have landed on it \
                 before its labels and taints were complete; have its bootstrap register the taint"
                    .into(),
            ),
            Self::InsufficientCapacity { claim: c, message } => {
                make(vec![claim(c)], "InsufficientCapacityError", Warning, format!("NodeClaim could not be launched: {message}"))
            }
            Self::NodeClassNotReady { claim: c, message } => {
                make(vec![claim(c)], "NodeClassNotReady", Warning, format!("NodeClaim could not be launched: {message}"))
            }
            Self::Nominated { namespace, pod: p, target, existing } => {
                let kind = if *existing { "node" } else { "nodeclaim" };
                make(vec![pod(namespace, p)], "Nominated", Normal, format!("Pod should schedule on {kind}/{target}"))
            }
            Self::FailedScheduling { namespace, pod: p, message } => {
                make(vec![pod(namespace, p)], "FailedScheduling", Warning, format!("Failed to schedule pod, {message}"))
            }
            Self::NoCompatibleInstanceTypes { pool, message } => {
                make(vec![Subject::Pool(pool.clone())], "NoCompatibleInstanceTypes", Warning, message.clone())
            }
            Self::DisruptionTerminating { node: n, claim: c, reason } => {
                make(vec![node(n), claim(c)], "DisruptionTerminating", Normal, format!("Disrupting Node: {reason}"))
            }
            Self::DisruptionBlocked { node: n, claim: c, message } => {
                make(vec![node(n), claim(c)], "DisruptionBlocked", Normal, message.clone())
            }
            Self::BudgetBlocked { pool, message } => {
                make(vec![Subject::Pool(pool.clone())], "DisruptionBlocked", Normal, message.clone())
            }
            Self::Evicted { namespace, pod: p, reason } => {
                make(vec![pod(namespace, p)], "Evicted", Normal, format!("Evicted pod: {reason}"))
            }
            Self::ForceDeleted { namespace, pod: p, grace_seconds } => make(
                vec![pod(namespace, p)],
                "Disrupted",
                Normal,
                format!(
                    "Deleting the pod so that it ends before its node's termination time, with {grace_seconds}s of grace; \
                     this bypasses its PodDisruptionBudgets and the karpenter.sh/do-not-disrupt annotation"
                ),
            ),
            Self::FailedDraining { node: n, message } => {
                make(vec![node(n)], "FailedDraining", Warning, format!("Failed to drain node, {message}"))
            }
            Self::TerminationGracePeriodExpiring { node: n, claim: c, at } => {
                let subjects = n.iter().map(node).chain([claim(c)]).collect();
                make(subjects, "TerminationGracePeriodExpiring", Warning, format!("All pods will be deleted by {at}"))
            }
            Self::AwaitingVolumeDetachment { node: n, message } => {
                make(vec![node(n)], "AwaitingVolumeDetachment", Normal, message.clone())
            }
            Self::InvalidDoNotDisrupt { namespace, pod: p, value } => make(
                vec![pod(namespace, p)],
                "InvalidDoNotDisruptAnnotation",
                Warning,
                format!("Annotation karpenter.sh/do-not-disrupt is {value:?} and ignored; write \"true\" or a duration such as 30m"),
            ),
            Self::WaitingOnNodeClaimTermination { class, claims } => make(
                vec![Subject::Class(class.clone())],
                "WaitingOnNodeClaimTermination",
                Normal,
                format!("Waiting on NodeClaim termination for {claims}"),
            ),
            Self::ConditionChanged { subject, condition, from, to, detail } => make(
                vec![subject.clone()],
                condition,
                Normal,
                format!("Status condition transitioned, Type: {condition}, Status: {from} -> {to}{detail}"),
            ),
            Self::PoliciesActive { subject, revision } => {
                make(vec![subject.clone()], "PoliciesActive", Normal, format!("Revision {revision} of the policies is active"))
            }
            Self::PoliciesRefused { subject, reasons } => make(
                vec![subject.clone()],
                "PoliciesRefused",
                Warning,
                format!("The policies are refused and the previous ones stay active: {reasons}"),
            ),
            Self::Finalized { subject } => make(vec![subject.clone()], "Finalized", Normal, "Finalized".into()),
        }
    }
}
