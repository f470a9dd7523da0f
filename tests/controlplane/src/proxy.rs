//! In front of moto: what moto lacks (allocation strategies, client tokens, prices, the cluster's endpoint) and faults.
//!
//! The controller's SDK is pointed here by `AWS_ENDPOINT_URL`. Every call is recorded with its parameters, so that tests
//! assert on what AWS was asked and not on what the controller says it did.

mod call;
mod fault;
mod fleet;
mod market;
mod server;

pub use call::{Call, Outcome};
pub use fault::{Effect, Fault};
pub use market::Market;

use crate::aws::Account;
use crate::workspace::free_port;
use anyhow::{Context, Result};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::JoinHandle;

/// What EKS says about the cluster; moto makes values up, nodes need the real ones.
#[derive(Debug, Clone)]
pub struct ClusterFacts {
    /// Address of the API server.
    pub endpoint: String,
    /// Its certificate authority, PEM.
    pub ca_pem: String,
}

/// The proxy. It stops on drop.
#[derive(Debug)]
pub struct Proxy {
    /// Its address.
    pub endpoint: String,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    upstream: String,
    http: server::UpstreamClient,
    facts: ClusterFacts,
    zone_of_subnet: BTreeMap<String, String>,
    state: Mutex<State>,
    /// Fleet requests one at a time: a retry with the same client token must see the first answer.
    fleets: tokio::sync::Mutex<HashMap<String, fleet::Remembered>>,
}

#[derive(Debug, Default)]
struct State {
    calls: Vec<Call>,
    faults: Vec<Fault>,
    market: Market,
    /// Answers that never change (instance types, offerings): they take moto seconds to write.
    constant: HashMap<String, (http::HeaderMap, bytes::Bytes)>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Proxy {
    /// Listens on a free loopback port and forwards to `upstream`.
    ///
    /// # Errors
    /// No port can be bound.
    pub async fn start(upstream: &str, account: &Account, facts: ClusterFacts) -> Result<Self> {
        let port = free_port()?;
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.context("binding the proxy's port")?;
        let shared = Arc::new(Shared {
            upstream: upstream.to_owned(),
            http: server::upstream_client(),
            facts,
            zone_of_subnet: account.zone_of_subnet.clone(),
            state: Mutex::default(),
            fleets: tokio::sync::Mutex::default(),
        });
        let task = tokio::spawn(server::serve(listener, Arc::clone(&shared)));
        Ok(Self { endpoint: format!("http://127.0.0.1:{port}"), shared, task })
    }

    /// Adds a fault; the first one that matches a call and is not used up applies.
    pub fn inject(&self, fault: Fault) {
        self.shared.state().faults.push(fault);
    }

    /// Removes all faults and shortages.
    pub fn heal(&self) {
        let mut state = self.shared.state();
        state.faults.clear();
        state.market.restock();
    }

    /// Changes what is in stock.
    pub fn market<T>(&self, change: impl FnOnce(&mut Market) -> T) -> T {
        change(&mut self.shared.state().market)
    }

    /// How many calls there were so far: pass it to [`Proxy::calls_since`] later.
    pub fn mark(&self) -> usize {
        self.shared.state().calls.len()
    }

    /// The calls of one operation since a mark, the unanswered ones included.
    pub fn calls_since(&self, mark: usize, operation: &str) -> Vec<Call> {
        let state = self.shared.state();
        state.calls.iter().skip(mark).filter(|call| call.operation == operation).cloned().collect()
    }

    /// How often each operation was called since a mark.
    pub fn counts_since(&self, mark: usize) -> BTreeMap<String, usize> {
        let state = self.shared.state();
        let mut counts = BTreeMap::new();
        for call in state.calls.iter().skip(mark) {
            *counts.entry(call.operation.clone()).or_insert(0) += 1;
        }
        counts
    }

    /// Forgets all calls.
    pub fn forget(&self) {
        self.shared.state().calls.clear();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}
