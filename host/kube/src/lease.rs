//! Leader election by a Lease of coordination.k8s.io, by the same rules as client-go, so that a Karpenter of the same
//! Lease name and this controller never act at once.
//!
//! Whether somebody else's lease has run out is judged by how long *we* have seen it unchanged on a monotonic clock, never
//! by comparing the wall clocks of two machines.

mod elector;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kube::Client;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::backoff::random_u64;

/// How the election is run. The times are controller-runtime's (karpenter-aws §10.2).
#[derive(Clone, Debug)]
pub struct Options {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub name: String,
    /// Who we are; unique per process.
    pub identity: String,
    /// Others wait this long for a lease that is not renewed.
    pub lease: Duration,
    /// We give up leading after this long without a renewal. Less than `lease`.
    pub renew_deadline: Duration,
    /// Pause between attempts.
    pub retry: Duration,
}

impl Options {
    /// Karpenter's Lease in this namespace, under a fresh identity of this process.
    pub fn new(namespace: &str, hostname: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: "karpenter-leader-election".to_owned(),
            identity: identity(hostname),
            lease: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}

/// `<hostname>_<random, in the form of a UUID>`.
pub fn identity(hostname: &str) -> String {
    let (high, low) = (random_u64(), random_u64());
    format!(
        "{hostname}_{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xfff,
        ((low >> 48) & 0x3fff) | 0x8000,
        low & 0xffff_ffff_ffff
    )
}

/// Milliseconds since the election began, after which leadership may not be assumed any more; 0 = not leading.
#[derive(Debug)]
struct Validity {
    began: Instant,
    until_ms: AtomicU64,
}

/// Whether we lead. Clones look at the same election.
#[derive(Clone, Debug)]
pub struct Leadership {
    leads: watch::Receiver<bool>,
    validity: Arc<Validity>,
}

impl Leadership {
    /// We lead now: the last renewal is recent enough. To be asked before an action that must not be done twice; it says
    /// no also when this process was stopped for a while and its own election has not noticed yet.
    pub fn holds(&self) -> bool {
        let now = u64::try_from(self.validity.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        *self.leads.borrow() && now < self.validity.until_ms.load(Ordering::Acquire)
    }

    /// Follows leadership as it comes and goes.
    pub fn watch(&self) -> watch::Receiver<bool> {
        self.leads.clone()
    }

    /// Always leading: for a single replica without election.
    pub fn always() -> Self {
        let (_, leads) = watch::channel(true);
        let validity = Validity { began: Instant::now(), until_ms: AtomicU64::new(u64::MAX) };
        Self { leads, validity: Arc::new(validity) }
    }
}

/// A running election.
#[derive(Debug)]
pub struct Leader {
    leadership: Leadership,
    task: JoinHandle<()>,
}

impl Leader {
    /// Takes part in the election until `shutdown`, then gives the Lease back so that another can lead at once.
    ///
    /// `client` should be one of its own: an election that waits behind other requests loses its Lease under load.
    pub fn start(client: Client, options: Options, shutdown: CancellationToken) -> Self {
        let (sender, leads) = watch::channel(false);
        let validity = Arc::new(Validity { began: Instant::now(), until_ms: AtomicU64::new(0) });
        let leadership = Leadership { leads, validity: Arc::clone(&validity) };
        let elector = elector::Elector::new(client, options, sender, validity);
        Self { leadership, task: tokio::spawn(elector.run(shutdown)) }
    }

    /// Whether we lead.
    pub fn leadership(&self) -> Leadership {
        self.leadership.clone()
    }

    /// Waits until the Lease is given back after shutdown. Stop acting before you trigger the shutdown token: another
    /// replica may lead from the moment the Lease is free.
    pub async fn stopped(self) {
        if let Err(error) = self.task.await
            && error.is_panic()
        {
            tracing::error!("leader election ended unexpectedly; the lease runs out by itself");
        }
    }
}

#[cfg(test)]
mod tests;
