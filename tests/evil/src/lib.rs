//! A plugin that misbehaves as its configuration says, to test what the policy host makes of it.
//!
//! `since` is the generation of the catalogue from which on it does so: the trial round of admission has generation 0, so a
//! plugin with `since: 1` is admitted and turns bad at run time.

#![no_std]

use core::hint::black_box;

use mortise_plugin_sdk::prelude::*;

struct Evil {
    mode: String,
    hook: String,
    zone: String,
    since: u64,
    generation: u64,
    /// Rounds that its memo remembers.
    rounds: u64,
}

impl Plugin for Evil {
    const NAME: &'static str = "evil";
    const VERSION: &'static str = "6.6.6";
    const CONFIG_SCHEMA: &'static str = r#"{
      "type": "object", "additionalProperties": false, "required": ["mode"],
      "properties": {
        "mode": { "type": "string" }, "hook": { "type": "string" }, "zone": { "type": "string" },
        "since": { "type": "integer", "minimum": 0 }
      }
    }"#;

    fn configure(config: &Config) -> Result<Self, Invalid> {
        let optional = |key: &str| if config.get(key).is_some() { config.text(key) } else { Ok("") };
        let mode = config.text("mode")?.to_owned();
        match mode.as_str() {
            "trap-in-configure" => misbehave("trap"),
            "spin-in-configure" => misbehave("spin"),
            "refuse-configuration" => return Err(Invalid::at("zone", "this plugin likes no zone")),
            _ => {}
        }
        let since = u64::try_from(config.integer_or("since", 0)?).unwrap_or(0);
        let (hook, zone) = (optional("hook")?.to_owned(), optional("zone")?.to_owned());
        Ok(Self { mode, hook, zone, since, generation: 0, rounds: 0 })
    }

    fn begin_round(&mut self, catalog: &Catalog, _: &Fleet, memo: &[u8]) -> Result<(), PolicyError> {
        self.generation = catalog.generation;
        self.rounds = memo.try_into().map_or(0, u64::from_le_bytes);
        self.turn_bad("begin-round")
    }

    fn end_round(&mut self) -> Vec<u8> {
        if self.is_due("end-round") && self.mode == "long" {
            return vec![0; 64 * 1024 + 1];
        }
        let rounds = self.rounds + 1;
        metrics::add("rounds", 1);
        metrics::observe("rounds_remembered", i64::try_from(rounds).unwrap_or(i64::MAX));
        rounds.to_le_bytes().to_vec()
    }
}

impl Evil {
    fn is_due(&self, hook: &str) -> bool {
        self.generation >= self.since && (self.hook.is_empty() || self.hook == hook)
    }

    fn turn_bad(&self, hook: &str) -> Result<(), PolicyError> {
        if self.is_due(hook) {
            if self.mode == "error" {
                return Err(PolicyError::Internal("it does not feel like it".to_owned()));
            }
            misbehave(&self.mode);
        }
        Ok(())
    }
}

/// Modes that never return.
fn misbehave(mode: &str) {
    match mode {
        "spin" => spin(),
        "grow" => grow(),
        "recurse" => drop(black_box(recurse(1))),
        "trap" => black_box(None::<u32>).map_or_else(panic_in_guest, drop),
        _ => {}
    }
}

#[expect(clippy::panic, reason = "that is its job")]
fn panic_in_guest() {
    panic!("the guest panics")
}

fn spin() {
    let mut n = 0_u64;
    while black_box(n) != u64::MAX {
        n = n.wrapping_add(2);
    }
}

fn grow() {
    let mut hoard: Vec<Vec<u8>> = Vec::new();
    while black_box(hoard.len()) < 1 << 20 {
        hoard.push(vec![1; 1 << 20]);
    }
}

fn recurse(depth: u64) -> u64 {
    let frame = black_box([depth; 64]);
    if black_box(depth) == 0 { 0 } else { recurse(depth + 1) + frame.iter().sum::<u64>() }
}

impl Filter for Evil {
    fn admit_claims(&mut self, batch: &ClaimBatch<'_>) -> Result<Verdict, PolicyError> {
        self.turn_bad("admit-claims")?;
        let due = self.is_due("admit-claims");
        let zone = batch.catalog.symbol(&self.zone);
        let mut drops = Drops::new(batch.round.explain);
        for row in batch.candidates.iter() {
            match self.mode.as_str() {
                "foreign" if due => drops.drop(1_000_000, "no such offering"),
                "twice" if due => row.iter().take(1).for_each(|o| (0..2).for_each(|_| drops.drop(*o, "twice"))),
                "refuse-zone" => {
                    let in_zone = row.iter().filter(|o| zone.is_some() && batch.catalog.zone_of(**o) == zone);
                    in_zone.for_each(|o| drops.drop(*o, "this zone is refused"));
                }
                _ => {}
            }
            drops.end_row();
        }
        match self.mode.as_str() {
            "short" if due => Ok(Drops::nothing(batch.candidates.len().saturating_sub(1))),
            "huge" if due => {
                let mut huge = Drops::nothing(batch.candidates.len());
                huge.dropped.member = vec![0; 4 << 20];
                Ok(huge)
            }
            _ => Ok(drops.finish()),
        }
    }
}

impl Score for Evil {
    fn evaluate(&mut self, batch: &ClaimBatch<'_>, base: &[i64]) -> Result<Vec<i64>, PolicyError> {
        self.turn_bad("evaluate")?;
        let mut costs = match self.mode.as_str() {
            "reverse" => batch.map(base, |c| 1_000_000_000 - c.cost),
            "remember" => batch.map(base, |c| c.cost + i64::try_from(self.rounds).unwrap_or(0)),
            _ => base.to_vec(),
        };
        if self.is_due("evaluate") {
            match self.mode.as_str() {
                "short" => drop(costs.pop()),
                "long" => costs.push(0),
                "huge" => costs.resize(4 << 20, 0),
                _ => {}
            }
        }
        Ok(costs)
    }
}

impl Consolidate for Evil {
    fn propose(&mut self, batch: &NodeBatch<'_>, max_sets: u32) -> Result<Groups, PolicyError> {
        self.turn_bad("propose")?;
        let nodes = u32::try_from(batch.nodes.id.len()).unwrap_or(u32::MAX);
        Ok(match self.mode.as_str() {
            "foreign" if self.is_due("propose") => Groups { end: vec![1], member: vec![nodes] },
            "long" if self.is_due("propose") => {
                let sets = max_sets.saturating_add(1);
                Groups { end: (1..=sets).collect(), member: vec![0; sets as usize] }
            }
            // Every node, busy or not.
            "greedy" => Groups { end: (1..=nodes).collect(), member: (0..nodes).collect() },
            _ => Groups { end: Vec::new(), member: Vec::new() },
        })
    }

    fn decide(&mut self, batch: &NodeBatch<'_>) -> Result<Vec<i64>, PolicyError> {
        self.turn_bad("decide")?;
        let short = usize::from(self.mode == "short" && self.is_due("decide"));
        Ok(vec![1; batch.tried.len().saturating_sub(short)])
    }
}

mortise_plugin_sdk::export_plugin!(Evil: Filter + Score + Consolidate);
