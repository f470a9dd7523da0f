//! What has to stand before a machine can be asked for: class, images, templates, subnets.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::try_join_all;
use mortise_api::EC2NodeClass;
use mortise_api::condition::{self, ec2nodeclass as conditions};
use mortise_engine::catalog::{CapacityType, Catalog, InstanceType};
use mortise_engine::requirement::Operator;

use super::{Launcher, create_error};
use crate::aws::cluster::ClusterInfo;
use crate::aws::fleet::{FleetRequest, Override};
use crate::aws::images::image_for;
use crate::aws::tags;
use crate::aws::template::{Options, Template, block_devices, market_label};
use crate::aws::userdata::{Bootstrap, UserDataError};
use crate::catalog_build::{AmiFamily, ClassShape};
use crate::launch::{LaunchError, LaunchRequest};

/// Resource name of EFA interfaces.
pub(super) const EFA: &str = "vpc.amazonaws.com/efa";

fn not_ready(message: String) -> LaunchError {
    LaunchError::ClassNotReady { message }
}

/// The class may be launched with: its `Ready` condition is True and about today's spec.
pub(super) fn check_ready(class: &EC2NodeClass) -> Result<(), LaunchError> {
    let name = class.metadata.name.as_deref().unwrap_or_default();
    if class.metadata.deletion_timestamp.is_some() {
        return Err(not_ready(format!("EC2NodeClass {name} is being deleted")));
    }
    let Some(ready) = class.status.as_ref().and_then(|s| condition::get(&s.conditions, condition::READY)) else {
        return Err(not_ready(format!("EC2NodeClass {name} has not been looked at yet")));
    };
    match ready.status.as_str() {
        "True" => {}
        "False" => return Err(not_ready(format!("EC2NodeClass {name}: {}", ready.message))),
        _ => {
            return Err(LaunchError::Create {
                reason: Arc::from("NodeClassReadinessUnknown"),
                message: format!("EC2NodeClass {name}: {}", ready.message),
            });
        }
    }
    if ready.observed_generation.is_some_and(|seen| Some(seen) != class.metadata.generation) {
        return Err(not_ready(format!("EC2NodeClass {name} was changed, and the change was not looked at yet")));
    }
    let status = class.status.clone().unwrap_or_default();
    let missing = [
        (status.subnets.is_empty(), conditions::SUBNETS_READY),
        (status.security_groups.is_empty(), conditions::SECURITY_GROUPS_READY),
        (status.amis.is_empty(), conditions::AMIS_READY),
        (status.instance_profile.is_none(), conditions::INSTANCE_PROFILE_READY),
    ];
    match missing.into_iter().find(|(empty, _)| *empty) {
        Some((_, part)) => Err(not_ready(format!("EC2NodeClass {name}: its status is incomplete, see {part}"))),
        None => Ok(()),
    }
}

/// Values of a label that the claim allows, if it says so by `In`.
fn allows(request: &LaunchRequest, key: &str, value: &str) -> Option<bool> {
    request
        .requirements
        .iter()
        .find(|r| &*r.key == key && r.operator == Operator::In)
        .map(|r| r.values.iter().any(|v| &**v == value))
}

/// Shared hardware unless the claim rules it out.
pub(super) fn dedicated(request: &LaunchRequest) -> bool {
    let key = mortise_api::labels::INSTANCE_TENANCY;
    allows(request, key, "default") == Some(false) && allows(request, key, "dedicated") == Some(true)
}

/// EFA interfaces that the claim asks for.
pub(super) fn efa_wanted(request: &LaunchRequest) -> i64 {
    request.requests.extended.get(EFA).copied().unwrap_or(0)
}

/// What decides which types share a launch template.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    image_id: String,
    max_pods: i64,
    efa: u32,
}

fn group_of(class: &EC2NodeClass, it: &InstanceType, efa: bool) -> Option<Group> {
    let amis = class.status.as_ref().map(|s| s.amis.as_slice()).unwrap_or_default();
    let image = image_for(amis, it)?;
    let cards = it.capacity.extended.get(EFA).copied().unwrap_or(0);
    Some(Group {
        image_id: image.id.clone(),
        max_pods: it.capacity.pods,
        efa: if efa { u32::try_from(cards).unwrap_or(0) } else { 0 },
    })
}

impl Launcher {
    /// The request, without its token. Launch templates exist afterwards.
    pub(super) async fn prepare(
        &self,
        request: &LaunchRequest,
        catalog: &Catalog,
    ) -> Result<FleetRequest, LaunchError> {
        let class = &request.class;
        let status = class.status.clone().unwrap_or_default();
        if request.list.capacity_type == CapacityType::Reserved {
            return Err(LaunchError::Create {
                reason: Arc::from("LaunchFailed"),
                message: "capacity reservations are not acted on yet".to_owned(),
            });
        }
        let shape = ClassShape::from_class(class, self.catalogs.settings()).map_err(|e| not_ready(e.to_string()))?;
        let cluster = match self.cluster.info(&self.clients, &self.settings).await {
            Ok(cluster) => cluster,
            Err(_) if shape.family == AmiFamily::Custom => ClusterInfo::from_settings(&self.settings),
            Err(error) => return Err(create_error(&error)),
        };
        let efa = efa_wanted(request) > 0 && class.spec.network_interfaces.is_empty();
        let subnets = self.addresses.best_per_zone(status.subnets.iter().filter(|s| {
            let mark = crate::unavailable::Mark::Subnet(Arc::from(s.id.as_str()));
            !self.catalogs.unavailable.is_marked(&mark, std::time::Instant::now())
        }));

        // Choices by group, in order of preference.
        let mut groups: BTreeMap<Group, Option<String>> = BTreeMap::new();
        let mut chosen: Vec<(Group, &mortise_engine::decision::Choice, &String)> = Vec::new();
        let ours = request.list.choices.iter().filter(|c| c.capacity_type == request.list.capacity_type);
        for choice in ours {
            let Ok(at) = catalog.types.binary_search_by(|t| t.name.cmp(&choice.instance_type)) else { continue };
            let Some(it) = catalog.types.get(at) else { continue };
            let still = it
                .offerings
                .iter()
                .any(|o| o.available && o.zone == choice.zone && o.capacity_type == choice.capacity_type);
            let (true, Some(subnet), Some(group)) = (still, subnets.get(&*choice.zone), group_of(class, it, efa))
            else {
                continue;
            };
            groups.entry(group.clone()).or_default();
            chosen.push((group, choice, subnet));
        }
        if chosen.is_empty() {
            return Err(LaunchError::InsufficientCapacity {
                reason: Arc::from("InsufficientCapacity"),
                message: format!(
                    "none of the {} offerings chosen is left: sold out a moment ago, without a subnet, or without an image",
                    request.list.choices.len()
                ),
                offerings: Vec::new(),
            });
        }

        let templates = groups
            .keys()
            .map(|group| self.template(request, group, &shape, &cluster))
            .collect::<Result<Vec<_>, _>>()?;
        let ensured = templates.iter().map(|t| self.templates.ensure(&self.clients, t, class));
        let names = try_join_all(ensured).await.map_err(|e| create_error(&e))?;
        for (slot, name) in groups.values_mut().zip(names) {
            *slot = Some(name);
        }

        let overrides = chosen
            .into_iter()
            .filter_map(|(group, choice, subnet)| {
                Some(Override {
                    template: groups.get(&group).cloned().flatten()?,
                    image_id: group.image_id,
                    instance_type: Arc::clone(&choice.instance_type),
                    zone: Arc::clone(&choice.zone),
                    subnet: subnet.clone(),
                })
            })
            .collect();
        let mut tags = tags::common(class, &self.settings.cluster_name, &request.nodepool);
        tags.insert(tags::NODECLAIM.to_owned(), request.claim_name.to_string());
        tags.insert(tags::CLAIM_UID.to_owned(), request.claim_uid.to_string());
        Ok(FleetRequest {
            token: String::new(),
            capacity_type: request.list.capacity_type,
            prioritized: request.list.prioritized,
            overrides,
            tags,
            context: class.spec.context.clone(),
        })
    }

    fn template(
        &self,
        request: &LaunchRequest,
        group: &Group,
        shape: &ClassShape,
        cluster: &ClusterInfo,
    ) -> Result<Template, LaunchError> {
        let class = &request.class;
        let status = class.status.clone().unwrap_or_default();
        let mut labels = request.labels.clone();
        labels
            .insert(Arc::from(mortise_api::labels::CAPACITY_TYPE), Arc::from(market_label(request.list.capacity_type)));
        // The bootstrap registers the taints, so the controller must not.
        if shape.family != AmiFamily::Custom {
            labels.insert(Arc::from(mortise_api::labels::DO_NOT_SYNC_TAINTS), Arc::from("true"));
        }
        let taints: Vec<_> = request.taints.iter().chain(&request.startup_taints).cloned().collect();
        let user_data = Bootstrap {
            family: shape.family,
            cluster,
            labels: &labels,
            taints: &taints,
            kubelet: &class.spec.kubelet,
            max_pods: group.max_pods,
            raid0: shape.raid0,
            custom: class.spec.user_data.as_deref(),
        }
        .encoded()
        .map_err(|e| match e {
            UserDataError::TooLong(_) => {
                LaunchError::Create { reason: Arc::from("UserDataSizeLimitExceeded"), message: e.to_string() }
            }
            other => not_ready(other.to_string()),
        })?;
        let mut security_groups: Vec<String> = status.security_groups.iter().map(|g| g.id.clone()).collect();
        security_groups.sort();
        Ok(Template {
            image_id: group.image_id.clone(),
            user_data,
            instance_profile: status.instance_profile.unwrap_or_default(),
            security_groups,
            block_devices: block_devices(class, shape.family),
            spot: request.list.capacity_type == CapacityType::Spot,
            dedicated: dedicated(request),
            efa: group.efa,
            ipv6: cluster.is_ipv6(),
            options: Options::of(class),
            tags: tags::common(class, &self.settings.cluster_name, &request.nodepool),
        })
    }
}
