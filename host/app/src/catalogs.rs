//! The catalogue of every node class that can be launched with.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use kube::ResourceExt;
use mortise_api::EC2NodeClass;
use mortise_engine::catalog::Catalog;

use crate::context::Context;

/// Asks the provider, which answers from its cache. A class whose catalogue cannot be had is left out, and the pools
/// that use it say so.
pub(crate) async fn current(ctx: &Context) -> BTreeMap<Arc<str>, Arc<Catalog>> {
    let classes: Vec<Arc<EC2NodeClass>> = ctx.state.with(|s| {
        let living = s.node_classes().values().filter(|c| c.metadata.deletion_timestamp.is_none());
        living.cloned().collect()
    });
    let mut catalogs = BTreeMap::new();
    for class in classes {
        match ctx.provider.catalog(&class).await {
            Ok(catalog) => {
                catalogs.insert(Arc::from(class.name_any()), catalog);
            }
            Err(error) => tracing::debug!(EC2NodeClass = class.name_any(), %error, "no catalogue"),
        }
    }
    ctx.catalogs.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&catalogs);
    catalogs
}
