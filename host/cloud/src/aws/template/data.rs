//! A template in the SDK's words.

use aws_sdk_ec2::types::{
    ConnectionTrackingSpecificationRequest, LaunchTemplateBlockDeviceMappingRequest, LaunchTemplateCpuOptionsRequest,
    LaunchTemplateEbsBlockDeviceRequest, LaunchTemplateEnclaveOptionsRequest, LaunchTemplateHttpTokensState,
    LaunchTemplateIamInstanceProfileSpecificationRequest, LaunchTemplateInstanceMetadataEndpointState,
    LaunchTemplateInstanceMetadataOptionsRequest, LaunchTemplateInstanceMetadataProtocolIpv6,
    LaunchTemplateInstanceMetadataTagsState, LaunchTemplateInstanceNetworkInterfaceSpecificationRequest,
    LaunchTemplatePlacementRequest, LaunchTemplateTagSpecificationRequest, LaunchTemplatesMonitoringRequest,
    NestedVirtualizationSpecification, RequestLaunchTemplateData, ResourceType, Tenancy, VolumeType,
};
use mortise_api::EC2NodeClass;
use mortise_api::ec2nodeclass::{BlockDeviceMapping, ConnectionTracking, InterfaceType, Toggle};

use super::Template;
use crate::aws::tags;
use crate::catalog_build::volume_bytes;

/// Regions whose metadata service does not know the IPv6 switch.
const NO_METADATA_IPV6: [&str; 6] =
    ["us-iso-east-1", "us-iso-west-1", "us-isob-east-1", "us-isob-west-1", "us-isof-south-1", "us-isof-east-1"];

/// The request's data for a template of this class.
pub(super) fn data(template: &Template, class: &EC2NodeClass, region: &str) -> RequestLaunchTemplateData {
    let spec = &class.spec;
    let mut data = RequestLaunchTemplateData::builder()
        .image_id(&template.image_id)
        .set_user_data(template.user_data.clone())
        .iam_instance_profile(
            LaunchTemplateIamInstanceProfileSpecificationRequest::builder().name(&template.instance_profile).build(),
        )
        .monitoring(
            LaunchTemplatesMonitoringRequest::builder().enabled(spec.detailed_monitoring.unwrap_or(false)).build(),
        )
        .metadata_options(metadata(class, region))
        .set_network_interfaces(Some(interfaces(template, class)))
        .placement(
            LaunchTemplatePlacementRequest::builder()
                .tenancy(if template.dedicated { Tenancy::Dedicated } else { Tenancy::Default })
                .build(),
        )
        .tag_specifications(tag_specification(ResourceType::NetworkInterface, template));
    if template.spot {
        data = data.tag_specifications(tag_specification(ResourceType::SpotInstancesRequest, template));
    }
    if !template.block_devices.is_empty() {
        data = data.set_block_device_mappings(Some(template.block_devices.iter().map(block_device).collect()));
    }
    if let Some(nested) = spec.cpu_options.as_ref().and_then(|c| c.nested_virtualization.as_ref()) {
        let nested = match nested {
            Toggle::Enabled => NestedVirtualizationSpecification::Enabled,
            _ => NestedVirtualizationSpecification::Disabled,
        };
        data = data.cpu_options(LaunchTemplateCpuOptionsRequest::builder().nested_virtualization(nested).build());
    }
    if spec.enclave_options.as_ref().is_some_and(|e| e.enabled) {
        data = data.enclave_options(LaunchTemplateEnclaveOptionsRequest::builder().enabled(true).build());
    }
    data.build()
}

fn tag_specification(resource: ResourceType, template: &Template) -> LaunchTemplateTagSpecificationRequest {
    LaunchTemplateTagSpecificationRequest::builder()
        .resource_type(resource)
        .set_tags(Some(tags::list(&template.tags)))
        .build()
}

fn metadata(class: &EC2NodeClass, region: &str) -> LaunchTemplateInstanceMetadataOptionsRequest {
    let options = &class.spec.metadata_options;
    let endpoint = LaunchTemplateInstanceMetadataEndpointState::from(options.http_endpoint.as_str());
    let mut request = LaunchTemplateInstanceMetadataOptionsRequest::builder()
        .http_endpoint(endpoint)
        .http_tokens(LaunchTemplateHttpTokensState::from(options.http_tokens.as_str()))
        .set_http_put_response_hop_limit(i32::try_from(options.http_put_response_hop_limit).ok())
        .instance_metadata_tags(LaunchTemplateInstanceMetadataTagsState::Disabled);
    if !NO_METADATA_IPV6.contains(&region) {
        let ipv6 = LaunchTemplateInstanceMetadataProtocolIpv6::from(options.http_protocol_ipv6.as_str());
        request = request.http_protocol_ipv6(ipv6);
    }
    request.build()
}

/// Size in whole GiB, rounded up: EC2 knows no other unit.
fn gib(text: &str) -> Option<i32> {
    const GIB: i64 = 1 << 30;
    i32::try_from(volume_bytes(text)?.checked_add(GIB - 1)? / GIB).ok()
}

fn block_device(mapping: &BlockDeviceMapping) -> LaunchTemplateBlockDeviceMappingRequest {
    let positive = |n: Option<i64>| n.filter(|n| *n > 0).and_then(|n| i32::try_from(n).ok());
    let ebs = mapping.ebs.as_ref().map(|e| {
        LaunchTemplateEbsBlockDeviceRequest::builder()
            .set_delete_on_termination(e.delete_on_termination)
            .set_encrypted(e.encrypted)
            .set_iops(positive(e.iops))
            .set_throughput(positive(e.throughput))
            .set_kms_key_id(e.kms_key_id.clone())
            .set_snapshot_id(e.snapshot_id.clone())
            .set_volume_initialization_rate(e.volume_initialization_rate)
            .set_volume_size(e.volume_size.as_deref().and_then(gib))
            .set_volume_type(e.volume_type.as_ref().map(|t| VolumeType::from(t.as_str())))
            .build()
    });
    LaunchTemplateBlockDeviceMappingRequest::builder().set_device_name(mapping.device_name.clone()).set_ebs(ebs).build()
}

fn tracking(tracking: &ConnectionTracking) -> ConnectionTrackingSpecificationRequest {
    ConnectionTrackingSpecificationRequest::builder()
        .set_tcp_established_timeout(tracking.tcp_established_timeout)
        .set_udp_stream_timeout(tracking.udp_stream_timeout)
        .set_udp_timeout(tracking.udp_timeout)
        .build()
}

/// Network interfaces: the class's own, one per EFA card when asked for, or a single one.
fn interfaces(
    template: &Template,
    class: &EC2NodeClass,
) -> Vec<LaunchTemplateInstanceNetworkInterfaceSpecificationRequest> {
    let spec = &class.spec;
    let one = |card: Option<i32>, device: i32, kind: Option<&str>| {
        let mut interface = LaunchTemplateInstanceNetworkInterfaceSpecificationRequest::builder()
            .set_network_card_index(card)
            .device_index(device)
            .set_interface_type(kind.map(str::to_owned))
            .set_groups(Some(template.security_groups.clone()));
        // An EFA-only interface has no IP, so nothing of the rest applies.
        if kind != Some("efa-only") {
            interface = interface
                .set_associate_public_ip_address(spec.associate_public_ip_address)
                .set_connection_tracking_specification(spec.connection_tracking.as_ref().map(tracking));
            interface = if template.ipv6 {
                interface.primary_ipv6(true).ipv6_address_count(1).set_ipv6_prefix_count(spec.ip_prefix_count)
            } else {
                interface.set_ipv4_prefix_count(spec.ip_prefix_count)
            };
        }
        interface.build()
    };
    if !spec.network_interfaces.is_empty() {
        return spec
            .network_interfaces
            .iter()
            .map(|i| {
                let kind = if i.interface_type == InterfaceType::EfaOnly { "efa-only" } else { "interface" };
                one(Some(i.network_card_index), i.device_index, Some(kind))
            })
            .collect();
    }
    match i32::try_from(template.efa).unwrap_or(i32::MAX) {
        0 => vec![one(None, 0, None)],
        efa => (0..efa).map(|card| one(Some(card), i32::from(card != 0), Some("efa"))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_round_up_to_gib() {
        assert_eq!(gib("20Gi"), Some(20));
        assert_eq!(gib("1Ti"), Some(1024));
        assert_eq!(gib("100G"), Some(94));
        assert_eq!(gib("nonsense"), None);
    }
}
