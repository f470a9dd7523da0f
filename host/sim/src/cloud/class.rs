//! What an EC2NodeClass resolves to: one subnet per zone, one security group, the images of its alias.

use std::sync::Arc;
use std::time::Duration;

use mortise_api::condition::ec2nodeclass as condition;
use mortise_api::ec2nodeclass::{Ami, EC2NodeClassStatus, SecurityGroup, Subnet};
use mortise_api::requirement::{Operator, Requirement};
use mortise_api::{EC2NodeClass, labels, validation};
use mortise_cloud::{ClassResolution, ConditionOutcome, Verdict};

use super::Options;

/// Resolved once, nothing here changes by itself.
const AGAIN: Duration = Duration::from_secs(600);

pub(super) fn resolve(class: &EC2NodeClass, options: &Options) -> ClassResolution {
    let spec = &class.spec;
    let mut status = EC2NodeClassStatus { conditions: Vec::new(), ..class.status.clone().unwrap_or_default() };
    let mut conditions = Vec::new();
    let mut part =
        |name: &'static str, verdict: Verdict| conditions.push(ConditionOutcome { condition: name, verdict });

    status.subnets =
        options.zones.iter().enumerate().map(|(at, letter)| subnet(&options.region, at, *letter)).collect();
    if spec.subnet_selector_terms.is_empty() {
        status.subnets.clear();
        part(
            condition::SUBNETS_READY,
            missing("SubnetsNotFound", "spec.subnetSelectorTerms: none given, want at least one term"),
        );
    } else {
        part(condition::SUBNETS_READY, Verdict::Ready);
    }
    status.security_groups =
        vec![SecurityGroup { id: "sg-0000000000000001".to_owned(), name: Some("embedded".to_owned()) }];
    if spec.security_group_selector_terms.is_empty() {
        status.security_groups.clear();
        part(
            condition::SECURITY_GROUPS_READY,
            missing("SecurityGroupsNotFound", "spec.securityGroupSelectorTerms: none given, want at least one term"),
        );
    } else {
        part(condition::SECURITY_GROUPS_READY, Verdict::Ready);
    }
    match &spec.alias() {
        Some(alias) => {
            let name = format!("{}-{}", alias.family.to_lowercase(), alias.version);
            status.amis = vec![ami("amd64", &name), ami("arm64", &name)];
            part(condition::AMIS_READY, Verdict::Ready);
        }
        None if spec.ami_selector_terms.is_empty() => {
            status.amis.clear();
            part(
                condition::AMIS_READY,
                missing("AMINotFound", "spec.amiSelectorTerms: none given, want at least one term"),
            );
        }
        None => {
            status.amis = vec![ami("amd64", "selected"), ami("arm64", "selected")];
            part(condition::AMIS_READY, Verdict::Ready);
        }
    }
    let named = spec.instance_profile.clone();
    status.instance_profile = named.or_else(|| spec.role.as_ref().map(|role| format!("embedded_{role}")));
    part(
        condition::INSTANCE_PROFILE_READY,
        match status.instance_profile {
            Some(_) => Verdict::Ready,
            None => {
                missing("InstanceProfileNotFound", "spec.role and spec.instanceProfile: none given, want one of them")
            }
        },
    );
    let (refused, _) = validation::ec2_node_class(class, false);
    part(
        condition::VALIDATION_SUCCEEDED,
        match refused {
            None => Verdict::Ready,
            Some(error) => {
                let fields: Vec<String> = error.fields.iter().map(ToString::to_string).collect();
                Verdict::NotReady { reason: error.reason.into(), message: fields.join("; ") }
            }
        },
    );
    ClassResolution { status, conditions, requeue_after: AGAIN }
}

fn missing(reason: &str, message: &str) -> Verdict {
    Verdict::NotReady { reason: Arc::from(reason), message: message.to_owned() }
}

fn subnet(region: &str, at: usize, letter: char) -> Subnet {
    // Zone ids of us-east-1 begin with use1: the area whole, of the rest the first letters.
    let mut parts = region.split('-');
    let area = parts.next().unwrap_or_default();
    let rest: String = parts.map(|part| part.get(..1).unwrap_or_default()).collect();
    let id = format!("{area}{rest}");
    Subnet {
        id: format!("subnet-{:016x}", at + 1),
        zone: format!("{region}{letter}"),
        zone_id: Some(format!("{id}-az{}", at + 1)),
    }
}

fn ami(arch: &str, name: &str) -> Ami {
    Ami {
        id: format!("ami-{:0>17}", if arch == "arm64" { "2" } else { "1" }),
        name: Some(format!("embedded-{name}-{arch}")),
        deprecated: None,
        requirements: vec![Requirement::new(labels::ARCH, Operator::In, [arch])],
    }
}
