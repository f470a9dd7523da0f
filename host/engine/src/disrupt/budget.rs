//! Disruption budgets: how many nodes of a NodePool may be disrupted now.

use std::sync::Arc;

use super::BudgetState;
use super::cron::Cron;
use crate::nodepool::{Budget, NodePool};
use crate::schedule::managed_nodes;
use crate::snapshot::Snapshot;

/// The budget of a NodePool that states none.
const DEFAULT_NODES: &str = "10%";

/// What is left of a NodePool's budgets for one reason.
///
/// Of several active budgets the smallest counts. One that cannot be read allows nothing, whatever its reasons.
pub(crate) fn state(snapshot: &Snapshot, pool: &NodePool, reason: &str) -> BudgetState {
    let mut total: u32 = 0;
    let mut disrupting: u32 = 0;
    for (_, node) in managed_nodes(snapshot).filter(|(_, node)| node.nodepool.as_ref() == Some(&pool.name)) {
        if node.initialized && !node.instance_terminating {
            total += 1;
            disrupting += u32::from(node.deleting || !node.ready);
        }
    }
    let mut least = u32::MAX;
    let mut invalid = None;
    let default = [Budget { nodes: DEFAULT_NODES.into(), schedule: None, duration_ms: None, reasons: Vec::new() }];
    let budgets = if pool.disruption.budgets.is_empty() { &default[..] } else { &pool.disruption.budgets };
    for (at, budget) in budgets.iter().enumerate() {
        match allowed(budget, reason, total, snapshot.now_unix_ms) {
            Ok(allowed) => least = least.min(allowed.unwrap_or(u32::MAX)),
            Err(problem) => {
                least = 0;
                invalid.get_or_insert_with(|| Arc::from(format!("spec.disruption.budgets[{at}]: {problem}")));
            }
        }
    }
    BudgetState {
        nodepool: Arc::clone(&pool.name),
        reason: reason.into(),
        total,
        disrupting,
        allowed: if least == u32::MAX { u32::MAX } else { least.saturating_sub(disrupting) },
        invalid,
        blocking: false,
    }
}

/// Nodes that one budget allows to be disrupted at once; `None` while it is not in effect.
fn allowed(budget: &Budget, reason: &str, total: u32, now_unix_ms: i64) -> Result<Option<u32>, String> {
    let nodes = parse_nodes(&budget.nodes, total)?;
    let window = match (&budget.schedule, budget.duration_ms) {
        (None, None) => None,
        (Some(schedule), Some(duration)) => {
            Some((schedule.parse::<Cron>().map_err(|error| error.to_string())?, duration))
        }
        (Some(_), None) => return Err("schedule is set without duration; set both or neither".to_owned()),
        (None, Some(_)) => return Err("duration is set without schedule; set both or neither".to_owned()),
    };
    if !budget.reasons.is_empty() && !budget.reasons.iter().any(|known| &**known == reason) {
        return Ok(None);
    }
    let active = window.is_none_or(|(cron, duration)| cron.is_active(now_unix_ms, duration));
    Ok(active.then_some(nodes))
}

/// `"5"` or `"10%"` of the nodes, percentages rounded up.
fn parse_nodes(text: &str, total: u32) -> Result<u32, String> {
    let problem = || format!("nodes {text:?} is neither a whole number nor a percentage from 0% to 100%");
    match text.strip_suffix('%') {
        Some(percent) => {
            let percent: u32 = percent.parse().ok().filter(|percent| *percent <= 100).ok_or_else(problem)?;
            let exact = u64::from(total) * u64::from(percent);
            u32::try_from(exact.div_ceil(100)).map_err(|_| problem())
        }
        None => text.parse().map_err(|_| problem()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Node;

    fn snapshot(nodes: u32, deleting: u32, not_ready: u32) -> Snapshot {
        let node = |at: u32| {
            let name: Arc<str> = format!("node-{at:02}").into();
            let node = Node {
                name: Arc::clone(&name),
                node_claim: Some(Arc::clone(&name)),
                nodepool: Some("default".into()),
                initialized: true,
                ready: at < nodes - not_ready,
                deleting: at < deleting,
                ..Node::default()
            };
            (name, Arc::new(node))
        };
        // Friday, 31 July 2026, 10:00 UTC.
        Snapshot { now_unix_ms: 1_785_492_000_000, nodes: (0..nodes).map(node).collect(), ..Snapshot::default() }
    }

    fn pool(budgets: &[Budget]) -> NodePool {
        let mut pool = NodePool { name: "default".into(), ..NodePool::default() };
        pool.disruption.budgets = budgets.to_vec();
        pool
    }

    fn budget(nodes: &str, schedule: Option<&str>, hours: Option<i64>, reasons: &[&str]) -> Budget {
        Budget {
            nodes: nodes.into(),
            schedule: schedule.map(Into::into),
            duration_ms: hours.map(|hours| hours * 3_600_000),
            reasons: reasons.iter().map(|reason| (*reason).into()).collect(),
        }
    }

    fn allowed(nodes: (u32, u32, u32), budgets: &[Budget]) -> u32 {
        state(&snapshot(nodes.0, nodes.1, nodes.2), &pool(budgets), "Empty").allowed
    }

    #[test]
    fn percentages_round_up_and_the_default_is_ten_percent() {
        assert_eq!(allowed((10, 0, 0), &[budget("30%", None, None, &[])]), 3);
        assert_eq!(allowed((3, 0, 0), &[budget("50%", None, None, &[])]), 2);
        assert_eq!(allowed((10, 0, 0), &[budget("100%", None, None, &[])]), 10);
        assert_eq!(allowed((10, 0, 0), &[budget("0%", None, None, &[])]), 0);
        assert_eq!(allowed((11, 0, 0), &[]), 2);
        assert_eq!(allowed((1, 0, 0), &[]), 1);
    }

    #[test]
    fn deleting_and_unready_nodes_count_as_disrupting() {
        assert_eq!(allowed((10, 2, 1), &[budget("5", None, None, &[])]), 2);
        assert_eq!(allowed((10, 6, 0), &[budget("5", None, None, &[])]), 0);
    }

    #[test]
    fn the_smallest_active_budget_of_the_reason_counts() {
        let budgets =
            [budget("5", None, None, &[]), budget("1", None, None, &["Drifted"]), budget("3", None, None, &["Empty"])];
        assert_eq!(allowed((10, 0, 0), &budgets), 3);
        assert_eq!(allowed((10, 0, 0), &[budget("1", None, None, &["Drifted"])]), u32::MAX);
    }

    #[test]
    fn business_hours_hold() {
        let closed = budget("0", Some("0 9 * * mon-fri"), Some(8), &[]);
        assert_eq!(allowed((10, 0, 0), std::slice::from_ref(&closed)), 0);
        let evening = Snapshot { now_unix_ms: 1_785_492_000_000 + 9 * 3_600_000, ..snapshot(10, 0, 0) };
        assert_eq!(state(&evening, &pool(&[closed]), "Empty").allowed, u32::MAX);
    }

    #[test]
    fn what_cannot_be_read_allows_nothing() {
        for bad in [
            budget("many", None, None, &[]),
            budget("120%", None, None, &[]),
            budget("-1", None, None, &["Drifted"]),
            budget("5", Some("whenever"), Some(1), &[]),
            budget("5", Some("@daily"), None, &[]),
            budget("5", None, Some(1), &[]),
        ] {
            let state = state(&snapshot(10, 0, 0), &pool(&[budget("9", None, None, &[]), bad]), "Empty");
            assert_eq!(state.allowed, 0);
            assert!(state.invalid.unwrap().starts_with("spec.disruption.budgets[1]"));
        }
    }
}
