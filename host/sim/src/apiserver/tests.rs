//! Conformance, by the client that the controller uses.

mod objects;
mod patches;
mod watches;

use serde_json::{Value, json};

use super::{ApiServer, Options};

/// A server with one custom resource of every kind of field.
pub(crate) fn server() -> ApiServer {
    ApiServer::new(Options { crds: vec![widget_crd()], ..Options::default() }).unwrap()
}

pub(crate) fn widget_crd() -> Value {
    json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Cluster",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
                "schema": {"openAPIV3Schema": {
                    "type": "object", "required": ["spec"],
                    "properties": {
                        "spec": {"type": "object", "required": ["color"], "properties": {
                            "color": {"type": "string", "enum": ["red", "blue"]},
                            "size": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3},
                            "name": {"type": "string", "pattern": "^[a-z]+$"},
                            "parts": {
                                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"],
                                "items": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}, "n": {"type": "integer"}}},
                            },
                        }},
                        "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
                    },
                }},
            }],
        },
    })
}
