//! Machines: launched, found again, terminated.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, DeleteParams, PostParams};
use mortise_api::EC2NodeClass;
use mortise_cloud::catalog_build::{ClassShape, ShapeSettings, TypeRow, build_catalog};
use mortise_cloud::launch::Exhausted;
use mortise_cloud::unavailable::{Mark, Unavailable};
use mortise_cloud::{
    ClassResolution, CloudError, CloudProvider, Finalize, Instance, InstanceState, LaunchError, LaunchRequest,
};
use mortise_engine::catalog::{CapacityType, Catalog, InstanceType};
use mortise_engine::decision::Choice;
use mortise_engine::quantity::MicroUsd;
use mortise_engine::requirement::Requirements;
use tokio::sync::watch;

use super::market::Stock;
use super::node::{self, Machine};
use super::table::TABLE;
use super::{Options, class};
use crate::apiserver::ids::Ids;

/// One launch, for displays and summaries.
#[derive(Clone, Debug)]
pub struct Launched {
    /// The machine.
    pub instance: Instance,
    /// List price of its offering.
    pub price: Option<MicroUsd>,
    /// Name of its Node.
    pub node_name: String,
    /// When it was asked to terminate.
    pub terminated: bool,
}

/// EC2 in process.
#[derive(Clone)]
pub struct Ec2 {
    inner: Arc<Inner>,
}

struct Inner {
    client: kube::Client,
    options: Options,
    stock: Stock,
    rows: Vec<TypeRow>,
    marks: Unavailable,
    ids: Ids,
    changed: watch::Sender<u64>,
    machines: Mutex<BTreeMap<Arc<str>, Launched>>,
    catalogs: Mutex<BTreeMap<ClassShapeKey, Cached>>,
}

type ClassShapeKey = String;

struct Cached {
    stamp: (u64, Instant),
    catalog: Arc<Catalog>,
}

impl std::fmt::Debug for Ec2 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ec2").field("options", &self.inner.options).finish_non_exhaustive()
    }
}

impl Ec2 {
    /// Machines register their Nodes through `client`.
    pub fn new(client: kube::Client, options: Options) -> Self {
        let stock = Stock::new(Arc::clone(&options.region), options.zones.clone(), options.seed);
        Self {
            inner: Arc::new(Inner {
                client,
                stock,
                rows: TABLE.iter().map(|row| row.facts.clone()).collect(),
                marks: Unavailable::default(),
                ids: Ids::new(options.seed ^ 0xec2),
                changed: watch::Sender::new(1),
                machines: Mutex::default(),
                catalogs: Mutex::default(),
                options,
            }),
        }
    }

    /// Sells out an offering, or restocks it. Type and zone may be `*`; no market = every market. A launch finds out by
    /// trying, as with EC2.
    pub fn set_sold_out(&self, instance_type: &str, zone: &str, capacity_type: Option<CapacityType>, out: bool) {
        self.inner.stock.set_sold_out(instance_type, zone, capacity_type, out);
    }

    /// Every machine ever launched, by provider id.
    pub fn machines(&self) -> Vec<Launched> {
        self.inner.machines().values().cloned().collect()
    }

    /// List price of an offering.
    pub fn price(&self, instance_type: &str, zone: &str, capacity_type: CapacityType) -> Option<MicroUsd> {
        self.inner.stock.price(instance_type, zone, capacity_type).map(|(price, _)| price)
    }

    /// Number of instance types known.
    pub fn types(&self) -> usize {
        self.inner.rows.len()
    }
}

impl Inner {
    fn machines(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Launched>> {
        self.machines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn catalog(&self, class: &EC2NodeClass) -> Result<Arc<Catalog>, CloudError> {
        if class.status.as_ref().is_none_or(|s| s.subnets.is_empty()) {
            let message = "status.subnets: none resolved, see the condition SubnetsReady".to_owned();
            return Err(CloudError::Class { message });
        }
        let shape = ClassShape::from_class(class, &ShapeSettings::for_region(&self.options.region))
            .map_err(|e| CloudError::Class { message: e.to_string() })?;
        let now = tokio::time::Instant::now().into_std();
        self.marks.expire(now);
        let stamp = self.marks.sequence();
        let key = format!("{shape:?}");
        let mut catalogs = self.catalogs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cached) = catalogs.get(&key).filter(|c| c.stamp.0 == stamp) {
            return Ok(Arc::clone(&cached.catalog));
        }
        let market = Marked { stock: &self.stock, marks: &self.marks, now };
        let catalog = Arc::new(build_catalog(&self.rows, &shape, &market, stamp + 1));
        catalogs.insert(key, Cached { stamp: (stamp, now), catalog: Arc::clone(&catalog) });
        Ok(catalog)
    }

    /// Between two durations, by the seed.
    fn between(&self, range: (Duration, Duration)) -> Duration {
        let share = f64::from(u32::from_str_radix(self.ids.uid().get(..8).unwrap_or("0"), 16).unwrap_or_default())
            / f64::from(u32::MAX);
        range.0 + range.1.saturating_sub(range.0).mul_f64(share)
    }

    /// Takes the first offering that is in stock; the others before it are marked.
    fn buy<'a>(&self, request: &'a LaunchRequest) -> Result<&'a Choice, LaunchError> {
        let now = tokio::time::Instant::now().into_std();
        let mut exhausted = Vec::new();
        for choice in &request.list.choices {
            let (kind, zone) = (&*choice.instance_type, &*choice.zone);
            if !self.stock.is_sold_out(kind, zone, choice.capacity_type) {
                self.mark(&exhausted, now);
                return Ok(choice);
            }
            exhausted.push(Exhausted {
                instance_type: Arc::clone(&choice.instance_type),
                zone: Arc::clone(&choice.zone),
                capacity_type: choice.capacity_type,
                code: "InsufficientInstanceCapacity".into(),
            });
        }
        self.mark(&exhausted, now);
        Err(LaunchError::InsufficientCapacity {
            reason: "InsufficientCapacityError".into(),
            message: format!("none of {} offerings is in stock", exhausted.len()),
            offerings: exhausted,
        })
    }

    fn mark(&self, exhausted: &[Exhausted], now: Instant) {
        for offer in exhausted {
            let mark = Mark::offering(offer.capacity_type, &offer.instance_type, &offer.zone);
            self.marks.mark(mark, now);
        }
        if !exhausted.is_empty() {
            self.changed.send_modify(|n| *n += 1);
        }
    }

    fn start(&self, request: &LaunchRequest, choice: &Choice, found: &InstanceType) -> (Instance, Machine) {
        let uid = self.ids.uid().replace('-', "");
        let id = format!("i-{}", uid.get(..17).unwrap_or(&uid));
        let provider_id: Arc<str> = format!("aws:///{}/{id}", choice.zone).into();
        let capacity_type = match choice.capacity_type {
            CapacityType::Reserved => "reserved",
            CapacityType::Spot => "spot",
            CapacityType::OnDemand => "on-demand",
        };
        let mut labels = Requirements::new(&found.requirements).labels();
        let offering =
            found.offerings.iter().find(|o| o.zone == choice.zone && o.capacity_type == choice.capacity_type);
        labels.extend(offering.into_iter().flat_map(|o| o.labels.clone()));
        labels.insert(mortise_api::labels::ZONE.into(), Arc::clone(&choice.zone));
        labels.insert(mortise_api::labels::CAPACITY_TYPE.into(), capacity_type.into());
        let arch = labels.get(mortise_api::labels::ARCH).cloned().unwrap_or_else(|| "amd64".into());
        let status = request.class.status.as_ref();
        let image = status.and_then(|s| s.amis.iter().find(|a| a.name.as_deref().is_some_and(|n| n.ends_with(&*arch))));
        let class_name: Arc<str> = request.class.metadata.name.as_deref().unwrap_or_default().into();
        let subnet =
            status.and_then(|s| s.subnets.iter().find(|n| *n.zone == *choice.zone)).map(|s| Arc::from(s.id.as_str()));
        let tags = [
            ("karpenter.sh/nodeclaim", &request.claim_name),
            ("mortise.dev/nodeclaim-uid", &request.claim_uid),
            ("karpenter.sh/nodepool", &request.nodepool),
        ];
        let instance = Instance {
            provider_id: Arc::clone(&provider_id),
            instance_type: Arc::clone(&choice.instance_type),
            zone: Arc::clone(&choice.zone),
            capacity_type: choice.capacity_type,
            image_id: image.map_or("ami-00000000000000001", |a| a.id.as_str()).into(),
            claim_name: Some(Arc::clone(&request.claim_name)),
            claim_uid: Some(Arc::clone(&request.claim_uid)),
            nodepool: Some(Arc::clone(&request.nodepool)),
            node_class: Some(class_name),
            labels: labels.clone(),
            annotations: BTreeMap::new(),
            capacity: found.capacity.clone(),
            allocatable: found.allocatable.clone(),
            launched_at_unix_ms: self.options.clock.now().as_millisecond(),
            state: InstanceState::Pending,
            subnet,
            security_groups: vec!["sg-0000000000000001".into()],
            tags: tags.into_iter().map(|(key, value)| (Arc::from(key), Arc::clone(value))).collect(),
        };
        let number = u32::from_str_radix(uid.get(17..23).unwrap_or("0"), 16).unwrap_or_default();
        let (b, c, d) = (number >> 16 & 255, number >> 8 & 255, number & 255);
        // The user data names the claim's labels and taints; the kubelet and the cloud controller add what they see.
        let seen = [
            "kubernetes.io/arch",
            "kubernetes.io/os",
            mortise_api::labels::INSTANCE_TYPE,
            mortise_api::labels::ZONE,
            mortise_api::labels::REGION,
            mortise_api::labels::ZONE_ID,
        ];
        let mut node_labels: BTreeMap<Arc<str>, Arc<str>> =
            labels.into_iter().filter(|(k, _)| seen.contains(&&**k)).collect();
        node_labels.extend(request.labels.iter().map(|(k, v)| (Arc::clone(k), Arc::clone(v))));
        node_labels.insert(mortise_api::labels::CAPACITY_TYPE.into(), capacity_type.into());
        let machine = Machine {
            name: format!("ip-10-{b}-{c}-{d}.ec2.internal"),
            provider_id,
            labels: node_labels,
            taints: request.taints.iter().chain(&request.startup_taints).cloned().collect(),
            capacity: found.capacity.clone(),
            allocatable: found.allocatable.clone(),
            address: format!("10.{b}.{c}.{d}"),
        };
        (instance, machine)
    }

    async fn join(&self, machine: Machine) {
        let alive = self.machines().get(&machine.provider_id).is_some_and(|m| !m.terminated);
        if !alive {
            return;
        }
        let now = self.options.clock.now_rfc3339();
        let node: Node = match serde_json::from_value(node::object(&machine, self.options.kwok, &now)) {
            Ok(node) => node,
            Err(error) => {
                tracing::error!(%error, node = machine.name, "node object");
                return;
            }
        };
        let api: Api<Node> = Api::all(self.client.clone());
        for _ in 0..10 {
            match api.create(&PostParams::default(), &node).await {
                Ok(_) => break,
                Err(kube::Error::Api(status)) if status.code == 409 => break,
                // A kubelet tries until it is registered; so long as the API server is away there is nothing else to do.
                Err(error) => tracing::debug!(%error, node = machine.name, "registering a node"),
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        if let Some(found) = self.machines().get_mut(&machine.provider_id).filter(|m| !m.terminated) {
            found.instance.state = InstanceState::Running;
        }
    }

    async fn terminated(&self, provider_id: &str) {
        self.options.clock.sleep(self.options.terminate).await;
        let name = {
            let mut machines = self.machines();
            let Some(machine) = machines.get_mut(provider_id) else { return };
            machine.instance.state = InstanceState::Terminated;
            machine.node_name.clone()
        };
        // The cloud controller manager removes the Node of a machine that is gone.
        let api: Api<Node> = Api::all(self.client.clone());
        match api.delete(&name, &DeleteParams::default()).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => tracing::debug!(%error, node = name, "deleting the node of a terminated machine"),
        }
    }

    fn live(&self, provider_id: &str) -> Result<Instance, CloudError> {
        let machines = self.machines();
        let found = machines.get(provider_id).filter(|m| m.instance.state != InstanceState::Terminated);
        found.map(|m| m.instance.clone()).ok_or_else(|| CloudError::NotFound { what: provider_id.to_owned() })
    }
}

/// The stock as far as launches have found out.
struct Marked<'a> {
    stock: &'a Stock,
    marks: &'a Unavailable,
    now: Instant,
}

impl mortise_cloud::catalog_build::Market for Marked<'_> {
    fn zones(&self, instance_type: &str) -> Vec<Arc<str>> {
        self.stock.zones(instance_type)
    }

    fn offered(&self, instance_type: &str, zone: &str) -> bool {
        self.stock.offered(instance_type, zone)
    }

    fn quote(
        &self,
        instance_type: &str,
        zone: &str,
        capacity_type: CapacityType,
    ) -> mortise_cloud::catalog_build::Quote {
        let mut quote = self.stock.quote(instance_type, zone, capacity_type);
        quote.in_stock &= !self.marks.blocks(capacity_type, instance_type, zone, self.now);
        quote
    }
}

#[async_trait]
impl CloudProvider for Ec2 {
    fn name(&self) -> &'static str {
        if self.inner.options.kwok { "kwok" } else { "sim" }
    }

    async fn run(&self, _leader: watch::Receiver<bool>) {
        // Marks of sold-out offerings lapse; nothing else changes by itself.
        loop {
            let next = self.inner.marks.next_expiry().map(tokio::time::Instant::from_std);
            let mut changed = self.inner.changed.subscribe();
            match next {
                Some(at) => tokio::select! {
                    () = tokio::time::sleep_until(at) => {
                        if self.inner.marks.expire(tokio::time::Instant::now().into_std()) {
                            self.inner.changed.send_modify(|n| *n += 1);
                        }
                    }
                    _ = changed.changed() => {}
                },
                // The sender lives as long as this.
                None => _ = changed.changed().await,
            }
        }
    }

    async fn resolve(&self, class: &EC2NodeClass) -> ClassResolution {
        class::resolve(class, &self.inner.options)
    }

    async fn finalize(&self, _class: &EC2NodeClass, claims_left: &[Arc<str>]) -> Result<Finalize, CloudError> {
        if claims_left.is_empty() {
            return Ok(Finalize::Done);
        }
        let mut claims = claims_left.to_vec();
        claims.sort();
        Ok(Finalize::WaitingForClaims { claims })
    }

    async fn catalog(&self, class: &EC2NodeClass) -> Result<Arc<Catalog>, CloudError> {
        self.inner.catalog(class)
    }

    fn catalog_changed(&self) -> watch::Receiver<u64> {
        self.inner.changed.subscribe()
    }

    async fn launch(&self, request: &LaunchRequest) -> Result<Instance, LaunchError> {
        let inner = &self.inner;
        let latency = inner.between(inner.options.launch_latency);
        inner.options.clock.sleep(latency).await;
        // As a client token does: one claim, one machine, however often it is asked for.
        let earlier = inner
            .machines()
            .values()
            .find(|m| m.instance.claim_uid.as_ref() == Some(&request.claim_uid) && !m.terminated)
            .map(|m| m.instance.clone());
        if let Some(earlier) = earlier {
            return Ok(earlier);
        }
        let catalog =
            inner.catalog(&request.class).map_err(|e| LaunchError::ClassNotReady { message: e.to_string() })?;
        let choice = inner.buy(request)?;
        let found =
            catalog.types.iter().find(|t| t.name == choice.instance_type).ok_or_else(|| LaunchError::Create {
                reason: "InvalidInstanceType".into(),
                message: format!("instance type {} is not known", choice.instance_type),
            })?;
        let (instance, machine) = inner.start(request, choice, found);
        let price =
            inner.stock.price(&choice.instance_type, &choice.zone, choice.capacity_type).map(|(price, _)| price);
        let launched =
            Launched { instance: instance.clone(), price, node_name: machine.name.clone(), terminated: false };
        inner.machines().insert(Arc::clone(&instance.provider_id), launched);
        let boot = inner.between(inner.options.boot);
        let inner = Arc::clone(inner);
        tokio::spawn(async move {
            inner.options.clock.sleep(boot).await;
            inner.join(machine).await;
        });
        Ok(instance)
    }

    async fn find_by_claim(&self, claim_uid: &str) -> Result<Option<Instance>, CloudError> {
        let machines = self.inner.machines();
        let found = machines
            .values()
            .find(|m| m.instance.claim_uid.as_deref() == Some(claim_uid) && !m.instance.state.is_gone());
        Ok(found.map(|m| m.instance.clone()))
    }

    async fn get(&self, provider_id: &str) -> Result<Instance, CloudError> {
        self.inner.live(provider_id)
    }

    async fn list(&self) -> Result<Vec<Instance>, CloudError> {
        let machines = self.inner.machines();
        Ok(machines
            .values()
            .filter(|m| m.instance.state != InstanceState::Terminated)
            .map(|m| m.instance.clone())
            .collect())
    }

    async fn terminate(&self, provider_id: &str) -> Result<(), CloudError> {
        {
            let mut machines = self.inner.machines();
            let found = machines.get_mut(provider_id).filter(|m| m.instance.state != InstanceState::Terminated);
            let machine = found.ok_or_else(|| CloudError::NotFound { what: provider_id.to_owned() })?;
            if machine.terminated {
                return Ok(());
            }
            machine.terminated = true;
            machine.instance.state = InstanceState::ShuttingDown;
        }
        let (inner, provider_id) = (Arc::clone(&self.inner), provider_id.to_owned());
        tokio::spawn(async move { inner.terminated(&provider_id).await });
        Ok(())
    }

    async fn tag(&self, provider_id: &str, tags: &BTreeMap<Arc<str>, Arc<str>>) -> Result<(), CloudError> {
        let mut machines = self.inner.machines();
        let machine =
            machines.get_mut(provider_id).ok_or_else(|| CloudError::NotFound { what: provider_id.to_owned() })?;
        for (key, value) in tags {
            machine.instance.tags.entry(Arc::clone(key)).or_insert_with(|| Arc::clone(value));
        }
        Ok(())
    }
}
