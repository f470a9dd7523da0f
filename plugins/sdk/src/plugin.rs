//! What a plugin implements.

use alloc::vec::Vec;

use crate::batch::{ClaimBatch, NodeBatch, PodBatch};
use crate::config::{Config, Invalid};
use crate::types::{Catalog, Fleet, Groups, PolicyError, Verdict};
use crate::verdict::Drops;

/// A policy. Each round gets a fresh one: `configure`, `begin_round`, hooks, `end_round`.
pub trait Plugin: Sized {
    /// Name, for logs and status.
    const NAME: &'static str;
    /// Version.
    const VERSION: &'static str;
    /// JSON Schema of the configuration; empty when it takes none. The host checks it before `configure`.
    const CONFIG_SCHEMA: &'static str = "";
    /// Pod labels that it reads.
    const LABEL_KEYS: &'static [&'static str] = &[];
    /// Pod annotations that it reads.
    const ANNOTATION_KEYS: &'static [&'static str] = &[];

    /// Makes a policy from its configuration.
    ///
    /// # Errors
    /// Everything wrong with the configuration, by path.
    fn configure(config: &Config) -> Result<Self, Invalid>;

    /// Starts a round. `memo` is what [`Plugin::end_round`] returned last: empty at first, and the only memory there is.
    ///
    /// # Errors
    /// When it cannot work with this round: counts as a fault.
    fn begin_round(&mut self, catalog: &Catalog, fleet: &Fleet, memo: &[u8]) -> Result<(), PolicyError> {
        let _ = (catalog, fleet, memo);
        Ok(())
    }

    /// Ends a round and returns the memo for the next, at most 64 KiB.
    fn end_round(&mut self) -> Vec<u8> {
        Vec::new()
    }
}

/// A constraint filter: takes offerings away.
pub trait Filter: Plugin {
    /// Which offerings may a group of pods not use? Asked before placement.
    ///
    /// # Errors
    /// When it cannot answer: counts as a fault.
    fn admit_pods(&mut self, batch: &PodBatch<'_>) -> Result<Verdict, PolicyError> {
        Ok(Drops::nothing(batch.candidates.len()))
    }

    /// Which of its offerings may a claim not use? Asked after placement.
    ///
    /// # Errors
    /// When it cannot answer: counts as a fault.
    fn admit_claims(&mut self, batch: &ClaimBatch<'_>) -> Result<Verdict, PolicyError> {
        Ok(Drops::nothing(batch.candidates.len()))
    }
}

/// Instance selection: what each candidate effectively costs.
pub trait Score: Plugin {
    /// One cost per candidate, rows in order, as many as `base`: see [`ClaimBatch::map`].
    ///
    /// # Errors
    /// When it cannot answer: counts as a fault.
    fn evaluate(&mut self, batch: &ClaimBatch<'_>, base: &[i64]) -> Result<Vec<i64>, PolicyError>;
}

/// Emptiness and consolidation.
pub trait Consolidate: Plugin {
    /// Sets of nodes to simulate, at most `max_sets` rows; no rows: asks no more.
    ///
    /// # Errors
    /// When it cannot answer: counts as a fault.
    fn propose(&mut self, batch: &NodeBatch<'_>, max_sets: u32) -> Result<Groups, PolicyError>;

    /// One priority per tried set: higher goes first, zero or less rejects.
    ///
    /// # Errors
    /// When it cannot answer: counts as a fault.
    fn decide(&mut self, batch: &NodeBatch<'_>) -> Result<Vec<i64>, PolicyError>;
}
