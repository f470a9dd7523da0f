//! The election, and a term of acting for every time that it is won.

use std::time::Duration;

use mortise_kube::lease::{Leader, Leadership, Options};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::term::{Duties, Ended};
use crate::settings::Settings;

/// The election of this replica, or none.
pub(super) struct Election {
    leader: Option<Leader>,
    leave: CancellationToken,
}

impl Election {
    /// Takes part, with a client of its own; alone it leads at once.
    pub(super) fn start(settings: &Settings, client: kube::Client) -> (Self, Leadership) {
        let leave = CancellationToken::new();
        if settings.disable_leader_election {
            return (Self { leader: None, leave }, Leadership::always());
        }
        let namespace = match settings.leader_election_namespace.as_str() {
            "" => settings.namespace(),
            given => given.to_owned(),
        };
        let options = Options { name: settings.leader_election_name.clone(), ..Options::new(&namespace, &hostname()) };
        tracing::info!(
            identity = options.identity,
            Lease = format!("{}/{}", options.namespace, options.name),
            "attempting to acquire leader lease"
        );
        let leader = Leader::start(client, options, leave.clone());
        let leadership = leader.leadership();
        (Self { leader: Some(leader), leave }, leadership)
    }

    /// Gives the lease back.
    async fn end(self) {
        self.leave.cancel();
        if let Some(leader) = self.leader {
            // The API server may be away: the lease then runs out by itself.
            let _ = tokio::time::timeout(Duration::from_secs(3), leader.stopped()).await;
        }
    }
}

/// Name of this pod or machine.
pub(super) fn hostname() -> String {
    std::env::var("POD_NAME")
        .or_else(|_| std::env::var("HOSTNAME"))
        .or_else(|_| std::fs::read_to_string("/etc/hostname").map(|h| h.trim().to_owned()))
        .unwrap_or_else(|_| "mortise".into())
}

/// Leads whenever the lease is held, until `shutdown`; then gives the lease back.
pub(super) async fn run(
    mut duties: Duties,
    election: Election,
    mut leads: watch::Receiver<bool>,
    shutdown: CancellationToken,
) {
    loop {
        let won = tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            won = holds(&mut leads, true) => won,
        };
        if !won {
            break;
        }
        tracing::info!("became leader, starting reconcilers");
        match duties.run(&shutdown, &mut leads).await {
            Ended::Shutdown => break,
            Ended::Deposed => tracing::error!("lost the leader lease, stopped all reconcilers"),
        }
    }
    election.end().await;
}

/// Waits until leading is as given. An election that has ended for good never changes again.
pub(super) async fn holds(leads: &mut watch::Receiver<bool>, wanted: bool) -> bool {
    if leads.wait_for(|l| *l == wanted).await.is_ok() {
        return true;
    }
    std::future::pending().await
}
