//! How objects and lists are written: as they are, as tables, or as metadata only.

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::{Value, json};

use super::read::Page;
use super::request::{Form, Query};
use super::resources::Resource;
use super::store::Object;
use super::{events, table};
use crate::clock::Clock;

/// A representation that a client asked for.
#[derive(Clone, Debug)]
pub(crate) struct Representation {
    form: Form,
    /// Table: which part of the object a row carries (`None`, `Metadata`, `Object`).
    include: String,
    clock: Clock,
}

impl Representation {
    pub(crate) fn new(form: Form, query: &Query, clock: &Clock) -> Self {
        Self { form, include: query.get("includeObject").unwrap_or("Metadata").to_owned(), clock: clock.clone() }
    }

    /// One object.
    pub(crate) fn object(&self, resource: &Resource, object: &Object) -> Bytes {
        match self.form {
            Form::Full if &*resource.group == "events.k8s.io" => bytes(&events::to_new(&object.value)),
            Form::Full => object.json(),
            Form::Table => {
                bytes(&self.table(resource, &[&object.value], object.value["metadata"]["resourceVersion"].clone()))
            }
            Form::Metadata => bytes(&partial(&object.value)),
        }
    }

    /// A value that is not stored (the answer of a write).
    pub(crate) fn value(&self, resource: &Resource, value: &Value) -> Bytes {
        let is_object = value["kind"] == resource.kind.as_str();
        match self.form {
            Form::Full if is_object && &*resource.group == "events.k8s.io" => bytes(&events::to_new(value)),
            Form::Table if is_object => {
                bytes(&self.table(resource, &[value], value["metadata"]["resourceVersion"].clone()))
            }
            Form::Metadata if is_object => bytes(&partial(value)),
            _ => bytes(value),
        }
    }

    /// A list.
    pub(crate) fn list(&self, resource: &Resource, page: &Page) -> Bytes {
        match self.form {
            Form::Table => {
                let objects: Vec<&Value> = page.items.iter().map(|o| &o.value).collect();
                let mut table = self.table(resource, &objects, Value::Null);
                table["metadata"] = page.metadata();
                bytes(&table)
            }
            Form::Metadata => bytes(&json!({
                "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": page.metadata(),
                "items": page.items.iter().map(|o| partial(&o.value)).collect::<Vec<_>>(),
            })),
            Form::Full => {
                let mut out = BytesMut::new();
                let head = json!({"kind": format!("{}List", resource.kind), "apiVersion": resource.api_version(), "metadata": page.metadata()});
                let head = head.to_string();
                out.put_slice(head.trim_end_matches('}').as_bytes());
                // `metadata` is the last member and an object, so its own brace was taken off too.
                out.put_slice(b"},\"items\":[");
                for (at, object) in page.items.iter().enumerate() {
                    if at > 0 {
                        out.put_u8(b',');
                    }
                    out.put_slice(&self.object(resource, object));
                }
                out.put_slice(b"]}");
                out.freeze()
            }
        }
    }

    /// The object of a bookmark.
    pub(crate) fn bookmark(&self, resource: &Resource, metadata: Value) -> Value {
        match self.form {
            Form::Metadata => {
                json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
            }
            Form::Table => {
                let mut table = self.table(resource, &[], metadata["resourceVersion"].clone());
                let bare = super::watch::bare(resource, metadata);
                table["rows"] = json!([{"cells": [], "object": bare}]);
                table
            }
            Form::Full => super::watch::bare(resource, metadata),
        }
    }

    fn table(&self, resource: &Resource, objects: &[&Value], version: Value) -> Value {
        let columns = table::columns(resource);
        let rows: Vec<Value> = objects
            .iter()
            .map(|object| {
                let cells: Vec<Value> = columns.iter().map(|c| (c.cell)(object, &self.clock, c)).collect();
                let mut row = json!({ "cells": cells });
                match self.include.as_str() {
                    "None" => {}
                    "Object" => row["object"] = (*object).clone(),
                    _ => row["object"] = partial(object),
                }
                row
            })
            .collect();
        json!({
            "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": version},
            "columnDefinitions": columns.iter().map(table::Column::definition).collect::<Vec<_>>(),
            "rows": rows,
        })
    }
}

fn partial(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
}

fn bytes(value: &Value) -> Bytes {
    Bytes::from(serde_json::to_vec(value).unwrap_or_default())
}
