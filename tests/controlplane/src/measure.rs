//! What one process costs, from `/proc`: the process alone, not its machine.

use anyhow::{Context, Result};
use std::path::PathBuf;

/// CPU and memory of a process at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Usage {
    /// User and system time since its start, seconds.
    pub cpu_seconds: f64,
    /// Resident memory, MiB.
    pub rss_mib: f64,
    /// Highest resident memory since its start or the last [`reset_peak`], MiB.
    pub peak_rss_mib: f64,
}

/// Linux counts process time in hundredths of a second on every architecture that we build for.
const TICKS_PER_SECOND: f64 = 100.0;

/// Reads the usage of a process.
///
/// # Errors
/// There is no such process.
pub fn usage(pid: u32) -> Result<Usage> {
    let stat = read(pid, "stat")?;
    // The command name, in parentheses, may hold spaces.
    let fields: Vec<&str> =
        stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().collect()).unwrap_or_default();
    let ticks = |index: usize| fields.get(index).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    let status = read(pid, "status")?;
    let kib = |name: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok())
            .unwrap_or(0.0)
    };
    Ok(Usage {
        // Fields 14 and 15 of proc(5)'s list; the two before the parenthesis are cut off.
        cpu_seconds: (ticks(11) + ticks(12)) / TICKS_PER_SECOND,
        rss_mib: kib("VmRSS") / 1024.0,
        peak_rss_mib: kib("VmHWM") / 1024.0,
    })
}

/// Makes the peak count anew from the memory of now.
///
/// # Errors
/// There is no such process.
pub fn reset_peak(pid: u32) -> Result<()> {
    std::fs::write(path(pid, "clear_refs"), "5").with_context(|| format!("resetting the memory peak of process {pid}"))
}

fn path(pid: u32, file: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{file}"))
}

fn read(pid: u32, file: &str) -> Result<String> {
    std::fs::read_to_string(path(pid, file)).with_context(|| format!("process {pid} is gone"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_usage_grows_with_work() {
        let before = usage(std::process::id()).expect("own process");
        let mut sum = 0_u64;
        for step in 0..200_000_000_u64 {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(step));
        }
        let after = usage(std::process::id()).expect("own process");
        assert!(after.cpu_seconds > before.cpu_seconds, "{before:?} {after:?} {sum}");
        assert!(after.rss_mib > 0.5 && after.peak_rss_mib >= after.rss_mib * 0.9, "{after:?}");
    }
}
