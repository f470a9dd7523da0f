use std::collections::BTreeMap;

use super::*;

fn class() -> EC2NodeClass {
    EC2NodeClass::new(
        "default",
        serde_json::from_value(serde_json::json!({
            "role": "r", "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "subnetSelectorTerms": [{"tags": {"a": "b"}}], "securityGroupSelectorTerms": [{"tags": {"a": "b"}}],
            "networkInterfaces": [
                {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"},
                {"networkCardIndex": 1, "deviceIndex": 1, "interfaceType": "efa-only"}],
            "associatePublicIPAddress": false,
            "connectionTracking": {"udpTimeout": 40},
        }))
        .unwrap(),
    )
}

fn template(class: &EC2NodeClass) -> Template {
    Template {
        image_id: "ami-1".into(),
        user_data: Some("eA==".into()),
        instance_profile: "p".into(),
        security_groups: vec!["sg-1".into()],
        block_devices: block_devices(class, AmiFamily::Al2023),
        spot: true,
        dedicated: false,
        efa: 0,
        ipv6: false,
        options: Options::of(class),
        tags: BTreeMap::from([("a".into(), "b".into())]),
    }
}

#[test]
fn the_name_is_the_content() {
    let class = class();
    let one = template(&class);
    assert_eq!(one.name(), template(&class).name());
    assert!(one.name().starts_with(PREFIX));
    let other = Template { image_id: "ami-2".into(), ..one.clone() };
    assert_ne!(one.name(), other.name());
    let mut changed = class;
    changed.spec.detailed_monitoring = Some(true);
    assert_ne!(one.name(), template(&changed).name());
}

#[test]
fn the_hash_does_not_drift_between_builds() {
    // A change here makes every cluster create all its templates anew: do it knowingly.
    assert_eq!(template(&class()).name(), "karpenter.k8s.aws/b4aad6139daa69a684b0");
}

#[test]
fn data_carries_the_class() {
    let class = class();
    let data = data::data(&template(&class), &class, "us-east-1");
    let interfaces = data.network_interfaces();
    assert_eq!(interfaces.len(), 2);
    assert_eq!(interfaces[0].associate_public_ip_address(), Some(false));
    assert_eq!(interfaces[0].connection_tracking_specification().unwrap().udp_timeout(), Some(40));
    assert_eq!(interfaces[1].interface_type(), Some("efa-only"));
    assert_eq!(interfaces[1].associate_public_ip_address(), None);
    assert_eq!(interfaces[1].groups(), ["sg-1"]);
    assert!(data.security_group_ids().is_empty(), "groups live in the interfaces");
    assert_eq!(data.tag_specifications().len(), 2, "network interface and spot request");
    let volume = data.block_device_mappings()[0].ebs().unwrap();
    assert_eq!((volume.volume_size(), volume.encrypted()), (Some(20), Some(true)));
    let metadata = data.metadata_options().unwrap();
    assert_eq!(metadata.http_tokens().unwrap().as_str(), "required");
    assert_eq!(metadata.http_put_response_hop_limit(), Some(1));
    assert!(
        data::data(&template(&class), &class, "us-iso-east-1")
            .metadata_options()
            .unwrap()
            .http_protocol_ipv6()
            .is_none()
    );
}

#[test]
fn efa_takes_a_card_each() {
    let mut class = class();
    class.spec.network_interfaces.clear();
    let mut t = template(&class);
    t.efa = 3;
    let data = data::data(&t, &class, "us-east-1");
    let seen: Vec<_> = data.network_interfaces().iter().map(|i| (i.network_card_index(), i.device_index())).collect();
    assert_eq!(seen, [(Some(0), Some(0)), (Some(1), Some(1)), (Some(2), Some(1))]);
}
