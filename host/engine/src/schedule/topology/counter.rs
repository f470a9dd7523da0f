//! Counters: how many pods of a kind are in each domain of one topology key.

use crate::symbol::{Bits, id_of};

/// What the domains of a counter are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Axis {
    /// Single nodes: existing ones by place, claims by index.
    Host,
    /// Values of a label key, by place in the topology's list of keys.
    Key(u32),
}

/// Where a pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Site {
    /// On an existing node.
    Node(u32),
    /// On a claim of this round.
    Claim(u32),
}

/// Pods per domain.
#[derive(Clone, Debug)]
pub(crate) struct Counter {
    pub(crate) axis: Axis,
    /// Nodes that count.
    pub(crate) filter: u32,
    /// By value id, or by existing node.
    counts: Vec<u32>,
    /// By claim, when the domains are nodes.
    claims: Vec<u32>,
    /// Domains with a pod.
    taken: Bits,
    taken_claims: Bits,
    /// Domains where a pod may be, whose node has not decided.
    maybe: Bits,
    /// Pods on claims that have not decided on a domain.
    pub(crate) waiting: u32,
    /// Pods anywhere, also where no further pod can go.
    pub(crate) total: u32,
    /// Grows with every change.
    pub(crate) version: u64,
}

impl Counter {
    pub(crate) fn new(axis: Axis, filter: u32) -> Self {
        Self {
            axis,
            filter,
            counts: Vec::new(),
            claims: Vec::new(),
            taken: Bits::default(),
            taken_claims: Bits::default(),
            maybe: Bits::default(),
            waiting: 0,
            total: 0,
            version: 0,
        }
    }

    /// Pods of the domain with this id (value, or existing node).
    pub(crate) fn count(&self, domain: u32) -> u32 {
        self.counts.get(domain as usize).copied().unwrap_or(0)
    }

    /// Pods of one node, when the domains are nodes.
    pub(crate) fn on(&self, site: Site) -> u32 {
        match site {
            Site::Node(at) => self.count(at),
            Site::Claim(at) => self.claims.get(at as usize).copied().unwrap_or(0),
        }
    }

    /// Domains that certainly have a pod.
    pub(crate) fn taken(&self) -> &Bits {
        &self.taken
    }

    /// Claims that have one, when the domains are nodes.
    pub(crate) fn taken_claims(&self) -> &Bits {
        &self.taken_claims
    }

    /// Domains that have or may have a pod.
    pub(crate) fn perhaps_taken(&self) -> Bits {
        let mut bits = self.taken.clone();
        bits.or(&self.maybe);
        bits
    }

    /// Pods in a known domain.
    pub(crate) fn add(&mut self, domain: u32, pods: u32) {
        bump(&mut self.counts, domain, pods);
        self.taken.insert(domain);
        self.moved(pods);
    }

    /// Pods on a claim, when the domains are nodes.
    pub(crate) fn add_on_claim(&mut self, claim: u32, pods: u32) {
        bump(&mut self.claims, claim, pods);
        self.taken_claims.insert(claim);
        self.moved(pods);
    }

    /// Pods in one of several domains, for good.
    pub(crate) fn add_somewhere(&mut self, domains: &Bits, pods: u32) {
        self.maybe.or(domains);
        self.moved(pods);
    }

    /// Pods whose node has no such label: they are in no domain.
    pub(crate) fn add_nowhere(&mut self) {
        self.version += 1;
    }

    /// Pods on a claim that will decide later.
    pub(crate) fn wait(&mut self, pods: u32) {
        self.waiting += pods;
        self.moved(pods);
    }

    /// Pods that waited are in this domain now, or in none.
    pub(crate) fn decided(&mut self, domain: Option<u32>, pods: u32) {
        self.waiting = self.waiting.saturating_sub(pods);
        self.total = self.total.saturating_sub(pods);
        match domain {
            Some(domain) => self.add(domain, pods),
            None => self.add_nowhere(),
        }
    }

    fn moved(&mut self, pods: u32) {
        self.total += pods;
        self.version += 1;
    }
}

fn bump(counts: &mut Vec<u32>, at: u32, pods: u32) {
    let at = at as usize;
    if counts.len() <= at {
        counts.resize(at + 1, 0);
    }
    if let Some(count) = counts.get_mut(at) {
        *count = count.saturating_add(pods);
    }
}

/// The smallest count among these domains; 0 when there are fewer than `at_least`.
pub(crate) fn least(counter: &Counter, domains: &Bits, at_least: u32) -> u32 {
    if at_least > 0 && id_of(domains.len()) < at_least {
        return 0;
    }
    domains.iter().map(|domain| counter.count(domain)).min().unwrap_or(0)
}
