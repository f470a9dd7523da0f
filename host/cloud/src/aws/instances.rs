//! Machines: listing, reading, ending and tagging them.

use std::collections::BTreeMap;
use std::sync::Arc;

use aws_sdk_ec2::types::{Filter, Instance as Ec2Instance, InstanceLifecycleType, InstanceStateName, Tag};
use mortise_engine::catalog::CapacityType;
use mortise_engine::quantity::Resources;

use super::batch::{Answers, Batcher};
use super::clients::Clients;
use super::error::ApiError;
use super::filters::filter;
use super::tags;
use crate::error::CloudError;
use crate::instance::{Instance, InstanceState};

/// States of machines that are not gone.
const LIVE: [&str; 5] = ["pending", "running", "stopping", "stopped", "shutting-down"];

/// `aws:///us-east-1a/i-0123` of a machine.
pub(crate) fn provider_id(zone: &str, id: &str) -> Arc<str> {
    Arc::from(format!("aws:///{zone}/{id}"))
}

/// Instance id of a provider id.
pub(crate) fn instance_id(provider_id: &str) -> Result<&str, CloudError> {
    provider_id
        .strip_prefix("aws:///")
        .and_then(|rest| rest.rsplit_once('/'))
        .map(|(_, id)| id)
        .filter(|id| id.starts_with("i-"))
        .ok_or_else(|| CloudError::Invalid {
            message: format!("providerID: found {provider_id:?}, expected aws:///<zone>/i-…: not a node of this cloud"),
        })
}

/// Reads and ends machines, many at a time.
pub(crate) struct Instances {
    clients: Clients,
    cluster: Arc<str>,
    reads: Batcher<Instance>,
    ends: Batcher<()>,
}

impl Instances {
    pub(crate) fn new(clients: Clients, cluster: Arc<str>) -> Self {
        let (reader, ender) = (clients.clone(), clients.clone());
        Self {
            clients,
            cluster,
            reads: Batcher::start(move |ids| {
                let clients = reader.clone();
                Box::pin(async move { read(&clients, ids).await })
            }),
            ends: Batcher::start(move |ids| {
                let clients = ender.clone();
                Box::pin(async move { end(&clients, ids).await })
            }),
        }
    }

    /// One machine. Terminated ones are not found.
    pub(crate) async fn get(&self, provider_id: &str) -> Result<Instance, CloudError> {
        let instance = self.reads.ask(instance_id(provider_id)?).await?;
        if instance.state == InstanceState::Terminated {
            return Err(CloudError::NotFound { what: provider_id.to_owned() });
        }
        Ok(instance)
    }

    /// Every machine of this cluster that is not terminated.
    pub(crate) async fn list(&self) -> Result<Vec<Instance>, CloudError> {
        let filters = vec![
            filter("tag-key", [tags::NODEPOOL.to_owned()]),
            filter("tag-key", [tags::NODECLASS.to_owned()]),
            filter(&format!("tag:{}", tags::CLUSTER), [self.cluster.to_string()]),
            live(),
        ];
        Ok(describe(&self.clients, filters).await?)
    }

    /// The machine that carries this NodeClaim's UID. Of several, one that is not on its way out, the oldest.
    pub(crate) async fn find(&self, claim_uid: &str) -> Result<Option<Instance>, CloudError> {
        let filters = vec![
            filter(&format!("tag:{}", tags::CLAIM_UID), [claim_uid.to_owned()]),
            filter(&format!("tag:{}", tags::CLUSTER), [self.cluster.to_string()]),
            live(),
        ];
        let mut found = describe(&self.clients, filters).await?;
        found.retain(|i| !i.state.is_gone());
        found.sort_by(|a, b| {
            a.launched_at_unix_ms.cmp(&b.launched_at_unix_ms).then_with(|| a.provider_id.cmp(&b.provider_id))
        });
        Ok(found.into_iter().next())
    }

    /// Ends a machine.
    pub(crate) async fn terminate(&self, provider_id: &str) -> Result<(), CloudError> {
        self.ends.ask(instance_id(provider_id)?).await
    }

    /// Adds tags where their key is absent.
    pub(crate) async fn tag(&self, provider_id: &str, wanted: &BTreeMap<Arc<str>, Arc<str>>) -> Result<(), CloudError> {
        let instance = self.get(provider_id).await?;
        let missing: Vec<Tag> = wanted
            .iter()
            .filter(|(key, _)| !instance.tags.contains_key(*key))
            .map(|(key, value)| Tag::builder().key(&**key).value(&**value).build())
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let request =
            self.clients.ec2.create_tags().resources(instance_id(provider_id)?).set_tags(Some(missing)).send();
        self.clients.call("CreateTags", request).await?;
        Ok(())
    }
}

fn live() -> Filter {
    filter("instance-state-name", LIVE.iter().map(|s| (*s).to_owned()))
}

async fn describe(clients: &Clients, filters: Vec<Filter>) -> Result<Vec<Instance>, ApiError> {
    let mut pages =
        clients.ec2.describe_instances().set_filters(Some(filters)).max_results(1000).into_paginator().send();
    let mut found = Vec::new();
    while let Some(page) = clients.call("DescribeInstances", pages.try_next()).await? {
        found.extend(page.reservations().iter().flat_map(|r| r.instances()).filter_map(instance));
    }
    Ok(found)
}

/// Reads a batch. Filtered by id rather than asked by id: one unknown id would fail them all.
async fn read(clients: &Clients, ids: Vec<String>) -> Answers<Instance> {
    match describe(clients, vec![filter("instance-id", ids.iter().cloned())]).await {
        Ok(found) => {
            found.into_iter().filter_map(|i| Some((instance_id(&i.provider_id).ok()?.to_owned(), Ok(i)))).collect()
        }
        Err(error) => ids.into_iter().map(|id| (id, Err(error.clone().into()))).collect(),
    }
}

/// Ends a batch; when EC2 refuses it (one unknown id is enough), each by itself.
async fn end(clients: &Clients, ids: Vec<String>) -> Answers<()> {
    match end_some(clients, &ids).await {
        Ok(answers) => answers,
        Err(error) if error.is_transient() || ids.len() == 1 => {
            ids.into_iter().map(|id| (id, Err(error.clone().into()))).collect()
        }
        Err(_) => {
            let each = ids.iter().map(|id| async {
                let one = end_some(clients, std::slice::from_ref(id)).await;
                let answer = one
                    .map_err(CloudError::from)
                    .and_then(|mut a| a.remove(id).unwrap_or_else(|| Err(CloudError::NotFound { what: id.clone() })));
                (id.clone(), answer)
            });
            futures::future::join_all(each).await.into_iter().collect()
        }
    }
}

async fn end_some(clients: &Clients, ids: &[String]) -> Result<Answers<()>, ApiError> {
    let request = clients.ec2.terminate_instances().set_instance_ids(Some(ids.to_vec())).send();
    let answer = clients.call("TerminateInstances", request).await?;
    Ok(answer
        .terminating_instances()
        .iter()
        .filter_map(|change| {
            let id = change.instance_id()?.to_owned();
            let state = change.current_state().and_then(|s| s.name());
            let done = matches!(state, Some(InstanceStateName::ShuttingDown | InstanceStateName::Terminated));
            let answer = if done {
                Ok(())
            } else {
                Err(CloudError::Transient {
                    call: "TerminateInstances",
                    message: format!("{id} is still {}", state.map_or("in an unknown state", |s| s.as_str())),
                    retry_after: None,
                })
            };
            Some((id, answer))
        })
        .collect())
}

fn state(name: &InstanceStateName) -> InstanceState {
    match name {
        InstanceStateName::Pending => InstanceState::Pending,
        InstanceStateName::Running => InstanceState::Running,
        InstanceStateName::ShuttingDown => InstanceState::ShuttingDown,
        InstanceStateName::Terminated => InstanceState::Terminated,
        _ => InstanceState::Stopped,
    }
}

/// A machine as EC2 describes it. `None` when it lacks what every machine has.
fn instance(ec2: &Ec2Instance) -> Option<Instance> {
    let id = ec2.instance_id()?;
    // A terminated machine may have lost its placement; its zone is then no more than a blank in its provider id.
    let zone = ec2.placement().and_then(|p| p.availability_zone()).unwrap_or_default();
    let tags: BTreeMap<Arc<str>, Arc<str>> = ec2
        .tags()
        .iter()
        .filter_map(|t| Some((Arc::from(t.key()?), Arc::from(t.value().unwrap_or_default()))))
        .collect();
    let tag = |key: &str| tags.get(key).filter(|v| !v.is_empty()).cloned();
    let spot = ec2.spot_instance_request_id().is_some_and(|s| !s.is_empty())
        || ec2.instance_lifecycle() == Some(&InstanceLifecycleType::Spot);
    let mut security_groups: Vec<Arc<str>> =
        ec2.security_groups().iter().filter_map(|g| g.group_id().map(Arc::from)).collect();
    security_groups.sort();
    Some(Instance {
        provider_id: provider_id(zone, id),
        instance_type: Arc::from(ec2.instance_type().map(|t| t.as_str()).unwrap_or_default()),
        zone: Arc::from(zone),
        capacity_type: if spot { CapacityType::Spot } else { CapacityType::OnDemand },
        image_id: Arc::from(ec2.image_id().unwrap_or_default()),
        claim_name: tag(tags::NODECLAIM),
        claim_uid: tag(tags::CLAIM_UID),
        nodepool: tag(tags::NODEPOOL),
        node_class: tag(tags::NODECLASS),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        capacity: Resources::default(),
        allocatable: Resources::default(),
        launched_at_unix_ms: ec2.launch_time().and_then(|t| t.to_millis().ok()).unwrap_or(0),
        state: ec2.state().and_then(|s| s.name()).map_or(InstanceState::Pending, state),
        subnet: ec2.subnet_id().map(Arc::from),
        security_groups,
        tags,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn provider_ids() {
        assert_eq!(instance_id("aws:///us-east-1a/i-0abc"), Ok("i-0abc"));
        assert_eq!(&*provider_id("us-east-1a", "i-0abc"), "aws:///us-east-1a/i-0abc");
        for bad in ["", "i-0abc", "gce:///a/i-0", "aws:///us-east-1a", "aws:///us-east-1a/x-1", "kwok://n"] {
            assert!(instance_id(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_machine_without_an_id_is_none() {
        assert!(instance(&Ec2Instance::builder().build()).is_none());
        let bare = instance(&Ec2Instance::builder().instance_id("i-1").build()).unwrap();
        assert_eq!(&*bare.provider_id, "aws:////i-1");
        assert_eq!(bare.claim_uid, None);
    }
}
