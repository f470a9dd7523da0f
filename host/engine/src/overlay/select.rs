//! What an overlay is about: instance types and offerings of one NodePool.

use std::sync::Arc;

use super::Overlay;
use crate::catalog::Offering;
use crate::nodepool::NodePool;
use crate::requirement::{Requirements, Values, key};

/// One thing that an overlay changes in a NodePool.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Touch {
    /// Price of an offering: index of its type, and among the type's offerings.
    Price(usize, usize),
    /// A resource of a type.
    Capacity(usize, Arc<str>),
}

impl Touch {
    /// The price or the resource.
    pub(crate) fn what(&self) -> Arc<str> {
        match self {
            Self::Price(..) => Arc::from("the price"),
            Self::Capacity(_, resource) => Arc::clone(resource),
        }
    }
}

/// A NodePool as overlays select from it.
#[derive(Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) pool: &'a Arc<NodePool>,
    labels: Requirements,
}

impl<'a> Subject<'a> {
    pub(crate) fn new(pool: &'a Arc<NodePool>) -> Self {
        let mut labels = Requirements::from_labels(&pool.labels);
        labels.keys.insert(Arc::from(key::NODEPOOL), exactly(&pool.name));
        Self { pool, labels }
    }

    /// Everything of this NodePool that the overlay, which asks for `asked`, changes.
    pub(crate) fn touched(&self, overlay: &Overlay, asked: &Requirements) -> Vec<Touch> {
        let mut touches = Vec::new();
        if overlay.price.is_none() && overlay.capacity.is_zero() {
            return touches;
        }
        // What the pool's own labels decide is the same for every type.
        if asked.conflict(&self.labels).is_some() {
            return touches;
        }
        for (at, of_type) in self.pool.catalog.types.iter().enumerate() {
            let mut whole = Requirements::new(&of_type.requirements);
            whole.keys.entry(Arc::from(key::INSTANCE_TYPE)).or_insert_with(|| exactly(&of_type.name));
            let labels =
                self.labels.keys.iter().filter(|(key, _)| !of_type.requirements.iter().any(|r| r.key == **key));
            whole.keys.extend(labels.map(|(key, values)| (Arc::clone(key), values.clone())));
            let offered: Vec<Requirements> = of_type.offerings.iter().map(labels_of).collect();
            // A label that only offerings have is defined as well.
            let on_offerings = |key: &str| offered.iter().any(|offering| offering.has(key));
            if whole.compatible(asked, on_offerings).is_err() {
                continue;
            }
            let meets = |offering: &Requirements| {
                asked.conflict(offering).is_none()
                    && asked
                        .keys
                        .iter()
                        .all(|(key, values)| whole.has(key) || offering.has(key) || values.allows_absence())
            };
            let selected: Vec<usize> =
                offered.iter().enumerate().filter(|(_, offering)| meets(offering)).map(|(own, _)| own).collect();
            if selected.is_empty() {
                continue;
            }
            if overlay.price.is_some() {
                touches.extend(selected.into_iter().map(|own| Touch::Price(at, own)));
            }
            touches.extend(overlay.capacity.extended.keys().map(|name| Touch::Capacity(at, Arc::clone(name))));
        }
        touches
    }

    pub(crate) fn type_name(&self, touch: &Touch) -> Arc<str> {
        let (Touch::Price(at, _) | Touch::Capacity(at, _)) = touch;
        self.pool.catalog.types.get(*at).map(|of_type| Arc::clone(&of_type.name)).unwrap_or_default()
    }
}

fn exactly(value: &Arc<str>) -> Values {
    Values { values: [Arc::clone(value)].into(), present: true, ..Values::default() }
}

fn labels_of(offering: &Offering) -> Requirements {
    let mut labels = Requirements::from_labels(&offering.labels);
    labels.keys.insert(Arc::from(key::ZONE), exactly(&offering.zone));
    labels.keys.insert(Arc::from(key::CAPACITY_TYPE), exactly(&Arc::from(offering.capacity_type.as_str())));
    labels
}
