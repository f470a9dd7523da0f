//! Changes of a Node, as one strategic merge patch under an optimistic lock.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::Resource;
use mortise_api::nodeclaim::NodeClaim;
use mortise_engine::taint::{Effect, Taint};
use mortise_kube::record::NodeRecord;
use serde_json::{Map, Value, json};

/// What to change; made from the Node as known, so that what already holds is left out.
#[derive(Clone, Debug)]
pub(crate) struct NodeEdit {
    node: Arc<NodeRecord>,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    taints: Vec<Taint>,
    add_finalizer: Option<&'static str>,
    drop_finalizer: Option<&'static str>,
    owner: Option<Value>,
}

impl NodeEdit {
    /// No change yet.
    pub(crate) fn of(node: &Arc<NodeRecord>) -> Self {
        Self {
            node: node.clone(),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            taints: node.taints.clone(),
            add_finalizer: None,
            drop_finalizer: None,
            owner: None,
        }
    }

    /// Name of the Node.
    pub(crate) fn name(&self) -> &str {
        &self.node.name
    }

    /// Sets a label.
    pub(crate) fn label(&mut self, key: &str, value: &str) {
        if self.node.labels.get(key).is_none_or(|v| &**v != value) {
            self.labels.insert(key.to_owned(), value.to_owned());
        }
    }

    /// Sets an annotation.
    pub(crate) fn annotation(&mut self, key: &str, value: &str) {
        if self.node.annotations.get(key).is_none_or(|v| &**v != value) {
            self.annotations.insert(key.to_owned(), value.to_owned());
        }
    }

    /// Adds a taint unless one of its key and effect is there.
    pub(crate) fn taint(&mut self, taint: Taint) {
        if !self.taints.iter().any(|t| t.key == taint.key && t.effect == taint.effect) {
            self.taints.push(taint);
        }
    }

    /// Removes taints.
    pub(crate) fn untaint(&mut self, which: impl Fn(&Taint) -> bool) {
        self.taints.retain(|t| !which(t));
    }

    /// The taints as they will be.
    pub(crate) fn taints(&self) -> &[Taint] {
        &self.taints
    }

    /// Adds a finalizer.
    pub(crate) fn finalizer(&mut self, name: &'static str) {
        if !self.node.finalizers.iter().any(|f| &**f == name) {
            self.add_finalizer = Some(name);
        }
    }

    /// Removes a finalizer.
    pub(crate) fn drop_finalizer(&mut self, name: &'static str) {
        if self.node.finalizers.iter().any(|f| &**f == name) {
            self.drop_finalizer = Some(name);
        }
    }

    /// Makes the claim an owner.
    pub(crate) fn owner(&mut self, claim: &NodeClaim) {
        let (Some(name), Some(uid)) = (&claim.metadata.name, &claim.metadata.uid) else { return };
        if !self.node.owners.iter().any(|o| **o == **name) {
            self.owner = Some(json!({
                "apiVersion": NodeClaim::api_version(&()), "kind": NodeClaim::kind(&()),
                "name": name, "uid": uid, "blockOwnerDeletion": true,
            }));
        }
    }

    /// The patch; `None` when nothing changes.
    pub(crate) fn patch(&self) -> Option<Value> {
        let mut metadata = Map::new();
        if !self.labels.is_empty() {
            metadata.insert("labels".into(), json!(self.labels));
        }
        if !self.annotations.is_empty() {
            metadata.insert("annotations".into(), json!(self.annotations));
        }
        if let Some(finalizer) = self.add_finalizer {
            metadata.insert("finalizers".into(), json!([finalizer]));
        }
        if let Some(finalizer) = self.drop_finalizer {
            metadata.insert("$deleteFromPrimitiveList/finalizers".into(), json!([finalizer]));
        }
        if let Some(owner) = &self.owner {
            metadata.insert("ownerReferences".into(), json!([owner]));
        }
        let mut patch = Map::new();
        if self.taints != self.node.taints {
            let taints: Vec<Value> = self.taints.iter().map(taint_json).collect();
            patch.insert("spec".into(), json!({ "taints": taints }));
            // Taints are replaced as a list, so a taint that somebody else adds meanwhile must make this fail.
            metadata.insert("resourceVersion".into(), json!(&*self.node.resource_version));
        }
        if metadata.is_empty() && patch.is_empty() {
            return None;
        }
        // A Node made anew under the same name is another node.
        metadata.insert("uid".into(), json!(&*self.node.uid));
        patch.insert("metadata".into(), Value::Object(metadata));
        Some(Value::Object(patch))
    }
}

/// Effect as written.
pub(crate) fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::NoSchedule => "NoSchedule",
        Effect::PreferNoSchedule => "PreferNoSchedule",
        Effect::NoExecute => "NoExecute",
    }
}

fn taint_json(taint: &Taint) -> Value {
    let mut json = json!({ "key": &*taint.key, "effect": effect(taint.effect) });
    if let (false, Some(map)) = (taint.value.is_empty(), json.as_object_mut()) {
        map.insert("value".into(), json!(&*taint.value));
    }
    json
}
