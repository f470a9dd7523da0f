//! Pods as the scheduler sees them. Pods with equal needs share one [`PodShape`], so that a thousand replicas cost one.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::quantity::Resources;
use crate::requirement::Requirement;
use crate::selector::LabelSelector;
use crate::taint::Toleration;

/// Identity of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct PodKey {
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// UID.
    pub uid: Arc<str>,
}

/// A term: all requirements must hold.
pub type Term = Vec<Requirement>;

/// Everything placement depends on, besides identity and age. Equal shapes are one allocation (the Kubernetes edge
/// interns them), which is what folds pods into groups.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct PodShape {
    /// Namespace.
    pub namespace: Arc<str>,
    /// Labels (topology and affinity selectors look at them; policies may ask for some).
    pub labels: BTreeMap<Arc<str>, Arc<str>>,
    /// Effective requests: containers, init containers, sidecars, overhead, pod-level resources, in-place resize; `pods` = 1.
    pub requests: Resources,
    /// `spec.nodeSelector`, keys normalised.
    pub node_selector: BTreeMap<Arc<str>, Arc<str>>,
    /// Required node affinity terms: one of them must hold; empty = no constraint. Tried in order (relaxed one by one).
    pub required_affinity: Vec<Term>,
    /// Preferred node affinity, heaviest first: weight and term.
    pub preferred_affinity: Vec<(i32, Term)>,
    /// Tolerations.
    pub tolerations: Vec<Toleration>,
    /// `spec.priority`.
    pub priority: i32,
    /// Zones etc. that the pod's volumes allow: alternatives, one of which must hold; empty = no constraint.
    pub volume_alternatives: Vec<Term>,
    /// `topologySpreadConstraints` as written, in order; cluster defaults are already filled in.
    pub spread: Vec<Spread>,
    /// Required pod affinity terms: all must hold.
    pub pod_affinity: Vec<PodTerm>,
    /// Required pod anti-affinity terms: all must hold.
    pub pod_anti_affinity: Vec<PodTerm>,
    /// Preferred pod affinity: weight and term, in the order written.
    pub preferred_pod_affinity: Vec<(i32, PodTerm)>,
    /// Preferred pod anti-affinity: weight and term, in the order written.
    pub preferred_pod_anti_affinity: Vec<(i32, PodTerm)>,
    /// Host ports of its containers.
    pub host_ports: Vec<HostPort>,
    /// CSI volumes that it attaches.
    pub attachments: Attachments,
    /// Devices that it claims (`resource.k8s.io`).
    pub device_claims: Vec<crate::device::PodClaim>,
    /// Constraints that are present and that this version does not act on. A pod with any stays pending with them as
    /// the reason: nothing is silently ignored.
    pub unsupported: Vec<Arc<str>>,
}

/// One topology spread constraint.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Spread {
    /// Label key whose values are the domains, normalised.
    pub topology_key: Arc<str>,
    /// `maxSkew`, at least 1.
    pub max_skew: u32,
    /// `whenUnsatisfiable: ScheduleAnyway`: a preference.
    pub schedule_anyway: bool,
    /// Which pods of the namespace count; `None` selects none. `matchLabelKeys` are already merged in.
    pub selector: Option<LabelSelector>,
    /// `minDomains`.
    pub min_domains: Option<u32>,
    /// `nodeAffinityPolicy: Ignore`; the default is Honor.
    pub ignore_node_affinity: bool,
    /// `nodeTaintsPolicy: Honor`; the default is Ignore.
    pub honor_node_taints: bool,
}

/// One pod affinity or anti-affinity term.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct PodTerm {
    /// Label key whose values are the domains, normalised.
    pub topology_key: Arc<str>,
    /// Which pods; `None` selects none. `matchLabelKeys` and `mismatchLabelKeys` are already merged in.
    pub selector: Option<LabelSelector>,
    /// Namespaces by name, sorted. Empty and no `namespace_selector`: the pod's own.
    pub namespaces: Vec<Arc<str>>,
    /// Namespaces by their labels, beside those by name; one without requirements selects all.
    pub namespace_selector: Option<LabelSelector>,
}

/// A port of the node that a container takes.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct HostPort {
    /// `hostIP`; empty = all addresses (0.0.0.0 and ::).
    pub ip: Arc<str>,
    /// Port.
    pub port: u16,
    /// TCP, UDP or SCTP.
    pub protocol: Arc<str>,
}

/// CSI volumes, which count against a node's attach limit once each.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Attachments {
    /// Volumes that no other pod uses, by driver: only their number matters, so that equal pods stay equal.
    pub own: BTreeMap<Arc<str>, u32>,
    /// Volumes that several pods use: driver and `<namespace>/<claim>`, sorted.
    pub shared: Vec<(Arc<str>, Arc<str>)>,
}

impl Attachments {
    /// Attaches nothing.
    pub fn is_empty(&self) -> bool {
        self.own.is_empty() && self.shared.is_empty()
    }
}

/// A pod to be placed.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Pod {
    /// Identity.
    pub key: PodKey,
    /// Needs.
    pub shape: Arc<PodShape>,
    /// `metadata.creationTimestamp`, Unix milliseconds.
    pub created_unix_ms: i64,
    /// `<namespace>/<name>` of the CapacityBuffer that it stands for: no real pod, gives way to every real one.
    pub buffer: Option<Arc<str>>,
}
