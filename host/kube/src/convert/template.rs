//! Pod templates of PodTemplates and workloads → what a pod of theirs would need.

use std::sync::Arc;

use mortise_engine::pod::PodShape;

use super::Converter;
use crate::objects::template::{Workload, WorkloadKind};
use crate::objects::{PodStatus, PodTemplate};
use crate::record::{ObjectName, TemplateRecord};

impl Converter {
    /// What is kept of a PodTemplate.
    pub fn pod_template<K: WorkloadKind>(&mut self, object: &Workload<K>) -> TemplateRecord {
        self.template(object, &object.template, None)
    }

    /// What is kept of a workload with replicas; absent ones count as 1.
    pub fn scalable<K: WorkloadKind>(&mut self, object: &Workload<K>) -> TemplateRecord {
        self.template(object, &object.spec.template, Some(object.spec.replicas.unwrap_or(1)))
    }

    fn template<K: WorkloadKind>(
        &mut self,
        object: &Workload<K>,
        template: &PodTemplate,
        replicas: Option<i32>,
    ) -> TemplateRecord {
        let name: ObjectName = self.name(&object.metadata);
        let labels = template.metadata.labels.as_ref();
        let shape = self.shape(&name.namespace, labels, &template.spec, &PodStatus::default());
        TemplateRecord {
            name,
            generation: object.metadata.generation,
            replicas,
            shape: without_claim_of_its_own(shape),
        }
    }
}

/// A pod that stands for others is never bound, so it runs nothing and mounts nothing: what its volumes would add is left
/// out, and any real pod goes first.
fn without_claim_of_its_own(shape: Arc<PodShape>) -> Arc<PodShape> {
    let mut shape = Arc::unwrap_or_clone(shape);
    shape.priority = i32::MIN;
    shape.volume_alternatives = Vec::new();
    shape.attachments = mortise_engine::pod::Attachments::default();
    Arc::new(shape)
}
