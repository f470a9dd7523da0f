//! Filling one node.

use alloc::vec;
use alloc::vec::Vec;

use crate::model::Model;

/// Which pods go in first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Most worth for the shares of the node that they take, added up.
    Worth,
    /// Most worth for the share of the resource that they take most of.
    Tightest,
    /// Largest share of the node.
    Largest,
    /// The same share of every part's pods, then by worth.
    Even,
    /// Most worth for the shares of what is still free, some pods at a time.
    Balanced,
}

/// Memory that is used again from node to node.
#[derive(Clone, Debug)]
pub(crate) struct Filler {
    keys: Vec<(f64, u32)>,
    free: Vec<u32>,
    /// Pods of each part taken so far.
    taken: Vec<u32>,
}

impl Filler {
    pub(crate) fn new(model: &Model) -> Self {
        Self {
            keys: Vec::with_capacity(model.parts.len()),
            free: vec![0; model.dims],
            taken: vec![0; model.parts.len()],
        }
    }

    /// Fills a node of the kind from `left` (pods of each part) in the given order. Writes parts and numbers of pods to
    /// `out` and returns what they are worth.
    pub(crate) fn fill(
        &mut self,
        model: &Model,
        kind: usize,
        (left, worth): (&[u32], &[f64]),
        order: Order,
        out: &mut Vec<(u32, u32)>,
    ) -> f64 {
        out.clear();
        self.free.clear();
        self.free.extend_from_slice(model.room(kind));
        if order == Order::Even {
            self.take_evenly(model, kind, left);
        }
        if order == Order::Balanced {
            self.take_balanced(model, kind, (left, worth));
        } else {
            self.sort(model, kind, (left, worth), order);
            for at in 0..self.keys.len() {
                let part = self.keys[at].1 as usize;
                let most = left[part].min(model.parts[part].most) - self.taken[part];
                let count = self.times(model, part, most);
                self.take(model, part, count);
            }
        }
        let mut total = 0.0;
        for part in model.class(kind) {
            let taken = &mut self.taken[*part as usize];
            if *taken > 0 {
                out.push((*part, *taken));
                total += worth[*part as usize] * f64::from(*taken);
                *taken = 0;
            }
        }
        total
    }

    fn sort(&mut self, model: &Model, kind: usize, (left, worth): (&[u32], &[f64]), order: Order) {
        self.keys.clear();
        let inverse = model.inverse(kind);
        for part in model.class(kind) {
            let at = *part as usize;
            if left[at] == 0 {
                continue;
            }
            let (mut sum, mut max) = (0.0, 0.0_f64);
            for (need, inverse) in model.need(at).iter().zip(inverse) {
                let share = f64::from(*need) * inverse;
                sum += share;
                max = if share > max { share } else { max };
            }
            let key = match order {
                Order::Tightest => worth[at] / max,
                Order::Largest => max,
                Order::Worth | Order::Even | Order::Balanced => worth[at] / sum,
            };
            self.keys.push((key, *part));
        }
        self.keys.sort_unstable_by(|(a, a_part), (b, b_part)| b.total_cmp(a).then(a_part.cmp(b_part)));
    }

    /// How many more pods of the part fit, at most `most`.
    fn times(&self, model: &Model, part: usize, most: u32) -> u32 {
        if model.has_conflicts && model.parts[part].conflicts.iter().any(|other| self.taken[*other as usize] > 0) {
            return 0;
        }
        let mut times = most;
        for (need, free) in model.need(part).iter().zip(&self.free) {
            // Most pods are refused by a comparison, without a division.
            if *need > *free {
                return 0;
            }
            if u64::from(*need) * u64::from(times) > u64::from(*free) {
                times = free / need;
            }
        }
        times
    }

    fn take(&mut self, model: &Model, part: usize, count: u32) {
        if count == 0 {
            return;
        }
        for (need, free) in model.need(part).iter().zip(&mut self.free) {
            *free = free.saturating_sub(need * count);
        }
        self.taken[part] += count;
    }

    fn take_evenly(&mut self, model: &Model, kind: usize, left: &[u32]) {
        let mut share = 1.0_f64;
        for (dim, room) in model.room(kind).iter().enumerate() {
            let total: f64 = model
                .class(kind)
                .iter()
                .map(|part| f64::from(left[*part as usize]) * f64::from(model.need(*part as usize)[dim]))
                .sum();
            let of = f64::from(*room) / total;
            share = if of < share { of } else { share };
        }
        for part in model.class(kind) {
            let at = *part as usize;
            let wanted = ((f64::from(left[at]) * share) as u32).min(model.parts[at].most);
            let count = self.times(model, at, wanted);
            self.take(model, at, count);
        }
    }

    fn take_balanced(&mut self, model: &Model, kind: usize, (left, worth): (&[u32], &[f64])) {
        self.keys.clear();
        self.keys.extend(model.class(kind).iter().filter(|part| left[**part as usize] > 0).map(|part| (0.0, *part)));
        while !self.keys.is_empty() {
            let mut best: Option<(f64, usize, u32)> = None;
            let mut at = 0;
            while at < self.keys.len() {
                let part = self.keys[at].1 as usize;
                let most = left[part].min(model.parts[part].most) - self.taken[part];
                let count = self.times(model, part, most);
                if count == 0 {
                    self.keys.swap_remove(at);
                    continue;
                }
                let shares = model.need(part).iter().zip(&self.free);
                let share: f64 = shares.map(|(need, free)| f64::from(*need) / f64::from((*free).max(1))).sum();
                let key = worth[part] / share;
                if best.is_none_or(|(most, of, _)| key > most || (key == most && part < of)) {
                    best = Some((key, part, count));
                }
                at += 1;
            }
            let Some((_, part, count)) = best else { break };
            self.take(model, part, count.div_ceil(3));
        }
    }
}

/// Steps that filling a node of the kind takes.
pub(crate) fn steps(model: &Model, kind: usize, order: Order) -> usize {
    let parts = model.class(kind).len();
    if order == Order::Balanced { parts * 6 + 4 } else { parts + 4 }
}
