//! The plan as a table for people, or as data.

use std::collections::BTreeMap;
use std::fmt::Write;

use mortise_engine::catalog::CapacityType;
use mortise_engine::decision::{Claim, Schedule};
use mortise_engine::quantity::MicroUsd;
use mortise_engine::requirement::Operator;
use serde::Serialize;

/// The plan, as printed by `-o json` and `-o yaml`. Field names are part of the command's contract.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    /// Every pod has a place.
    pub(crate) fits: bool,
    /// Pods that were waiting.
    pub(crate) pods: usize,
    /// Pods with a place on new nodes.
    pub(crate) pods_on_new_nodes: usize,
    /// Pods with a place on nodes that exist or are on their way.
    pub(crate) pods_on_existing_nodes: usize,
    /// Nodes to launch.
    pub(crate) claims: Vec<PlannedClaim>,
    /// Cost per hour of the new nodes at list price, US dollars; absent when a price is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) usd_per_hour: Option<String>,
    /// Pods without a place, and why.
    pub(crate) unplaced: Vec<UnplacedPod>,
    /// NodePools that offer nothing, and why.
    pub(crate) nodepools: Vec<PoolTrouble>,
    /// Assumptions, warnings, policy faults.
    pub(crate) notes: Vec<String>,
}

/// One node to launch.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlannedClaim {
    nodepool: String,
    instance_type: String,
    zone: String,
    capacity_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    usd_per_hour: Option<String>,
    /// Instance types that the launch may fall back to, the first included.
    instance_types: usize,
    pods: Vec<String>,
}

/// One pod without a place.
#[derive(Debug, Serialize)]
pub(crate) struct UnplacedPod {
    pod: String,
    reason: String,
}

/// One NodePool without an offer.
#[derive(Debug, Serialize)]
pub(crate) struct PoolTrouble {
    nodepool: String,
    reason: String,
}

impl Report {
    pub(crate) fn new(schedule: &Schedule, pods: usize, mut notes: Vec<String>) -> Self {
        notes.extend(schedule.policy_faults.iter().cloned());
        let prices: Option<Vec<MicroUsd>> = schedule.claims.iter().map(|c| c.cheapest.as_ref()?.price).collect();
        Self {
            fits: schedule.unplaced.is_empty(),
            pods,
            pods_on_new_nodes: schedule.claims.iter().map(|c| c.pods.len()).sum(),
            pods_on_existing_nodes: schedule.nominations.iter().map(|(_, pods)| pods.len()).sum(),
            claims: schedule.claims.iter().map(planned).collect(),
            usd_per_hour: prices.map(|p| usd(MicroUsd(p.iter().map(|m| m.0).sum()))),
            unplaced: schedule
                .unplaced
                .iter()
                .map(|(key, reason)| UnplacedPod {
                    pod: format!("{}/{}", key.namespace, key.name),
                    reason: reason.to_string(),
                })
                .collect(),
            nodepools: schedule
                .pools
                .iter()
                .map(|(name, reason)| PoolTrouble { nodepool: name.to_string(), reason: reason.to_string() })
                .collect(),
            notes,
        }
    }

    /// For people: equal nodes and pods with the same reason are one line with a count.
    pub(crate) fn table(&self) -> String {
        let mut out = String::new();
        if !self.claims.is_empty() {
            let mut rows: BTreeMap<Row<'_>, (usize, usize)> = BTreeMap::new();
            for claim in &self.claims {
                let row = rows.entry(Row::of(claim)).or_default();
                row.0 += 1;
                row.1 += claim.pods.len();
            }
            let mut table =
                vec![["COUNT", "NODEPOOL", "TYPE", "ZONE", "CAPACITY", "USD/H", "PODS", "OR TYPES"].map(str::to_owned)];
            for (row, (count, pods)) in rows {
                table.push([
                    count.to_string(),
                    row.nodepool.into(),
                    row.instance_type.into(),
                    row.zone.into(),
                    row.capacity_type.into(),
                    row.usd_per_hour.unwrap_or("unknown").into(),
                    pods.to_string(),
                    row.instance_types.saturating_sub(1).to_string(),
                ]);
            }
            columns(&mut out, &table);
            out.push('\n');
        }
        let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for pod in &self.unplaced {
            reasons.entry(&pod.reason).or_default().push(&pod.pod);
        }
        for (reason, pods) in reasons {
            let more = pods.len().saturating_sub(1);
            let others = if more == 0 { String::new() } else { format!(" and {more} more") };
            let _ = writeln!(out, "no place for {}{others}: {reason}", pods.first().copied().unwrap_or_default());
        }
        for pool in &self.nodepools {
            let _ = writeln!(out, "NodePool {} offers nothing: {}", pool.nodepool, pool.reason);
        }
        for note in &self.notes {
            let _ = writeln!(out, "note: {note}");
        }
        let _ = writeln!(
            out,
            "{} pods: {} on {} new nodes ({} $/h), {} on nodes that exist, {} without a place",
            self.pods,
            self.pods_on_new_nodes,
            self.claims.len(),
            self.usd_per_hour.as_deref().unwrap_or("unknown"),
            self.pods_on_existing_nodes,
            self.unplaced.len()
        );
        out
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Row<'a> {
    nodepool: &'a str,
    instance_type: &'a str,
    zone: &'a str,
    capacity_type: &'a str,
    usd_per_hour: Option<&'a str>,
    instance_types: usize,
}

impl<'a> Row<'a> {
    fn of(claim: &'a PlannedClaim) -> Self {
        Self {
            nodepool: &claim.nodepool,
            instance_type: &claim.instance_type,
            zone: &claim.zone,
            capacity_type: claim.capacity_type,
            usd_per_hour: claim.usd_per_hour.as_deref(),
            instance_types: claim.instance_types,
        }
    }
}

fn planned(claim: &Claim) -> PlannedClaim {
    let types = claim
        .requirements
        .iter()
        .find(|r| &*r.key == mortise_api::labels::INSTANCE_TYPE && r.operator == Operator::In)
        .map_or(0, |r| r.values.len());
    let choice = claim.cheapest.as_ref();
    PlannedClaim {
        nodepool: claim.nodepool.to_string(),
        instance_type: choice.map(|c| c.instance_type.to_string()).unwrap_or_default(),
        zone: choice.map(|c| c.zone.to_string()).unwrap_or_default(),
        capacity_type: choice.map_or("", |c| match c.capacity_type {
            CapacityType::Reserved => "reserved",
            CapacityType::Spot => "spot",
            CapacityType::OnDemand => "on-demand",
        }),
        usd_per_hour: choice.and_then(|c| c.price).map(usd),
        instance_types: types,
        pods: claim.pods.iter().map(|key| format!("{}/{}", key.namespace, key.name)).collect(),
    }
}

/// Dollars with four decimals, rounded to the nearest.
fn usd(price: MicroUsd) -> String {
    let rounded = price.0.saturating_add(50) / 100;
    format!("{}.{:04}", rounded / 10_000, rounded % 10_000)
}

fn columns<const N: usize>(out: &mut String, rows: &[[String; N]]) {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    for row in rows {
        let line: Vec<String> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        let _ = writeln!(out, "{}", line.join("  ").trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_are_rounded_to_four_decimals() {
        assert_eq!(usd(MicroUsd(96_000)), "0.0960");
        assert_eq!(usd(MicroUsd(1_234_567)), "1.2346");
        assert_eq!(usd(MicroUsd(0)), "0.0000");
    }

    #[test]
    fn columns_line_up() {
        let mut out = String::new();
        columns(&mut out, &[["A".into(), "LONG".into()], ["abc".into(), "x".into()]]);
        assert_eq!(out, "A    LONG\nabc  x\n");
    }
}
