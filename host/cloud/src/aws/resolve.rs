//! Everything a node class selects, part by part. Trouble with one part never hides another.

mod trial;
mod verdict;

use std::sync::Arc;
use std::time::Duration;

use mortise_api::EC2NodeClass;
use mortise_api::condition::ec2nodeclass as conditions;
use mortise_api::ec2nodeclass::{Ami, EC2NodeClassStatus, SecurityGroup};

use super::clients::Clients;
use super::cluster::{Cluster, ClusterInfo};
use super::error::ApiError;
use super::filters::Kept;
use super::images::{ImageError, Parameters, find_images};
use super::network::{
    Addresses, FoundSubnet, find_security_groups, find_subnets, security_group_filters, subnet_filters,
};
use super::profile::{self, ProfileRequest};
use super::settings::AwsSettings;
use super::template::Templates;
use crate::class::{ClassResolution, ConditionOutcome, Verdict};
use verdict::{not_ready, selector_text, unasked};

/// When to look again: something could not be asked,
const SOON: Duration = Duration::from_secs(10);
/// or all was asked; what is found changes without notice, and what is missing may appear.
const LATER: Duration = Duration::from_secs(60);

/// Looks classes up.
pub(crate) struct Resolver {
    pub(crate) clients: Clients,
    pub(crate) settings: Arc<AwsSettings>,
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) addresses: Arc<Addresses>,
    parameters: Parameters,
    subnets: Kept<Vec<FoundSubnet>>,
    security_groups: Kept<Vec<SecurityGroup>>,
    images: Kept<Vec<Ami>>,
    profiles: Kept<String>,
    tried: Kept<()>,
    templates: Arc<Templates>,
}

/// A profile's role is read again after this time.
const PROFILE_TTL: Duration = Duration::from_secs(900);
/// A class that was tried out successfully is tried again after this time.
const TRIED_TTL: Duration = Duration::from_secs(1800);

impl Resolver {
    pub(crate) fn new(
        clients: Clients,
        settings: Arc<AwsSettings>,
        cluster: Arc<Cluster>,
        addresses: Arc<Addresses>,
        templates: Arc<Templates>,
    ) -> Self {
        Self {
            clients,
            settings,
            cluster,
            addresses,
            parameters: Parameters::default(),
            subnets: Kept::default(),
            security_groups: Kept::default(),
            images: Kept::default(),
            profiles: Kept::default(),
            tried: Kept::default(),
            templates,
        }
    }

    /// Looks up every part.
    pub(crate) async fn resolve(&self, class: &EC2NodeClass) -> ClassResolution {
        let mut status = class.status.clone().unwrap_or_default();
        status.conditions = Vec::new();
        // Uid and generation: a changed class is always looked up anew.
        let key = format!(
            "{}-{}",
            class.metadata.uid.as_deref().unwrap_or_default(),
            class.metadata.generation.unwrap_or_default()
        );
        let (images, subnets, groups, profile) = tokio::join!(
            self.resolve_images(class, &key),
            self.resolve_subnets(class, &key),
            self.resolve_security_groups(class, &key),
            self.resolve_profile(class, &key),
        );
        let mut outcomes = vec![
            outcome(conditions::AMIS_READY, take(images, &mut status.amis)),
            outcome(conditions::SUBNETS_READY, take(subnets, &mut status.subnets)),
            outcome(conditions::SECURITY_GROUPS_READY, take(groups, &mut status.security_groups)),
        ];
        outcomes.push(outcome(conditions::INSTANCE_PROFILE_READY, take_some(profile, &mut status.instance_profile)));
        outcomes.push(outcome(conditions::PLACEMENT_GROUP_READY, verdict::placement_group(class)));
        outcomes.extend(verdict::capacity_reservations(class));
        let own = self.validate(class, &status, &outcomes).await;
        outcomes.push(outcome(conditions::VALIDATION_SUCCEEDED, own));
        let unasked = outcomes.iter().any(|o| matches!(o.verdict, Verdict::Unasked { .. }));
        let requeue_after = if unasked { SOON } else { LATER };
        ClassResolution { status, conditions: outcomes, requeue_after }
    }

    async fn resolve_subnets(
        &self,
        class: &EC2NodeClass,
        key: &str,
    ) -> Result<Vec<mortise_api::ec2nodeclass::Subnet>, Verdict> {
        let found = match self.subnets.get(key, self.settings.subnet_refresh) {
            Some(found) => found,
            None => {
                let found = find_subnets(&self.clients, &subnet_filters(class))
                    .await
                    .map_err(|e| unasked("SubnetsNotFound", &e))?;
                self.addresses.refresh(&found);
                if !found.is_empty() {
                    self.subnets.put(key, found.clone());
                }
                found
            }
        };
        if found.is_empty() {
            let asked = selector_text(&class.spec.subnet_selector_terms);
            return Err(not_ready(
                "SubnetsNotFound",
                format!(
                    "spec.subnetSelectorTerms: no subnet in {} matches {asked}; check tags and region",
                    self.clients.region
                ),
            ));
        }
        Ok(found.into_iter().map(|s| s.subnet).collect())
    }

    async fn resolve_security_groups(&self, class: &EC2NodeClass, key: &str) -> Result<Vec<SecurityGroup>, Verdict> {
        let found = match self.security_groups.get(key, self.settings.security_group_refresh) {
            Some(found) => found,
            None => {
                let found = find_security_groups(&self.clients, &security_group_filters(class))
                    .await
                    .map_err(|e| unasked("SecurityGroupsNotFound", &e))?;
                if !found.is_empty() {
                    self.security_groups.put(key, found.clone());
                }
                found
            }
        };
        if found.is_empty() {
            let asked = selector_text(&class.spec.security_group_selector_terms);
            return Err(not_ready(
                "SecurityGroupsNotFound",
                format!(
                    "spec.securityGroupSelectorTerms: no security group in {} matches {asked}; check tags and region",
                    self.clients.region
                ),
            ));
        }
        Ok(found)
    }

    async fn resolve_images(&self, class: &EC2NodeClass, key: &str) -> Result<Vec<Ami>, Verdict> {
        if let Some(found) = self.images.get(key, self.settings.ami_refresh) {
            return Ok(found);
        }
        let kubernetes = match class.spec.alias() {
            Some(_) => self.kubernetes().await.map_err(|e| unasked("AMINotFound", &e))?,
            None => None,
        };
        let now = verdict::now_rfc3339();
        let found = find_images(&self.clients, &self.parameters, class, kubernetes.as_deref(), &now).await;
        let found = found.map_err(|e| match e {
            ImageError::Api(error) => unasked("AMINotFound", &error),
            ImageError::Class(reason, message) => not_ready(reason, message),
        })?;
        if found.is_empty() {
            let asked = selector_text(&class.spec.ami_selector_terms);
            return Err(not_ready(
                "AMINotFound",
                format!(
                    "spec.amiSelectorTerms: no available x86_64 or arm64 image in {} matches {asked}",
                    self.clients.region
                ),
            ));
        }
        self.images.put(key, found.clone());
        Ok(found)
    }

    async fn kubernetes(&self) -> Result<Option<Arc<str>>, ApiError> {
        Ok(match &self.settings.kubernetes_version {
            Some(version) => Some(Arc::clone(version)),
            None => self.cluster.info(&self.clients, &self.settings).await?.kubernetes,
        })
    }

    async fn resolve_profile(&self, class: &EC2NodeClass, key: &str) -> Result<String, Verdict> {
        if let Some(profile) = &class.spec.instance_profile {
            return Ok(profile.clone());
        }
        let Some(role) = &class.spec.role else {
            let message = "spec: neither role nor instanceProfile is set; give one of them".to_owned();
            return Err(not_ready("InstanceProfileNotFound", message));
        };
        if let Some(name) = self.profiles.get(key, PROFILE_TTL) {
            return Ok(name);
        }
        let request = ProfileRequest { cluster: &self.settings.cluster_name, class, role };
        let name = profile::ensure(&self.clients, &request).await.map_err(|e| {
            if e.is_not_found() && e.message.to_ascii_lowercase().contains("role") {
                let message = format!("spec.role: IAM has no role {role:?}; create it or correct the name");
                not_ready("RoleNotFound", message)
            } else if e.is_unauthorized() {
                not_ready("Unauthorized", format!("spec.role: {} is not permitted: {}", e.call, e.message))
            } else {
                unasked("InstanceProfileResolutionFailed", &e)
            }
        })?;
        self.profiles.put(key, name.clone());
        Ok(name)
    }

    /// Whether the class makes sense as a whole.
    async fn validate(
        &self,
        class: &EC2NodeClass,
        status: &EC2NodeClassStatus,
        others: &[ConditionOutcome],
    ) -> Verdict {
        if let Some(bad) = verdict::spec(class) {
            return bad;
        }
        let family = class.spec.resolved_ami_family();
        let joins = family == Some(mortise_api::ec2nodeclass::AmiFamily::Al2023);
        let cluster = match self.cluster.info(&self.clients, &self.settings).await {
            Ok(cluster) => cluster,
            // Images of the user's own bring what they need.
            Err(_) if !joins => ClusterInfo::from_settings(&self.settings),
            Err(error) if error.is_transient() => return unasked("ClusterCIDRResolutionFailed", &error),
            Err(error) => {
                let message = format!(
                    "the cluster's endpoint, CA and service CIDR could not be asked from EKS: {error}; set CLUSTER_NAME rightly and allow eks:DescribeCluster"
                );
                return not_ready("ClusterCIDRResolutionFailed", message);
            }
        };
        if joins {
            if let Some(message) = verdict::cluster_gap(&cluster) {
                return not_ready("ClusterCIDRResolutionFailed", message);
            }
            if let Err((reason, message)) = verdict::trial_user_data(class, &cluster) {
                return not_ready(reason, message);
            }
        }
        let parts = verdict::dependencies(status, others);
        if parts != Verdict::Ready || self.settings.disable_dry_run {
            return parts;
        }
        self.try_out(class, status, &cluster).await.unwrap_or(Verdict::Ready)
    }

    /// Forgets a class that is gone.
    pub(crate) fn forget(&self, class: &EC2NodeClass) {
        let key = format!(
            "{}-{}",
            class.metadata.uid.as_deref().unwrap_or_default(),
            class.metadata.generation.unwrap_or_default()
        );
        self.profiles.remove(&key);
    }
}

fn outcome(condition: &'static str, verdict: Verdict) -> ConditionOutcome {
    ConditionOutcome { condition, verdict }
}

/// Puts a found list into the status. One that could not be asked stays as it was; one that is wrong is emptied.
fn take<T>(found: Result<Vec<T>, Verdict>, slot: &mut Vec<T>) -> Verdict {
    match found {
        Ok(list) => {
            *slot = list;
            Verdict::Ready
        }
        Err(verdict) => {
            if matches!(verdict, Verdict::NotReady { .. }) {
                slot.clear();
            }
            verdict
        }
    }
}

fn take_some(found: Result<String, Verdict>, slot: &mut Option<String>) -> Verdict {
    match found {
        Ok(name) => {
            *slot = Some(name);
            Verdict::Ready
        }
        Err(verdict) => {
            if matches!(verdict, Verdict::NotReady { .. }) {
                *slot = None;
            }
            verdict
        }
    }
}
