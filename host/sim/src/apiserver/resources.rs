//! The resources that are served: built-in ones from a table, custom ones from their CustomResourceDefinitions.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::schema::Schema;
use super::store::Bucket;

/// One served resource.
#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) group: Arc<str>,
    pub(crate) version: Arc<str>,
    pub(crate) plural: Arc<str>,
    pub(crate) singular: String,
    pub(crate) kind: String,
    pub(crate) namespaced: bool,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    /// Status is a subresource: writes to the object leave it alone and the other way round.
    pub(crate) status: bool,
    /// Scale subresource: JSON paths of the replica counts and of the selector.
    pub(crate) scale: Option<Scale>,
    /// Other subresources: name, kind, group and version of what they take.
    pub(crate) actions: &'static [(&'static str, &'static str, &'static str, &'static str)],
    /// Verbs; empty = all.
    pub(crate) create_only: bool,
    /// A custom resource: its schema, and no strategic merge patch.
    pub(crate) custom: Option<Custom>,
    /// Where it is stored; `events.k8s.io` shares the core Events.
    pub(crate) bucket: Bucket,
}

/// What only a custom resource has.
#[derive(Debug)]
pub(crate) struct Custom {
    pub(crate) schema: Schema,
    pub(crate) columns: Vec<Column>,
    pub(crate) selectable: Vec<String>,
}

/// An additional printer column of a CustomResourceDefinition.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) format: String,
    pub(crate) description: String,
    pub(crate) priority: i64,
    pub(crate) path: String,
}

/// Paths of a scale subresource, without the leading dot.
#[derive(Clone, Debug)]
pub(crate) struct Scale {
    pub(crate) spec: String,
    pub(crate) status: String,
    pub(crate) selector: Option<String>,
}

impl Resource {
    /// Whether a field selector may name this path. Custom resources say which fields can be selected; built-in ones
    /// are not so strict here as in the API server.
    pub(crate) fn is_selectable(&self, path: &str) -> bool {
        let declared = |c: &Custom| c.selectable.iter().any(|p| p.trim_start_matches('.') == path);
        matches!(path, "metadata.name" | "metadata.namespace") || self.custom.as_ref().is_none_or(declared)
    }

    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_string() } else { format!("{}/{}", self.group, self.version) }
    }

    pub(crate) fn is(&self, group: &str, plural: &str) -> bool {
        &*self.group == group && &*self.plural == plural
    }

    pub(crate) fn is_core(&self, plural: &str) -> bool {
        self.is("", plural)
    }
}

/// Group, version and plural.
type Path = (Arc<str>, Arc<str>, Arc<str>);

/// All served resources.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    by_path: BTreeMap<Path, Arc<Resource>>,
}

impl Registry {
    pub(crate) fn builtin() -> Self {
        let mut registry = Self::default();
        for row in BUILTIN {
            registry.add(row.resource());
        }
        registry
    }

    fn add(&mut self, resource: Resource) {
        let key = (Arc::clone(&resource.group), Arc::clone(&resource.version), Arc::clone(&resource.plural));
        self.by_path.insert(key, Arc::new(resource));
    }

    pub(crate) fn get(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        self.by_path.get(&(Arc::from(group), Arc::from(version), Arc::from(plural))).cloned()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.by_path.values()
    }

    /// Serves (or serves anew) what a CustomResourceDefinition declares: its storage version.
    pub(crate) fn add_crd(&mut self, crd: &Value) -> Result<(), String> {
        let spec = &crd["spec"];
        let names = &spec["names"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let strings = |value: &Value| -> Vec<String> {
            value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
        let version = versions
            .iter()
            .find(|v| v["storage"] == Value::Bool(true))
            .ok_or_else(|| "spec.versions: no version has storage: true".to_owned())?;
        let (group, plural) = (text(&spec["group"]), text(&names["plural"]));
        if group.is_empty() || plural.is_empty() || text(&names["kind"]).is_empty() {
            return Err("spec.group, spec.names.plural and spec.names.kind are required".to_owned());
        }
        let group: Arc<str> = group.into();
        let plural: Arc<str> = plural.into();
        let kind = text(&names["kind"]);
        let columns = version["additionalPrinterColumns"].as_array().into_iter().flatten().map(|c| Column {
            name: text(&c["name"]),
            kind: text(&c["type"]),
            format: text(&c["format"]),
            description: text(&c["description"]),
            priority: c["priority"].as_i64().unwrap_or_default(),
            path: text(&c["jsonPath"]),
        });
        let subresources = &version["subresources"];
        let scale = subresources.get("scale").filter(|s| s.is_object()).map(|s| Scale {
            spec: text(&s["specReplicasPath"]).trim_start_matches('.').to_owned(),
            status: text(&s["statusReplicasPath"]).trim_start_matches('.').to_owned(),
            selector: s["labelSelectorPath"].as_str().map(|p| p.trim_start_matches('.').to_owned()),
        });
        let singular = names["singular"].as_str().map_or_else(|| kind.to_lowercase(), str::to_owned);
        self.remove_crd(&group, &plural);
        self.add(Resource {
            bucket: (Arc::clone(&group), Arc::clone(&plural)),
            version: text(&version["name"]).into(),
            group,
            plural,
            singular,
            kind,
            namespaced: spec["scope"] == "Namespaced",
            short_names: strings(&names["shortNames"]),
            categories: strings(&names["categories"]),
            status: subresources.get("status").is_some_and(Value::is_object),
            scale,
            actions: &[],
            create_only: false,
            custom: Some(Custom {
                schema: Schema::compile(&version["schema"]["openAPIV3Schema"]),
                columns: columns.collect(),
                selectable: version["selectableFields"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|f| text(&f["jsonPath"]))
                    .collect(),
            }),
        });
        Ok(())
    }

    pub(crate) fn remove_crd(&mut self, group: &str, plural: &str) {
        self.by_path.retain(|_, r| !(r.custom.is_some() && r.is(group, plural)));
    }
}

struct Row {
    group: &'static str,
    version: &'static str,
    plural: &'static str,
    kind: &'static str,
    short: &'static [&'static str],
    flags: u8,
}

const NS: u8 = 1;
const STATUS: u8 = 2;
const SCALE: u8 = 4;
const ALL: u8 = 8;
const CREATE: u8 = 16;

const fn row(
    group: &'static str,
    version: &'static str,
    plural: &'static str,
    kind: &'static str,
    short: &'static [&'static str],
    flags: u8,
) -> Row {
    Row { group, version, plural, kind, short, flags }
}

impl Row {
    fn resource(&self) -> Resource {
        let has = |flag: u8| self.flags & flag != 0;
        let group: Arc<str> = self.group.into();
        let plural: Arc<str> = self.plural.into();
        let bucket = if self.group == "events.k8s.io" {
            (Arc::from(""), Arc::clone(&plural))
        } else {
            (Arc::clone(&group), Arc::clone(&plural))
        };
        Resource {
            singular: self.kind.to_lowercase(),
            kind: self.kind.to_owned(),
            version: self.version.into(),
            namespaced: has(NS),
            short_names: self.short.iter().map(|s| (*s).to_owned()).collect(),
            categories: if has(ALL) { vec!["all".to_owned()] } else { Vec::new() },
            status: has(STATUS),
            scale: has(SCALE).then(|| Scale {
                spec: "spec.replicas".to_owned(),
                status: "status.replicas".to_owned(),
                selector: None,
            }),
            actions: match (self.group, self.plural) {
                ("", "pods") => &[("binding", "Binding", "", "v1"), ("eviction", "Eviction", "policy", "v1")],
                ("", "namespaces") => &[("finalize", "Namespace", "", "v1")],
                ("", "serviceaccounts") => &[("token", "TokenRequest", "authentication.k8s.io", "v1")],
                _ => &[],
            },
            create_only: has(CREATE),
            custom: None,
            bucket,
            group,
            plural,
        }
    }
}

/// Built-in resources: those that the controller, the stand-ins and ordinary kubectl sessions touch.
const BUILTIN: &[Row] = &[
    row("", "v1", "bindings", "Binding", &[], NS | CREATE),
    row("", "v1", "configmaps", "ConfigMap", &["cm"], NS),
    row("", "v1", "endpoints", "Endpoints", &["ep"], NS),
    row("", "v1", "events", "Event", &["ev"], NS),
    row("", "v1", "limitranges", "LimitRange", &["limits"], NS),
    row("", "v1", "namespaces", "Namespace", &["ns"], STATUS),
    row("", "v1", "nodes", "Node", &["no"], STATUS),
    row("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", &["pvc"], NS | STATUS),
    row("", "v1", "persistentvolumes", "PersistentVolume", &["pv"], STATUS),
    row("", "v1", "pods", "Pod", &["po"], NS | STATUS | ALL),
    row("", "v1", "podtemplates", "PodTemplate", &[], NS),
    row("", "v1", "replicationcontrollers", "ReplicationController", &["rc"], NS | STATUS | SCALE | ALL),
    row("", "v1", "resourcequotas", "ResourceQuota", &["quota"], NS | STATUS),
    row("", "v1", "secrets", "Secret", &[], NS),
    row("", "v1", "serviceaccounts", "ServiceAccount", &["sa"], NS),
    row("", "v1", "services", "Service", &["svc"], NS | STATUS | ALL),
    row(
        "apiextensions.k8s.io",
        "v1",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        &["crd", "crds"],
        STATUS,
    ),
    row("apps", "v1", "controllerrevisions", "ControllerRevision", &[], NS),
    row("apps", "v1", "daemonsets", "DaemonSet", &["ds"], NS | STATUS | ALL),
    row("apps", "v1", "deployments", "Deployment", &["deploy"], NS | STATUS | SCALE | ALL),
    row("apps", "v1", "replicasets", "ReplicaSet", &["rs"], NS | STATUS | SCALE | ALL),
    row("apps", "v1", "statefulsets", "StatefulSet", &["sts"], NS | STATUS | SCALE | ALL),
    row("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", &[], CREATE),
    row("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", &[], CREATE),
    row("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", &["hpa"], NS | STATUS | ALL),
    row("batch", "v1", "cronjobs", "CronJob", &["cj"], NS | STATUS | ALL),
    row("batch", "v1", "jobs", "Job", &[], NS | STATUS | ALL),
    row("coordination.k8s.io", "v1", "leases", "Lease", &[], NS),
    row("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", &[], NS),
    row("events.k8s.io", "v1", "events", "Event", &["ev"], NS),
    row("networking.k8s.io", "v1", "ingresses", "Ingress", &["ing"], NS | STATUS),
    row("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", &["netpol"], NS),
    row("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", &["pdb"], NS | STATUS),
    row("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", &[], 0),
    row("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", &[], 0),
    row("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", &[], NS),
    row("rbac.authorization.k8s.io", "v1", "roles", "Role", &[], NS),
    row("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", &["pc"], 0),
    row("storage.k8s.io", "v1", "csidrivers", "CSIDriver", &[], 0),
    row("storage.k8s.io", "v1", "csinodes", "CSINode", &[], 0),
    row("storage.k8s.io", "v1", "storageclasses", "StorageClass", &["sc"], 0),
    row("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", &[], STATUS),
];
