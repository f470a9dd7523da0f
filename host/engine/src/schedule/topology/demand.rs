//! What a group of pods asks of the domains it goes to, and who counts it.

/// One rule about the domain a pod goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rule {
    /// Topology spread.
    Spread {
        max_skew: u32,
        /// 0 = not given.
        min_domains: u32,
        /// The pod is one of those counted.
        counts_itself: bool,
        /// Only domains that the pod's node requirements allow are compared.
        honors_affinity: bool,
    },
    /// Affinity: where a counted pod is.
    Together {
        /// The pod is one of those counted: the first of them may go anywhere.
        counts_itself: bool,
    },
    /// Anti-affinity: where no counted pod is.
    Apart {
        /// The pod's own term; otherwise the term of the pods that are counted.
        own: bool,
    },
}

/// A rule over the pods of one counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Constraint {
    pub(crate) counter: u32,
    pub(crate) rule: Rule,
}

/// What a group asks for, and which counters its pods are counted by.
#[derive(Clone, Debug, Default)]
pub(crate) struct Demand {
    /// Anti-affinity of other pods, then required ones, then preferences with the one given up first last: each step of
    /// the ladder keeps a prefix.
    pub(crate) constraints: Vec<Constraint>,
    /// How many of the constraints are no preferences.
    pub(crate) hard: usize,
    /// Counters of pods that select it.
    pub(crate) counted: Vec<u32>,
    /// Counters of the holders of its own required anti-affinity.
    pub(crate) held: Vec<u32>,
}

impl Demand {
    /// Its pods go where they fit, whatever else runs where.
    pub(crate) fn is_free(&self) -> bool {
        self.constraints.is_empty()
    }

    /// Nobody counts its pods.
    pub(crate) fn is_uncounted(&self) -> bool {
        self.counted.is_empty() && self.held.is_empty()
    }
}
