//! From a launch request to a machine.
//!
//! A launch is recoverable whatever is lost. The machine carries the NodeClaim's name and UID as tags of the very call
//! that starts it, and that call has a client token made of the UID and the number of attempts that EC2 has answered
//! "nothing" to. So a call repeated after a lost answer, by this process or the next, gets the first one's answer; and
//! if it cannot be repeated as it was, the machine is found by its tag.

mod attempts;
mod prepare;

use std::sync::Arc;
use std::time::Duration;

use mortise_engine::catalog::{CapacityType, Catalog, InstanceType};
use tokio::sync::Semaphore;

use super::catalogs::Catalogs;
use super::clients::Clients;
use super::cluster::Cluster;
use super::error::{ApiError, Fate, launch_reason};
use super::fleet::{FleetAnswer, FleetRequest, Started, capacity_reason, describe_exhausted, read};
use super::instances::{Instances, provider_id};
use super::network::Addresses;
use super::settings::AwsSettings;
use super::template::{Templates, market_label};
use crate::instance::{Instance, InstanceState};
use crate::launch::{LaunchError, LaunchRequest};
use attempts::Attempts;

/// How long to wait before asking again for a machine that EC2 says was started but does not list yet.
const LISTING_LAG: Duration = Duration::from_secs(5);

/// What launching needs.
pub(crate) struct Launcher {
    pub(crate) clients: Clients,
    pub(crate) settings: Arc<AwsSettings>,
    pub(crate) catalogs: Arc<Catalogs>,
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) templates: Arc<Templates>,
    pub(crate) addresses: Arc<Addresses>,
    pub(crate) instances: Arc<Instances>,
    pub(crate) permits: Semaphore,
    pub(crate) attempts: Attempts,
}

/// An API error before anything was started.
fn create_error(error: &ApiError) -> LaunchError {
    let (reason, message) = launch_reason(&error.code, &error.message);
    let message = format!("{}: {message}", error.call);
    match error.fate {
        Fate::Refused => LaunchError::Create { reason, message },
        Fate::Throttled => LaunchError::Transient { reason, message, retry_after: Some(Duration::from_secs(2)) },
        Fate::NotSent | Fate::Unknown => LaunchError::Transient { reason, message, retry_after: None },
    }
}

impl Launcher {
    /// Starts the machine, or finds it.
    pub(crate) async fn launch(&self, request: &LaunchRequest) -> Result<Instance, LaunchError> {
        prepare::check_ready(&request.class)?;
        let catalog = self.catalogs.get(&request.class).map_err(|e| match e {
            crate::CloudError::Class { message } => LaunchError::ClassNotReady { message },
            other => {
                LaunchError::Create { reason: Arc::from("InstanceTypeResolutionFailed"), message: other.to_string() }
            }
        })?;
        if request.may_exist
            && let Some(found) = self.find(&request.claim_uid).await?
        {
            return Ok(self.adopt(request, &catalog, found));
        }
        // The semaphore is never closed.
        let _permit = self.permits.acquire().await;
        self.start(request, &catalog).await
    }

    async fn find(&self, uid: &str) -> Result<Option<Instance>, LaunchError> {
        self.instances.find(uid).await.map_err(|e| LaunchError::Transient {
            reason: Arc::from("LaunchFailed"),
            message: format!("looking for the machine of an earlier attempt: {e}"),
            retry_after: None,
        })
    }

    async fn start(&self, request: &LaunchRequest, catalog: &Catalog) -> Result<Instance, LaunchError> {
        let mut fresh_templates = true;
        loop {
            let mut fleet = self.prepare(request, catalog).await?;
            fleet.token = self.attempts.token(&request.claim_uid);
            let taken = self.take_addresses(request, catalog, &fleet);
            let sent = self.clients.call("CreateFleet", fleet.builder(&self.clients).send()).await;
            let answer = match sent {
                Ok(output) => read(&fleet, &output),
                Err(error) => {
                    for (subnet, count) in &taken {
                        self.addresses.give_back(subnet, *count);
                    }
                    if error.is_not_found() && error.code.starts_with("InvalidLaunchTemplate") && fresh_templates {
                        // Somebody deleted a template behind our back: make them anew, once.
                        fresh_templates = false;
                        for choice in &fleet.overrides {
                            self.templates.forget(&choice.template);
                        }
                        continue;
                    }
                    return self.not_answered(request, catalog, &error).await;
                }
            };
            let used = answer.started.as_ref().map(|s| s.subnet.as_str());
            for (subnet, count) in taken.iter().filter(|(subnet, _)| Some(subnet.as_str()) != used) {
                self.addresses.give_back(subnet, *count);
            }
            return self.answered(request, catalog, &fleet, answer);
        }
    }

    /// An answer came: a machine, or the reasons why there is none.
    fn answered(
        &self,
        request: &LaunchRequest,
        catalog: &Catalog,
        fleet: &FleetRequest,
        answer: FleetAnswer,
    ) -> Result<Instance, LaunchError> {
        for subnet in &answer.full_subnets {
            self.addresses.exhausted(subnet);
        }
        self.catalogs.mark(answer.marks);
        if let Some(started) = answer.started {
            self.attempts.settled(&request.claim_uid);
            return Ok(self.started(request, catalog, fleet, &started));
        }
        // EC2 has spoken on this token; it would say the same again.
        self.attempts.exhausted(&request.claim_uid);
        match answer.fault {
            Some((code, message)) => {
                let (reason, message) = launch_reason(&code, &message);
                Err(LaunchError::Create { reason, message })
            }
            None if answer.exhausted.is_empty() => Err(LaunchError::InsufficientCapacity {
                reason: Arc::from("InsufficientCapacity"),
                message: "EC2 started no machine and gave no reason".to_owned(),
                offerings: Vec::new(),
            }),
            None => Err(LaunchError::InsufficientCapacity {
                reason: capacity_reason(&answer.exhausted),
                message: describe_exhausted(&answer.exhausted),
                offerings: answer.exhausted,
            }),
        }
    }

    /// The call failed as a whole. Whether it had an effect depends on how.
    async fn not_answered(
        &self,
        request: &LaunchRequest,
        catalog: &Catalog,
        error: &ApiError,
    ) -> Result<Instance, LaunchError> {
        if error.code != "IdempotentParameterMismatch" {
            return Err(create_error(error));
        }
        // An earlier attempt went through with another list of offerings, and its answer was lost.
        if let Some(found) = self.find(&request.claim_uid).await? {
            return Ok(self.adopt(request, catalog, found));
        }
        self.attempts.mismatched(&request.claim_uid);
        Err(LaunchError::Transient {
            reason: Arc::from("LaunchFailed"),
            message: "an earlier attempt was answered, but its answer was lost and EC2 lists no machine of it yet"
                .to_owned(),
            retry_after: Some(LISTING_LAG),
        })
    }

    /// The machine of an answer. Everything is known without asking again.
    fn started(&self, request: &LaunchRequest, catalog: &Catalog, fleet: &FleetRequest, s: &Started) -> Instance {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let mut tags = fleet.tags.clone();
        let instance = Instance {
            provider_id: provider_id(&s.zone, &s.id),
            instance_type: Arc::clone(&s.instance_type),
            zone: Arc::clone(&s.zone),
            capacity_type: request.list.capacity_type,
            image_id: Arc::from(s.image_id.as_str()),
            claim_name: Some(Arc::clone(&request.claim_name)),
            claim_uid: Some(Arc::clone(&request.claim_uid)),
            nodepool: (!request.nodepool.is_empty()).then(|| Arc::clone(&request.nodepool)),
            node_class: request.class.metadata.name.as_deref().map(Arc::from),
            labels: std::collections::BTreeMap::new(),
            annotations: std::collections::BTreeMap::new(),
            capacity: mortise_engine::quantity::Resources::default(),
            allocatable: mortise_engine::quantity::Resources::default(),
            launched_at_unix_ms: i64::try_from(now.as_millis()).unwrap_or(i64::MAX),
            state: InstanceState::Pending,
            subnet: Some(Arc::from(s.subnet.as_str())),
            security_groups: Vec::new(),
            tags: std::mem::take(&mut tags).into_iter().map(|(k, v)| (Arc::from(k), Arc::from(v))).collect(),
        };
        self.complete(request, catalog, instance)
    }

    fn adopt(&self, request: &LaunchRequest, catalog: &Catalog, found: Instance) -> Instance {
        tracing::info!(claim = %request.claim_name, provider_id = %found.provider_id, "found the machine of an earlier attempt");
        self.attempts.settled(&request.claim_uid);
        self.complete(request, catalog, found)
    }

    /// Adds what follows from type, zone, market and class.
    fn complete(&self, request: &LaunchRequest, catalog: &Catalog, mut instance: Instance) -> Instance {
        let found = catalog.types.binary_search_by(|t| t.name.cmp(&instance.instance_type));
        let known: Option<&InstanceType> = found.ok().and_then(|i| catalog.types.get(i));
        let mut put = |key: &str, value: &str| {
            instance.labels.insert(Arc::from(key), Arc::from(value));
        };
        if let Some(it) = known {
            for r in &it.requirements {
                if let (mortise_engine::requirement::Operator::In, [value]) = (r.operator, r.values.as_slice()) {
                    put(&r.key, value);
                }
            }
            let zone_id = it
                .offerings
                .iter()
                .find(|o| o.zone == instance.zone)
                .and_then(|o| o.labels.get(mortise_api::labels::ZONE_ID));
            if let Some(id) = zone_id {
                put(mortise_api::labels::ZONE_ID, id);
            }
            instance.capacity = it.capacity.clone();
            instance.allocatable = it.allocatable.clone();
            // EFA interfaces are there only when they were asked for.
            if prepare::efa_wanted(request) == 0 && request.class.spec.network_interfaces.is_empty() {
                instance.capacity.extended.remove(prepare::EFA);
                instance.allocatable.extended.remove(prepare::EFA);
            }
        }
        let tenancy = if prepare::dedicated(request) { "dedicated" } else { "default" };
        put(mortise_api::labels::INSTANCE_TENANCY, tenancy);
        put(mortise_api::labels::INSTANCE_TYPE, &instance.instance_type);
        put(mortise_api::labels::ZONE, &instance.zone);
        put(mortise_api::labels::CAPACITY_TYPE, market_label(instance.capacity_type));
        if let Some(pool) = &instance.nodepool {
            put(mortise_api::labels::NODEPOOL, pool);
        }
        if let Some(profile) = request.class.status.as_ref().and_then(|s| s.instance_profile.as_deref()) {
            let key = "karpenter.k8s.aws/instance-profile-name";
            instance.annotations.insert(Arc::from(key), Arc::from(profile));
        }
        instance
    }

    /// Counts the addresses that the machine will take, in every subnet it may come up in.
    fn take_addresses(&self, request: &LaunchRequest, catalog: &Catalog, fleet: &FleetRequest) -> Vec<(String, i64)> {
        let mut least: std::collections::BTreeMap<&str, i64> = std::collections::BTreeMap::new();
        for choice in &fleet.overrides {
            let found = catalog.types.binary_search_by(|t| t.name.cmp(&choice.instance_type));
            let pods = found.ok().and_then(|i| catalog.types.get(i)).map_or(0, |t| t.capacity.pods);
            least.entry(&choice.subnet).and_modify(|l| *l = pods.min(*l)).or_insert(pods);
        }
        debug_assert!(request.list.capacity_type != CapacityType::Reserved || fleet.overrides.is_empty());
        let taken: Vec<(String, i64)> = least.into_iter().map(|(subnet, pods)| (subnet.to_owned(), pods)).collect();
        for (subnet, pods) in &taken {
            self.addresses.take(subnet, *pods);
        }
        taken
    }
}
