//! Memory of offerings that could not be had, so that the next round takes another.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mortise_engine::catalog::CapacityType;

/// How long an offering stays marked.
pub const TTL: Duration = Duration::from_secs(180);

/// What is marked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// One type in one zone and market.
    Offering(CapacityType, Arc<str>, Arc<str>),
    /// A whole market (the account may not buy spot, say).
    Market(CapacityType),
    /// A subnet without free addresses.
    Subnet(Arc<str>),
}

impl Mark {
    /// One offering.
    #[must_use]
    pub fn offering(capacity_type: CapacityType, instance_type: &str, zone: &str) -> Self {
        Self::Offering(capacity_type, Arc::from(instance_type), Arc::from(zone))
    }
}

#[derive(Debug, Default)]
struct Inner {
    until: BTreeMap<Mark, Instant>,
    sequence: u64,
}

/// Marks with their expiry. Time is passed in, so that tests need not wait.
#[derive(Debug, Default)]
pub struct Unavailable(Mutex<Inner>);

impl Unavailable {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        // Nothing in here can be left half changed, so a poisoned lock is as good as any.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks for [`TTL`] from `now`; marking again extends. Returns the sequence number after it.
    pub fn mark(&self, mark: Mark, now: Instant) -> u64 {
        let mut inner = self.inner();
        let fresh = inner.until.insert(mark, now + TTL).is_none_or(|until| until <= now);
        if fresh {
            inner.sequence += 1;
        }
        inner.sequence
    }

    /// Marked at `now`.
    #[must_use]
    pub fn is_marked(&self, mark: &Mark, now: Instant) -> bool {
        self.inner().until.get(mark).is_some_and(|until| *until > now)
    }

    /// The offering cannot be had at `now`, by itself or with its whole market.
    #[must_use]
    pub fn blocks(&self, capacity_type: CapacityType, instance_type: &str, zone: &str, now: Instant) -> bool {
        self.is_marked(&Mark::Market(capacity_type), now)
            || self.is_marked(&Mark::offering(capacity_type, instance_type, zone), now)
    }

    /// Drops what has expired at `now`. True when something was, and the sequence number has moved.
    pub fn expire(&self, now: Instant) -> bool {
        let mut inner = self.inner();
        let before = inner.until.len();
        inner.until.retain(|_, until| *until > now);
        let changed = inner.until.len() != before;
        if changed {
            inner.sequence += 1;
        }
        changed
    }

    /// When the next mark expires.
    #[must_use]
    pub fn next_expiry(&self) -> Option<Instant> {
        self.inner().until.values().min().copied()
    }

    /// Moves whenever a mark comes or goes: a catalogue built at another number is stale.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.inner().sequence
    }

    /// Offerings marked at `now`, for metrics and explanations.
    #[must_use]
    pub fn marked(&self, now: Instant) -> Vec<Mark> {
        self.inner().until.iter().filter(|(_, until)| **until > now).map(|(mark, _)| mark.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_holds_three_minutes_and_moves_the_sequence() {
        let cache = Unavailable::default();
        let start = Instant::now();
        let mark = Mark::offering(CapacityType::Spot, "m5.large", "us-east-1a");
        assert_eq!(cache.mark(mark.clone(), start), 1);
        assert!(cache.blocks(CapacityType::Spot, "m5.large", "us-east-1a", start));
        assert!(!cache.blocks(CapacityType::OnDemand, "m5.large", "us-east-1a", start));
        assert!(!cache.blocks(CapacityType::Spot, "m5.large", "us-east-1b", start));
        assert!(cache.is_marked(&mark, start + Duration::from_secs(179)));
        assert!(!cache.is_marked(&mark, start + TTL));
        assert!(!cache.expire(start + Duration::from_secs(179)));
        assert!(cache.expire(start + TTL));
        assert_eq!(cache.sequence(), 2, "the offering is back, so catalogues must be built anew");
        assert_eq!(cache.next_expiry(), None);
    }

    #[test]
    fn marking_again_extends_without_moving_the_sequence() {
        let cache = Unavailable::default();
        let start = Instant::now();
        let mark = Mark::offering(CapacityType::OnDemand, "c5.large", "z");
        cache.mark(mark.clone(), start);
        assert_eq!(cache.mark(mark.clone(), start + Duration::from_secs(100)), 1);
        assert!(cache.is_marked(&mark, start + Duration::from_secs(279)));
    }

    #[test]
    fn a_marked_market_blocks_every_offering_of_it() {
        let cache = Unavailable::default();
        let now = Instant::now();
        cache.mark(Mark::Market(CapacityType::Spot), now);
        assert!(cache.blocks(CapacityType::Spot, "any.type", "any-zone", now));
        assert!(!cache.blocks(CapacityType::OnDemand, "any.type", "any-zone", now));
    }
}
