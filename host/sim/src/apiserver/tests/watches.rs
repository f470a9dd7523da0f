use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::Error;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::json;

use super::objects::pod;
use super::server;

fn map(name: &str, app: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name, "labels": {"app": app}}})).unwrap()
}

#[tokio::test]
async fn changes_are_seen_in_order_and_through_the_selector() {
    let api: Api<ConfigMap> = Api::default_namespaced(server().client());
    let start = api.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let mut events = api.watch(&WatchParams::default().labels("app=a"), &start).await.unwrap().boxed();
    api.create(&PostParams::default(), &map("other", "b")).await.unwrap();
    api.create(&PostParams::default(), &map("mine", "a")).await.unwrap();
    api.patch("mine", &PatchParams::default(), &Patch::Merge(json!({"data": {"x": "1"}}))).await.unwrap();
    api.patch("mine", &PatchParams::default(), &Patch::Merge(json!({"metadata": {"labels": {"app": "b"}}})))
        .await
        .unwrap();
    api.patch("other", &PatchParams::default(), &Patch::Merge(json!({"metadata": {"labels": {"app": "a"}}})))
        .await
        .unwrap();
    api.delete("other", &DeleteParams::default()).await.unwrap();
    let mut seen = Vec::new();
    while seen.len() < 5 {
        seen.push(match events.try_next().await.unwrap().unwrap() {
            WatchEvent::Added(o) => format!("+{}", o.metadata.name.unwrap()),
            WatchEvent::Modified(o) => format!("~{}", o.metadata.name.unwrap()),
            WatchEvent::Deleted(o) => format!("-{}", o.metadata.name.unwrap()),
            other => format!("{other:?}"),
        });
    }
    assert_eq!(seen, ["+mine", "~mine", "-mine", "+other", "-other"]);
}

#[tokio::test]
async fn a_version_that_is_too_old_is_gone() {
    let server = server();
    let api: Api<ConfigMap> = Api::default_namespaced(server.client());
    let start = api.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    api.create(&PostParams::default(), &map("a", "a")).await.unwrap();
    server.compact();
    let mut events = api.watch(&WatchParams::default(), &start).await.unwrap().boxed();
    match events.next().await.unwrap() {
        Ok(WatchEvent::Error(status)) => assert_eq!(status.code, 410),
        Err(Error::Api(status)) => assert_eq!(status.code, 410),
        other => panic!("{other:?}"),
    }
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn a_watcher_recovers_from_compaction_and_streams_lists() {
    for config in [watcher::Config::default(), watcher::Config::default().streaming_lists()] {
        let server = server();
        let api: Api<Pod> = Api::default_namespaced(server.client());
        api.create(&PostParams::default(), &pod("before")).await.unwrap();
        let mut names = watcher(api.clone(), config).default_backoff().applied_objects().boxed();
        assert_eq!(names.try_next().await.unwrap().unwrap().metadata.name.unwrap(), "before");
        api.create(&PostParams::default(), &pod("after")).await.unwrap();
        assert_eq!(names.try_next().await.unwrap().unwrap().metadata.name.unwrap(), "after");
    }
}

#[tokio::test(start_paused = true)]
async fn quiet_watches_get_bookmarks_and_end() {
    let api: Api<ConfigMap> = Api::default_namespaced(server().client());
    let start = api.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let events = api.watch(&WatchParams::default().timeout(130), &start).await.unwrap();
    let events: Vec<_> = tokio::time::timeout(Duration::from_secs(200), events.collect::<Vec<_>>()).await.unwrap();
    let bookmarks = events.iter().filter(|e| matches!(e, Ok(WatchEvent::Bookmark(_)))).count();
    assert_eq!((bookmarks, events.len()), (2, 2));
}
