//! Kubernetes objects → records and engine types. Nothing is dropped in silence: a constraint that this version does not
//! act on, or that Kubernetes would refuse, becomes a reason on the shape.

mod affinity;
mod custom;
mod node;
mod nodepool;
mod overlay;
mod pod;
mod ports;
mod requests;
mod selector;
mod storage;
mod template;
mod toleration;
mod topology;
mod workload;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use mortise_engine::pod::PodShape;
use mortise_engine::quantity::{Quantity, Resources};

use crate::intern::{Interner, Strings};
use crate::objects::ResourceList;
use crate::record::{Map, ObjectName};

pub use affinity::{requirement, selector_terms};
pub use custom::{api_requirement, api_requirements, api_resources, api_taint, to_api_requirements};
pub use nodepool::{Refers, nodepool};
pub use overlay::overlay;
pub use requests::effective_requests;
pub(crate) use selector::equals;
pub use selector::label_selector;

/// Turns objects into records. It holds the shared strings and shapes, so one lives per stream of events.
#[derive(Debug, Default)]
pub struct Converter {
    strings: Strings,
    shapes: Interner<PodShape>,
    lists: Interner<[Arc<str>]>,
}

impl Converter {
    /// Distinct strings and shapes held.
    pub fn held(&self) -> (usize, usize) {
        (self.strings.len(), self.shapes.len())
    }

    fn name(&mut self, meta: &ObjectMeta) -> ObjectName {
        ObjectName {
            namespace: self.strings.get(meta.namespace.as_deref().unwrap_or_default()),
            name: Arc::from(meta.name.as_deref().unwrap_or_default()),
        }
    }

    fn map(&mut self, map: Option<&BTreeMap<String, String>>) -> Map {
        map.into_iter().flatten().map(|(k, v)| (self.strings.get(k), self.strings.get(v))).collect()
    }
}

/// Unix milliseconds of a Kubernetes time.
pub fn unix_ms(time: &Time) -> i64 {
    time.0.as_millisecond()
}

/// Kubernetes time of Unix milliseconds; what lies outside the calendar becomes its nearest end.
pub fn time(unix_ms: i64) -> Time {
    Time(Timestamp::from_millisecond(unix_ms).unwrap_or(if unix_ms < 0 { Timestamp::MIN } else { Timestamp::MAX }))
}

fn opt_unix_ms(time: Option<&Time>) -> Option<i64> {
    time.map(unix_ms)
}

/// Amounts of a resource list. A quantity that does not parse counts as zero and is named in `problems`.
pub(crate) fn resources(list: &ResourceList, field: &str, problems: &mut Vec<String>) -> Resources {
    let mut amounts = Resources::default();
    for (name, text) in list {
        match text.0.parse::<Quantity>() {
            Ok(quantity) => amounts.set_quantity(name, quantity),
            Err(error) => problems.push(format!("{field}[{name}]: {error}")),
        }
    }
    amounts
}

#[cfg(test)]
mod tests;
