//! The stand-ins together, on a paused clock.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use mortise_api::EC2NodeClass;
use mortise_cloud::{CloudProvider as _, LaunchError, LaunchRequest};
use mortise_engine::catalog::CapacityType;
use mortise_engine::decision::{Choice, LaunchList};
use serde_json::{Value, json};

use crate::Cluster;
use crate::cluster::Options;

fn class() -> EC2NodeClass {
    let term = json!([{"tags": {"karpenter.sh/discovery": "c"}}]);
    serde_json::from_value(json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default"},
        "spec": {"role": "r", "amiSelectorTerms": [{"alias": "al2023@latest"}], "subnetSelectorTerms": term, "securityGroupSelectorTerms": term},
    }))
    .unwrap()
}

fn request(class: &EC2NodeClass, uid: &str, zones: &[&str]) -> LaunchRequest {
    let choices = zones.iter().map(|zone| Choice {
        instance_type: "m6i.xlarge".into(),
        zone: Arc::from(*zone),
        capacity_type: CapacityType::OnDemand,
        price: None,
        effective_cost: None,
    });
    LaunchRequest {
        claim_name: "default-abc".into(),
        claim_uid: uid.into(),
        nodepool: "default".into(),
        class: Arc::new(class.clone()),
        labels: [("karpenter.sh/nodepool".into(), "default".into())].into(),
        taints: Vec::new(),
        startup_taints: Vec::new(),
        requirements: Vec::new(),
        requests: mortise_engine::quantity::Resources::default(),
        list: LaunchList { capacity_type: CapacityType::OnDemand, choices: choices.collect(), prioritized: false },
        may_exist: false,
    }
}

fn deployment(replicas: i32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [
                {"name": "c", "image": "pause:3.9", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}},
            ]}},
        },
    })
}

async fn until<T, F: Future<Output = Option<T>>>(what: &str, mut look: impl FnMut() -> F) -> T {
    for _ in 0..600 {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    panic!("never: {what}");
}

fn running(pods: &[Pod]) -> usize {
    pods.iter().filter(|p| p.status.as_ref().is_some_and(|s| s.phase.as_deref() == Some("Running"))).count()
}

#[tokio::test(start_paused = true)]
async fn pods_wait_for_a_machine_and_run_on_it() {
    let cluster = Cluster::start(&Options::default()).unwrap();
    let client = cluster.api().client();
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let daemons: Api<DaemonSet> = Api::default_namespaced(client.clone());
    let (pods, nodes): (Api<Pod>, Api<Node>) = (Api::default_namespaced(client.clone()), Api::all(client.clone()));
    deployments.create(&PostParams::default(), &serde_json::from_value(deployment(3)).unwrap()).await.unwrap();
    let mut agent = deployment(1);
    agent["metadata"]["name"] = "agent".into();
    agent["kind"] = "DaemonSet".into();
    agent["spec"].as_object_mut().unwrap().remove("replicas");
    agent["spec"]["selector"]["matchLabels"]["app"] = "agent".into();
    agent["spec"]["template"]["metadata"]["labels"]["app"] = "agent".into();
    agent["spec"]["template"]["spec"]["containers"][0]["resources"] = json!({});
    daemons.create(&PostParams::default(), &serde_json::from_value(agent).unwrap()).await.unwrap();
    let web = ListParams::default().labels("app=web");
    until("three unschedulable pods", async || {
        let list = pods.list(&web).await.unwrap().items;
        let waits = |p: &Pod| {
            let conditions = p.status.iter().flat_map(|s| s.conditions.iter().flatten());
            conditions.clone().any(|c| c.type_ == "PodScheduled" && c.reason.as_deref() == Some("Unschedulable"))
        };
        (list.len() == 3 && list.iter().all(waits)).then_some(())
    })
    .await;

    let cloud = cluster.cloud();
    let mut class = class();
    class.status = Some(cloud.resolve(&class).await.status);
    let started = cluster.api().clock().now();
    let instance = cloud.launch(&request(&class, "uid-1", &["us-east-1a"])).await.unwrap();
    assert_eq!(
        cloud.launch(&request(&class, "uid-1", &["us-east-1b"])).await.unwrap().provider_id,
        instance.provider_id,
        "one claim, one machine"
    );
    assert_eq!(cloud.find_by_claim("uid-1").await.unwrap().unwrap().provider_id, instance.provider_id);
    let node = until("a node", async || nodes.list(&ListParams::default()).await.unwrap().items.pop()).await;
    assert!(cluster.api().clock().now().duration_since(started).as_secs() >= 18, "machines boot");
    let spec = node.spec.clone().unwrap();
    assert_eq!(spec.provider_id.as_deref(), Some(&*instance.provider_id));
    let taints: Vec<String> = spec.taints.unwrap().into_iter().map(|t| t.key).collect();
    assert!(taints.contains(&"karpenter.sh/unregistered".to_owned()), "{taints:?}");
    let labels = node.metadata.labels.clone().unwrap();
    assert_eq!(
        (labels["node.kubernetes.io/instance-type"].as_str(), labels["topology.kubernetes.io/zone"].as_str()),
        ("m6i.xlarge", "us-east-1a")
    );
    // Nobody has registered it yet.
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(running(&pods.list(&web).await.unwrap().items), 0);
    let name = node.metadata.name.unwrap();
    let registered = Patch::Merge(json!({"spec": {"taints": null}}));
    nodes.patch(&name, &PatchParams::default(), &registered).await.unwrap();
    until("three running pods and the daemon", async || {
        (running(&pods.list(&ListParams::default()).await.unwrap().items) == 4).then_some(())
    })
    .await;

    // Only three whole CPUs fit beside the reserve of a node with four.
    deployments
        .patch_scale("web", &PatchParams::default(), &Patch::Merge(json!({"spec": {"replicas": 5}})))
        .await
        .unwrap();
    let waiting = until("two pods too many", async || {
        let list = pods.list(&web).await.unwrap().items;
        let left: Vec<Pod> = list.into_iter().filter(|p| p.spec.as_ref().unwrap().node_name.is_none()).collect();
        (left.len() == 2).then_some(left)
    })
    .await;
    let why = waiting[0].status.as_ref().unwrap().conditions.as_ref().unwrap()[0].message.clone().unwrap();
    assert_eq!(why, "0/1 nodes are available: 1 Insufficient cpu.");

    deployments
        .patch_scale("web", &PatchParams::default(), &Patch::Merge(json!({"spec": {"replicas": 0}})))
        .await
        .unwrap();
    until("no pods", async || pods.list(&web).await.unwrap().items.is_empty().then_some(())).await;
    deployments.delete("web", &DeleteParams::default()).await.unwrap();
    cloud.terminate(&instance.provider_id).await.unwrap();
    until("no machine, no node", async || {
        let gone = cloud.get(&instance.provider_id).await.is_err_and(|e| e.is_not_found());
        (gone && nodes.list(&ListParams::default()).await.unwrap().items.is_empty()).then_some(())
    })
    .await;
    until("no daemon pod on a node that is gone", async || {
        pods.list(&ListParams::default()).await.unwrap().items.is_empty().then_some(())
    })
    .await;
    assert_eq!(cluster.components(), 3);
}

#[tokio::test(start_paused = true)]
async fn sold_out_offerings_are_passed_over_and_remembered() {
    let cluster = Cluster::start(&Options::default()).unwrap();
    let cloud = cluster.cloud();
    let mut class = class();
    class.status = Some(cloud.resolve(&class).await.status);
    let before = cloud.catalog(&class).await.unwrap();
    assert!(Arc::ptr_eq(&before, &cloud.catalog(&class).await.unwrap()), "nothing changed");
    let on_demand = Some(CapacityType::OnDemand);
    cloud.set_sold_out("m6i.xlarge", "us-east-1a", on_demand, true);
    let got = cloud.launch(&request(&class, "uid-1", &["us-east-1a", "us-east-1b"])).await.unwrap();
    assert_eq!(&*got.zone, "us-east-1b");
    let after = cloud.catalog(&class).await.unwrap();
    assert!(after.generation > before.generation);
    let available = |zone: &str| {
        let found = after.types.iter().find(|t| &*t.name == "m6i.xlarge").unwrap();
        found
            .offerings
            .iter()
            .find(|o| &*o.zone == zone && o.capacity_type == CapacityType::OnDemand)
            .unwrap()
            .available
    };
    assert!(!available("us-east-1a") && available("us-east-1b"));
    cloud.set_sold_out("m6i.xlarge", "*", None, true);
    let none = cloud.launch(&request(&class, "uid-2", &["us-east-1b", "us-east-1c"])).await.unwrap_err();
    assert!(
        matches!(none, LaunchError::InsufficientCapacity { ref offerings, .. } if offerings.len() == 2),
        "{none:?}"
    );
}
