//! CreateFleet of type `instant`: the choice that EC2 makes, and client tokens.

use super::{Call, Market, Shared};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The answer given to a client token.
#[derive(Debug, Clone)]
pub(super) struct Remembered {
    parameters: BTreeMap<String, String>,
    answer: String,
    instances: Vec<String>,
}

/// A fleet request's answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub status: u16,
    pub xml: String,
    pub instances: Vec<String>,
    pub replayed: bool,
}

#[derive(Debug, Clone)]
struct Override {
    /// `LaunchTemplateConfigs.2`
    config: String,
    /// `LaunchTemplateConfigs.2.Overrides.7`
    path: String,
    instance_type: String,
    subnet: String,
    zone: String,
    /// What the strategy sorts by.
    rank: f64,
}

/// Carries a request out.
pub(super) async fn create(shared: &Shared, call: &Call) -> Result<Answer> {
    let mut remembered = shared.fleets.lock().await;
    let token = call.parameter("ClientToken").to_owned();
    if let Some(before) = remembered.get(&token).filter(|_| !token.is_empty()) {
        if before.parameters != call.parameters {
            let xml = super::server::error_xml(
                "IdempotentParameterMismatch",
                "the client token was used before with different parameters",
            );
            return Ok(Answer { status: 400, xml, instances: Vec::new(), replayed: false });
        }
        return Ok(Answer {
            status: 200,
            xml: before.answer.clone(),
            instances: before.instances.clone(),
            replayed: true,
        });
    }
    let answer = choose_and_launch(shared, call).await?;
    if answer.status == 200 && !token.is_empty() {
        remembered.insert(
            token,
            Remembered {
                parameters: call.parameters.clone(),
                answer: answer.xml.clone(),
                instances: answer.instances.clone(),
            },
        );
    }
    Ok(answer)
}

fn overrides(shared: &Shared, call: &Call, capacity_type: &str) -> Vec<Override> {
    // `prioritized` strategies go by the request's priorities, all others by price.
    let strategy = if capacity_type == "spot" {
        call.parameter("SpotOptions.AllocationStrategy")
    } else {
        call.parameter("OnDemandOptions.AllocationStrategy")
    };
    let by_priority = strategy.ends_with("prioritized");
    let mut found = Vec::new();
    for (name, instance_type) in &call.parameters {
        let Some(path) = name.strip_suffix(".InstanceType").filter(|path| path.contains(".Overrides.")) else {
            continue;
        };
        let Some((config, _)) = path.split_once(".Overrides.") else { continue };
        let subnet = call.parameter(&format!("{path}.SubnetId"));
        let zone = shared
            .zone_of_subnet
            .get(subnet)
            .map_or_else(|| call.parameter(&format!("{path}.AvailabilityZone")), String::as_str);
        let rank = if by_priority {
            call.parameter(&format!("{path}.Priority")).parse().ok()
        } else {
            Market::price(instance_type, zone, capacity_type)
        };
        found.push(Override {
            config: config.to_owned(),
            path: path.to_owned(),
            instance_type: instance_type.clone(),
            subnet: subnet.to_owned(),
            zone: zone.to_owned(),
            rank: rank.unwrap_or(f64::INFINITY),
        });
    }
    // By number and not by name, so that equal ranks keep the order of the request.
    found.sort_by_key(|it| numbers(&it.path));
    found.sort_by(|a, b| a.rank.total_cmp(&b.rank));
    found
}

fn numbers(path: &str) -> Vec<u32> {
    path.split('.').filter_map(|part| part.parse().ok()).collect()
}

async fn choose_and_launch(shared: &Shared, call: &Call) -> Result<Answer> {
    let capacity_type = call.parameter("TargetCapacitySpecification.DefaultTargetCapacityType").to_owned();
    let wanted: u32 = call.parameter("TargetCapacitySpecification.TotalTargetCapacity").parse().unwrap_or(1);
    let mut missing = wanted;
    let mut errors = String::new();
    let mut launches = String::new();
    let mut instances = Vec::new();
    for choice in overrides(shared, call, &capacity_type) {
        if missing == 0 {
            break;
        }
        let got = shared.state().market.take(&choice.instance_type, &choice.zone, &capacity_type, missing);
        if got < missing {
            write!(errors, "{}", shortage_xml(&choice, &capacity_type)).ok();
        }
        if got == 0 {
            continue;
        }
        let answer = launch(shared, call, &choice, got).await?;
        if answer.0 != 200 {
            return Ok(Answer { status: answer.0, xml: answer.1, instances, replayed: false });
        }
        let document = roxmltree::Document::parse(&answer.1).context("moto's fleet answer is not XML")?;
        for item in document
            .descendants()
            .filter(|node| node.tag_name().name() == "fleetInstanceSet")
            .flat_map(|set| set.children())
            .filter(roxmltree::Node::is_element)
        {
            launches.push_str(answer.1.get(item.range()).unwrap_or_default());
            instances.extend(
                item.descendants()
                    .filter(|node| node.tag_name().name() == "instanceIds")
                    .flat_map(|ids| ids.children())
                    .filter_map(|id| id.text().map(str::to_owned)),
            );
        }
        missing -= got;
    }
    let number = shared.state().calls.len();
    let xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <CreateFleetResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\"><requestId>request-{number}</requestId>\
         <fleetId>fleet-00000000-0000-0000-0000-{number:012x}</fleetId><errorSet>{errors}</errorSet>\
         <fleetInstanceSet>{launches}</fleetInstanceSet></CreateFleetResponse>"
    );
    Ok(Answer { status: 200, xml, instances, replayed: false })
}

/// The same request with this override alone.
async fn launch(shared: &Shared, call: &Call, choice: &Override, count: u32) -> Result<(u16, String)> {
    let form = narrowed(call, choice, count);
    super::server::forward_form(shared, "ec2", form).await
}

fn narrowed(call: &Call, choice: &Override, count: u32) -> String {
    let mut form = form_urlencoded::Serializer::new(String::new());
    for (name, value) in &call.parameters {
        if name.starts_with("LaunchTemplateConfigs.") {
            let chosen = name.strip_prefix(&choice.path).filter(|rest| rest.starts_with('.'));
            let template =
                name.strip_prefix(&choice.config).filter(|rest| rest.starts_with(".LaunchTemplateSpecification"));
            match (chosen, template) {
                (Some(rest), _) => form.append_pair(&format!("LaunchTemplateConfigs.1.Overrides.1{rest}"), value),
                (_, Some(rest)) => form.append_pair(&format!("LaunchTemplateConfigs.1{rest}"), value),
                _ => continue,
            };
        } else if name == "TargetCapacitySpecification.TotalTargetCapacity" {
            form.append_pair(name, &count.to_string());
        } else {
            form.append_pair(name, value);
        }
    }
    form.finish()
}

fn shortage_xml(choice: &Override, capacity_type: &str) -> String {
    format!(
        "<item><launchTemplateAndOverrides><overrides><instanceType>{}</instanceType><subnetId>{}</subnetId>\
         <availabilityZone>{}</availabilityZone></overrides></launchTemplateAndOverrides><lifecycle>{capacity_type}</lifecycle>\
         <errorCode>InsufficientInstanceCapacity</errorCode><errorMessage>We currently do not have sufficient {} capacity \
         in the Availability Zone you requested ({}).</errorMessage></item>",
        choice.instance_type, choice.subnet, choice.zone, choice.instance_type, choice.zone
    )
}
