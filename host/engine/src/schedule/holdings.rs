//! What pods take of a node besides resources: host ports and CSI volumes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::existing::{ExistingNodes, InFlight, PoolsByName};
use crate::catalog::View;
use crate::pod::{HostPort, PodShape};
use crate::requirement::key;
use crate::symbol::Symbols;

/// Attach limits by CSI driver; a driver that is not there has none.
pub(crate) type AttachLimits = BTreeMap<Arc<str>, u32>;

/// Ports and volumes that the pods of one node hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    ports: Vec<HostPort>,
    /// Distinct volumes by driver.
    volumes: BTreeMap<Arc<str>, u32>,
    /// Those that several pods may use.
    shared: BTreeSet<(Arc<str>, Arc<str>)>,
}

/// The pod holds neither ports nor volumes, as most do.
pub(crate) fn holds_nothing(shape: &PodShape) -> bool {
    shape.host_ports.is_empty() && shape.attachments.is_empty()
}

/// Two sets of ports that cannot be open on one node: same port and protocol, and the same address or one of all.
pub(crate) fn conflict(ours: &[HostPort], theirs: &[HostPort]) -> bool {
    let every = |ip: &str| ip.is_empty() || ip == "0.0.0.0" || ip == "::";
    let protocol =
        |port: &HostPort| if port.protocol.is_empty() { "TCP".to_owned() } else { port.protocol.to_string() };
    ours.iter().any(|a| {
        theirs
            .iter()
            .any(|b| a.port == b.port && protocol(a) == protocol(b) && (a.ip == b.ip || every(&a.ip) || every(&b.ip)))
    })
}

impl Held {
    /// How many pods of this shape can be added, at most `most`. `limit`: attach limit of a driver, if any.
    pub(crate) fn fitting(&self, shape: &PodShape, limit: impl Fn(&str) -> Option<u32>, most: u32) -> u32 {
        let mut most = most;
        if !shape.host_ports.is_empty() {
            if conflict(&self.ports, &shape.host_ports) {
                return 0;
            }
            // Equal pods want equal ports.
            most = most.min(1);
        }
        for driver in drivers(shape) {
            let Some(limit) = limit(driver) else { continue };
            let (own, new) = self.asked_of(shape, driver);
            if own == 0 && new == 0 {
                continue;
            }
            let held = self.volumes.get(driver).copied().unwrap_or(0);
            let Some(left) = limit.checked_sub(held.saturating_add(new)) else { return 0 };
            if let Some(times) = left.checked_div(own) {
                most = most.min(times);
            }
        }
        most
    }

    /// Volumes of a driver that each pod of the shape adds, and those that the first one adds besides.
    fn asked_of(&self, shape: &PodShape, driver: &str) -> (u32, u32) {
        let shared = shape.attachments.shared.iter();
        let new: BTreeSet<_> = shared.filter(|one| &*one.0 == driver && !self.shared.contains(*one)).collect();
        let own = shape.attachments.own.get(driver).copied().unwrap_or(0);
        (own, crate::symbol::id_of(new.len()))
    }

    /// Adds `count` pods of a shape.
    pub(crate) fn take(&mut self, shape: &PodShape, count: u32) {
        if count == 0 || holds_nothing(shape) {
            return;
        }
        self.ports.extend(shape.host_ports.iter().cloned());
        for (driver, own) in &shape.attachments.own {
            let volumes = self.volumes.entry(Arc::clone(driver)).or_default();
            *volumes = volumes.saturating_add(own.saturating_mul(count));
        }
        for one in &shape.attachments.shared {
            if self.shared.insert(one.clone()) {
                *self.volumes.entry(Arc::clone(&one.0)).or_default() += 1;
            }
        }
    }
}

/// Drivers whose volumes the pod attaches, each at least once.
pub(crate) fn drivers(shape: &PodShape) -> impl Iterator<Item = &Arc<str>> {
    shape.attachments.own.keys().chain(shape.attachments.shared.iter().map(|(driver, _)| driver))
}

/// Most volumes of a driver that one pod attaches.
pub(crate) fn attached(shape: &PodShape, driver: &str) -> u32 {
    let (own, shared) = Held::default().asked_of(shape, driver);
    own.saturating_add(shared)
}

impl<'a> ExistingNodes<'a> {
    /// Counts what the pods on each node hold. Only needed when a pod of the round holds something too.
    pub(crate) fn count_holdings(
        &mut self,
        (pools, views, in_flight): (&PoolsByName<'_>, &[View<'_>], &mut InFlight<'a>),
        symbols: &mut Symbols,
    ) {
        for node in &mut self.nodes {
            let shapes = node.source.pods.iter().map(|pod| &pod.shape).chain(&node.source.fixed_pods);
            shapes.for_each(|shape| node.held.take(shape, 1));
            let pool = pools.find(node.source, views);
            let Some((_, view)) = pool else { continue };
            let name = node.source.labels.get(key::INSTANCE_TYPE);
            node.type_limits = match name.and_then(|name| view.catalog.get(name)) {
                Some(of_type) => of_type.volume_limits.clone(),
                None if !node.source.launched => {
                    let types = in_flight.types_of(node.source, pool, symbols);
                    let mut least = AttachLimits::new();
                    for of_type in types.iter().filter_map(|at| view.catalog.types.get(at as usize)) {
                        for (driver, limit) in &of_type.volume_limits {
                            let known = least.entry(Arc::clone(driver)).or_insert(*limit);
                            *known = (*known).min(*limit);
                        }
                    }
                    least
                }
                None => AttachLimits::new(),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::Attachments;

    fn port(ip: &str, port: u16, protocol: &str) -> HostPort {
        HostPort { ip: ip.into(), port, protocol: protocol.into() }
    }

    fn volumes(own: u32, shared: &[&str]) -> PodShape {
        let attachments = Attachments {
            own: if own > 0 { [("ebs".into(), own)].into() } else { BTreeMap::new() },
            shared: shared.iter().map(|name| ("ebs".into(), (*name).into())).collect(),
        };
        PodShape { attachments, ..PodShape::default() }
    }

    #[test]
    fn ports_conflict_by_number_protocol_and_address() {
        for (a, b, expected) in [
            (port("", 80, "TCP"), port("", 80, "TCP"), true),
            (port("", 80, "TCP"), port("", 80, "UDP"), false),
            (port("", 80, ""), port("", 80, "TCP"), true),
            (port("", 80, "TCP"), port("", 81, "TCP"), false),
            (port("10.0.0.1", 80, "TCP"), port("10.0.0.2", 80, "TCP"), false),
            (port("10.0.0.1", 80, "TCP"), port("10.0.0.1", 80, "TCP"), true),
            (port("10.0.0.1", 80, "TCP"), port("0.0.0.0", 80, "TCP"), true),
            (port("::", 80, "TCP"), port("10.0.0.1", 80, "TCP"), true),
        ] {
            assert_eq!(conflict(std::slice::from_ref(&a), std::slice::from_ref(&b)), expected, "{a:?} {b:?}");
        }
    }

    #[test]
    fn a_node_takes_one_pod_of_a_port() {
        let shape = PodShape { host_ports: vec![port("", 80, "TCP")], ..PodShape::default() };
        let mut held = Held::default();
        assert_eq!(held.fitting(&shape, |_| None, 9), 1);
        held.take(&shape, 1);
        assert_eq!(held.fitting(&shape, |_| None, 9), 0);
        assert_eq!(held.fitting(&PodShape::default(), |_| None, 9), 9);
    }

    #[test]
    fn own_volumes_count_per_pod_and_shared_ones_once() {
        let mut held = Held::default();
        let limit = |_: &str| Some(10);
        assert_eq!(held.fitting(&volumes(2, &[]), limit, 9), 5);
        assert_eq!(held.fitting(&volumes(11, &[]), limit, 9), 0);
        assert_eq!(held.fitting(&volumes(0, &["a"]), limit, 100), 100);
        assert_eq!(held.fitting(&volumes(3, &["a", "b"]), limit, 9), 2);
        held.take(&volumes(3, &["a", "b"]), 2);
        assert_eq!(held.fitting(&volumes(2, &["a"]), limit, 9), 1, "a is attached already");
        assert_eq!(held.fitting(&volumes(2, &["c"]), limit, 9), 0);
        assert_eq!(held.fitting(&volumes(0, &["a"]), |_| Some(1), 9), 9, "nothing more is attached");
        assert_eq!(held.fitting(&volumes(100, &[]), |_| None, 9), 9, "no limit");
    }
}
