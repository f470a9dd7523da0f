use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Error;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::server;

fn deployment(image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": image, "env": [{"name": "A", "value": "1"}]}]},
            },
        },
    })
}

async fn made(api: &Api<Deployment>) {
    api.create(&PostParams::default(), &serde_json::from_value(deployment("web:1")).unwrap()).await.unwrap();
}

fn containers(deployment: &Deployment) -> Value {
    let value = serde_json::to_value(deployment).unwrap();
    value["spec"]["template"]["spec"]["containers"].clone()
}

#[tokio::test]
async fn strategic_merge_keeps_the_other_items() {
    let api: Api<Deployment> = Api::default_namespaced(server().client());
    made(&api).await;
    let patch = json!({"spec": {"template": {"spec": {
        "$setElementOrder/containers": [{"name": "side"}, {"name": "web"}],
        "containers": [{"name": "side", "image": "side:1"}, {"name": "web", "env": [{"name": "B", "value": "2"}]}],
    }}}});
    let after = api.patch("web", &PatchParams::default(), &Patch::Strategic(patch)).await.unwrap();
    let list = containers(&after);
    assert_eq!(list[0]["name"], "side");
    assert_eq!(
        (&list[1]["image"], &list[1]["env"]),
        (&json!("web:1"), &json!([{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]))
    );
    let patch = json!({"spec": {"template": {"spec": {"containers": [{"name": "side", "$patch": "delete"}]}}}});
    let after = api.patch("web", &PatchParams::default(), &Patch::Strategic(patch)).await.unwrap();
    assert_eq!(containers(&after).as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn json_and_merge_patches_apply() {
    let api: Api<ConfigMap> = Api::default_namespaced(server().client());
    api.create(
        &PostParams::default(),
        &serde_json::from_value(json!({"metadata": {"name": "c"}, "data": {"a": "1"}})).unwrap(),
    )
    .await
    .unwrap();
    let patch: json_patch::Patch = serde_json::from_value(json!([
        {"op": "test", "path": "/data/a", "value": "1"}, {"op": "add", "path": "/data/b", "value": "2"},
    ]))
    .unwrap();
    let after = api.patch("c", &PatchParams::default(), &Patch::Json::<()>(patch.clone())).await.unwrap();
    assert_eq!(after.data.unwrap()["b"], "2");
    api.patch("c", &PatchParams::default(), &Patch::Merge(json!({"data": {"a": null}}))).await.unwrap();
    let Error::Api(status) = api.patch("c", &PatchParams::default(), &Patch::Json::<()>(patch)).await.unwrap_err()
    else {
        panic!()
    };
    assert_eq!(status.code, 422);
    // A patch that names a version is held to it.
    let stale = json!({"metadata": {"resourceVersion": "1"}, "data": {"z": "1"}});
    let Error::Api(status) = api.patch("c", &PatchParams::default(), &Patch::Merge(stale)).await.unwrap_err() else {
        panic!()
    };
    assert_eq!(status.code, 409);
}

#[tokio::test]
async fn server_side_apply_owns_conflicts_and_lets_go() {
    let api: Api<Deployment> = Api::default_namespaced(server().client());
    let apply = async |manager: &str, config: &Value, force: bool| {
        let mut params = PatchParams::apply(manager);
        params.force = force;
        api.patch("web", &params, &Patch::Apply(config)).await
    };
    let first = apply("a", &deployment("web:1"), false).await.unwrap();
    let fields = serde_json::to_value(&first.metadata.managed_fields).unwrap();
    assert_eq!((&fields[0]["manager"], &fields[0]["operation"]), (&json!("a"), &json!("Apply")));
    assert!(
        fields[0]["fieldsV1"]["f:spec"]["f:template"]["f:spec"]["f:containers"]["k:{\"name\":\"web\"}"]["f:image"]
            .is_object(),
        "{fields}"
    );
    // Applying the same again changes nothing.
    let again = apply("a", &deployment("web:1"), false).await.unwrap();
    assert_eq!(again.metadata.resource_version, first.metadata.resource_version);
    // Another manager, another value: a conflict that names field and owner.
    let Error::Api(status) = apply("b", &deployment("web:2"), false).await.unwrap_err() else { panic!() };
    assert_eq!(status.code, 409);
    assert!(status.message.contains("conflict with \"a\"") && status.message.contains(".image"), "{}", status.message);
    // Forced, it becomes b's; a still owns the rest.
    let forced = apply("b", &deployment("web:2"), true).await.unwrap();
    assert_eq!(containers(&forced)[0]["image"], "web:2");
    assert!(apply("a", &deployment("web:1"), false).await.is_err());
    // What a no longer names goes, unless b owns it too.
    let mut less = deployment("web:2");
    less["spec"]["template"]["spec"]["containers"][0].as_object_mut().unwrap().remove("env");
    apply("a", &less, false).await.unwrap();
    let kept = api.get("web").await.unwrap();
    assert!(containers(&kept)[0]["env"].is_array(), "b owns it");
    let after = apply("b", &less, false).await.unwrap();
    assert!(containers(&after)[0]["env"].is_null(), "nobody owns it");
}

#[tokio::test]
async fn apply_status_leaves_the_spec_alone() {
    let api: Api<Deployment> = Api::default_namespaced(server().client());
    made(&api).await;
    let config = json!({"apiVersion": "apps/v1", "kind": "Deployment", "status": {"replicas": 2, "conditions": [{"type": "Available", "status": "True"}]}});
    let after = api.patch_status("web", &PatchParams::apply("me"), &Patch::Apply(&config)).await.unwrap();
    assert_eq!(after.status.unwrap().replicas, Some(2));
    assert_eq!(after.spec.unwrap().replicas, Some(2));
}

#[tokio::test]
async fn scale_reads_and_writes_replicas() {
    let api: Api<Deployment> = Api::default_namespaced(server().client());
    made(&api).await;
    assert_eq!(api.get_scale("web").await.unwrap().spec.unwrap().replicas, Some(2));
    api.patch_scale("web", &PatchParams::default(), &Patch::Merge(json!({"spec": {"replicas": 5}}))).await.unwrap();
    assert_eq!(api.get("web").await.unwrap().spec.unwrap().replicas, Some(5));
}
