//! Reasons as data; text is rendered at the edge.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::disrupt::NodeBlocker;

/// Why one pod was not placed.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct PodReason {
    /// Per NodePool: which constraint removed the last candidates. Shortest message first when rendered.
    pub per_pool: Vec<(Arc<str>, Blocker)>,
    /// Reason that holds whatever the pool: an unsupported constraint, no usable NodePool, …
    pub general: Option<Blocker>,
}

/// What stood in the way, with numbers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub enum Blocker {
    /// No NodePool is usable.
    NoNodePool,
    /// The pod has a constraint this version does not act on.
    Unsupported(Arc<str>),
    /// The pod asks for a label that may not be asked for, or in a way that can never hold: key and what is wrong.
    Refused {
        /// Label key.
        key: Arc<str>,
        /// In words.
        problem: Arc<str>,
    },
    /// An untolerated taint.
    Taint(Arc<str>),
    /// A label requirement that the pool cannot meet: key, and what is wrong in words ("has no value in common").
    Requirement {
        /// Label key.
        key: Arc<str>,
        /// What the pod asks.
        asked: Arc<str>,
        /// What the pool has.
        offered: Arc<str>,
        /// A similar key or value that exists, when the one asked looks like a typing error.
        hint: Option<Arc<str>>,
    },
    /// The pod asks for more of one resource than any instance type of the pool has, DaemonSets taken off.
    TooLarge {
        /// Resource.
        resource: Arc<str>,
        /// What the pod asks for, as Kubernetes writes it.
        asked: Arc<str>,
        /// The most that an instance type has.
        largest: Arc<str>,
        /// What may have been meant.
        hint: Option<Arc<str>>,
    },
    /// No instance type is left. Counts of types removed, by cause.
    NoInstanceType {
        /// Types considered.
        considered: u32,
        /// Lost to label requirements.
        by_requirements: u32,
        /// Too small.
        by_resources: u32,
        /// No offering available (out of stock or no subnet).
        by_offerings: u32,
        /// Removed by a policy filter.
        by_policy: u32,
        /// Resource that most types are short of, when resources were the last cause.
        short_of: Option<Arc<str>>,
    },
    /// A policy filter removed every instance type that was left and said why.
    RemovedByPolicy {
        /// Types that it removed.
        count: u32,
        /// The reason it gave for most of them.
        reason: Arc<str>,
    },
    /// The NodePool's limit on this resource would be exceeded.
    Limit(Arc<str>),
    /// DaemonSets take a host port that the pod wants on every instance type that is left.
    HostPort {
        /// The pod's ports, as `number/protocol`.
        ports: Arc<str>,
        /// Types that are left.
        types: u32,
    },
    /// The pod attaches more volumes of one driver than any instance type that is left can.
    AttachLimit {
        /// CSI driver.
        driver: Arc<str>,
        /// Volumes that the pod attaches.
        asked: u32,
        /// The most that a type takes.
        most: u32,
    },
    /// Only capacity reservations could hold the pod, and those have no instance left: it waits for one to be free.
    ReservationsFull(Arc<str>),
    /// minValues cannot be met on this key.
    MinValues(Arc<str>),
    /// Where other pods are leaves no domain.
    Topology {
        /// The constraint that leaves the fewest.
        rule: TopologyRule,
        /// Its topology key.
        key: Arc<str>,
        /// Domains considered; for affinity those with a pod to join.
        domains: u32,
        /// Of them, ruled out by the pods that are there (or that are missing there).
        by_rule: u32,
        /// Of them, allowed by this constraint but without a node or offering that has room and meets the others.
        by_capacity: u32,
        /// Some of the domains with the number of pods that count, by name.
        counts: Vec<(Arc<str>, u32)>,
    },
    /// A ResourceClaim of the pod can be allocated nowhere: why.
    ResourceClaim(Arc<str>),
    /// There are not enough devices for a request of the pod.
    Devices {
        /// `<request>` or `<request>/<sub-request>`.
        request: Arc<str>,
        /// Devices that it asks for; `None` = all that match.
        asked: Option<u32>,
        /// Devices that are published in the cluster.
        published: u32,
        /// Of them, those that its selectors select.
        matching: u32,
        /// Of those, free ones.
        free: u32,
        /// Instance types of the NodePool.
        types: u32,
        /// Of them, those that bring enough devices which are selected.
        suiting: u32,
    },
    /// The pool itself cannot be used.
    PoolUnusable(Arc<str>),
}

/// A constraint on where other pods are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub enum TopologyRule {
    /// Topology spread.
    Spread {
        /// Its maxSkew.
        max_skew: u32,
    },
    /// The pod's affinity to pods.
    Affinity,
    /// The pod's anti-affinity.
    AntiAffinity,
    /// The anti-affinity of pods that run or were placed before.
    AntiAffinityOfOthers,
}

/// Why a NodePool offers nothing.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub enum PoolReason {
    /// As stated on the pool.
    Unusable(Vec<Arc<str>>),
    /// Its requirements leave no instance type: the key that removed the last ones.
    NoInstanceTypes(Blocker),
    /// A limit is reached.
    Limit(Arc<str>),
    /// All it could launch comes from capacity reservations that have no instance left: their ids.
    ReservationsFull(Arc<str>),
}

impl PodReason {
    /// The pod is no failure: capacity that was bought for it is in use, and it waits for that to be free.
    pub fn is_deferred(&self) -> bool {
        self.per_pool.iter().any(|(_, blocker)| matches!(blocker, Blocker::ReservationsFull(_)))
    }
}

impl fmt::Display for PodReason {
    /// The general reason, else one per NodePool: shortest first, equal ones together.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(general) = &self.general {
            return write!(f, "{general}");
        }
        let mut by_text: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for (pool, blocker) in &self.per_pool {
            by_text.entry(blocker.to_string()).or_default().push(pool);
        }
        let mut texts: Vec<(String, Vec<&str>)> = by_text.into_iter().collect();
        texts.sort_by_key(|(text, pools)| (text.len(), pools.clone()));
        for (at, (text, pools)) in texts.iter().enumerate() {
            let plural = if pools.len() == 1 { "" } else { "s" };
            write!(f, "{}NodePool{plural} {}: {text}", if at > 0 { "; " } else { "" }, pools.join(", "))?;
        }
        Ok(())
    }
}

impl fmt::Display for Blocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoNodePool => write!(f, "there is no NodePool to take a node from"),
            Self::Unsupported(what) => write!(f, "this version does not act on: {what}"),
            Self::Refused { key, problem } => write!(f, "label {key}: {problem}"),
            Self::Taint(taint) => write!(f, "taint {taint} is not tolerated"),
            Self::Requirement { key, asked, offered, hint } => {
                write!(f, "label {key}: {asked} is asked for, but {offered}")?;
                hint.as_ref().map_or(Ok(()), |hint| write!(f, " (did you mean {hint}?)"))
            }
            Self::NoInstanceType { considered, by_requirements, by_resources, by_offerings, by_policy, short_of } => {
                let short = short_of.as_ref().map_or_else(String::new, |resource| format!(", mostly for {resource}"));
                let causes = [
                    (by_requirements, "not matching the required labels".to_owned()),
                    (by_offerings, "without an available offering".to_owned()),
                    (by_resources, format!("too small{short}")),
                    (by_policy, "removed by a policy".to_owned()),
                ];
                write!(f, "none of {considered} instance types is left")?;
                let mut separator = ": ";
                for (count, cause) in causes.iter().filter(|(count, _)| **count > 0) {
                    write!(f, "{separator}{count} {cause}")?;
                    separator = ", ";
                }
                Ok(())
            }
            Self::TooLarge { resource, asked, largest, hint } => {
                write!(f, "{asked} of {resource} is asked for, the largest instance type has {largest}")?;
                hint.as_ref().map_or(Ok(()), |hint| write!(f, " ({hint})"))
            }
            Self::RemovedByPolicy { count, reason } => {
                write!(f, "a policy removed the {count} instance types that were left: {reason}")
            }
            Self::Limit(resource) => write!(f, "its limit on {resource} would be exceeded"),
            Self::HostPort { ports, types } => {
                write!(
                    f,
                    "host port {ports} is taken by a DaemonSet on each of the {types} instance types that are left"
                )
            }
            Self::AttachLimit { driver, asked, most } => {
                write!(f, "{asked} volumes of {driver} are to be attached, an instance type takes {most} at most")
            }
            Self::ReservationsFull(ids) => {
                write!(f, "only capacity reservations could hold it, and no instance is left in {ids}")
            }
            Self::MinValues(key) => write!(f, "minValues on {key} cannot be met"),
            Self::ResourceClaim(why) => write!(f, "{why}"),
            Self::Devices { request, asked, published, matching, free, types, suiting } => {
                match asked {
                    Some(1) => write!(f, "request {request} asks for a device")?,
                    Some(asked) => write!(f, "request {request} asks for {asked} devices")?,
                    None => write!(f, "request {request} asks for all devices that match")?,
                }
                write!(f, ": of {types} instance types {suiting} bring enough that match; ")?;
                write!(f, "of {published} devices in the cluster {matching} match and {free} of them are free")
            }
            Self::PoolUnusable(why) => write!(f, "it cannot be used: {why}"),
            Self::Topology { rule, key, domains, by_rule, by_capacity, counts } => {
                write!(f, "{rule} on {key}: ")?;
                match (rule, domains) {
                    (TopologyRule::Affinity, 0) => write!(f, "there is no pod that it has to join"),
                    (_, 0) => write!(f, "no node has or could get this label"),
                    _ => {
                        let (causes, mut separator) = ([(by_rule, rule.cause()), (by_capacity, "have no room")], "");
                        write!(f, "of {domains} domains ")?;
                        for (count, cause) in causes.into_iter().filter(|(count, _)| **count > 0) {
                            write!(f, "{separator}{count} {cause}")?;
                            separator = ", ";
                        }
                        for (at, (name, pods)) in counts.iter().enumerate() {
                            write!(f, "{}{name} {pods}", if at == 0 { " (pods: " } else { ", " })?;
                        }
                        write!(f, "{}", if counts.is_empty() { "" } else { ")" })
                    }
                }
            }
        }
    }
}

impl TopologyRule {
    /// What the pods that are there do to a domain, of several domains.
    fn cause(self) -> &'static str {
        match self {
            Self::Spread { .. } => "would exceed maxSkew",
            Self::Affinity => "are not allowed to the pod",
            Self::AntiAffinity | Self::AntiAffinityOfOthers => "have a pod to keep away from",
        }
    }
}

impl fmt::Display for TopologyRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spread { .. } => f.write_str("topology spread"),
            Self::Affinity => f.write_str("pod affinity"),
            Self::AntiAffinity => f.write_str("pod anti-affinity"),
            Self::AntiAffinityOfOthers => f.write_str("anti-affinity of other pods"),
        }
    }
}

impl fmt::Display for PoolReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unusable(why) => write!(f, "it cannot be used: {}", why.join("; ")),
            Self::NoInstanceTypes(blocker) => {
                write!(f, "its requirements leave no instance type: {blocker}")
            }
            Self::Limit(resource) => write!(f, "its limit on {resource} is reached"),
            Self::ReservationsFull(ids) => write!(f, "no instance is left in its capacity reservations {ids}"),
        }
    }
}

impl fmt::Display for NodeBlocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoNode => write!(f, "its NodeClaim has no Node yet"),
            Self::Deleting => write!(f, "it is being deleted"),
            Self::NotInitialized => write!(f, "it is not initialised yet"),
            Self::Nominated => write!(f, "a pending pod was promised to it"),
            Self::DoNotDisrupt => write!(f, "it has the annotation karpenter.sh/do-not-disrupt"),
            Self::NoNodePool => write!(f, "its NodePool does not exist"),
            Self::PodDoNotDisrupt(pod) => {
                write!(f, "pod {}/{} has the annotation karpenter.sh/do-not-disrupt", pod.namespace, pod.name)
            }
            Self::PodDisruptionBudget(pod, budget) => {
                write!(f, "PodDisruptionBudget {budget} allows no eviction of pod {}/{}", pod.namespace, pod.name)
            }
            Self::Pod(pod, why) => write!(f, "pod {}/{}: {why}", pod.namespace, pod.name),
            Self::ConsolidateAfterNever => write!(f, "consolidateAfter of its NodePool is Never"),
            Self::NotConsolidatable => write!(f, "its NodeClaim is not Consolidatable yet"),
            Self::Budget(pool) => write!(f, "the disruption budget of NodePool {pool} allows no more"),
            Self::Policy => write!(f, "the consolidation policy keeps it"),
        }
    }
}
