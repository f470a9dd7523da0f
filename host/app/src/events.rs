//! Notes as Kubernetes Events.

use k8s_openapi::api::core::v1::ObjectReference;
use mortise_kube::events::{self, Event};
use mortise_kube::record::ObjectName;
use mortise_kube::state::ClusterState;

use crate::context::Context;
use crate::notes::{Note, Severity, Subject};

/// Hands a note to the recorder, which drops repetitions. Objects that are gone get no Event.
pub(crate) fn send(ctx: &Context, note: &Note) {
    let rendered = note.render();
    for subject in &rendered.subjects {
        let about = match subject {
            Subject::Overlay(name) => overlay(ctx, name),
            Subject::Buffer(name) => buffer(ctx, name),
            other => ctx.state.with(|s| reference(s, other)),
        };
        let Some(about) = about else { continue };
        let event = match rendered.severity {
            Severity::Normal => Event::normal(about, rendered.reason.clone(), rendered.message.clone()),
            Severity::Warning => Event::warning(about, rendered.reason.clone(), rendered.message.clone()),
        };
        ctx.recorder.publish(event.keyed(note.key()));
    }
}

fn overlay(ctx: &Context, name: &str) -> Option<ObjectReference> {
    let object = ctx.overlays.as_ref()?.objects.get(&ObjectName::new("", name))?;
    Some(events::object(&*object))
}

fn buffer(ctx: &Context, name: &ObjectName) -> Option<ObjectReference> {
    let object = ctx.buffers.as_ref()?.objects.get(name)?;
    Some(events::object(&*object))
}

/// The object as an Event names it.
fn reference(s: &ClusterState, subject: &Subject) -> Option<ObjectReference> {
    Some(match subject {
        Subject::Claim(name) => events::object(&**s.nodeclaim(name)?),
        Subject::Node(name) => events::node(s.node(name)?),
        Subject::Pool(name) => events::object(&**s.nodepool(name)?),
        Subject::Class(name) => events::object(&**s.node_class(name)?),
        Subject::Pod(namespace, name) => events::pod(&s.pod(&ObjectName::new(namespace.as_str(), name.as_str()))?.key),
        // Kinds of feature gates are kept elsewhere.
        Subject::Overlay(_) | Subject::Buffer(_) => return None,
        Subject::ConfigMap(namespace, name) => ObjectReference {
            api_version: Some("v1".into()),
            kind: Some("ConfigMap".into()),
            namespace: Some(namespace.clone()),
            name: Some(name.clone()),
            uid: s.policies().map(|p| p.uid.to_string()),
            ..ObjectReference::default()
        },
    })
}
