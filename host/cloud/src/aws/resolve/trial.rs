//! Tries a class out against EC2 without starting anything: may we do what a launch will do?

use std::collections::BTreeMap;

use aws_sdk_ec2::types::{
    IamInstanceProfileSpecification, InstanceNetworkInterfaceSpecification, InstanceType, ResourceType,
};
use mortise_api::EC2NodeClass;
use mortise_api::ec2nodeclass::EC2NodeClassStatus;
use mortise_engine::catalog::CapacityType;

use super::Resolver;
use super::verdict::{not_ready, unasked};
use crate::aws::cluster::ClusterInfo;
use crate::aws::error::ApiError;
use crate::aws::fleet::{FleetRequest, Override};
use crate::aws::hash::short_hash;
use crate::aws::tags;
use crate::aws::template::{Options, Template, block_devices};
use crate::aws::userdata::Bootstrap;
use crate::catalog_build::AmiFamily;
use crate::class::Verdict;

impl Resolver {
    /// Tries out what has not been tried in this form for half an hour. `None` = nothing speaks against it.
    pub(super) async fn try_out(
        &self,
        class: &EC2NodeClass,
        status: &EC2NodeClassStatus,
        cluster: &ClusterInfo,
    ) -> Option<Verdict> {
        let (template, choice) = self.trial_template(class, status, cluster)?;
        let subnets: Vec<&str> = status.subnets.iter().map(|s| s.id.as_str()).collect();
        let key = short_hash(&[&template.name(), &subnets.join(",")]);
        if self.tried.get(&key, super::TRIED_TTL).is_some() {
            return None;
        }
        let verdict = Box::pin(self.trial_calls(class, status, &template, choice)).await;
        if verdict.is_none() {
            self.tried.put(&key, ());
        }
        verdict
    }

    /// A template as a launch would make it, for a common type that the first image is for.
    fn trial_template(
        &self,
        class: &EC2NodeClass,
        status: &EC2NodeClassStatus,
        cluster: &ClusterInfo,
    ) -> Option<(Template, Override)> {
        let family = class.spec.resolved_ami_family().and_then(|f| AmiFamily::parse(f.as_str()))?;
        // A plain variant before one for GPUs, whose snapshot may be larger than the class's volume.
        let ami = status.amis.iter().find(|a| !a.requirements.iter().any(|r| r.operator.as_str() == "Exists"))?;
        let arm = ami.requirements.iter().any(|r| r.values.iter().any(|v| &**v == "arm64"));
        let subnet = status.subnets.first()?;
        let user_data = Bootstrap {
            family,
            cluster,
            labels: &BTreeMap::new(),
            taints: &[],
            kubelet: &class.spec.kubelet,
            max_pods: 110,
            raid0: false,
            custom: class.spec.user_data.as_deref(),
        }
        .encoded()
        .ok()?;
        let mut security_groups: Vec<String> = status.security_groups.iter().map(|g| g.id.clone()).collect();
        security_groups.sort();
        let template = Template {
            image_id: ami.id.clone(),
            user_data,
            instance_profile: status.instance_profile.clone()?,
            security_groups,
            block_devices: block_devices(class, family),
            spot: false,
            dedicated: false,
            efa: 0,
            ipv6: cluster.is_ipv6(),
            options: Options::of(class),
            tags: tags::common(class, &self.settings.cluster_name, ""),
        };
        let choice = Override {
            template: template.name(),
            image_id: ami.id.clone(),
            instance_type: if arm { "m6g.large" } else { "m5.large" }.into(),
            zone: subnet.zone.as_str().into(),
            subnet: subnet.id.clone(),
        };
        Some((template, choice))
    }

    async fn trial_calls(
        &self,
        class: &EC2NodeClass,
        status: &EC2NodeClassStatus,
        template: &Template,
        choice: Override,
    ) -> Option<Verdict> {
        if let Err(error) = self.templates.ensure(&self.clients, template, class).await {
            return judge("CreateLaunchTemplateAuthCheckFailed", "launch templates cannot be created", &error);
        }
        let instance_type = InstanceType::from(&*choice.instance_type);
        let fleet = FleetRequest {
            token: short_hash(&["mortise-trial", &template.name()]),
            capacity_type: CapacityType::OnDemand,
            prioritized: false,
            overrides: vec![choice],
            tags: template.tags.clone(),
            context: class.spec.context.clone(),
        };
        let tried = self.clients.call("CreateFleet", fleet.builder(&self.clients).dry_run(true).send()).await;
        if let Some(bad) = tried.err().and_then(|e| judge("CreateFleetAuthCheckFailed", "fleets cannot be created", &e))
        {
            return Some(bad);
        }
        let subnet = status.subnets.first().map(|s| s.id.clone());
        let interface = InstanceNetworkInterfaceSpecification::builder()
            .device_index(0)
            .set_subnet_id(subnet)
            .set_groups(Some(template.security_groups.clone()))
            .build();
        let mut run = self
            .clients
            .ec2
            .run_instances()
            .dry_run(true)
            .min_count(1)
            .max_count(1)
            .image_id(&template.image_id)
            .instance_type(instance_type)
            .network_interfaces(interface)
            .iam_instance_profile(IamInstanceProfileSpecification::builder().name(&template.instance_profile).build());
        for resource in [ResourceType::Instance, ResourceType::Volume, ResourceType::NetworkInterface] {
            run = run.tag_specifications(tags::specification(resource, &template.tags));
        }
        let error = Box::pin(self.clients.call("RunInstances", run.send())).await.err()?;
        let no_profile = error.message.contains("Invalid IAM Instance Profile")
            || (error.is_not_found() && error.message.contains("nstance profile"));
        match &class.spec.instance_profile {
            Some(name) if no_profile => Some(not_ready(
                "InstanceProfileNotFound",
                format!("spec.instanceProfile: there is no instance profile {name:?}; create it or correct the name"),
            )),
            // One made a moment ago is not known everywhere yet.
            None if no_profile => Some(Verdict::Unasked {
                reason: "RunInstancesAuthCheckFailed".into(),
                message: "EC2 does not know the new instance profile yet".to_owned(),
            }),
            _ => judge("RunInstancesAuthCheckFailed", "instances cannot be started", &error),
        }
    }
}

/// Only what says "you may not", or what will hold for every launch, speaks against a class. A dry run that fails
/// otherwise is told in the log: launches have reasons of their own.
fn judge(reason: &'static str, what: &str, error: &ApiError) -> Option<Verdict> {
    if error.code == "DryRunOperation" {
        return None;
    }
    if error.message.contains("User data is limited to") {
        return Some(not_ready("UserDataSizeLimitExceeded", error.message.clone()));
    }
    if error.is_unauthorized() {
        return Some(not_ready(reason, format!("{what}: {}: {}", error.code, error.message)));
    }
    if error.is_transient() {
        return Some(unasked(reason, error));
    }
    tracing::warn!(call = error.call, code = %error.code, message = %error.message, "a dry run for a node class failed");
    None
}
