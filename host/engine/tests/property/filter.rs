//! A policy that drops and reprices by arithmetic, to see that policies only ever narrow and order.

use mortise_engine::policy::{
    COST_DROPPED, COST_UNKNOWN, Choices, Claims, Fleet, Groups, Nodes, Outcomes, Pods, PolicyRound, PolicySet, Round,
    RoundCatalog, Verdict,
};

/// Drops offerings whose zone or type it does not like, and prices the rest anew. Every answer depends on names only, so
/// that it is the same in every call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whim(pub(crate) u64);

struct WhimRound<'a>(Whim, &'a RoundCatalog);

impl Whim {
    fn hash(self, of_type: &str, zone: &str, market: u8, salt: u64) -> u64 {
        let bytes = of_type.bytes().chain(zone.bytes()).chain([market]);
        bytes.fold(self.0 ^ salt, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3).rotate_left(17))
    }

    fn unloved(self, of_type: &str, zone: &str, market: u8, salt: u64) -> bool {
        self.hash(of_type, zone, market, salt).is_multiple_of(6)
    }

    /// Whether filters drop this offering, from pods or from claims.
    pub(crate) fn drops(self, of_type: &str, zone: &str, market: u8) -> bool {
        [1, 2].into_iter().any(|salt| self.unloved(of_type, zone, market, salt))
    }
}

impl WhimRound<'_> {
    fn names(&self, offering: u32) -> (&str, &str, u8) {
        let at = offering as usize;
        let text = |symbol: u32| self.1.symbols[symbol as usize].as_str();
        let of_type = self.1.offerings.instance_type[at] as usize;
        (text(self.1.types.name[of_type]), text(self.1.offerings.zone[at]), self.1.offerings.capacity[at])
    }

    fn drop(&self, candidates: &Choices, salt: u64) -> Option<Verdict> {
        let mut dropped = Groups::default();
        for row in 0..candidates.set_of.len() {
            let unloved = candidates.row(row).iter().copied().filter(|offering| {
                let (of_type, zone, market) = self.names(*offering);
                self.0.unloved(of_type, zone, market, salt)
            });
            dropped.push(unloved);
        }
        Some(Verdict { dropped, ..Verdict::default() })
    }
}

impl PolicySet for Whim {
    fn begin<'a>(&'a self, catalog: &'a RoundCatalog, _: &'a Fleet) -> Box<dyn PolicyRound + 'a> {
        Box::new(WhimRound(*self, catalog))
    }
}

impl PolicyRound for WhimRound<'_> {
    fn admit_pods(&mut self, _: &Round, _: &Pods, candidates: &Choices) -> Option<Verdict> {
        self.drop(candidates, 1)
    }

    fn admit_claims(&mut self, _: &Round, _: &Claims, candidates: &Choices) -> Option<Verdict> {
        self.drop(candidates, 2)
    }

    fn evaluate(&mut self, _: &Round, claims: &Claims, candidates: &Choices, base: Vec<i64>) -> Vec<i64> {
        let members = (0..claims.count.len()).flat_map(|row| candidates.row(row));
        let cost = |(offering, base): (&u32, i64)| {
            let (of_type, zone, market) = self.names(*offering);
            match self.0.hash(of_type, zone, market, 3) % 8 {
                0 => COST_UNKNOWN,
                1 => COST_DROPPED,
                2 => -1,
                _ => base,
            }
        };
        members.zip(base).map(cost).collect()
    }

    fn propose_consolidation(&mut self, _: &Round, _: &Nodes, _: &Groups, _: &Outcomes, _: u32) -> Groups {
        Groups::default()
    }

    fn decide_consolidation(&mut self, _: &Round, _: &Nodes, tried: &Groups, _: &Outcomes) -> Vec<i64> {
        vec![0; tried.end.len()]
    }

    fn end(self: Box<Self>) -> Vec<String> {
        Vec::new()
    }
}
