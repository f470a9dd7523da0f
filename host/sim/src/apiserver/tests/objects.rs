use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{Api, DeleteParams, DynamicObject, EvictParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Error, ResourceExt};
use serde_json::{Value, json};

use super::server;

fn from<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn code(error: &Error) -> u16 {
    match error {
        Error::Api(status) => status.code,
        other => panic!("{other}"),
    }
}

pub(super) fn pod(name: &str) -> Pod {
    from(
        json!({"metadata": {"name": name, "labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "pause:3.9", "resources": {"requests": {"cpu": "100m"}}}]}}),
    )
}

fn widgets(server: &super::ApiServer) -> Api<DynamicObject> {
    Api::all_with(server.client(), &ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget")))
}

#[tokio::test]
async fn created_objects_get_identity_and_defaults() {
    let server = server();
    let api: Api<Pod> = Api::default_namespaced(server.client());
    let made = api.create(&PostParams::default(), &pod("a")).await.unwrap();
    assert!(made.metadata.uid.is_some() && made.metadata.creation_timestamp.is_some());
    assert_eq!(made.metadata.namespace.as_deref(), Some("default"));
    let spec = made.spec.unwrap();
    assert_eq!(spec.termination_grace_period_seconds, Some(30));
    assert_eq!(spec.tolerations.unwrap().len(), 2);
    assert_eq!(made.status.unwrap().phase.as_deref(), Some("Pending"));
    let again = api.create(&PostParams::default(), &pod("a")).await.unwrap_err();
    assert_eq!(code(&again), 409);
    let missing = api.get("b").await.unwrap_err();
    assert!(missing.to_string().contains("pods \"b\" not found"), "{missing}");
    let elsewhere: Api<Pod> = Api::namespaced(server.client(), "nowhere");
    assert_eq!(code(&elsewhere.create(&PostParams::default(), &pod("a")).await.unwrap_err()), 404);
}

#[tokio::test]
async fn stale_updates_conflict() {
    let api: Api<ConfigMap> = Api::default_namespaced(server().client());
    let first = api
        .create(&PostParams::default(), &from(json!({"metadata": {"name": "c"}, "data": {"a": "1"}})))
        .await
        .unwrap();
    let mut second = first.clone();
    second.data.get_or_insert_default().insert("a".into(), "2".into());
    let second = api.replace("c", &PostParams::default(), &second).await.unwrap();
    assert_ne!(first.resource_version(), second.resource_version());
    let mut stale = first;
    stale.data.get_or_insert_default().insert("a".into(), "3".into());
    assert_eq!(code(&api.replace("c", &PostParams::default(), &stale).await.unwrap_err()), 409);
    // Nothing changed: no new version, so that watchers are left in peace.
    let same = api.replace("c", &PostParams::default(), &second).await.unwrap();
    assert_eq!(same.resource_version(), second.resource_version());
}

#[tokio::test]
async fn custom_resources_are_defaulted_and_validated() {
    let server = server();
    let api = widgets(&server);
    let make = |spec: Value| {
        from::<DynamicObject>(
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec}),
        )
    };
    for (spec, field) in [
        (json!({"color": "green"}), "spec.color"),
        (json!({"color": "red", "size": 12}), "spec.size"),
        (json!({"color": "red", "name": "A1"}), "spec.name"),
        (json!({"size": 2}), "spec.color"),
        (json!({"color": 7}), "spec.color"),
        (json!({"color": "red", "parts": [{"id": "a"}, {"id": "a"}]}), "spec.parts[1]"),
    ] {
        let error = api.create(&PostParams::default(), &make(spec)).await.unwrap_err();
        assert_eq!(code(&error), 422);
        assert!(error.to_string().contains(field), "{error}");
    }
    let made = api.create(&PostParams::default(), &make(json!({"color": "red", "unknown": true}))).await.unwrap();
    assert_eq!(made.data["spec"], json!({"color": "red", "size": 3}));
    assert_eq!(made.metadata.generation, Some(1));
    // Status and spec do not touch each other.
    let status = Patch::Merge(json!({"spec": {"color": "blue"}, "status": {"phase": "Up"}}));
    let after = api.patch_status("w", &PatchParams::default(), &status).await.unwrap();
    assert_eq!((&after.data["spec"]["color"], &after.data["status"]["phase"]), (&json!("red"), &json!("Up")));
    assert_eq!(after.metadata.generation, Some(1));
    let after = api.patch("w", &PatchParams::default(), &status).await.unwrap();
    assert_eq!(after.data["spec"]["color"], "blue");
    assert_eq!(after.metadata.generation, Some(2));
}

#[tokio::test]
async fn lists_are_selected_and_paged() {
    let api: Api<Pod> = Api::default_namespaced(server().client());
    for n in 0..7 {
        api.create(&PostParams::default(), &pod(&format!("p{n}"))).await.unwrap();
    }
    let mut names = Vec::new();
    let mut params = ListParams::default().limit(3);
    loop {
        let page = api.list(&params).await.unwrap();
        assert!(page.items.len() <= 3);
        names.extend(page.items.iter().map(ResourceExt::name_any));
        match page.metadata.continue_.filter(|c| !c.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => break,
        }
    }
    assert_eq!(names, ["p0", "p1", "p2", "p3", "p4", "p5", "p6"]);
    let select = |labels: &str, fields: &str| ListParams::default().labels(labels).fields(fields);
    assert_eq!(api.list(&select("app in (web)", "metadata.name!=p3")).await.unwrap().items.len(), 6);
    assert_eq!(api.list(&select("app=web", "spec.nodeName=")).await.unwrap().items.len(), 7);
    assert_eq!(api.list(&select("app=db", "")).await.unwrap().items.len(), 0);
}

#[tokio::test]
async fn finalizers_hold_and_release() {
    let api: Api<Node> = Api::all(server().client());
    let node: Node = from(json!({"metadata": {"name": "n", "finalizers": ["karpenter.sh/termination"]}, "spec": {}}));
    api.create(&PostParams::default(), &node).await.unwrap();
    let kept = api.delete("n", &DeleteParams::default()).await.unwrap().left().unwrap();
    assert!(kept.metadata.deletion_timestamp.is_some());
    let more = Patch::Merge(json!({"metadata": {"finalizers": ["karpenter.sh/termination", "other/one"]}}));
    assert_eq!(code(&api.patch("n", &PatchParams::default(), &more).await.unwrap_err()), 422);
    let none = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    api.patch("n", &PatchParams::default(), &none).await.unwrap();
    assert_eq!(code(&api.get("n").await.unwrap_err()), 404);
}

#[tokio::test]
async fn bound_pods_go_after_their_grace() {
    let server = server();
    let api: Api<Pod> = Api::default_namespaced(server.client());
    api.create(&PostParams::default(), &pod("a")).await.unwrap();
    let binding = json!({"target": {"kind": "Node", "name": "n1"}, "metadata": {"name": "a"}});
    let bind = |body: &Value| {
        let request =
            http::Request::post("/api/v1/namespaces/default/pods/a/binding").header("content-type", "application/json");
        request.body(serde_json::to_vec(body).unwrap()).unwrap()
    };
    server.client().request::<Value>(bind(&binding)).await.unwrap();
    assert_eq!(code(&server.client().request::<Value>(bind(&binding)).await.unwrap_err()), 409);
    let bound = api.get("a").await.unwrap();
    assert_eq!(bound.spec.unwrap().node_name.as_deref(), Some("n1"));
    let going = api.delete("a", &DeleteParams::default()).await.unwrap().left().unwrap();
    assert_eq!(going.metadata.deletion_grace_period_seconds, Some(30));
    assert!(api.get("a").await.is_ok());
    assert!(api.delete("a", &DeleteParams::default().grace_period(0)).await.unwrap().is_right());
    assert_eq!(code(&api.get("a").await.unwrap_err()), 404);
}

#[tokio::test]
async fn budgets_refuse_evictions() {
    let server = server();
    let api: Api<Pod> = Api::default_namespaced(server.client());
    api.create(&PostParams::default(), &pod("a")).await.unwrap();
    let running = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    api.patch_status("a", &PatchParams::default(), &Patch::Merge(running)).await.unwrap();
    let budgets: Api<PodDisruptionBudget> = Api::default_namespaced(server.client());
    budgets.create(&PostParams::default(), &from(json!({"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}}))).await.unwrap();
    let early = api.evict("a", &EvictParams::default()).await.unwrap_err();
    assert_eq!(code(&early), 429);
    let allow = |n: i64| {
        Patch::Merge(
            json!({"status": {"observedGeneration": 1, "disruptionsAllowed": n, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}}),
        )
    };
    budgets.patch_status("b", &PatchParams::default(), &allow(0)).await.unwrap();
    let Error::Api(status) = api.evict("a", &EvictParams::default()).await.unwrap_err() else { panic!() };
    assert_eq!(status.code, 429);
    assert_eq!(status.message, "Cannot evict pod as it would violate the pod's disruption budget.");
    assert!(api.get("a").await.is_ok());
    budgets.patch_status("b", &PatchParams::default(), &allow(1)).await.unwrap();
    api.evict("a", &EvictParams::default()).await.unwrap();
    assert_eq!(code(&api.get("a").await.unwrap_err()), 404);
    assert_eq!(budgets.get("b").await.unwrap().status.unwrap().disruptions_allowed, Some(0));
}

#[tokio::test]
async fn dependents_follow_their_owner() {
    let server = server();
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
    let owner = maps.create(&PostParams::default(), &from(json!({"metadata": {"name": "owner"}}))).await.unwrap();
    let reference = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.metadata.uid}]);
    maps.create(&PostParams::default(), &from(json!({"metadata": {"name": "child", "ownerReferences": reference}})))
        .await
        .unwrap();
    maps.delete("owner", &DeleteParams::background()).await.unwrap();
    for _ in 0..200 {
        if maps.get_opt("child").await.unwrap().is_none() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("the dependent is still there");
}
