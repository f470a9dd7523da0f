//! Drivers and limits of volumes.

use super::*;
use crate::objects::CsiNode;

#[test]
fn volumes_and_classes_of_before_csi_count_for_the_driver_that_stands_in() {
    let mut c = Converter::default();
    let mut driver = |spec: Value| -> Option<String> {
        let pv: PersistentVolume = serde_json::from_value(json!({"metadata": {"name": "pv"}, "spec": spec})).unwrap();
        c.pv(&pv).driver.map(|driver| driver.to_string())
    };
    assert_eq!(driver(json!({"csi": {"driver": "efs.csi.aws.com"}})).as_deref(), Some("efs.csi.aws.com"));
    assert_eq!(driver(json!({"awsElasticBlockStore": {"volumeID": "v"}})).as_deref(), Some("ebs.csi.aws.com"));
    assert_eq!(driver(json!({"gcePersistentDisk": {}})).as_deref(), Some("pd.csi.storage.gke.io"));
    assert_eq!(driver(json!({"portworxVolume": {}})).as_deref(), Some("pxd.portworx.com"));
    assert_eq!(driver(json!({"nfs": {"server": "s"}})), None);
    assert_eq!(driver(json!({"local": {"path": "/x"}})), None);
    let mut class = |provisioner: &str, annotations: Value| {
        let class: StorageClass = serde_json::from_value(json!({"provisioner": provisioner,
            "metadata": {"name": "c", "annotations": annotations, "creationTimestamp": "2026-01-01T00:00:00Z"}}))
        .unwrap();
        c.storage_class(&class)
    };
    let old = class("kubernetes.io/aws-ebs", json!({"storageclass.beta.kubernetes.io/is-default-class": "true"}));
    assert_eq!(old.driver.as_deref(), Some("ebs.csi.aws.com"));
    assert_eq!(old.default_since_unix_ms, Some(1_767_225_600_000));
    assert_eq!(class("ebs.csi.aws.com", json!({})).driver.as_deref(), Some("ebs.csi.aws.com"));
    let local = class("kubernetes.io/no-provisioner", json!({"storageclass.kubernetes.io/is-default-class": "false"}));
    assert_eq!((local.driver, local.default_since_unix_ms), (None, None));
}

#[test]
fn a_driver_without_a_number_has_no_limit() {
    let node: CsiNode = serde_json::from_value(json!({"metadata": {"name": "n"}, "spec": {"drivers": [
        {"name": "ebs.csi.aws.com", "allocatable": {"count": 26}}, {"name": "efs.csi.aws.com"},
        {"name": "odd", "allocatable": {"count": -1}}, {"name": "none", "allocatable": {"count": 0}}]}}))
    .unwrap();
    let record = Converter::default().csi_node(&node);
    let limits: Vec<(&str, Option<u32>)> = record.limits.iter().map(|(driver, n)| (&**driver, *n)).collect();
    assert_eq!(limits, [("ebs.csi.aws.com", Some(26)), ("efs.csi.aws.com", None), ("none", Some(0)), ("odd", None)]);
}
