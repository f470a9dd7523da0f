//! The world of a scenario, as written in YAML, and how it becomes a snapshot.

use std::collections::BTreeMap;
use std::sync::Arc;

use mortise_engine::catalog::{CapacityType, Catalog, InstanceType, Offering};
use mortise_engine::node::{Node, NodePod};
use mortise_engine::nodepool::{Budget, ConsolidationPolicy, Disruption, Limits, NodePool};
use mortise_engine::overlay::{self, Overlaid, Overlay, OverlayStatus, PriceChange};
use mortise_engine::pod::{Attachments, HostPort, Pod, PodKey, PodShape, PodTerm, Spread};
use mortise_engine::quantity::{MicroUsd, Quantity, Resources, base_units};
use mortise_engine::requirement::{Operator, Requirement, key};
use mortise_engine::selector::LabelSelector;
use mortise_engine::snapshot::Snapshot;
use mortise_engine::taint::{Effect, Taint, Toleration};
use serde::Deserialize;

/// Friday, 31 July 2026, 10:00 UTC.
pub(crate) const NOW: i64 = 1_785_492_000_000;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct World {
    /// `fake` (six types), `linear-N` (types of 1 to N CPUs), `assorted` (one type per size, architecture, system, zone
    /// and market), or types written out.
    pub(crate) catalog: CatalogSpec,
    pub(crate) nodepools: Vec<PoolSpec>,
    pub(crate) daemons: Vec<PodSpec>,
    pub(crate) nodes: Vec<NodeSpec>,
    pub(crate) pods: Vec<PodSpec>,
    pub(crate) overlays: Vec<OverlaySpec>,
    /// Labels of namespaces.
    pub(crate) namespaces: BTreeMap<String, BTreeMap<String, String>>,
    /// UTC; the fixed time of the tests when missing.
    pub(crate) now: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum CatalogSpec {
    Named(String),
    Types(Vec<TypeSpec>),
}

impl Default for CatalogSpec {
    fn default() -> Self {
        Self::Named("fake".to_owned())
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TypeSpec {
    pub(crate) name: String,
    pub(crate) capacity: BTreeMap<String, String>,
    pub(crate) arch: Option<String>,
    pub(crate) os: Option<Vec<String>>,
    pub(crate) labels: BTreeMap<String, String>,
    /// `zone market price [left [reservation]] [unavailable]` in USD per hour; the five default offerings when missing.
    pub(crate) offerings: Option<Vec<String>>,
    /// USD per hour of the default offerings; from size when missing.
    pub(crate) price: Option<String>,
    /// Nothing is taken off for the system.
    pub(crate) no_overhead: bool,
    /// CSI attach limits.
    pub(crate) volume_limits: BTreeMap<String, u32>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PoolSpec {
    pub(crate) name: Option<String>,
    pub(crate) weight: i32,
    /// `key Operator value|value [minValues=n]`.
    pub(crate) requirements: Vec<String>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) taints: Vec<String>,
    pub(crate) startup_taints: Vec<String>,
    pub(crate) limits: BTreeMap<String, String>,
    pub(crate) unusable: Vec<String>,
    pub(crate) is_static: bool,
    /// Of a static NodePool.
    pub(crate) replicas: Option<u32>,
    pub(crate) expire_after: Option<String>,
    pub(crate) termination_grace_period: Option<String>,
    pub(crate) catalog: Option<CatalogSpec>,
    pub(crate) consolidation: Option<ConsolidationPolicy>,
    /// Seconds; -1 = Never, 0 when missing.
    pub(crate) consolidate_after: i64,
    /// `nodes [@ schedule for hours] [reasons: a,b]` split by `;`.
    pub(crate) budgets: Vec<BudgetSpec>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct BudgetSpec {
    pub(crate) nodes: String,
    pub(crate) schedule: Option<String>,
    pub(crate) hours: Option<i64>,
    pub(crate) reasons: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct NodeSpec {
    pub(crate) name: String,
    pub(crate) count: Option<usize>,
    /// Missing = unmanaged.
    pub(crate) nodepool: Option<String>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) requirements: Vec<String>,
    pub(crate) taints: Vec<String>,
    pub(crate) allocatable: BTreeMap<String, String>,
    pub(crate) used: BTreeMap<String, String>,
    pub(crate) daemon_used: BTreeMap<String, String>,
    pub(crate) unlaunched: bool,
    pub(crate) uninitialized: bool,
    pub(crate) not_ready: bool,
    pub(crate) deleting: bool,
    pub(crate) do_not_disrupt: bool,
    pub(crate) nominated: bool,
    pub(crate) not_consolidatable: bool,
    pub(crate) pods: Vec<BoundSpec>,
    pub(crate) fixed: Vec<PodSpec>,
    pub(crate) blocking: Option<String>,
    /// CSI attach limits that the node publishes; null = the driver is there without a limit.
    pub(crate) volume_limits: BTreeMap<String, Option<u32>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct OverlaySpec {
    pub(crate) name: String,
    pub(crate) weight: i32,
    pub(crate) requirements: Vec<String>,
    /// USD per hour, `+0.1`, `-0.1`, `+10%` or `-10%`.
    pub(crate) price: Option<String>,
    pub(crate) capacity: BTreeMap<String, String>,
    pub(crate) invalid: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct BoundSpec {
    pub(crate) pod: PodSpec,
    pub(crate) do_not_disrupt: bool,
    pub(crate) pdb: Option<String>,
    pub(crate) fully_blocked: bool,
    pub(crate) terminating: bool,
    pub(crate) stateful: bool,
    pub(crate) eviction_cost: Option<i64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PodSpec {
    pub(crate) name: Option<String>,
    pub(crate) count: Option<usize>,
    pub(crate) requests: BTreeMap<String, String>,
    pub(crate) selector: BTreeMap<String, String>,
    pub(crate) required: Vec<Vec<String>>,
    /// `weight: term`.
    pub(crate) preferred: Vec<(i32, Vec<String>)>,
    /// `key=value:Effect`, `key:Effect`, `key` (any effect) or `*`.
    pub(crate) tolerations: Vec<String>,
    pub(crate) volumes: Vec<Vec<String>>,
    pub(crate) unsupported: Vec<String>,
    /// `default` when missing.
    pub(crate) namespace: Option<String>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) spread: Vec<SpreadSpec>,
    pub(crate) affinity: Vec<TermSpec>,
    pub(crate) anti_affinity: Vec<TermSpec>,
    pub(crate) preferred_affinity: Vec<(i32, TermSpec)>,
    pub(crate) preferred_anti_affinity: Vec<(i32, TermSpec)>,
    /// `[address:]port[/PROTOCOL]`.
    pub(crate) ports: Vec<String>,
    /// Volumes of its own, by CSI driver.
    pub(crate) attach: BTreeMap<String, u32>,
    /// Volumes that other pods use too: `driver claim`.
    pub(crate) share: Vec<String>,
    /// It stands for a CapacityBuffer.
    pub(crate) buffer: Option<String>,
    /// Seconds of age.
    pub(crate) age: i64,
}

/// One topology spread constraint; `select` are label requirements, and without it the selector is nil.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SpreadSpec {
    pub(crate) key: String,
    /// 1 when missing.
    pub(crate) skew: Option<u32>,
    pub(crate) select: Option<Vec<String>>,
    pub(crate) anyway: bool,
    pub(crate) min_domains: Option<u32>,
    pub(crate) ignore_affinity: bool,
    pub(crate) honor_taints: bool,
}

/// One pod affinity or anti-affinity term.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TermSpec {
    pub(crate) key: String,
    pub(crate) select: Option<Vec<String>>,
    pub(crate) namespaces: Vec<String>,
    pub(crate) namespace_select: Option<Vec<String>>,
}

fn selector(list: &Option<Vec<String>>) -> Option<LabelSelector> {
    let list = list.as_ref()?;
    Some(LabelSelector { requirements: list.iter().map(|text| requirement(text)).collect() })
}

impl SpreadSpec {
    fn build(&self) -> Spread {
        Spread {
            topology_key: long_key(&self.key).into(),
            max_skew: self.skew.unwrap_or(1),
            schedule_anyway: self.anyway,
            selector: selector(&self.select),
            min_domains: self.min_domains,
            ignore_node_affinity: self.ignore_affinity,
            honor_node_taints: self.honor_taints,
        }
    }
}

impl TermSpec {
    fn build(&self) -> PodTerm {
        PodTerm {
            topology_key: long_key(&self.key).into(),
            selector: selector(&self.select),
            namespaces: self.namespaces.iter().map(|name| name.as_str().into()).collect(),
            namespace_selector: selector(&self.namespace_select),
        }
    }
}

impl World {
    pub(crate) fn snapshot(&self) -> Snapshot {
        let shared = self.catalog.build();
        let pool = |spec: &PoolSpec| {
            let catalog = spec.catalog.as_ref().map_or_else(|| Arc::clone(&shared), CatalogSpec::build);
            Arc::new(spec.build(catalog))
        };
        let mut nodes = BTreeMap::new();
        for spec in &self.nodes {
            for at in 0..spec.count.unwrap_or(1) {
                let name = if spec.count.is_some() { format!("{}-{at:02}", spec.name) } else { spec.name.clone() };
                let node = spec.build(&name, &shared);
                nodes.insert(Arc::from(name), Arc::new(node));
            }
        }
        let mut pending = Vec::new();
        for (row, spec) in self.pods.iter().enumerate() {
            let shape = Arc::new(spec.shape());
            for at in 0..spec.count.unwrap_or(1) {
                let mut name = spec.name.clone().unwrap_or_else(|| format!("pod{row}"));
                if spec.count.is_some() {
                    name = format!("{name}-{at:03}");
                }
                pending.push(Pod {
                    key: pod_key(&name),
                    shape: Arc::clone(&shape),
                    created_unix_ms: NOW - spec.age * 1000,
                    buffer: spec.buffer.as_deref().map(Into::into),
                });
            }
        }
        let mut nodepools: Vec<Arc<NodePool>> = self.nodepools.iter().map(pool).collect();
        let overlaid = self.overlaid(&nodepools);
        for pool in &mut nodepools {
            Arc::make_mut(pool).catalog = Arc::clone(&overlaid.catalogs[&pool.name]);
        }
        let now = self.now.as_ref().map_or(NOW, |now| now.parse::<jiff::Timestamp>().unwrap().as_millisecond());
        Snapshot {
            now_unix_ms: now,
            nodepools,
            nodes,
            pending,
            daemons: self.daemons.iter().map(|spec| Arc::new(spec.shape())).collect(),
            namespaces: self
                .namespaces
                .iter()
                .map(|(name, map)| (name.as_str().into(), Arc::new(labels(map))))
                .collect(),
            ..Snapshot::default()
        }
    }
}

impl World {
    fn overlaid(&self, nodepools: &[Arc<NodePool>]) -> Overlaid {
        let overlays: Vec<Overlay> = self.overlays.iter().map(OverlaySpec::build).collect();
        overlay::apply(&overlays, nodepools, None)
    }

    /// What became of each overlay.
    pub(crate) fn overlay_statuses(&self) -> BTreeMap<Arc<str>, OverlayStatus> {
        let plain = Self { overlays: Vec::new(), ..self.clone() };
        self.overlaid(&plain.snapshot().nodepools).statuses
    }
}

impl OverlaySpec {
    fn build(&self) -> Overlay {
        let micro = |text: &str| text.parse::<Quantity>().unwrap().micro();
        let change = |text: &String| match (text.strip_suffix('%'), text.starts_with(['+', '-'])) {
            (Some(percent), _) => PriceChange::Scale(micro(percent.trim_start_matches('+')) / 100),
            (None, true) => PriceChange::Add(micro(text.trim_start_matches('+'))),
            (None, false) => PriceChange::Set(MicroUsd(micro(text).try_into().unwrap())),
        };
        Overlay {
            name: self.name.as_str().into(),
            weight: self.weight,
            requirements: self.requirements.iter().map(|text| requirement(text)).collect(),
            price: self.price.as_ref().map(change),
            capacity: resources(&self.capacity),
            invalid: self.invalid.as_deref().map(Into::into),
        }
    }
}

impl CatalogSpec {
    pub(crate) fn build(&self) -> Arc<Catalog> {
        let types: Vec<TypeSpec> = match self {
            Self::Named(name) if name == "fake" => {
                serde_norway::from_str(include_str!("fake.yaml")).expect("fake catalogue")
            }
            Self::Named(name) if name == "assorted" => TypeSpec::assorted(),
            Self::Named(name) => {
                let count: i64 =
                    name.strip_prefix("linear-").and_then(|count| count.parse().ok()).expect("catalogue name");
                (1..=count).map(TypeSpec::linear).collect()
            }
            Self::Types(types) => types.clone(),
        };
        Arc::new(Catalog::new(1, types.iter().map(TypeSpec::build).collect()))
    }
}

impl TypeSpec {
    /// Each type has one offering, and its price is its size.
    fn assorted() -> Vec<Self> {
        let mut types = Vec::new();
        for (cpu, memory) in
            [1, 2, 4, 8, 16, 32, 64].into_iter().flat_map(|cpu| [1, 2, 4, 8, 32, 128].map(|memory| (cpu, memory)))
        {
            for (arch, os) in [("amd64", "linux"), ("amd64", "windows"), ("arm64", "linux"), ("arm64", "windows")] {
                for zone in ["zone-1", "zone-2", "zone-3"] {
                    for market in ["spot", "on-demand"] {
                        let price = cpu * 20_000 + memory * 5_000;
                        let capacity = [("cpu", cpu.to_string()), ("memory", format!("{memory}Gi"))];
                        types.push(Self {
                            name: format!("{cpu}-cpu-{memory}-mem-{arch}-{os}-{zone}-{market}"),
                            capacity: capacity.map(|(name, amount)| (name.to_owned(), amount)).into(),
                            arch: Some(arch.to_owned()),
                            os: Some(vec![os.to_owned()]),
                            offerings: Some(vec![format!("{zone} {market} {price}u")]),
                            ..Self::default()
                        });
                    }
                }
            }
        }
        types
    }

    fn linear(at: i64) -> Self {
        let capacity = [("cpu", at.to_string()), ("memory", format!("{}Gi", at * 2)), ("pods", (at * 10).to_string())];
        Self {
            name: format!("fake-it-{at:03}"),
            capacity: capacity.map(|(name, amount)| (name.to_owned(), amount)).into(),
            ..Self::default()
        }
    }

    fn build(&self) -> InstanceType {
        let mut capacity = resources(&self.capacity);
        if capacity.pods == 0 {
            capacity.pods = 5;
        }
        let overhead = Resources { cpu_milli: 100, memory: 10 << 20, ..Resources::default() };
        let allocatable = if self.no_overhead { capacity.clone() } else { capacity.saturating_sub(&overhead) };
        let list = self.offerings.clone().unwrap_or_else(|| {
            let price = self.price.clone().unwrap_or_else(|| {
                let micro =
                    capacity.cpu_milli * 100 + capacity.memory / 10_000 + capacity.get("fake.com/vendor-a") * 1_000_000;
                format!("{}u", micro)
            });
            ["zone-1 spot", "zone-2 spot", "zone-1 on-demand", "zone-2 on-demand", "zone-3 on-demand"]
                .map(|offering| format!("{offering} {price}"))
                .to_vec()
        });
        let offerings: Vec<Offering> = list.iter().map(|text| offering(text)).collect();
        let large = capacity.cpu_milli > 4000 && capacity.memory > 8 << 30;
        let distinct = |values: Vec<String>| values.into_iter().collect::<std::collections::BTreeSet<_>>();
        let mut requirements = vec![
            Requirement::new(key::INSTANCE_TYPE, Operator::In, [&self.name]),
            Requirement::new(key::ARCH, Operator::In, [self.arch.as_deref().unwrap_or("amd64")]),
            Requirement::new(
                key::OS,
                Operator::In,
                self.os.clone().unwrap_or_else(|| vec!["linux".into(), "windows".into(), "darwin".into()]),
            ),
            Requirement::new(
                key::ZONE,
                Operator::In,
                distinct(offerings.iter().map(|offering| offering.zone.to_string()).collect()),
            ),
            Requirement::new(
                key::CAPACITY_TYPE,
                Operator::In,
                distinct(offerings.iter().map(|offering| offering.capacity_type.to_string()).collect()),
            ),
            Requirement::new("size", Operator::In, [if large { "large" } else { "small" }]),
            Requirement::new("integer", Operator::In, [(capacity.cpu_milli / 1000).to_string()]),
        ];
        requirements.push(if large {
            Requirement::new("special", Operator::In, ["optional"])
        } else {
            Requirement::new("special", Operator::DoesNotExist, [""; 0])
        });
        requirements.extend(self.labels.iter().map(|(key, value)| Requirement::new(key, Operator::In, [value])));
        InstanceType {
            name: self.name.as_str().into(),
            requirements,
            capacity,
            allocatable,
            offerings,
            volume_limits: self.volume_limits.iter().map(|(driver, limit)| (driver.as_str().into(), *limit)).collect(),
            ..InstanceType::default()
        }
    }
}

fn offering(text: &str) -> Offering {
    let words: Vec<&str> = text.split_whitespace().collect();
    let price = words.get(2).copied().unwrap_or("unknown");
    let reservation = words.get(4).copied().filter(|word| words[1] == "reserved" && *word != "unavailable");
    Offering {
        zone: words[0].into(),
        capacity_type: CapacityType::parse(words[1]).expect("market"),
        price: (price != "unknown").then(|| MicroUsd(price.parse::<Quantity>().unwrap().micro().try_into().unwrap())),
        price_estimated: false,
        available: !words.contains(&"unavailable"),
        labels: reservation.into_iter().map(|id| (key::RESERVATION_ID.into(), id.into())).collect(),
        reserved_left: (words[1] == "reserved").then(|| words.get(3).and_then(|left| left.parse().ok()).unwrap_or(1)),
    }
}

impl PoolSpec {
    fn build(&self, catalog: Arc<Catalog>) -> NodePool {
        let name: Arc<str> = self.name.as_deref().unwrap_or("default").into();
        let mut limits = Limits::default();
        for (resource, amount) in &self.limits {
            let quantity: Quantity = amount.parse().unwrap();
            if resource == "nodes" {
                limits.nodes = Some(quantity.value());
            } else {
                limits.resources.insert(resource.as_str().into(), base_units(resource, quantity));
            }
        }
        let budget = |spec: &BudgetSpec| Budget {
            nodes: spec.nodes.as_str().into(),
            schedule: spec.schedule.as_deref().map(Into::into),
            duration_ms: spec.hours.map(|hours| hours * 3_600_000),
            reasons: spec.reasons.iter().map(|reason| reason.as_str().into()).collect(),
        };
        NodePool {
            uid: format!("uid-{name}").into(),
            name,
            weight: self.weight,
            requirements: self.requirements.iter().map(|text| requirement(text)).collect(),
            labels: labels(&self.labels),
            taints: self.taints.iter().map(|text| taint(text)).collect(),
            startup_taints: self.startup_taints.iter().map(|text| taint(text)).collect(),
            limits,
            node_class: ("karpenter.k8s.aws".into(), "EC2NodeClass".into(), "default".into()),
            expire_after: self.expire_after.as_deref().map(Into::into),
            termination_grace_period: self.termination_grace_period.as_deref().map(Into::into),
            catalog,
            disruption: Disruption {
                policy: self.consolidation.unwrap_or_default(),
                consolidate_after_ms: (self.consolidate_after >= 0).then_some(self.consolidate_after * 1000),
                budgets: self.budgets.iter().map(budget).collect(),
            },
            is_static: self.is_static,
            replicas: self.replicas,
            unusable: self.unusable.iter().map(|text| text.as_str().into()).collect(),
            ..NodePool::default()
        }
    }
}

impl NodeSpec {
    fn build(&self, name: &str, catalog: &Catalog) -> Node {
        let managed = self.nodepool.is_some();
        let of_type = self.labels.get("type").and_then(|of_type| catalog.get(of_type));
        let (mut capacity, mut allocatable) =
            of_type.map(|of_type| (of_type.capacity.clone(), of_type.allocatable.clone())).unwrap_or_default();
        if !self.allocatable.is_empty() {
            allocatable = resources(&self.allocatable);
            capacity = allocatable.clone();
        }
        let mut all = labels(&self.labels);
        if let Some(pool) = &self.nodepool {
            all.insert(key::NODEPOOL.into(), pool.as_str().into());
        }
        let bound = |spec: &BoundSpec| NodePod {
            key: pod_key(spec.pod.name.as_deref().unwrap_or("bound")),
            shape: Arc::new(spec.pod.shape()),
            do_not_disrupt: spec.do_not_disrupt,
            blocked_by_pdb: spec.pdb.as_deref().map(Into::into),
            fully_blocked: spec.fully_blocked,
            terminating: spec.terminating,
            stateful: spec.stateful,
            eviction_cost_milli: spec.eviction_cost.unwrap_or(1000),
        };
        Node {
            name: name.into(),
            node_name: (!self.unlaunched).then(|| name.into()),
            node_claim: managed.then(|| format!("claim-{name}").into()),
            nodepool: self.nodepool.as_deref().map(Into::into),
            provider_id: (!self.unlaunched).then(|| format!("aws:///{name}").into()),
            labels: all,
            requirements: self.requirements.iter().map(|text| requirement(text)).collect(),
            taints: self.taints.iter().map(|text| taint(text)).collect(),
            capacity,
            allocatable,
            used: resources(&self.used),
            daemon_used: resources(&self.daemon_used),
            pods: self.pods.iter().flat_map(|spec| (0..spec.pod.count.unwrap_or(1)).map(|_| bound(spec))).collect(),
            fixed_pods: self.fixed.iter().map(|spec| Arc::new(spec.shape())).collect(),
            blocking_pods: self.blocking.iter().map(|why| (pod_key("daemon"), why.as_str().into())).collect(),
            launched: !self.unlaunched,
            registered: !self.unlaunched,
            initialized: !self.unlaunched && !self.uninitialized,
            ready: !self.unlaunched && !self.not_ready,
            deleting: self.deleting,
            instance_terminating: false,
            nominated_until_unix_ms: if self.nominated { NOW + 60_000 } else { 0 },
            do_not_disrupt: self.do_not_disrupt,
            consolidatable: !self.not_consolidatable,
            created_unix_ms: NOW - 3_600_000,
            last_pod_event_unix_ms: Some(NOW - 600_000),
            volume_limits: self.volume_limits.iter().map(|(driver, limit)| (driver.as_str().into(), *limit)).collect(),
            ..Node::default()
        }
    }
}

impl PodSpec {
    pub(crate) fn shape(&self) -> PodShape {
        let term = |term: &Vec<String>| term.iter().map(|text| requirement(text)).collect::<Vec<_>>();
        let mut requests = resources(&self.requests);
        requests.pods = 1;
        PodShape {
            namespace: self.namespace.as_deref().unwrap_or("default").into(),
            labels: labels(&self.labels),
            spread: self.spread.iter().map(SpreadSpec::build).collect(),
            pod_affinity: self.affinity.iter().map(TermSpec::build).collect(),
            pod_anti_affinity: self.anti_affinity.iter().map(TermSpec::build).collect(),
            preferred_pod_affinity: weighted(&self.preferred_affinity),
            preferred_pod_anti_affinity: weighted(&self.preferred_anti_affinity),
            requests,
            node_selector: labels(&self.selector),
            required_affinity: self.required.iter().map(term).collect(),
            preferred_affinity: self.preferred.iter().map(|(weight, list)| (*weight, term(list))).collect(),
            tolerations: self.tolerations.iter().map(|text| toleration(text)).collect(),
            volume_alternatives: self.volumes.iter().map(term).collect(),
            host_ports: self.ports.iter().map(|text| port(text)).collect(),
            attachments: Attachments {
                own: self.attach.iter().map(|(driver, count)| (driver.as_str().into(), *count)).collect(),
                shared: self
                    .share
                    .iter()
                    .map(|text| text.split_once(' ').expect("driver claim"))
                    .map(|(driver, claim)| (driver.into(), claim.into()))
                    .collect(),
            },
            unsupported: self.unsupported.iter().map(|text| text.as_str().into()).collect(),
            ..PodShape::default()
        }
    }
}

fn weighted(terms: &[(i32, TermSpec)]) -> Vec<(i32, PodTerm)> {
    terms.iter().map(|(weight, term)| (*weight, term.build())).collect()
}

fn pod_key(name: &str) -> PodKey {
    PodKey { namespace: "default".into(), name: name.into(), uid: format!("uid-{name}").into() }
}

fn resources(map: &BTreeMap<String, String>) -> Resources {
    Resources::parse(map.iter().map(|(name, amount)| (name.as_str(), amount.as_str()))).unwrap()
}

/// Short names of the labels that scenarios use most.
fn long_key(short: &str) -> &str {
    match short {
        "zone" => key::ZONE,
        "type" => key::INSTANCE_TYPE,
        "arch" => key::ARCH,
        "os" => key::OS,
        "market" => key::CAPACITY_TYPE,
        "nodepool" => key::NODEPOOL,
        "hostname" => key::HOSTNAME,
        other => other,
    }
}

fn labels(map: &BTreeMap<String, String>) -> BTreeMap<Arc<str>, Arc<str>> {
    map.iter().map(|(key, value)| (long_key(key).into(), value.as_str().into())).collect()
}

/// `key Operator [value|value] [minValues=n]`.
pub(crate) fn requirement(text: &str) -> Requirement {
    let mut words: Vec<&str> = text.split_whitespace().collect();
    let minimum = words.last().and_then(|word| word.strip_prefix("minValues=")).map(|count| count.parse().unwrap());
    if minimum.is_some() {
        words.pop();
    }
    let operator: Operator = serde_norway::from_str(words[1]).unwrap_or_else(|_| panic!("operator of {text:?}"));
    let values = words.get(2).map_or_else(Vec::new, |list| list.split('|').collect());
    Requirement { min_values: minimum, ..Requirement::new(long_key(words[0]), operator, values) }
}

fn port(text: &str) -> HostPort {
    let (place, protocol) = text.split_once('/').unwrap_or((text, "TCP"));
    let (ip, number) = place.rsplit_once(':').unwrap_or(("", place));
    HostPort { ip: ip.into(), port: number.parse().unwrap(), protocol: protocol.into() }
}

fn effect(text: &str) -> Effect {
    serde_norway::from_str(text).unwrap_or_else(|_| panic!("effect {text:?}"))
}

fn taint(text: &str) -> Taint {
    let (name, word) = text.rsplit_once(':').expect("key[=value]:Effect");
    let (key, value) = name.split_once('=').unwrap_or((name, ""));
    Taint { key: key.into(), value: value.into(), effect: effect(word) }
}

fn toleration(text: &str) -> Toleration {
    let (name, word) = text.rsplit_once(':').map_or((text, None), |(name, word)| (name, Some(effect(word))));
    let (key, value) = name.split_once('=').map_or((name, None), |(key, value)| (key, Some(value)));
    let key = if key == "*" { "" } else { key };
    Toleration { key: key.into(), exists: value.is_none(), value: value.unwrap_or_default().into(), effect: word }
}
