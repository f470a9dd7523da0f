//! Rounds to ask policies about: small ones by hand, random ones from a seed.

use mortise_engine::policy::{
    COST_UNKNOWN, Choices, Claims, Column, ExtraColumn, Fleet, Groups, InstanceTypes, NodePools, Nodes, Offerings,
    Outcomes, PolicySet, Round, RoundCatalog, Verdict,
};

/// A catalogue, claims with their candidates, and nodes.
#[derive(Clone, Debug, Default)]
pub struct World {
    pub round: Round,
    pub catalog: RoundCatalog,
    pub fleet: Fleet,
    pub claims: Claims,
    pub candidates: Choices,
    pub nodes: Nodes,
}

/// Everything that policies answer about a world.
#[derive(Clone, Debug, PartialEq)]
pub struct Answers {
    pub verdict: Option<Verdict>,
    pub costs: Vec<i64>,
    pub sets: Groups,
    pub priorities: Vec<i64>,
    pub faults: Vec<String>,
}

/// A small deterministic generator: the same seed gives the same world on every machine.
pub struct Dice(u64);

impl Dice {
    pub fn below(&mut self, bound: u64) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

impl World {
    /// Two plain types and a GPU type in two zones, on-demand, and a spot offering; one claim that may use all.
    pub fn small() -> Self {
        let mut world = Self::with_symbols(&[
            "default",
            "us-east-1a",
            "us-east-1b",
            "m7i",
            "m7i.large",
            "c7i",
            "c7i.large",
            "g5",
            "g5.xlarge",
        ]);
        for (name, family, gpu) in [(6, 5, 0), (8, 7, 1), (4, 3, 0)] {
            world.add_type(name, family, gpu);
        }
        for (type_id, zone, capacity, price) in [
            (0, 1, 2, 85_000),
            (0, 2, 2, 85_000),
            (1, 1, 2, 1_006_000),
            (2, 1, 2, 100_800),
            (2, 2, 2, 100_800),
            (2, 2, 1, 40_000),
        ] {
            world.add_offering(type_id, zone, capacity, price, 0);
        }
        world.add_claim((0..6).collect(), 0);
        world
    }

    /// A random world: reservations, GPUs, unknown prices, minValues, empty rows, nodes in all states.
    pub fn random(seed: u64, types: u64, zones: u64, claims: u64) -> Self {
        let mut dice = Dice(seed);
        let mut names: Vec<String> = vec!["default".into(), "karpenter.k8s.aws/instance-family".into()];
        names.extend((0..zones).map(|z| format!("zone-{z}")));
        let first_type = names.len() as u64;
        for t in 0..types {
            let size = if dice.below(10) == 0 { "metal" } else { "large" };
            names.push(format!("f{}-{t}.{size}", t % 7));
        }
        let mut world = Self::with_symbols(&names.iter().map(String::as_str).collect::<Vec<_>>());
        world.round = Round { id: seed, now_unix_ms: 1_000_000, seed, steps: 0, explain: dice.below(2) == 0 };
        for t in 0..types {
            let gpu = u32::from(dice.below(6) == 0);
            // The family label: any other symbol will do for a value.
            world.add_type((first_type + t) as u32, (t % 7) as u32, gpu);
            for zone in 0..zones {
                for capacity in [0, 1, 2] {
                    if dice.below(4) == 0 || (capacity == 0 && dice.below(4) != 0) {
                        continue;
                    }
                    let price = if dice.below(20) == 0 { u64::MAX } else { 10_000 + dice.below(200_000) };
                    let left = if capacity == 0 { dice.below(4) as u32 } else { 0 };
                    world.add_offering(t as u32, 2 + zone as u32, capacity, price, left);
                }
            }
        }
        let offerings = world.catalog.offerings.zone.len() as u64;
        let mut column = |name: &str| ExtraColumn {
            name: name.into(),
            values: Column::U32((0..offerings).map(|_| u32::from(dice.below(3) == 0)).collect()),
        };
        let kinds = [column("reservation-type"), column("reservation-interruptible")];
        world.catalog.offerings.extra.extend(kinds);
        for _ in 0..claims {
            let density = 1 + dice.below(4);
            let set = (0..offerings as u32).filter(|_| dice.below(4) < density).collect();
            world.add_claim(set, u32::from(dice.below(3) == 0));
            if dice.below(2) == 0 {
                let set = world.candidates.set_of.last().copied().unwrap_or(0);
                world.add_claim_on(set, 0);
            }
        }
        // Half of the worlds without extra columns of claims, so that equal claims are folded.
        if dice.below(2) == 0 {
            world.add_min_values(&mut dice);
        }
        for _ in 0..20 {
            world.add_node(dice.below(128) as u32, if dice.below(5) == 0 { u64::MAX } else { dice.below(1_000_000) });
        }
        world
    }

    fn with_symbols(symbols: &[&str]) -> Self {
        let round = Round { id: 1, now_unix_ms: 1_000_000, seed: 0, steps: 0, explain: true };
        let mut world = Self { round, ..Self::default() };
        world.catalog.generation = 1;
        world.catalog.symbols = symbols.iter().map(ToString::to_string).collect();
        world.catalog.nodepools = NodePools {
            name: vec![0],
            weight: vec![0],
            consolidation: vec![1],
            consolidate_after_s: vec![0],
            cpu_left_milli: vec![u64::MAX],
            memory_left_mib: vec![u64::MAX],
            nodes_left: vec![u32::MAX],
            budget_empty: vec![u32::MAX],
            budget_underutilized: vec![u32::MAX],
            labels: Groups { end: vec![0], member: vec![] },
            extra: vec![],
        };
        world
    }

    fn add_type(&mut self, name: u32, family: u32, gpu: u32) {
        let InstanceTypes { labels, .. } = &mut self.catalog.types;
        labels.member.extend([1, family]);
        labels.end.push(labels.member.len() as u32);
        let types = &mut self.catalog.types;
        types.name.push(name);
        types.family.push(family);
        types.arch.push(0);
        types.generation.push(7);
        types.cpu_milli.push(2_000);
        types.memory_mib.push(8_192);
        types.ephemeral_mib.push(20_480);
        types.pods.push(29);
        types.gpu.push(gpu);
    }

    fn add_offering(&mut self, type_id: u32, zone: u32, capacity: u8, price: u64, left: u32) {
        let offerings: &mut Offerings = &mut self.catalog.offerings;
        offerings.instance_type.push(type_id);
        offerings.zone.push(zone);
        offerings.capacity.push(capacity);
        offerings.price_micro_usd.push(price);
        offerings.reserved_left.push(left);
    }

    pub fn add_claim(&mut self, set: Vec<u32>, state: u32) {
        let sets = &mut self.candidates.sets;
        sets.member.extend(set);
        sets.end.push(sets.member.len() as u32);
        let set = sets.end.len() as u32 - 1;
        self.add_claim_on(set, state);
    }

    fn add_claim_on(&mut self, set: u32, state: u32) {
        self.candidates.set_of.push(set);
        let claims = &mut self.claims;
        claims.count.push(1);
        claims.nodepool.push(0);
        claims.cpu_milli.push(1_000);
        claims.memory_mib.push(1_024);
        claims.gpu.push(0);
        claims.pods.push(1);
        claims.state.push(state);
    }

    fn add_min_values(&mut self, dice: &mut Dice) {
        let (mut end, mut pairs) = (Vec::new(), Vec::new());
        for state in &self.claims.state {
            if state & 1 != 0 {
                pairs.extend([1, dice.below(8) as u32]);
            }
            end.push(pairs.len() as u32);
        }
        let column = |name: &str, values| ExtraColumn { name: name.into(), values: Column::U32(values) };
        self.claims.extra = vec![column("min-values-end", end), column("min-values", pairs)];
    }

    pub fn add_node(&mut self, state: u32, price: u64) {
        let nodes = &mut self.nodes;
        nodes.id.push(100 + nodes.id.len() as u64);
        nodes.nodepool.push(0);
        nodes.offering.push(0);
        nodes.price_micro_usd.push(price);
        nodes.age_s.push(3_600);
        nodes.idle_s.push(600);
        nodes.used_cpu_milli.push(0);
        nodes.used_memory_mib.push(0);
        nodes.pods.push(0);
        nodes.disruption_cost_milli.push(1_000);
        nodes.last_moved_s.push(u64::MAX);
        nodes.state.push(state);
    }

    /// Candidates of a claim.
    pub fn row(&self, claim: usize) -> &[u32] {
        let set = self.candidates.set_of[claim] as usize;
        let sets = &self.candidates.sets;
        let start = if set == 0 { 0 } else { sets.end[set - 1] as usize };
        &sets.member[start..sets.end[set] as usize]
    }

    /// List prices, rows in order.
    pub fn base(&self) -> Vec<i64> {
        let price =
            |o: &u32| i64::try_from(self.catalog.offerings.price_micro_usd[*o as usize]).unwrap_or(COST_UNKNOWN);
        (0..self.candidates.set_of.len()).flat_map(|claim| self.row(claim).iter().map(price)).collect()
    }

    /// Asks everything once.
    pub fn ask(&self, policies: &dyn PolicySet) -> Answers {
        let mut round = policies.begin(&self.catalog, &self.fleet);
        let verdict = round.admit_claims(&self.round, &self.claims, &self.candidates);
        let costs = round.evaluate(&self.round, &self.claims, &self.candidates, self.base());
        let none = Outcomes::default();
        let sets = round.propose_consolidation(&self.round, &self.nodes, &Groups::default(), &none, 100);
        let rows = sets.end.len();
        let outcomes = Outcomes {
            feasible: (0..rows).map(|row| u8::from(row % 5 != 4)).collect(),
            saving_micro_usd: vec![0; rows],
            new_nodes: vec![0; rows],
            evictions: vec![0; rows],
            replacement: Groups { end: vec![0; rows], member: vec![] },
            reason: vec![0; rows],
        };
        let priorities = round.decide_consolidation(&self.round, &self.nodes, &sets, &outcomes);
        Answers { verdict, costs, sets, priorities, faults: round.end() }
    }

    /// Offerings that the policies leave the first claim, cheapest first, as `type/zone`.
    pub fn choices(&self, policies: &dyn PolicySet) -> Vec<String> {
        let answers = self.ask(policies);
        let dropped = answers.verdict.map_or_else(Vec::new, |v| v.dropped.member[..v.dropped.end[0] as usize].to_vec());
        let mut left: Vec<(i64, u32)> = answers.costs.iter().copied().zip(self.row(0).iter().copied()).collect();
        left.retain(|(cost, offering)| *cost != i64::MAX && !dropped.contains(offering));
        left.sort();
        let text = |symbol: u32| &self.catalog.symbols[symbol as usize];
        let offerings = &self.catalog.offerings;
        let type_name = |o: u32| text(self.catalog.types.name[offerings.instance_type[o as usize] as usize]);
        left.iter().map(|(_, o)| format!("{}/{}", type_name(*o), text(offerings.zone[*o as usize]))).collect()
    }
}
