//! What came out, and whether it is what should have come out.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mortise_engine::quantity::MicroUsd;
use mortise_sim::Cluster;
use mortise_wasm::PolicyHost;
use serde_json::{Value, json};

use super::observe::View;
use super::screen::round;
use super::text::dollars;

/// Figures gathered on the way.
#[derive(Debug, Default)]
pub(super) struct Summary {
    pub(super) pods: u32,
    /// Cluster seconds from the burst until all its pods ran.
    pub(super) up: Option<f64>,
    /// Cluster seconds from the scale-down until nothing was left.
    pub(super) down: Option<f64>,
    pub(super) real: Duration,
    /// The view with all pods running.
    pub(super) full: View,
    /// What went wrong; empty = nothing.
    pub(super) troubles: Vec<String>,
    /// What is worth saying and no failure.
    pub(super) notes: Vec<String>,
}

impl Summary {
    pub(super) fn ok(&self) -> bool {
        self.troubles.is_empty()
    }

    /// Once all pods run: claims, machines and nodes must be the same ones.
    pub(super) fn check_full(&mut self, cluster: &Cluster) {
        let machines = cluster.cloud().machines();
        let live = machines.iter().filter(|m| !m.terminated).count();
        let claims = self.full.nodes.len();
        if live != claims {
            self.troubles.push(format!("{claims} NodeClaims but {live} machines"));
        }
        if self.full.node_objects != claims {
            self.troubles.push(format!("{claims} NodeClaims but {} Nodes", self.full.node_objects));
        }
        let owners: BTreeSet<_> = machines.iter().filter_map(|m| m.instance.claim_uid.clone()).collect();
        if owners.len() != machines.len() {
            self.troubles.push(format!(
                "{} machines for {} NodeClaims: some were launched twice",
                machines.len(),
                owners.len()
            ));
        }
    }

    /// At the end: nothing may be left.
    pub(super) fn check_empty(&mut self, cluster: &Cluster, view: &View) {
        let live = cluster.cloud().machines().iter().filter(|m| !m.terminated).count();
        for (what, left) in
            [("pods", view.pods()), ("NodeClaims", view.nodes.len()), ("Nodes", view.node_objects), ("machines", live)]
        {
            if left > 0 {
                self.troubles.push(format!("{left} {what} left"));
            }
        }
    }

    /// Policies must have decided in the sandbox. A round in which one was late and its native twin stood in (the
    /// machine was busy) is worth a word; decisions are the same.
    pub(super) fn check_policies(&mut self, policies: &PolicyHost) {
        for plugin in policies.status().plugins {
            // Without a scale-down there was nothing to decide about empty nodes.
            let asked = self.down.is_some() || !plugin.hooks.iter().any(|hook| hook == "consolidate");
            if plugin.rounds == 0 && asked {
                self.troubles.push(format!(
                    "policy {} never decided: {}",
                    plugin.name,
                    plugin.last_error.unwrap_or_default()
                ));
            } else if let Some(error) = plugin.last_error {
                self.notes.push(format!("policy {}: {error}; its native twin stood in", plugin.name));
            }
        }
    }

    pub(super) fn text(&self, cluster: &Cluster, policies: &PolicyHost, speed: f64) -> String {
        let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
        for node in self.full.nodes.values() {
            *kinds.entry(format!("{} {}", node.instance_type, node.capacity_type)).or_default() += 1;
        }
        let kinds: Vec<String> = kinds.into_iter().map(|(kind, count)| format!("{count} × {kind}")).collect();
        let zones: BTreeSet<&str> = self.full.nodes.values().map(|n| n.zone.as_str()).collect();
        let names: Vec<String> =
            policies.status().plugins.iter().map(|p| format!("{} ({} rounds)", p.name, p.rounds)).collect();
        let seconds = |s: Option<f64>| s.map_or_else(|| "never".to_owned(), |s| format!("{s:.1} s"));
        let saved = share(self.full.price(), self.full.on_demand());
        let mut out = format!(
            "\nsummary\n  {} pods ran on {} {}, chosen among {} instance types, in {} {}: {}\n  all running after {}{} (cluster time, {speed}× real time; {:.1} s real in all)\n  {} at the peak, {saved} % less than the same machines on demand\n  decided by the policies {}, in the sandbox\n",
            self.pods,
            self.full.nodes.len(),
            plural(self.full.nodes.len(), "node", "nodes"),
            cluster.cloud().types(),
            zones.len(),
            plural(zones.len(), "zone", "zones"),
            kinds.join(", "),
            seconds(self.up),
            self.down.map_or_else(String::new, |s| format!(", everything gone {s:.1} s after the scale-down")),
            self.real.as_secs_f64(),
            dollars(self.full.price()),
            names.join(", "),
        );
        for note in &self.notes {
            out.push_str(&format!("  note: {note}\n"));
        }
        for trouble in &self.troubles {
            out.push_str(&format!("  FAILED: {trouble}\n"));
        }
        out
    }

    pub(super) fn json(&self, policies: &PolicyHost, speed: f64) -> Value {
        let nodes: Vec<Value> = self
            .full
            .nodes
            .values()
            .map(|n| json!({"nodeClaim": n.claim, "instanceType": n.instance_type, "zone": n.zone, "capacityType": n.capacity_type, "microUsdPerHour": n.price.map(|p| p.0), "pods": n.pods}))
            .collect();
        json!({
            "event": "summary", "ok": self.ok(), "pods": self.pods, "speed": speed,
            "allRunningAfterSeconds": self.up.map(round), "allGoneAfterSeconds": self.down.map(round),
            "realSeconds": round(self.real.as_secs_f64()), "nodes": nodes,
            "microUsdPerHour": self.full.price().0, "onDemandMicroUsdPerHour": self.full.on_demand().0,
            "policies": policies.status().plugins.iter().map(|p| json!({"name": p.name, "rounds": p.rounds})).collect::<Vec<_>>(),
            "notes": self.notes, "failures": self.troubles,
        })
    }
}

fn plural(count: usize, one: &'static str, many: &'static str) -> &'static str {
    if count == 1 { one } else { many }
}

/// How much less the first is than the second, in percent.
fn share(price: MicroUsd, of: MicroUsd) -> u64 {
    of.0.saturating_sub(price.0).saturating_mul(100).checked_div(of.0).unwrap_or_default()
}
