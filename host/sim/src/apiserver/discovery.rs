//! Discovery documents, plain and aggregated, and the version.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::resources::{Registry, Resource};

const JSON: &str = "application/json";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
/// The Kubernetes version that is imitated: the one whose types are compiled in.
const MINOR: &str = "36";

const OBJECT_VERBS: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const STATUS_VERBS: &[&str] = &["get", "patch", "update"];

/// The document at a path, with its media type.
pub(crate) fn document(registry: &Registry, path: &[&str], aggregated: bool) -> Option<(Value, &'static str)> {
    let plain = |value: Value| Some((value, JSON));
    match path {
        ["api"] if aggregated => Some((aggregate(registry, true), AGGREGATED)),
        ["apis"] if aggregated => Some((aggregate(registry, false), AGGREGATED)),
        ["api"] => plain(json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})),
        ["apis"] => {
            let groups: Vec<Value> =
                groups(registry).iter().filter(|(g, _)| !g.is_empty()).map(|(g, v)| group(g, v)).collect();
            plain(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
        }
        ["apis", name] => {
            let groups = groups(registry);
            plain(group(name, groups.get(*name)?))
        }
        ["api", version] => plain(resource_list(registry, "", version)?),
        ["apis", group, version] => plain(resource_list(registry, group, version)?),
        ["version"] => plain(json!({
            "major": "1", "minor": MINOR, "gitVersion": format!("v1.{MINOR}.0-mortise"), "gitCommit": "",
            "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc",
            "platform": "embedded",
        })),
        [] => plain(
            json!({"paths": ["/api", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]}),
        ),
        _ => None,
    }
}

fn groups(registry: &Registry) -> BTreeMap<String, BTreeSet<String>> {
    let mut out: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for resource in registry.iter() {
        out.entry(resource.group.to_string()).or_default().insert(resource.version.to_string());
    }
    out
}

fn group(name: &str, versions: &BTreeSet<String>) -> Value {
    let list: Vec<Value> =
        versions.iter().map(|v| json!({"groupVersion": format!("{name}/{v}"), "version": v})).collect();
    json!({"kind": "APIGroup", "apiVersion": "v1", "name": name, "versions": list, "preferredVersion": list.last()})
}

fn resource_list(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let mut list = Vec::new();
    for r in registry.iter().filter(|r| &*r.group == group && &*r.version == version) {
        let verbs: &[&str] = if r.create_only { &["create"] } else { OBJECT_VERBS };
        let mut entry = json!({"name": *r.plural, "singularName": r.singular, "namespaced": r.namespaced, "kind": r.kind, "verbs": verbs});
        if !r.short_names.is_empty() {
            entry["shortNames"] = json!(r.short_names);
        }
        if !r.categories.is_empty() {
            entry["categories"] = json!(r.categories);
        }
        list.push(entry);
        for (name, kind, group, version, verbs) in subresources(r) {
            let mut entry = json!({"name": format!("{}/{name}", r.plural), "singularName": "", "namespaced": r.namespaced, "kind": kind, "verbs": verbs});
            if group != &*r.group || version != &*r.version {
                entry["group"] = group.into();
                entry["version"] = version.into();
            }
            list.push(entry);
        }
    }
    let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    (!list.is_empty()).then(
        || json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": list}),
    )
}

fn subresources(r: &Resource) -> Vec<(&str, &str, &str, &str, &'static [&'static str])> {
    let mut out: Vec<(&str, &str, &str, &str, &'static [&'static str])> = Vec::new();
    for (name, kind, group, version) in r.actions {
        out.push((name, kind, group, version, if *name == "finalize" { &["update"] } else { &["create"] }));
    }
    if r.scale.is_some() {
        out.push(("scale", "Scale", "autoscaling", "v1", STATUS_VERBS));
    }
    if r.status {
        out.push(("status", &r.kind, &r.group, &r.version, STATUS_VERBS));
    }
    out
}

fn aggregate(registry: &Registry, core: bool) -> Value {
    let items: Vec<Value> = groups(registry)
        .iter()
        .filter(|(group, _)| group.is_empty() == core)
        .map(|(group, versions)| {
            let versions: Vec<Value> = versions
                .iter()
                .rev()
                .map(|version| {
                    let resources: Vec<Value> = registry
                        .iter()
                        .filter(|r| *r.group == **group && *r.version == **version)
                        .map(|r| aggregated_resource(r))
                        .collect();
                    json!({"version": version, "freshness": "Current", "resources": resources})
                })
                .collect();
            let metadata = if group.is_empty() { json!({}) } else { json!({"name": group}) };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn aggregated_resource(r: &Resource) -> Value {
    let verbs: &[&str] = if r.create_only { &["create"] } else { OBJECT_VERBS };
    let subs: Vec<Value> = subresources(r)
        .into_iter()
        .map(|(name, kind, group, version, verbs)| {
            json!({"subresource": name, "responseKind": {"group": group, "version": version, "kind": kind}, "verbs": verbs})
        })
        .collect();
    let mut out = json!({
        "resource": *r.plural, "responseKind": {"group": *r.group, "version": *r.version, "kind": r.kind},
        "scope": if r.namespaced { "Namespaced" } else { "Cluster" }, "singularResource": r.singular, "verbs": verbs,
    });
    if !r.short_names.is_empty() {
        out["shortNames"] = json!(r.short_names);
    }
    if !r.categories.is_empty() {
        out["categories"] = json!(r.categories);
    }
    if !subs.is_empty() {
        out["subresources"] = json!(subs);
    }
    out
}
