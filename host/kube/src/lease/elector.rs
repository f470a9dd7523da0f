//! The election itself.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::Client;
use kube::api::{Api, PostParams};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Options, Validity};
use crate::backoff::random_fraction;

/// Spread of the pauses between attempts to acquire: up to 1.2 times longer, as client-go does.
const JITTER: f64 = 1.2;

pub(super) struct Elector {
    api: Api<Lease>,
    options: Options,
    leads: watch::Sender<bool>,
    validity: Arc<Validity>,
    /// The Lease as last seen, and when that state was first seen.
    observed: Option<(Lease, Instant)>,
    /// Who led when we last said so in the log.
    announced: Option<String>,
}

/// Outcome of one attempt.
enum Attempt {
    /// The Lease is ours.
    Ours,
    /// Somebody else has it.
    Theirs,
    /// The API server did not answer as hoped.
    Failed(kube::Error),
}

impl Elector {
    pub(super) fn new(client: Client, options: Options, leads: watch::Sender<bool>, validity: Arc<Validity>) -> Self {
        let api = Api::namespaced(client, &options.namespace);
        Self { api, options, leads, validity, observed: None, announced: None }
    }

    pub(super) async fn run(mut self, shutdown: CancellationToken) {
        loop {
            if !self.acquire(&shutdown).await {
                return;
            }
            tracing::info!(lease = self.options.name, identity = self.options.identity, "leading");
            let stopping = self.renew(&shutdown).await;
            self.validity.until_ms.store(0, Ordering::Release);
            self.leads.send_replace(false);
            if stopping {
                self.release().await;
                return;
            }
            tracing::error!(lease = self.options.name, "leadership lost: the lease could not be renewed in time");
        }
    }

    /// Tries until the Lease is ours. False = shutting down.
    async fn acquire(&mut self, shutdown: &CancellationToken) -> bool {
        loop {
            let started = Instant::now();
            let attempt = within(self.options.renew_deadline, shutdown, self.attempt()).await;
            match attempt {
                None => return false,
                Some(Ok(Attempt::Ours)) => {
                    self.lead_until(started);
                    self.leads.send_replace(true);
                    return true;
                }
                Some(Ok(Attempt::Theirs)) => self.announce(),
                Some(Ok(Attempt::Failed(error))) => tracing::warn!(%error, "leader election: cannot acquire"),
                Some(Err(())) => tracing::warn!("leader election: the API server does not answer"),
            }
            let pause = self.options.retry.mul_f64(1.0 + JITTER * random_fraction());
            if !pause_unless(shutdown, pause).await {
                return false;
            }
        }
    }

    /// Renews until that has failed for the whole renew deadline. True = shutting down.
    async fn renew(&mut self, shutdown: &CancellationToken) -> bool {
        let mut renewed = Instant::now();
        loop {
            if !pause_unless(shutdown, self.options.retry).await {
                return true;
            }
            let started = Instant::now();
            let left = self.options.renew_deadline.saturating_sub(started.duration_since(renewed));
            if left.is_zero() {
                return false;
            }
            match within(left, shutdown, self.attempt()).await {
                None => return true,
                Some(Ok(Attempt::Ours)) => {
                    renewed = started;
                    self.lead_until(started);
                }
                // Taken over: it can only have happened after our lease had run out.
                Some(Ok(Attempt::Theirs)) => {
                    self.announce();
                    return false;
                }
                Some(Ok(Attempt::Failed(error))) => tracing::warn!(%error, "leader election: cannot renew"),
                Some(Err(())) => return false,
            }
        }
    }

    /// Leadership may be assumed until the renew deadline after the request was sent.
    fn lead_until(&self, sent: Instant) {
        let until = (sent + self.options.renew_deadline).saturating_duration_since(self.validity.began);
        self.validity.until_ms.store(u64::try_from(until.as_millis()).unwrap_or(u64::MAX), Ordering::Release);
    }

    /// One attempt to take or renew the Lease.
    async fn attempt(&mut self) -> Attempt {
        let ours = |lease: &Lease, identity: &str| holder(lease) == identity;
        // While it is ours, the copy at hand is enough; a conflict shows when it is not.
        let at_hand = self.observed.as_ref().filter(|(lease, _)| ours(lease, &self.options.identity));
        if let Some((lease, _)) = at_hand {
            let wanted = self.taken(Some(lease));
            match self.api.replace(&self.options.name, &PostParams::default(), &wanted).await {
                Ok(lease) => {
                    self.observe(lease);
                    return Attempt::Ours;
                }
                Err(kube::Error::Api(status)) if status.code == 409 || status.code == 404 => {}
                Err(error) => return Attempt::Failed(error),
            }
        }
        let current = match self.api.get_opt(&self.options.name).await {
            Ok(current) => current,
            Err(error) => return Attempt::Failed(error),
        };
        let answer = match current {
            None => self.api.create(&PostParams::default(), &self.taken(None)).await,
            Some(lease) => {
                self.observe(lease.clone());
                if !ours(&lease, &self.options.identity) && !holder(&lease).is_empty() && !self.expired() {
                    return Attempt::Theirs;
                }
                self.api.replace(&self.options.name, &PostParams::default(), &self.taken(Some(&lease))).await
            }
        };
        match answer {
            Ok(lease) => {
                self.observe(lease);
                Attempt::Ours
            }
            // Somebody was faster; the next look tells who.
            Err(kube::Error::Api(status)) if status.code == 409 => Attempt::Theirs,
            Err(error) => Attempt::Failed(error),
        }
    }

    /// Remembers the Lease, and since when it has looked like this.
    fn observe(&mut self, lease: Lease) {
        let same = self.observed.as_ref().is_some_and(|(known, _)| known.spec == lease.spec);
        match &mut self.observed {
            Some((known, _)) if same => *known = lease,
            other => *other = Some((lease, Instant::now())),
        }
    }

    /// The observed Lease has not changed for as long as its holder said it may take.
    fn expired(&self) -> bool {
        self.observed.as_ref().is_none_or(|(lease, since)| {
            let seconds =
                lease.spec.as_ref().and_then(|s| s.lease_duration_seconds).and_then(|s| u64::try_from(s).ok());
            let promised = seconds.map_or(self.options.lease, Duration::from_secs);
            since.elapsed() > promised
        })
    }

    /// The Lease as ours.
    fn taken(&self, current: Option<&Lease>) -> Lease {
        let now = MicroTime(Timestamp::now());
        let spec = current.and_then(|lease| lease.spec.clone()).unwrap_or_default();
        let kept = spec.holder_identity.as_deref() == Some(self.options.identity.as_str());
        let transitions = spec.lease_transitions.unwrap_or(0);
        let first = current.is_none();
        Lease {
            metadata: current.map(|lease| lease.metadata.clone()).unwrap_or_else(|| ObjectMeta {
                name: Some(self.options.name.clone()),
                namespace: Some(self.options.namespace.clone()),
                ..ObjectMeta::default()
            }),
            spec: Some(LeaseSpec {
                holder_identity: Some(self.options.identity.clone()),
                lease_duration_seconds: Some(i32::try_from(self.options.lease.as_secs()).unwrap_or(i32::MAX)),
                acquire_time: if kept { spec.acquire_time.clone() } else { Some(now.clone()) },
                renew_time: Some(now),
                lease_transitions: Some(if kept || first { transitions } else { transitions.saturating_add(1) }),
                ..spec
            }),
        }
    }

    /// Gives the Lease back, as client-go does: no holder, one second of duration.
    async fn release(&mut self) {
        match tokio::time::timeout(self.options.renew_deadline, self.try_release()).await {
            Ok(Ok(true)) => tracing::info!(lease = self.options.name, "lease released"),
            Ok(Ok(false)) => {}
            Ok(Err(error)) => tracing::warn!(%error, "lease not released; it runs out by itself"),
            Err(_) => tracing::warn!("lease not released in time; it runs out by itself"),
        }
    }

    /// False = it was not ours.
    async fn try_release(&mut self) -> kube::Result<bool> {
        let mut at_hand = self.observed.take().map(|(lease, _)| lease);
        loop {
            let Some(lease) = at_hand.take().filter(|lease| holder(lease) == self.options.identity) else {
                return Ok(false);
            };
            let now = MicroTime(Timestamp::now());
            let freed = Lease {
                spec: Some(LeaseSpec {
                    holder_identity: Some(String::new()),
                    lease_duration_seconds: Some(1),
                    acquire_time: Some(now.clone()),
                    renew_time: Some(now),
                    ..lease.spec.clone().unwrap_or_default()
                }),
                ..lease
            };
            match self.api.replace(&self.options.name, &PostParams::default(), &freed).await {
                // A renewal was under way when we stopped: look again.
                Err(kube::Error::Api(status)) if status.code == 409 => {
                    at_hand = self.api.get_opt(&self.options.name).await?;
                }
                Err(error) => return Err(error),
                Ok(_) => return Ok(true),
            }
        }
    }

    fn announce(&mut self) {
        let leader = self.observed.as_ref().map(|(lease, _)| holder(lease).to_owned());
        if leader != self.announced {
            tracing::info!(leader = leader.as_deref().unwrap_or_default(), "another replica leads");
            self.announced = leader;
        }
    }
}

fn holder(lease: &Lease) -> &str {
    lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default()
}

/// Runs `work` for at most `limit`; `None` = shutting down.
async fn within<T>(
    limit: Duration,
    shutdown: &CancellationToken,
    work: impl Future<Output = T>,
) -> Option<Result<T, ()>> {
    tokio::select! {
        biased;
        () = shutdown.cancelled() => None,
        done = tokio::time::timeout(limit, work) => Some(done.map_err(|_| ())),
    }
}

/// False = shutting down.
async fn pause_unless(shutdown: &CancellationToken, pause: Duration) -> bool {
    tokio::select! {
        biased;
        () = shutdown.cancelled() => false,
        () = tokio::time::sleep(pause) => true,
    }
}
