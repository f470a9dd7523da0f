//! The objects that scenarios apply, and how to read those of the controller.

use kube::api::{ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use serde_json::{Value, json};

/// An API of one of the controller's kinds; of CapacityBuffers, those of the namespace `default`.
pub(crate) fn dynamic(client: &Client, kind: &str) -> Api<DynamicObject> {
    let (group, version, plural) = match kind {
        "EC2NodeClass" => ("karpenter.k8s.aws", "v1", "ec2nodeclasses"),
        "NodePool" => ("karpenter.sh", "v1", "nodepools"),
        "NodeOverlay" => ("karpenter.sh", "v1alpha1", "nodeoverlays"),
        "CapacityBuffer" => ("autoscaling.x-k8s.io", "v1beta1", "capacitybuffers"),
        _ => ("karpenter.sh", "v1", "nodeclaims"),
    };
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
    match kind {
        "CapacityBuffer" => Api::namespaced_with(client.clone(), "default", &resource),
        _ => Api::all_with(client.clone(), &resource),
    }
}

/// A text in an object, empty if it is not there.
pub(crate) fn text<'a>(object: &'a DynamicObject, pointer: &str) -> &'a str {
    object.data.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Status, reason and message of a condition.
pub(crate) fn condition(object: &DynamicObject, name: &str) -> Option<(String, String, String)> {
    let conditions = object.data.pointer("/status/conditions")?.as_array()?;
    let found = conditions.iter().find(|it| it["type"] == name)?;
    let field = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
    Some((field("status"), field("reason"), field("message")))
}

/// An EC2NodeClass whose selectors find the account's subnets and security group by this discovery tag.
pub(crate) fn node_class(name: &str, discovery: &str) -> Value {
    json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": name},
        "spec": {
            "role": format!("KarpenterNodeRole-{}", mortise_controlplane_tests::aws::CLUSTER_NAME),
            "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": discovery}}],
            "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": mortise_controlplane_tests::aws::CLUSTER_NAME}}],
        },
    })
}

/// A NodePool that scenarios vary: class `default`, amd64, empty nodes go after a second, all at once if need be.
pub(crate) fn pool(name: &str) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name},
        "spec": {
            "template": {"spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "expireAfter": "Never",
                "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}],
            }},
            "disruption": {
                "consolidationPolicy": "WhenEmpty", "consolidateAfter": "1s", "budgets": [{"nodes": "100%"}],
            },
        },
    })
}

/// Adds a requirement.
pub(crate) fn require(mut pool: Value, key: &str, operator: &str, values: &[&str]) -> Value {
    if let Some(list) = pool.pointer_mut("/spec/template/spec/requirements").and_then(Value::as_array_mut) {
        list.push(json!({"key": key, "operator": operator, "values": values}));
    }
    pool
}

/// Sets a value.
pub(crate) fn with(mut object: Value, pointer: &str, value: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').unwrap_or(("", pointer));
    if let Some(parent) = object.pointer_mut(parent) {
        parent[key] = value;
    }
    object
}

/// Only this type, on demand: how many pods fit a node is known then.
pub(crate) fn only(pool: Value, instance_type: &str) -> Value {
    let pool = require(pool, "node.kubernetes.io/instance-type", "In", &[instance_type]);
    require(pool, "karpenter.sh/capacity-type", "In", &["on-demand"])
}

/// A Deployment of pods with these requests; its pods end at once when they are told to.
pub(crate) fn deployment(name: &str, replicas: u32, cpu: &str, memory: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "terminationGracePeriodSeconds": 0,
                    "containers": [{
                        "name": "pause", "image": "public.ecr.aws/eks-distro/kubernetes/pause:3.9",
                        "resources": {"requests": {"cpu": cpu, "memory": memory}},
                    }],
                },
            },
        },
    })
}

/// Manifests for `kubectl apply -f -`.
pub(crate) fn manifests(objects: &[Value]) -> String {
    objects.iter().map(Value::to_string).collect::<Vec<_>>().join("\n---\n")
}
