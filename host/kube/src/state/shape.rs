//! The shape of a pod with what the cluster adds to it: its volumes and the default topology spread.

use std::collections::HashMap;
use std::sync::Arc;

use mortise_engine::pod::PodShape;

use super::ClusterState;
use crate::intern::Interner;
use crate::record::{Owner, PodRecord};

/// Shared shapes, and what was worked out already in the pass that this lives for.
pub(super) struct Shared {
    shapes: Interner<PodShape>,
    /// By the shape as converted (which its pods keep alive for as long as the pass) and owner.
    done: HashMap<(*const PodShape, Owner), Arc<PodShape>>,
}

impl Shared {
    pub(super) fn new(shapes: Interner<PodShape>) -> Self {
        Self { shapes, done: HashMap::new() }
    }

    pub(super) fn into_inner(self) -> Interner<PodShape> {
        self.shapes
    }
}

impl ClusterState {
    /// The pod's shape with what its volumes and the default topology spread add, shared between equal ones.
    pub(super) fn full_shape(&self, pod: &PodRecord, shared: &mut Shared) -> Arc<PodShape> {
        let spreads = self.default_spread.applies(pod);
        if pod.volumes.is_empty() && !spreads {
            return Arc::clone(&pod.shape);
        }
        // Pods without volumes differ by shape and owner only.
        let key = (Arc::as_ptr(&pod.shape), pod.owner.clone());
        if pod.volumes.is_empty()
            && let Some(done) = shared.done.get(&key)
        {
            return Arc::clone(done);
        }
        let mut shape = PodShape::clone(&pod.shape);
        if !pod.volumes.is_empty() {
            self.add_volumes(pod, &mut shape);
        }
        if spreads {
            shape.spread = self.default_spread.constraints(&pod.key.namespace, &pod.owner, &shape.labels);
        }
        let shape = shared.shapes.share(shape);
        if pod.volumes.is_empty() {
            shared.done.insert(key, Arc::clone(&shape));
        }
        shape
    }
}
