//! OpenAPI documents, as far as kubectl needs them: which fields exist (`explain`), how lists merge, and that writes take
//! `fieldValidation`.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::resources::{Registry, Resource};
use super::types;

/// The document below `/openapi`.
pub(crate) fn document(registry: &Registry, path: &[&str]) -> Option<Bytes> {
    let value = match path {
        ["v2"] => json!({
            "swagger": "2.0", "info": {"title": "Kubernetes", "version": "v1"}, "paths": {}, "definitions": {},
        }),
        ["v3"] => index(registry),
        ["v3", "api", version] => group(registry, "", version)?,
        ["v3", "apis", name, version] => group(registry, name, version)?,
        _ => return None,
    };
    serde_json::to_vec(&value).ok().map(Bytes::from)
}

fn index(registry: &Registry) -> Value {
    let mut paths = Map::new();
    for r in registry.iter() {
        let path =
            if r.group.is_empty() { format!("api/{}", r.version) } else { format!("apis/{}/{}", r.group, r.version) };
        let url = format!("/openapi/v3/{path}");
        paths.insert(path, json!({"serverRelativeURL": url}));
    }
    json!({ "paths": paths })
}

fn group(registry: &Registry, name: &str, version: &str) -> Option<Value> {
    let mut settings = schemars::generate::SchemaSettings::openapi3();
    settings.definitions_path = "/components/schemas".into();
    let mut generator = settings.into_generator();
    let mut paths = Map::new();
    let mut custom = Map::new();
    for r in registry.iter().filter(|r| &*r.group == name && &*r.version == version) {
        let schema = match (&r.custom, types::typed(&r.group, &r.kind)) {
            (Some(found), _) => found.schema.raw().cloned().unwrap_or_else(|| json!({"type": "object"})),
            (None, Some(typed)) => (typed.schema)(&mut generator).to_value(),
            (None, None) => json!({"type": "object"}),
        };
        let key = format!("{}.{}.{}", if name.is_empty() { "core" } else { name }, version, r.kind);
        custom.insert(key.clone(), with_kind(schema, r));
        add_paths(&mut paths, r, &key);
    }
    if paths.is_empty() {
        return None;
    }
    let mut schemas: Map<String, Value> = generator.take_definitions(true);
    // The kind's own schema is the one that carries its group, version and kind.
    for (name, mut schema) in custom {
        if let Some(target) = schema["$ref"].as_str().and_then(|r| r.strip_prefix("#/components/schemas/"))
            && let Some(mut found) = schemas.get(target).cloned()
        {
            found["x-kubernetes-group-version-kind"] = schema["x-kubernetes-group-version-kind"].take();
            schema = found;
        }
        schemas.insert(name, schema);
    }
    Some(json!({
        "openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "v1"},
        "paths": paths, "components": {"schemas": schemas},
    }))
}

fn with_kind(mut schema: Value, r: &Resource) -> Value {
    schema["x-kubernetes-group-version-kind"] = json!([{"group": *r.group, "version": *r.version, "kind": r.kind}]);
    schema
}

fn add_paths(paths: &mut Map<String, Value>, r: &Resource, schema: &str) {
    let root =
        if r.group.is_empty() { format!("/api/{}", r.version) } else { format!("/apis/{}/{}", r.group, r.version) };
    let base = if r.namespaced {
        format!("{root}/namespaces/{{namespace}}/{}", r.plural)
    } else {
        format!("{root}/{}", r.plural)
    };
    let parameter =
        |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}});
    let writes: Vec<Value> = ["dryRun", "fieldManager", "fieldValidation"].into_iter().map(parameter).collect();
    let content = json!({"application/json": {"schema": {"$ref": format!("#/components/schemas/{schema}")}}});
    let operation = |action: &str, parameters: &[Value]| {
        json!({
            "x-kubernetes-action": action, "parameters": parameters,
            "x-kubernetes-group-version-kind": {"group": *r.group, "version": *r.version, "kind": r.kind},
            "responses": {"200": {"description": "OK", "content": content}},
        })
    };
    paths.insert(base.clone(), json!({"get": operation("list", &[]), "post": operation("post", &writes)}));
    if !r.create_only {
        paths.insert(
            format!("{base}/{{name}}"),
            json!({"get": operation("get", &[]), "put": operation("put", &writes), "patch": operation("patch", &writes), "delete": operation("delete", &[])}),
        );
    }
}
