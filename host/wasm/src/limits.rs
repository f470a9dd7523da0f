//! What a plugin may use: fuel, time, memory, size of answers, log lines.

use std::time::Duration;

/// One MiB.
pub(crate) const MIB: u64 = 1024 * 1024;
/// Most bytes of a memo.
pub(crate) const MAX_MEMO: usize = 64 * 1024;
/// Elements over all tables of a plugin: a Rust guest has some hundred.
const MAX_TABLE_ELEMENTS: usize = 20_000;

/// What is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Hook {
    /// `describe`, `configure`, `begin-round`, `end-round`.
    Lifecycle,
    /// `admit-pods`, `admit-claims`.
    Filter,
    /// `evaluate`.
    Score,
    /// `propose`, `decide`.
    Consolidate,
}

impl Hook {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Lifecycle => "lifecycle",
            Self::Filter => "filter",
            Self::Score => "score",
            Self::Consolidate => "consolidate",
        }
    }
}

/// Limits of one plugin. `None` takes the default of the hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Fuel of a call, in Wasm instructions more or less: 50 million, 500 million for consolidation.
    pub fuel: Option<u64>,
    /// Further fuel per candidate (node, for consolidation; offering, for the start of a round): 2,000. A plain scorer
    /// takes about 200.
    pub fuel_per_candidate: u64,
    /// Backstop of a call in CPU time: 100 ms, 1 s for consolidation. Ten times that by the wall clock.
    pub deadline: Option<Duration>,
    /// Linear memory, all memories together: 64 MiB.
    pub memory_mib: u64,
    /// Log lines per round: 64.
    pub log_lines: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { fuel: None, fuel_per_candidate: 2_000, deadline: None, memory_mib: 64, log_lines: 64 }
    }
}

/// What one call may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    pub fuel: u64,
    pub deadline: Duration,
    /// Bytes that the host reads from the guest.
    pub answer_bytes: usize,
}

impl Limits {
    /// Budget of a call about `candidates` rows.
    pub(crate) fn budget(&self, hook: Hook, candidates: usize) -> Budget {
        let (fuel, deadline) = match hook {
            Hook::Lifecycle | Hook::Filter | Hook::Score => (50_000_000, Duration::from_millis(100)),
            Hook::Consolidate => (500_000_000, Duration::from_secs(1)),
        };
        let rows = u64::try_from(candidates).unwrap_or(u64::MAX);
        Budget {
            fuel: self.fuel.unwrap_or(fuel).saturating_add(self.fuel_per_candidate.saturating_mul(rows)),
            deadline: self.deadline.unwrap_or(deadline),
            // An answer has at most one id, one reason and one end per candidate, or one cost; texts and headers besides.
            answer_bytes: candidates.saturating_mul(16).saturating_add(256 * 1024),
        }
    }
}

/// Counts what a store allocates.
#[derive(Debug)]
pub(crate) struct Meter {
    limit: usize,
    memory: usize,
    table: usize,
    /// A request was refused: the trap that follows is a memory fault.
    pub denied: bool,
}

impl Meter {
    pub(crate) fn new(limits: &Limits) -> Self {
        let limit = usize::try_from(limits.memory_mib.saturating_mul(MIB)).unwrap_or(usize::MAX);
        Self { limit, memory: 0, table: 0, denied: false }
    }
}

impl wasmtime::ResourceLimiter for Meter {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let total = self.memory.saturating_add(desired.saturating_sub(current));
        if total > self.limit {
            self.denied = true;
            return Ok(false);
        }
        self.memory = total;
        Ok(true)
    }

    fn table_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let total = self.table.saturating_add(desired.saturating_sub(current));
        if total > MAX_TABLE_ELEMENTS {
            self.denied = true;
            return Ok(false);
        }
        self.table = total;
        Ok(true)
    }

    fn instances(&self) -> usize {
        8
    }

    fn tables(&self) -> usize {
        8
    }

    fn memories(&self) -> usize {
        2
    }
}

#[cfg(test)]
mod tests {
    use wasmtime::ResourceLimiter as _;

    use super::*;

    #[test]
    fn budgets_grow_with_candidates_and_can_be_set() {
        let limits = Limits::default();
        assert_eq!(limits.budget(Hook::Score, 1_000).fuel, 52_000_000);
        assert_eq!(limits.budget(Hook::Consolidate, 0).deadline, Duration::from_secs(1));
        let own = Limits { fuel: Some(7), fuel_per_candidate: u64::MAX, ..limits };
        assert_eq!(own.budget(Hook::Filter, 2).fuel, u64::MAX, "no overflow");
    }

    #[test]
    fn memory_is_counted_over_all_memories() {
        let mut meter = Meter::new(&Limits { memory_mib: 1, ..Limits::default() });
        assert!(meter.memory_growing(0, 600 * 1024, None).unwrap());
        assert!(!meter.memory_growing(0, 600 * 1024, None).unwrap() && meter.denied);
        assert!(meter.memory_growing(600 * 1024, 1024 * 1024, None).unwrap());
    }
}
