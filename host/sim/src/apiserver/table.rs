//! Columns of `kubectl get`.

mod cells;
pub(crate) mod path;

use serde_json::{Value, json};

use super::resources::Resource;
use crate::clock::Clock;

type Cell = fn(&Value, &Clock, &Column) -> Value;

/// A column of a table.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    name: String,
    kind: String,
    format: String,
    description: String,
    priority: i64,
    path: String,
    pub(crate) cell: Cell,
}

impl Column {
    pub(crate) fn definition(&self) -> Value {
        json!({"name": self.name, "type": self.kind, "format": self.format, "description": self.description, "priority": self.priority})
    }

    fn new(name: &str, priority: i64, cell: Cell) -> Self {
        Self {
            name: name.to_owned(),
            kind: "string".to_owned(),
            format: if name == "Name" { "name".to_owned() } else { String::new() },
            description: String::new(),
            priority,
            path: String::new(),
            cell,
        }
    }

    fn at(name: &str, path: &str) -> Self {
        Self { path: path.to_owned(), ..Self::new(name, 0, by_path) }
    }

    fn wide(name: &str, path: &str) -> Self {
        Self { priority: 1, ..Self::at(name, path) }
    }
}

/// The columns of a resource.
pub(crate) fn columns(resource: &Resource) -> Vec<Column> {
    let name = Column::new("Name", 0, |o, _, _| o["metadata"]["name"].clone());
    let age =
        Column::new("Age", 0, |o, clock, _| Value::String(cells::age(&o["metadata"]["creationTimestamp"], clock)));
    let mut out = vec![name];
    if let Some(custom) = &resource.custom {
        for column in &custom.columns {
            out.push(Column {
                name: column.name.clone(),
                kind: column.kind.clone(),
                format: column.format.clone(),
                description: column.description.clone(),
                priority: column.priority,
                path: column.path.clone(),
                cell: if column.kind == "date" { date } else { by_path },
            });
        }
        if custom.columns.is_empty() {
            out.push(age);
        }
        return out;
    }
    let middle = match (&*resource.group, resource.kind.as_str()) {
        ("", "Pod") => vec![
            Column::new("Ready", 0, |o, _, _| cells::pod_ready(o)),
            Column::new("Status", 0, |o, _, _| cells::pod_status(o)),
            Column::new("Restarts", 0, |_, _, _| Value::from("0")),
        ],
        ("", "Node") => vec![
            Column::new("Status", 0, |o, _, _| cells::node_status(o)),
            Column::new("Roles", 0, |_, _, _| Value::from("<none>")),
        ],
        ("", "Namespace") => vec![Column::at("Status", ".status.phase")],
        ("", "ConfigMap") => vec![Column::new("Data", 0, |o, _, _| {
            let count = |field: &str| o[field].as_object().map_or(0, serde_json::Map::len);
            (count("data") + count("binaryData")).into()
        })],
        ("", "Secret") => vec![
            Column::at("Type", ".type"),
            Column::new("Data", 0, |o, _, _| o["data"].as_object().map_or(0, serde_json::Map::len).into()),
        ],
        ("", "Service") => vec![Column::at("Type", ".spec.type"), Column::at("Cluster-IP", ".spec.clusterIP")],
        ("" | "events.k8s.io", "Event") => {
            return vec![
                Column::new("Last Seen", 0, |o, clock, _| Value::String(cells::event_age(o, clock))),
                Column::at("Type", ".type"),
                Column::at("Reason", ".reason"),
                Column::new("Object", 0, |o, _, _| cells::event_object(o)),
                Column::wide("Source", ".reportingComponent"),
                Column::at("Message", ".message"),
                Column::new("Name", 1, |o, _, _| o["metadata"]["name"].clone()),
            ];
        }
        ("apps", "Deployment") => vec![
            Column::new("Ready", 0, |o, _, _| cells::of_desired(o, "readyReplicas")),
            Column::new("Up-to-date", 0, |o, _, _| cells::number(&o["status"]["updatedReplicas"])),
            Column::new("Available", 0, |o, _, _| cells::number(&o["status"]["availableReplicas"])),
        ],
        ("apps", "StatefulSet") => vec![Column::new("Ready", 0, |o, _, _| cells::of_desired(o, "readyReplicas"))],
        ("apps", "ReplicaSet") => vec![
            Column::new("Desired", 0, |o, _, _| cells::number(&o["spec"]["replicas"])),
            Column::new("Current", 0, |o, _, _| cells::number(&o["status"]["replicas"])),
            Column::new("Ready", 0, |o, _, _| cells::number(&o["status"]["readyReplicas"])),
        ],
        ("apps", "DaemonSet") => vec![
            Column::new("Desired", 0, |o, _, _| cells::number(&o["status"]["desiredNumberScheduled"])),
            Column::new("Current", 0, |o, _, _| cells::number(&o["status"]["currentNumberScheduled"])),
            Column::new("Ready", 0, |o, _, _| cells::number(&o["status"]["numberReady"])),
            Column::new("Up-to-date", 0, |o, _, _| cells::number(&o["status"]["updatedNumberScheduled"])),
            Column::new("Available", 0, |o, _, _| cells::number(&o["status"]["numberAvailable"])),
        ],
        ("policy", "PodDisruptionBudget") => vec![
            Column::new("Min Available", 0, |o, _, _| cells::or_na(&o["spec"]["minAvailable"])),
            Column::new("Max Unavailable", 0, |o, _, _| cells::or_na(&o["spec"]["maxUnavailable"])),
            Column::new("Allowed Disruptions", 0, |o, _, _| cells::number(&o["status"]["disruptionsAllowed"])),
        ],
        ("coordination.k8s.io", "Lease") => vec![Column::at("Holder", ".spec.holderIdentity")],
        ("storage.k8s.io", "StorageClass") => {
            vec![Column::at("Provisioner", ".provisioner"), Column::at("VolumeBindingMode", ".volumeBindingMode")]
        }
        ("apiextensions.k8s.io", _) => {
            out.push(Column::at("Created At", ".metadata.creationTimestamp"));
            return out;
        }
        _ => Vec::new(),
    };
    out.extend(middle);
    out.push(age);
    match (&*resource.group, resource.kind.as_str()) {
        ("", "Pod") => out.extend([
            Column::wide("IP", ".status.podIP"),
            Column::wide("Node", ".spec.nodeName"),
            Column::wide("Nominated Node", ".status.nominatedNodeName"),
        ]),
        ("", "Node") => {
            let version = Column::at("Version", ".status.nodeInfo.kubeletVersion");
            out.push(version);
            out.extend([
                Column::new("Internal-IP", 1, |o, _, _| cells::node_address(o, "InternalIP")),
                Column::wide("OS-Image", ".status.nodeInfo.osImage"),
                Column::wide("Kernel-Version", ".status.nodeInfo.kernelVersion"),
                Column::wide("Container-Runtime", ".status.nodeInfo.containerRuntimeVersion"),
            ]);
        }
        ("apps", _) => out.extend([
            Column::new("Containers", 1, |o, _, _| cells::containers(o, "name")),
            Column::new("Images", 1, |o, _, _| cells::containers(o, "image")),
            Column::new("Selector", 1, |o, _, _| cells::selector(o)),
        ]),
        _ => {}
    }
    out
}

fn by_path(object: &Value, _: &Clock, column: &Column) -> Value {
    let found = path::find(object, &column.path);
    match column.kind.as_str() {
        "integer" | "number" | "boolean" if found.len() == 1 => found.first().map(|v| (*v).clone()).unwrap_or_default(),
        "integer" | "number" | "boolean" => Value::Null,
        _ if found.is_empty() => {
            Value::from(if column.description.is_empty() && column.kind == "string" { "<none>" } else { "" })
        }
        _ => {
            let parts: Vec<String> =
                found.iter().map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned)).collect();
            Value::String(parts.join(","))
        }
    }
}

fn date(object: &Value, clock: &Clock, column: &Column) -> Value {
    match path::find(object, &column.path).first() {
        Some(time) => Value::String(cells::age(time, clock)),
        None => Value::from("<unknown>"),
    }
}
