//! One CreateFleet request for one NodeClaim, and what its answer means.

use std::collections::BTreeMap;
use std::sync::Arc;

use aws_sdk_ec2::operation::create_fleet::CreateFleetOutput;
use aws_sdk_ec2::operation::create_fleet::builders::CreateFleetFluentBuilder;
use aws_sdk_ec2::types::{
    CreateFleetError, DefaultTargetCapacityType, FleetLaunchTemplateConfigRequest, FleetLaunchTemplateOverridesRequest,
    FleetLaunchTemplateSpecificationRequest, FleetOnDemandAllocationStrategy, FleetType,
    InstanceType as Ec2InstanceType, OnDemandOptionsRequest, ResourceType, SpotAllocationStrategy, SpotOptionsRequest,
    TargetCapacitySpecificationRequest,
};
use mortise_engine::catalog::CapacityType;

use super::clients::Clients;
use super::error::{SPOT_ROLE_MISSING, is_insufficient_capacity, launch_reason};
use super::tags;
use crate::launch::Exhausted;
use crate::unavailable::Mark;

/// Overrides that EC2 takes in one request.
const OVERRIDES: usize = 300;
/// Launch templates that EC2 takes in one request.
const CONFIGS: usize = 50;

/// One way to fulfil a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Override {
    pub(crate) template: String,
    pub(crate) image_id: String,
    pub(crate) instance_type: Arc<str>,
    pub(crate) zone: Arc<str>,
    pub(crate) subnet: String,
}

/// A request for one machine.
#[derive(Clone, Debug)]
pub(crate) struct FleetRequest {
    pub(crate) token: String,
    pub(crate) capacity_type: CapacityType,
    /// The order of `overrides` is to be kept, whatever they cost.
    pub(crate) prioritized: bool,
    /// Best first.
    pub(crate) overrides: Vec<Override>,
    /// On the machine, its volumes and the fleet.
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) context: Option<String>,
}

impl FleetRequest {
    pub(crate) fn builder(&self, clients: &Clients) -> CreateFleetFluentBuilder {
        let spot = self.capacity_type == CapacityType::Spot;
        let mut request = clients
            .ec2
            .create_fleet()
            .r#type(FleetType::Instant)
            .client_token(&self.token)
            .set_context(self.context.clone())
            .set_launch_template_configs(Some(self.configs()))
            .target_capacity_specification(
                TargetCapacitySpecificationRequest::builder()
                    .total_target_capacity(1)
                    .default_target_capacity_type(if spot {
                        DefaultTargetCapacityType::Spot
                    } else {
                        DefaultTargetCapacityType::OnDemand
                    })
                    .build(),
            );
        for resource in [ResourceType::Instance, ResourceType::Volume, ResourceType::Fleet] {
            request = request.tag_specifications(tags::specification(resource, &self.tags));
        }
        if spot {
            let strategy = if self.prioritized {
                SpotAllocationStrategy::CapacityOptimizedPrioritized
            } else {
                SpotAllocationStrategy::PriceCapacityOptimized
            };
            request.spot_options(SpotOptionsRequest::builder().allocation_strategy(strategy).build())
        } else {
            let strategy = if self.prioritized {
                FleetOnDemandAllocationStrategy::Prioritized
            } else {
                FleetOnDemandAllocationStrategy::LowestPrice
            };
            request.on_demand_options(OnDemandOptionsRequest::builder().allocation_strategy(strategy).build())
        }
    }

    /// Overrides by launch template, each list and the templates themselves in order of preference.
    fn configs(&self) -> Vec<FleetLaunchTemplateConfigRequest> {
        let mut order: Vec<&str> = Vec::new();
        let mut by_template: BTreeMap<&str, Vec<FleetLaunchTemplateOverridesRequest>> = BTreeMap::new();
        for (rank, choice) in (0_u32..).zip(self.overrides.iter().take(OVERRIDES)) {
            if !by_template.contains_key(&*choice.template) {
                if order.len() == CONFIGS {
                    continue;
                }
                order.push(&choice.template);
            }
            by_template.entry(&choice.template).or_default().push(
                FleetLaunchTemplateOverridesRequest::builder()
                    .instance_type(Ec2InstanceType::from(&*choice.instance_type))
                    .subnet_id(&choice.subnet)
                    .availability_zone(&*choice.zone)
                    .image_id(&choice.image_id)
                    .priority(f64::from(rank))
                    .build(),
            );
        }
        order
            .into_iter()
            .map(|template| {
                FleetLaunchTemplateConfigRequest::builder()
                    .launch_template_specification(
                        FleetLaunchTemplateSpecificationRequest::builder()
                            .launch_template_name(template)
                            .version("$Latest")
                            .build(),
                    )
                    .set_overrides(by_template.remove(template))
                    .build()
            })
            .collect()
    }
}

/// The machine that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Started {
    pub(crate) id: String,
    pub(crate) instance_type: Arc<str>,
    pub(crate) zone: Arc<str>,
    pub(crate) subnet: String,
    pub(crate) image_id: String,
}

/// What an answer means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FleetAnswer {
    pub(crate) started: Option<Started>,
    /// What to remember as not to be had.
    pub(crate) marks: Vec<Mark>,
    pub(crate) exhausted: Vec<Exhausted>,
    /// Subnets without addresses.
    pub(crate) full_subnets: Vec<String>,
    /// The first error that is not about capacity: code and message.
    pub(crate) fault: Option<(String, String)>,
}

/// Reads an answer to `request`.
pub(crate) fn read(request: &FleetRequest, output: &CreateFleetOutput) -> FleetAnswer {
    let mut answer = FleetAnswer {
        started: started(request, output),
        marks: Vec::new(),
        exhausted: Vec::new(),
        full_subnets: Vec::new(),
        fault: None,
    };
    for error in output.errors() {
        let code = error.error_code().unwrap_or("UnknownError");
        if code == SPOT_ROLE_MISSING {
            answer.marks.push(Mark::Market(CapacityType::Spot));
            answer.exhausted.extend(offering(request, error, code));
        } else if is_insufficient_capacity(code) {
            if let Some(lost) = offering(request, error, code) {
                if code == "InsufficientFreeAddressesInSubnet"
                    && let Some(subnet) = overridden(error).and_then(|o| o.subnet_id())
                {
                    answer.full_subnets.push(subnet.to_owned());
                    answer.marks.push(Mark::Subnet(Arc::from(subnet)));
                } else {
                    answer.marks.push(Mark::offering(request.capacity_type, &lost.instance_type, &lost.zone));
                }
                answer.exhausted.push(lost);
            }
        } else if answer.fault.is_none() {
            answer.fault = Some((code.to_owned(), error.error_message().unwrap_or_default().to_owned()));
        }
    }
    answer.exhausted.sort();
    answer.exhausted.dedup();
    answer.marks.sort();
    answer.marks.dedup();
    answer
}

fn overridden(error: &CreateFleetError) -> Option<&aws_sdk_ec2::types::FleetLaunchTemplateOverrides> {
    error.launch_template_and_overrides().and_then(|l| l.overrides())
}

/// The offering that an error is about. The zone may be told by the subnet alone.
fn offering(request: &FleetRequest, error: &CreateFleetError, code: &str) -> Option<Exhausted> {
    let told = overridden(error)?;
    let instance_type = told.instance_type()?.as_str();
    let zone = match (told.availability_zone(), told.subnet_id()) {
        (Some(zone), _) => Arc::from(zone),
        (None, Some(subnet)) => request.overrides.iter().find(|o| o.subnet == subnet).map(|o| Arc::clone(&o.zone))?,
        (None, None) => return None,
    };
    Some(Exhausted {
        instance_type: Arc::from(instance_type),
        zone,
        capacity_type: request.capacity_type,
        code: Arc::from(code),
    })
}

fn started(request: &FleetRequest, output: &CreateFleetOutput) -> Option<Started> {
    let instance = output.instances().iter().find(|i| !i.instance_ids().is_empty())?;
    let id = instance.instance_ids().first()?.clone();
    let told = instance.launch_template_and_overrides().and_then(|l| l.overrides());
    let name = instance.instance_type().or_else(|| told.and_then(|o| o.instance_type()))?.as_str();
    let subnet = told.and_then(|o| o.subnet_id()).or_else(|| instance.subnet_id());
    let zone = told.and_then(|o| o.availability_zone()).or_else(|| instance.availability_zone());
    // What the answer leaves out is in the request: the override of this type and place.
    let asked = request.overrides.iter().find(|o| {
        &*o.instance_type == name && subnet.is_none_or(|s| s == o.subnet) && zone.is_none_or(|z| z == &*o.zone)
    })?;
    Some(Started {
        id,
        instance_type: Arc::clone(&asked.instance_type),
        zone: Arc::clone(&asked.zone),
        subnet: asked.subnet.clone(),
        image_id: asked.image_id.clone(),
    })
}

/// What was lost, in one line, shortest codes grouped.
pub(crate) fn describe_exhausted(exhausted: &[Exhausted]) -> String {
    let mut by_code: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for e in exhausted {
        by_code.entry(&e.code).or_default().push(format!("{}/{}", e.instance_type, e.zone));
    }
    let parts: Vec<String> = by_code
        .into_iter()
        .map(|(code, mut places)| {
            let more = places.len().saturating_sub(5);
            places.truncate(5);
            let tail = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("{code}: {}{tail}", places.join(", "))
        })
        .collect();
    parts.join("; ")
}

/// Condition reason for a launch that found no capacity anywhere.
pub(crate) fn capacity_reason(exhausted: &[Exhausted]) -> Arc<str> {
    // A quota is not a shortage: the user must know which it is.
    let quota = exhausted.iter().find_map(|e| {
        let (reason, _) = launch_reason(&e.code, "");
        (&*reason != "LaunchFailed").then_some(reason)
    });
    quota.unwrap_or_else(|| Arc::from("InsufficientCapacity"))
}

#[cfg(test)]
mod tests {
    use aws_sdk_ec2::types::{CreateFleetInstance, FleetLaunchTemplateOverrides, LaunchTemplateAndOverridesResponse};

    use super::*;

    fn choice(template: &str, instance_type: &str, zone: &str) -> Override {
        Override {
            template: template.into(),
            image_id: "ami-1".into(),
            instance_type: instance_type.into(),
            zone: zone.into(),
            subnet: format!("subnet-{zone}"),
        }
    }

    fn request() -> FleetRequest {
        FleetRequest {
            token: "t".into(),
            capacity_type: CapacityType::Spot,
            prioritized: false,
            overrides: vec![
                choice("lt-b", "m5.large", "a"),
                choice("lt-a", "g4dn.xlarge", "a"),
                choice("lt-b", "m5.large", "b"),
            ],
            tags: BTreeMap::new(),
            context: None,
        }
    }

    fn told(instance_type: &str, zone: Option<&str>, subnet: Option<&str>) -> LaunchTemplateAndOverridesResponse {
        LaunchTemplateAndOverridesResponse::builder()
            .overrides(
                FleetLaunchTemplateOverrides::builder()
                    .instance_type(Ec2InstanceType::from(instance_type))
                    .set_availability_zone(zone.map(str::to_owned))
                    .set_subnet_id(subnet.map(str::to_owned))
                    .build(),
            )
            .build()
    }

    fn error(code: &str, about: LaunchTemplateAndOverridesResponse) -> CreateFleetError {
        CreateFleetError::builder().error_code(code).launch_template_and_overrides(about).build()
    }

    #[test]
    fn overrides_keep_their_order_and_rank() {
        let configs = request().configs();
        let seen: Vec<_> = configs
            .iter()
            .map(|c| {
                let name = c.launch_template_specification().unwrap().launch_template_name().unwrap();
                (name, c.overrides().iter().map(|o| o.priority().unwrap()).collect::<Vec<_>>())
            })
            .collect();
        assert_eq!(seen, [("lt-b", vec![0.0, 2.0]), ("lt-a", vec![1.0])]);
    }

    #[test]
    fn errors_mark_what_they_are_about() {
        let output = CreateFleetOutput::builder()
            .errors(error("InsufficientInstanceCapacity", told("m5.large", Some("a"), None)))
            .errors(error("UnfulfillableCapacity", told("m5.large", None, Some("subnet-b"))))
            .errors(error("InsufficientFreeAddressesInSubnet", told("g4dn.xlarge", Some("a"), Some("subnet-a"))))
            .build();
        let answer = read(&request(), &output);
        assert_eq!(answer.started, None);
        assert_eq!(
            answer.marks,
            [
                Mark::offering(CapacityType::Spot, "m5.large", "a"),
                Mark::offering(CapacityType::Spot, "m5.large", "b"),
                Mark::Subnet(Arc::from("subnet-a")),
            ]
        );
        assert_eq!(answer.full_subnets, ["subnet-a"]);
        assert_eq!(answer.fault, None);
        assert_eq!(answer.exhausted.len(), 3);
        assert_eq!(&*capacity_reason(&answer.exhausted), "InsufficientFreeAddressesInSubnet");
    }

    #[test]
    fn a_fault_among_shortages_is_kept() {
        let output = CreateFleetOutput::builder()
            .errors(error("InsufficientInstanceCapacity", told("m5.large", Some("a"), None)))
            .errors(error("InvalidAMIID.NotFound", told("m5.large", Some("b"), None)))
            .build();
        let answer = read(&request(), &output);
        assert_eq!(answer.fault.unwrap().0, "InvalidAMIID.NotFound");
        assert_eq!(answer.marks.len(), 1, "a wrong image says nothing about capacity");
    }

    #[test]
    fn a_missing_spot_role_closes_the_market() {
        let output =
            CreateFleetOutput::builder().errors(error(SPOT_ROLE_MISSING, told("m5.large", Some("a"), None))).build();
        assert_eq!(read(&request(), &output).marks, [Mark::Market(CapacityType::Spot)]);
    }

    #[test]
    fn a_machine_is_success_whatever_else_failed() {
        let output = CreateFleetOutput::builder()
            .instances(
                CreateFleetInstance::builder()
                    .instance_ids("i-1")
                    .instance_type(Ec2InstanceType::from("m5.large"))
                    .launch_template_and_overrides(told("m5.large", None, Some("subnet-b")))
                    .build(),
            )
            .errors(error("InsufficientInstanceCapacity", told("g4dn.xlarge", Some("a"), None)))
            .build();
        let answer = read(&request(), &output);
        assert_eq!(answer.started.map(|s| (s.id, s.zone)), Some(("i-1".to_owned(), Arc::from("b"))));
        assert_eq!(answer.marks.len(), 1);
    }

    #[test]
    fn words_stay_short() {
        let many: Vec<Exhausted> = (0..7)
            .map(|i| Exhausted {
                instance_type: format!("t{i}").into(),
                zone: "a".into(),
                capacity_type: CapacityType::Spot,
                code: "ICE".into(),
            })
            .collect();
        assert_eq!(describe_exhausted(&many), "ICE: t0/a, t1/a, t2/a, t3/a, t4/a and 2 more");
    }
}
