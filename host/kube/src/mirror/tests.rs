use std::collections::VecDeque;

use mortise_api::NodeOverlay;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::*;
use crate::testing;

fn overlay(name: &str, version: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay",
        "metadata": {"name": name, "resourceVersion": version}, "spec": spec,
    })
}

/// Answers the requests in order; after that nothing happens any more.
fn client(answers: impl IntoIterator<Item = String>) -> Client {
    let answers = Arc::new(Mutex::new(answers.into_iter().collect::<VecDeque<_>>()));
    testing::client(move |_method, _path, _body| {
        let next = answers.lock().unwrap().pop_front();
        async move {
            match next {
                Some(text) => http::Response::new(kube::client::Body::from(text.into_bytes())),
                None => std::future::pending().await,
            }
        }
    })
}

fn list(items: &[Value]) -> String {
    json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items}).to_string()
}

fn events(lines: &[(&str, Value)]) -> String {
    lines.iter().map(|(kind, object)| format!("{}\n", json!({"type": kind, "object": object}))).collect()
}

#[tokio::test]
async fn objects_are_kept_and_an_odd_one_does_not_end_the_watch() {
    let good = |price: &str| json!({"requirements": [], "price": price});
    let client = client([
        list(&[
            overlay("a", "1", &good("1")),
            overlay("odd", "1", &json!({"requirements": 7})),
            overlay("b", "1", &good("2")),
        ]),
        events(&[
            ("MODIFIED", overlay("a", "2", &json!({"requirements": "no list"}))),
            ("MODIFIED", overlay("b", "3", &good("3"))),
            ("DELETED", overlay("b", "4", &good("3"))),
            ("ADDED", overlay("c", "5", &good("4"))),
        ]),
    ]);
    let mirror: Mirror<NodeOverlay> = Mirror::default();
    let (sender, mut changed) = mpsc::unbounded_channel();
    let told = move |name: ObjectName| drop(sender.send(name.to_string()));
    let watching = tokio::spawn(mirror.clone().run(client, |o: NodeOverlay| o, told));
    mirror.listed().await;
    let mut names = Vec::new();
    for _ in 0..5 {
        names.push(changed.recv().await.unwrap());
    }
    assert_eq!(names, ["a", "b", "b", "b", "c"], "listed, changed, gone, new; nothing of what cannot be read");
    let kept: Vec<(String, String)> =
        mirror.all().iter().map(|o| (o.metadata.name.clone().unwrap(), o.spec.price.clone().unwrap())).collect();
    assert_eq!(kept, [("a".into(), "1".into()), ("c".into(), "4".into())], "what was known of an odd one stays");
    watching.abort();
}
