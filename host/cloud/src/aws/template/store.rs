//! Which launch templates exist, and their removal when nothing uses them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use aws_sdk_ec2::types::ResourceType;
use mortise_api::EC2NodeClass;

use super::{PREFIX, Template};
use crate::aws::clients::Clients;
use crate::aws::error::ApiError;
use crate::aws::filters::filter;
use crate::aws::tags;

/// A template that no launch used for this long is deleted.
pub(crate) const UNUSED: Duration = Duration::from_secs(600);

/// One template's state: created or not, guarded so that two launches do not create it twice.
type Slot = Arc<tokio::sync::Mutex<bool>>;

/// Templates known to exist, by name.
#[derive(Debug, Default)]
pub(crate) struct Templates(Mutex<BTreeMap<String, (Instant, Slot)>>);

impl Templates {
    /// Makes sure that the template exists; returns its name.
    pub(crate) async fn ensure(
        &self,
        clients: &Clients,
        template: &Template,
        class: &EC2NodeClass,
    ) -> Result<String, ApiError> {
        let name = template.name();
        let slot = self.touch(&name);
        let mut exists = slot.lock().await;
        if !*exists {
            if !described(clients, &name).await? {
                Box::pin(create(clients, &name, template, class)).await?;
            }
            *exists = true;
        }
        Ok(name)
    }

    fn touch(&self, name: &str) -> Slot {
        let mut map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = map.entry(name.to_owned()).or_insert_with(|| (Instant::now(), Slot::default()));
        entry.0 = Instant::now();
        Arc::clone(&entry.1)
    }

    /// Forgets a template that EC2 says is not there.
    pub(crate) fn forget(&self, name: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }

    /// Takes note of every template of this cluster, so that left-overs of earlier processes are collected too.
    pub(crate) async fn adopt_existing(&self, clients: &Clients, cluster: &str) -> Result<(), ApiError> {
        let names = tagged(clients, &[(tags::CLUSTER, cluster)]).await?;
        let mut map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for name in names.into_iter().filter(|n| n.starts_with(PREFIX)) {
            map.entry(name).or_insert_with(|| (Instant::now(), Arc::new(tokio::sync::Mutex::new(true))));
        }
        Ok(())
    }

    /// Deletes templates not used since `UNUSED` before `now`.
    pub(crate) async fn collect(&self, clients: &Clients, now: Instant) -> Result<(), ApiError> {
        let old: Vec<String> = {
            let map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            map.iter()
                .filter(|(_, (used, _))| now.saturating_duration_since(*used) >= UNUSED)
                .map(|(name, _)| name.clone())
                .collect()
        };
        for name in old {
            // Forgotten first: a launch that comes now creates it anew instead of counting on it.
            self.forget(&name);
            delete(clients, &name).await?;
        }
        Ok(())
    }

    /// Deletes every template of a class.
    pub(crate) async fn delete_class(&self, clients: &Clients, cluster: &str, class: &str) -> Result<(), ApiError> {
        for name in tagged(clients, &[(tags::CLUSTER, cluster), (tags::NODECLASS, class)]).await? {
            self.forget(&name);
            delete(clients, &name).await?;
        }
        Ok(())
    }
}

async fn described(clients: &Clients, name: &str) -> Result<bool, ApiError> {
    let request = clients.ec2.describe_launch_templates().launch_template_names(name).send();
    match clients.call("DescribeLaunchTemplates", request).await {
        Ok(answer) => Ok(!answer.launch_templates().is_empty()),
        Err(e) if e.is_not_found() => Ok(false),
        Err(e) => Err(e),
    }
}

async fn create(clients: &Clients, name: &str, template: &Template, class: &EC2NodeClass) -> Result<(), ApiError> {
    let request = clients
        .ec2
        .create_launch_template()
        .launch_template_name(name)
        .launch_template_data(super::data::data(template, class, &clients.region))
        .tag_specifications(tags::specification(ResourceType::LaunchTemplate, &template.tags))
        .send();
    match Box::pin(clients.call("CreateLaunchTemplate", request)).await {
        Ok(_) => Ok(()),
        // The name is the content's hash, so whoever made it made the same.
        Err(e) if e.code == "InvalidLaunchTemplateName.AlreadyExistsException" => Ok(()),
        Err(e) => Err(e),
    }
}

async fn delete(clients: &Clients, name: &str) -> Result<(), ApiError> {
    let request = clients.ec2.delete_launch_template().launch_template_name(name).send();
    match clients.call("DeleteLaunchTemplate", request).await {
        Ok(_) => Ok(()),
        Err(e) if e.is_not_found() => Ok(()),
        Err(e) => Err(e),
    }
}

/// Names of templates with all these tags.
async fn tagged(clients: &Clients, wanted: &[(&str, &str)]) -> Result<Vec<String>, ApiError> {
    let filters = wanted.iter().map(|(k, v)| filter(&format!("tag:{k}"), [(*v).to_owned()])).collect();
    let mut pages =
        clients.ec2.describe_launch_templates().set_filters(Some(filters)).max_results(200).into_paginator().send();
    let mut names = Vec::new();
    while let Some(page) = clients.call("DescribeLaunchTemplates", pages.try_next()).await? {
        names.extend(page.launch_templates().iter().filter_map(|t| t.launch_template_name().map(str::to_owned)));
    }
    Ok(names)
}
