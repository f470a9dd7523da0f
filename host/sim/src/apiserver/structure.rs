//! How lists and maps merge: by key, as a set, or as a whole. Custom resources say so in their schema; for built-in
//! kinds this is the table of their merge keys (types of Kubernetes 1.36, the kinds that are served here).

use super::resources::Resource;

/// How a list or map merges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListKind {
    /// Items are found by these keys.
    Map(Vec<String>),
    /// Scalar items, each at most once.
    Set,
    /// Replaced as a whole.
    Atomic,
    /// A map that is replaced as a whole.
    AtomicMap,
}

/// Merge rules of one resource.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Structure<'a>(pub(crate) &'a Resource);

impl Structure<'_> {
    /// For server-side apply. `path`: field names from the root, without list indices. `None` = a map merged by field,
    /// or a list replaced as a whole.
    pub(crate) fn apply_kind(self, path: &[&str]) -> Option<ListKind> {
        if let ["metadata", rest @ ..] = path {
            return metadata(rest);
        }
        match &self.0.custom {
            Some(custom) => custom.schema.list_kind(path),
            None => builtin(path, true),
        }
    }

    /// For strategic merge patch, which knows one key per list.
    pub(crate) fn merge_kind(self, path: &[&str]) -> Option<ListKind> {
        if let ["metadata", rest @ ..] = path {
            return metadata(rest);
        }
        builtin(path, false)
    }

    /// Maps whose `$retainKeys` and union semantics replace instead of merge are told by the patch itself; these are
    /// replaced as a whole in server-side apply.
    pub(crate) fn is_atomic_map(self, path: &[&str]) -> bool {
        self.apply_kind(path) == Some(ListKind::AtomicMap)
    }
}

fn keys(names: &[&str]) -> Option<ListKind> {
    Some(ListKind::Map(names.iter().map(|n| (*n).to_owned()).collect()))
}

fn metadata(path: &[&str]) -> Option<ListKind> {
    match path {
        ["ownerReferences"] => keys(&["uid"]),
        ["finalizers"] => Some(ListKind::Set),
        ["managedFields"] => Some(ListKind::Atomic),
        _ => None,
    }
}

/// Rules by the last field names of the path: pod specs occur at several depths (Pod, Deployment, DaemonSet, …).
fn builtin(path: &[&str], apply: bool) -> Option<ListKind> {
    let (last, parents) = path.split_last()?;
    let parent = parents.last().copied().unwrap_or_default();
    match (*last, parent) {
        (
            "containers" | "initContainers" | "ephemeralContainers" | "imagePullSecrets" | "env" | "resourceClaims",
            _,
        )
        | ("volumes", "spec")
        | ("secrets", "")
        | ("claims", "resources")
        | ("resourceClaimStatuses", "status") => keys(&["name"]),
        ("ports", "containers" | "initContainers" | "ephemeralContainers") if apply => {
            keys(&["containerPort", "protocol"])
        }
        ("ports", "containers" | "initContainers" | "ephemeralContainers") => keys(&["containerPort"]),
        ("ports", "spec") if apply => keys(&["port", "protocol"]),
        ("ports", "spec") => keys(&["port"]),
        ("volumeMounts", _) => keys(&["mountPath"]),
        ("volumeDevices", _) => keys(&["devicePath"]),
        ("hostAliases", _) | ("podIPs" | "hostIPs", "status") => keys(&["ip"]),
        ("topologySpreadConstraints", _) if apply => keys(&["topologyKey", "whenUnsatisfiable"]),
        ("topologySpreadConstraints", _) => keys(&["topologyKey"]),
        ("conditions" | "addresses", "status") => keys(&["type"]),
        ("finalizers", "spec") if !apply => None,
        ("podCIDRs", "spec") => Some(ListKind::Set),
        ("nodeSelector", "spec") if apply => Some(ListKind::AtomicMap),
        ("selector", "spec" | "labelSelector") if apply => Some(ListKind::AtomicMap),
        ("labelSelector" | "resourceFieldRef" | "fieldRef" | "secretKeyRef" | "configMapKeyRef", _) if apply => {
            Some(ListKind::AtomicMap)
        }
        _ => None,
    }
}
