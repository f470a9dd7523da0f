//! One case: what is expected, and how it is checked.

use std::collections::{BTreeMap, BTreeSet};

use mortise_engine::decision::{Claim, Schedule};
use mortise_engine::disrupt;
use mortise_engine::launch::{LaunchRequest, launch_list};
use mortise_engine::policy::{Groups, NoPolicy, Nodes, Outcomes, PolicyRound, PolicySet, RoundCatalog};
use mortise_engine::requirement::{Requirements, key};
use mortise_engine::schedule::schedule;
use mortise_engine::snapshot::Options;
use serde::Deserialize;

use crate::world::World;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) title: String,
    #[serde(default)]
    world: World,
    #[serde(default)]
    options: OptionsSpec,
    expect: Expect,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct OptionsSpec {
    ignore_preferences: bool,
    min_values_best_effort: bool,
    max_instance_types: Option<usize>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Expect {
    /// The claims, in any order.
    claims: Option<Vec<ClaimSpec>>,
    /// Only their number.
    claim_count: Option<usize>,
    /// Pods per node.
    nodes: BTreeMap<String, usize>,
    /// How pods of this round are spread: by key, pods per value of the claims (and nodes) that hold some, sorted by
    /// number.
    skew: BTreeMap<String, Vec<usize>>,
    /// Pods per value of a key: key, value, number.
    domains: BTreeMap<String, BTreeMap<String, usize>>,
    /// Pods per claim, sorted.
    per_claim: Option<Vec<usize>>,
    /// Pods that were placed, on claims and nodes.
    placed: Option<usize>,
    /// Number of pods of buffers: on nodes, on claims, unplaced.
    buffers: BTreeMap<String, [u32; 3]>,
    /// Part of the status of each overlay.
    overlays: BTreeMap<String, String>,
    /// Static NodePools: nodes to create, nodes to remove in this order, nodes held back.
    statics: BTreeMap<String, (usize, Vec<String>, u32)>,
    /// Pods that wait for a capacity reservation.
    deferred: Vec<String>,
    /// Pods that stay pending, each with a part of its reason.
    unplaced: BTreeMap<String, String>,
    /// Only their number.
    unplaced_count: Option<usize>,
    /// NodePools that offer nothing, each with a part of the reason.
    pools: BTreeMap<String, String>,
    /// Nodes removed as empty.
    disrupted: Option<Vec<String>>,
    disrupted_count: Option<usize>,
    /// Nodes that stay, each with a part of the reason.
    blocked: BTreeMap<String, String>,
    /// NodePools whose budget held something back.
    budget_blocks: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ClaimSpec {
    nodepool: Option<String>,
    /// Number of pods.
    pods: Option<usize>,
    /// Names of pods among them.
    with: Vec<String>,
    /// Instance types, in any order.
    types: Option<Vec<String>>,
    /// The type that goes first.
    first_type: Option<String>,
    /// `key In [a, b]` as shown, by key.
    requirements: BTreeMap<String, String>,
    /// Keys that no requirement names.
    without: Vec<String>,
    labels: BTreeMap<String, String>,
    without_labels: Vec<String>,
    annotations: BTreeMap<String, String>,
    requests: BTreeMap<String, i64>,
    taints: Option<Vec<String>>,
    zone: Option<String>,
    market: Option<String>,
    grace: Option<String>,
    /// First choice of the launch list: `type zone market`.
    launch: Option<String>,
}

impl Case {
    pub(crate) fn check(&self) -> Vec<String> {
        let snapshot = self.world.snapshot();
        let defaults = Options::default();
        let options = Options {
            ignore_preferences: self.options.ignore_preferences,
            min_values_best_effort: self.options.min_values_best_effort,
            max_instance_types: self.options.max_instance_types.unwrap_or(defaults.max_instance_types),
            ..defaults
        };
        let mut failures = Vec::new();
        let result = schedule(&snapshot, &options, &NoPolicy);
        // The order in which the edge lists things must not matter.
        let mut reversed = snapshot.clone();
        reversed.pending.reverse();
        reversed.nodepools.reverse();
        if schedule(&reversed, &options, &NoPolicy) != result {
            failures.push("the result depends on the order of pods or NodePools".to_owned());
        }
        self.check_claims(&result, &snapshot, &options, &mut failures);
        self.check_rest(&result, &mut failures);
        self.check_domains(&result, &snapshot, &mut failures);
        self.check_disruption(&snapshot, &options, &mut failures);
        self.check_edges(&result, &snapshot, &mut failures);
        failures
    }

    fn check_claims(
        &self,
        result: &Schedule,
        snapshot: &mortise_engine::snapshot::Snapshot,
        options: &Options,
        failures: &mut Vec<String>,
    ) {
        let shown = || result.claims.iter().map(show).collect::<Vec<_>>().join("; ");
        let wanted = self.expect.claim_count.or(self.expect.claims.as_ref().map(Vec::len));
        if wanted.is_some_and(|wanted| wanted != result.claims.len()) {
            failures.push(format!("{} claims instead of {}: {}", result.claims.len(), wanted.unwrap_or(0), shown()));
            return;
        }
        let mut left: Vec<&Claim> = result.claims.iter().collect();
        for spec in self.expect.claims.iter().flatten() {
            let launch = |claim: &Claim| {
                let pool = snapshot.nodepools.iter().find(|pool| pool.name == claim.nodepool).expect("pool of a claim");
                let request = LaunchRequest {
                    nodepool: claim.nodepool.clone(),
                    requirements: claim.requirements.clone(),
                    requests: claim.requests.clone(),
                    replaces: false,
                    now_unix_ms: snapshot.now_unix_ms,
                };
                let list = launch_list(&request, &pool.catalog, options, &NoPolicy);
                list.map(|list| {
                    let first = list.choices.first().expect("a launch list has a choice");
                    format!("{} {} {}", first.instance_type, first.zone, first.capacity_type)
                })
            };
            let problems: Vec<Vec<String>> = left.iter().map(|claim| spec.problems(claim, launch)).collect();
            match problems.iter().position(Vec::is_empty) {
                Some(at) => drop(left.remove(at)),
                None => failures.push(format!("no claim is {spec:?}: {problems:?}; have {}", shown())),
            }
        }
    }

    fn check_domains(
        &self,
        result: &Schedule,
        snapshot: &mortise_engine::snapshot::Snapshot,
        failures: &mut Vec<String>,
    ) {
        let mut sizes: Vec<usize> = result.claims.iter().map(|claim| claim.pods.len()).collect();
        sizes.sort_unstable();
        if self.expect.per_claim.as_ref().is_some_and(|wanted| *wanted != sizes) {
            failures.push(format!("pods per claim are {sizes:?}"));
        }
        let on_nodes: usize = result.nominations.iter().map(|(_, pods)| pods.len()).sum();
        let placed = sizes.iter().sum::<usize>() + on_nodes;
        if self.expect.placed.is_some_and(|wanted| wanted != placed) {
            failures.push(format!(
                "{placed} pods are placed: {:?}",
                result.unplaced.first().map(|(_, why)| why.to_string())
            ));
        }
        let count = |name: &str| -> BTreeMap<String, usize> {
            let name = long(name);
            let mut counts = BTreeMap::new();
            for claim in &result.claims {
                let requirements = Requirements::new(&claim.requirements);
                let values = requirements.get(&name).map_or_else(|| "any".to_owned(), ToString::to_string);
                let value = values.strip_prefix("In [").and_then(|list| list.strip_suffix(']')).unwrap_or(&values);
                let value = claim.labels.get(&*name).map_or_else(|| value.to_owned(), ToString::to_string);
                *counts.entry(value).or_default() += claim.pods.len();
            }
            for (node, pods) in &result.nominations {
                let labels = snapshot.nodes.get(node).map(|node| node.labels.clone()).unwrap_or_default();
                let value = labels.get(&*name).map_or_else(|| "none".to_owned(), ToString::to_string);
                *counts.entry(value).or_default() += pods.len();
            }
            counts
        };
        for (name, wanted) in &self.expect.skew {
            let counts = count(name);
            let mut have: Vec<usize> = counts.values().copied().collect();
            have.sort_unstable();
            if have != *wanted {
                failures.push(format!("pods by {name} are {counts:?}"));
            }
        }
        for (name, wanted) in &self.expect.domains {
            let counts = count(name);
            if counts != *wanted {
                failures.push(format!("pods by {name} are {counts:?}"));
            }
        }
    }

    /// Buffers, overlays and static NodePools.
    fn check_edges(
        &self,
        result: &Schedule,
        snapshot: &mortise_engine::snapshot::Snapshot,
        failures: &mut Vec<String>,
    ) {
        let buffers: BTreeMap<String, [u32; 3]> = result
            .buffers
            .iter()
            .map(|(name, fit)| (name.to_string(), [fit.on_nodes, fit.on_claims, fit.unplaced]))
            .collect();
        if buffers != self.expect.buffers {
            failures.push(format!("buffers are {:?}", result.buffers));
        }
        let statuses = if self.expect.overlays.is_empty() { BTreeMap::new() } else { self.world.overlay_statuses() };
        for (name, part) in &self.expect.overlays {
            match statuses.get(name.as_str()) {
                Some(status) if status.to_string().contains(part.as_str()) => {}
                other => failures.push(format!("NodeOverlay {name} is {other:?}")),
            }
        }
        for (name, wanted) in &self.expect.statics {
            let pool = snapshot.nodepools.iter().find(|pool| *pool.name == **name).expect("a static NodePool");
            let plan = mortise_engine::static_pool::plan(snapshot, pool, 0);
            let remove: Vec<String> = plan.remove.iter().map(ToString::to_string).collect();
            if (plan.create.len(), &remove, plan.held_back) != (wanted.0, &wanted.1, wanted.2) {
                failures.push(format!(
                    "NodePool {name}: {} created, {remove:?}, {}",
                    plan.create.len(),
                    plan.held_back
                ));
            }
        }
        let deferred: Vec<&str> =
            result.unplaced.iter().filter(|(_, why)| why.is_deferred()).map(|(pod, _)| &*pod.name).collect();
        if self.expect.deferred.iter().map(String::as_str).collect::<Vec<_>>() != deferred {
            failures.push(format!("deferred are {deferred:?}"));
        }
    }

    fn check_rest(&self, result: &Schedule, failures: &mut Vec<String>) {
        for (node, wanted) in &self.expect.nodes {
            let have = result.nominations.iter().find(|(name, _)| **name == **node).map_or(0, |(_, pods)| pods.len());
            if have != *wanted {
                failures.push(format!("{have} pods on {node} instead of {wanted}"));
            }
        }
        let on_nodes: usize = result.nominations.iter().map(|(_, pods)| pods.len()).sum();
        let counted = self.expect.nodes.is_empty() && (self.expect.placed.is_some() || !self.expect.domains.is_empty());
        if !counted && on_nodes != self.expect.nodes.values().sum::<usize>() {
            failures.push(format!("pods on nodes: {:?}", result.nominations));
        }
        let wanted = self.expect.unplaced_count.unwrap_or(self.expect.unplaced.len());
        let counted = self.expect.placed.is_some() && self.expect.unplaced_count.is_none();
        if !counted && result.unplaced.len() != wanted {
            let names: Vec<String> = result.unplaced.iter().map(|(pod, why)| format!("{}: {why}", pod.name)).collect();
            failures.push(format!("{} pods unplaced instead of {wanted}: {names:?}", result.unplaced.len()));
        }
        for (pod, part) in &self.expect.unplaced {
            match result.unplaced.iter().find(|(key, _)| *key.name == **pod) {
                Some((_, why)) if why.to_string().contains(part.as_str()) => {}
                Some((_, why)) => failures.push(format!("{pod} is pending because {why:?} = {why}, not {part:?}")),
                None => failures.push(format!("{pod} was placed")),
            }
        }
        for (pool, part) in &self.expect.pools {
            match result.pools.iter().find(|(name, _)| **name == **pool) {
                Some((_, why)) if why.to_string().contains(part.as_str()) => {}
                Some((_, why)) => failures.push(format!("NodePool {pool} is out because {why}, not {part:?}")),
                None => failures.push(format!("NodePool {pool} is in use")),
            }
        }
    }

    fn check_disruption(
        &self,
        snapshot: &mortise_engine::snapshot::Snapshot,
        options: &Options,
        failures: &mut Vec<String>,
    ) {
        let expect = &self.expect;
        let wanted = expect.disrupted_count.or(expect.disrupted.as_ref().map(Vec::len));
        if wanted.is_none() && expect.blocked.is_empty() && expect.budget_blocks.is_none() {
            return;
        }
        let result = disrupt::empty(snapshot, options, &EveryEmptyNode);
        let nodes: BTreeSet<&str> =
            result.disrupt.iter().flat_map(|command| &command.nodes).map(|node| &**node).collect();
        if wanted.is_some_and(|wanted| wanted != nodes.len())
            || expect.disrupted.as_ref().is_some_and(|wanted| wanted.iter().any(|node| !nodes.contains(node.as_str())))
        {
            failures.push(format!("disrupted {nodes:?}, blocked {:?}", result.blocked));
        }
        for command in &result.disrupt {
            let still = disrupt::validate(snapshot, command);
            if still != *command {
                failures.push(format!("of {command:?} only {still:?} holds in the same snapshot"));
            }
        }
        for (node, part) in &expect.blocked {
            match result.blocked.iter().find(|(name, _)| **name == **node) {
                Some((_, why)) if why.to_string().contains(part.as_str()) => {}
                other => failures.push(format!("{node} is blocked by {other:?}, not {part:?}")),
            }
        }
        if let Some(wanted) = &expect.budget_blocks {
            let have: Vec<String> = result
                .budgets
                .iter()
                .filter(|budget| budget.blocking)
                .map(|budget| budget.nodepool.to_string())
                .collect();
            if have != *wanted {
                failures.push(format!("budgets of {have:?} block instead of {wanted:?}"));
            }
        }
    }
}

impl ClaimSpec {
    fn problems(
        &self,
        claim: &Claim,
        launch: impl Fn(&Claim) -> Result<String, mortise_engine::explain::Blocker>,
    ) -> Vec<String> {
        let mut problems = Vec::new();
        let mut differ = |what: &str, have: String, wanted: &str| {
            if have != wanted {
                problems.push(format!("{what} {have}"));
            }
        };
        let requirements = Requirements::new(&claim.requirements);
        let shown = |name: &str| requirements.get(name).map_or_else(|| "nothing".to_owned(), ToString::to_string);
        if let Some(pool) = &self.nodepool {
            differ("nodepool", claim.nodepool.to_string(), pool);
        }
        if let Some(pods) = self.pods {
            differ("pods", claim.pods.len().to_string(), &pods.to_string());
        }
        for pod in &self.with {
            let has = claim.pods.iter().any(|key| *key.name == **pod);
            differ("has pod", has.to_string(), "true");
        }
        if let Some(types) = &self.types {
            differ("types", type_names(claim).into_iter().collect::<Vec<_>>().join(","), &sorted(types).join(","));
        }
        if let Some(first) = &self.first_type {
            let list = claim.requirements.iter().find(|requirement| &*requirement.key == key::INSTANCE_TYPE);
            differ(
                "first type",
                list.and_then(|list| list.values.first()).map_or_else(String::new, ToString::to_string),
                first,
            );
        }
        for (name, wanted) in &self.requirements {
            differ(name, shown(&long(name)), wanted);
        }
        for name in &self.without {
            differ(name, shown(&long(name)), "nothing");
        }
        for (name, wanted) in &self.labels {
            differ(name, claim.labels.get(&*long(name)).map_or_else(String::new, ToString::to_string), wanted);
        }
        for name in &self.without_labels {
            differ(name, claim.labels.contains_key(&*long(name)).to_string(), "false");
        }
        for (name, wanted) in &self.annotations {
            differ(name, claim.annotations.get(name.as_str()).map_or_else(String::new, ToString::to_string), wanted);
        }
        for (name, wanted) in &self.requests {
            differ(name, claim.requests.get(name).to_string(), &wanted.to_string());
        }
        if let Some(taints) = &self.taints {
            differ(
                "taints",
                claim.taints.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
                &taints.join(","),
            );
        }
        if let Some(zone) = &self.zone {
            differ("zone", shown(key::ZONE), &format!("In [{zone}]"));
        }
        if let Some(market) = &self.market {
            differ("market", shown(key::CAPACITY_TYPE), &format!("In [{market}]"));
        }
        if let Some(grace) = &self.grace {
            differ("grace", claim.termination_grace_period.as_deref().unwrap_or("none").to_owned(), grace);
        }
        if let Some(wanted) = &self.launch {
            differ("launch", launch(claim).unwrap_or_else(|blocker| blocker.to_string()), wanted);
        }
        problems
    }
}

fn long(short: &str) -> String {
    crate::world::requirement(&format!("{short} Exists")).key.to_string()
}

fn sorted(names: &[String]) -> Vec<String> {
    names.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect()
}

fn type_names(claim: &Claim) -> BTreeSet<String> {
    let lists = claim.requirements.iter().filter(|requirement| &*requirement.key == key::INSTANCE_TYPE);
    lists.flat_map(|list| &list.values).map(ToString::to_string).collect()
}

fn show(claim: &Claim) -> String {
    let names: Vec<&str> = claim.pods.iter().map(|pod| &*pod.name).collect();
    format!("{} {names:?} on {:?}", claim.nodepool, type_names(claim))
}

/// Proposes every empty node that may go, and takes what is feasible.
struct EveryEmptyNode;

impl PolicySet for EveryEmptyNode {
    fn begin<'a>(&'a self, _: &'a RoundCatalog, _: &'a mortise_engine::policy::Fleet) -> Box<dyn PolicyRound + 'a> {
        Box::new(Self)
    }
}

impl PolicyRound for EveryEmptyNode {
    fn admit_pods(
        &mut self,
        _: &mortise_engine::policy::Round,
        _: &mortise_engine::policy::Pods,
        _: &mortise_engine::policy::Choices,
    ) -> Option<mortise_engine::policy::Verdict> {
        None
    }
    fn admit_claims(
        &mut self,
        _: &mortise_engine::policy::Round,
        _: &mortise_engine::policy::Claims,
        _: &mortise_engine::policy::Choices,
    ) -> Option<mortise_engine::policy::Verdict> {
        None
    }
    fn evaluate(
        &mut self,
        _: &mortise_engine::policy::Round,
        _: &mortise_engine::policy::Claims,
        _: &mortise_engine::policy::Choices,
        base: Vec<i64>,
    ) -> Vec<i64> {
        base
    }
    fn propose_consolidation(
        &mut self,
        _: &mortise_engine::policy::Round,
        nodes: &Nodes,
        tried: &Groups,
        _: &Outcomes,
        max_sets: u32,
    ) -> Groups {
        let mut sets = Groups::default();
        if tried.is_empty() {
            for (at, state) in nodes.state.iter().enumerate().take(max_sets as usize) {
                if state & 0b101 == 0b101 {
                    sets.push([u32::try_from(at).unwrap()]);
                }
            }
        }
        sets
    }
    fn decide_consolidation(
        &mut self,
        _: &mortise_engine::policy::Round,
        _: &Nodes,
        tried: &Groups,
        outcomes: &Outcomes,
    ) -> Vec<i64> {
        (0..tried.len()).map(|row| i64::from(outcomes.feasible[row])).collect()
    }
    fn end(self: Box<Self>) -> Vec<String> {
        Vec::new()
    }
}
