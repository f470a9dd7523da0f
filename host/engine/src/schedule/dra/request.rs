//! What claims ask for, with classes looked up and selectors compiled.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::selector::Selectors;
use crate::device::{Amounts, ClaimSpec, Cluster, Constraint};
use crate::symbol::id_of;

/// Most devices that one claim may be given (`AllocationResultsMaxSize` of the API).
pub(super) const MOST_DEVICES: usize = 32;

/// A claim's requests and constraints.
#[derive(Debug)]
pub(super) struct Asked {
    /// By request: its alternatives, in order.
    pub(super) requests: Vec<Vec<Ask>>,
    /// Attributes that must be equal, with the requests that this is about (none = all).
    pub(super) matching: Vec<(Arc<str>, Vec<Arc<str>>)>,
}

/// One way to satisfy a request.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) request: Arc<str>,
    pub(super) sub: Option<Arc<str>>,
    /// Asks with equal selectors have equal keys.
    pub(super) key: u32,
    pub(super) selectors: Arc<Vec<u32>>,
    /// `None` = all.
    pub(super) count: Option<u32>,
    pub(super) capacity: Amounts,
}

impl Ask {
    /// A constraint on requests of these names is about it.
    pub(super) fn is_among(&self, names: &[Arc<str>]) -> bool {
        let full = || self.sub.as_ref().map(|sub| format!("{}/{sub}", self.request));
        names.is_empty()
            || names.contains(&self.request)
            || full().is_some_and(|full| names.iter().any(|name| **name == full))
    }

    /// `<request>` or `<request>/<sub-request>`.
    pub(super) fn name(&self) -> Arc<str> {
        self.sub.as_ref().map_or_else(|| Arc::clone(&self.request), |sub| format!("{}/{sub}", self.request).into())
    }
}

/// Distinct claims of a round.
#[derive(Clone, Debug, Default)]
pub(super) struct Requests {
    known: BTreeMap<Arc<ClaimSpec>, Result<Arc<Asked>, Arc<str>>>,
    keys: BTreeMap<Vec<u32>, u32>,
}

impl Requests {
    /// Looks a claim's classes and selectors up, once.
    ///
    /// # Errors
    /// Why it can be allocated nowhere, in words.
    pub(super) fn resolve(
        &mut self,
        spec: &Arc<ClaimSpec>,
        cluster: &Cluster,
        selectors: &mut Selectors,
    ) -> Result<Arc<Asked>, Arc<str>> {
        if let Some(known) = self.known.get(spec) {
            return known.clone();
        }
        let resolved = self.look_up(spec, cluster, selectors).map(Arc::new);
        self.known.insert(Arc::clone(spec), resolved.clone());
        resolved
    }

    fn look_up(&mut self, spec: &ClaimSpec, cluster: &Cluster, selectors: &mut Selectors) -> Result<Asked, Arc<str>> {
        let mut asked = Asked { requests: Vec::new(), matching: Vec::new() };
        for constraint in &spec.constraints {
            match constraint {
                Constraint::MatchAttribute { attribute, requests } => {
                    asked.matching.push((Arc::clone(attribute), requests.clone()));
                }
                Constraint::Unknown(kind) => return Err(format!("constraints of kind {kind} are not acted on").into()),
            }
        }
        let mut least = 0_usize;
        for request in &spec.requests {
            let fail = |why: String| -> Arc<str> { format!("request {}: {why}", request.name).into() };
            let mut alternatives = Vec::new();
            for alternative in &request.alternatives {
                if let Some(what) = &alternative.unsupported {
                    return Err(fail(format!("{what} is not acted on")));
                }
                let class = cluster.classes.get(&alternative.class);
                let class = class.ok_or_else(|| fail(format!("DeviceClass {} does not exist", alternative.class)))?;
                let mut ids = Vec::new();
                for selector in class.iter().chain(&alternative.selectors) {
                    ids.push(selectors.intern(selector).map_err(|why| fail(why.to_string()))?);
                }
                let next = id_of(self.keys.len());
                let key = *self.keys.entry(ids.clone()).or_insert(next);
                alternatives.push(Ask {
                    request: Arc::clone(&request.name),
                    sub: alternative.name.clone(),
                    key,
                    selectors: Arc::new(ids),
                    count: alternative.count.map(|count| count.max(1)),
                    capacity: alternative.capacity.clone(),
                });
            }
            let fewest = alternatives.iter().map(|ask| ask.count.unwrap_or(1) as usize).min();
            least +=
                fewest.ok_or_else(|| fail("it asks for nothing: exactly or firstAvailable must be set".to_owned()))?;
            asked.requests.push(alternatives);
        }
        if least > MOST_DEVICES {
            return Err(format!("it asks for {least} devices, a claim can have {MOST_DEVICES}").into());
        }
        Ok(asked)
    }
}
