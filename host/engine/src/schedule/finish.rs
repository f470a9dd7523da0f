//! From filled claims to NodeClaims: filters and scorers once for all of them, price order, requirements and labels.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::amounts::ResourceNames;
use super::claim::{OpenClaim, Surroundings, first_unmet};
use super::group::is_restricted;
use super::pool::{Pool, exactly, node_class_label};
use crate::catalog::View;
use crate::decision::Claim;
use crate::explain::Blocker;
use crate::pod::PodKey;
use crate::policy::{Claims, Groups, PolicyRound, Round, Tables, filter_claims, score_claims};
use crate::rank::{Ranked, choice, rank, types_in_order};
use crate::requirement::{Requirement, any_value, key};
use crate::snapshot::Options;
use crate::symbol::{Bits, SymbolSet, Symbols, ValueSet};

/// Annotation that says whether minValues were lowered.
const MIN_VALUES_RELAXED: &str = "karpenter.sh/nodeclaim-min-values-relaxed";

/// Everything finishing looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finisher<'r, 'a> {
    pub(crate) pools: &'r [Pool<'a>],
    pub(crate) views: &'r [View<'a>],
    pub(crate) symbols: &'r Symbols,
    pub(crate) resources: &'r ResourceNames,
    pub(crate) tables: &'r Tables,
    /// Row of each pool in the tables.
    pub(crate) pool_rows: &'r [u32],
    pub(crate) options: &'r Options,
    pub(crate) round: &'r Round,
}

/// What makes two claims the same to policies: NodePool, offerings, requests, number of pods, minValues.
type RowKey = (usize, Bits, Vec<i64>, u32, Vec<u32>);

/// What became of one claim.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// Its offerings, cheapest first, of the types that it keeps, and its requirements.
    Launch(Arc<Vec<Ranked>>, Arc<Vec<u32>>, SymbolSet, bool),
    /// Nothing is left to launch: why, and the offerings that policies removed.
    Rejected(Blocker, Bits),
}

impl Outcome {
    /// Rejected by a policy that removed offerings: without those the pods may find another place.
    pub(crate) fn leaves_another_way(&self) -> bool {
        matches!(self, Self::Rejected(_, removed) if !removed.is_empty())
    }
}

impl Finisher<'_, '_> {
    fn around(&self, claim: &OpenClaim) -> Option<Surroundings<'_, '_>> {
        let pool = self.pools.get(claim.pool)?;
        Some(Surroundings { pool, view: self.views.get(pool.view)?, symbols: self.symbols, reservations: None })
    }

    /// Asks filters and scorers about every claim; equal claims are one row.
    pub(crate) fn judge(&self, claims: &mut [OpenClaim], policies: &mut dyn PolicyRound) -> Vec<Outcome> {
        let mut rows: BTreeMap<RowKey, usize> = BTreeMap::new();
        let mut row_of = Vec::with_capacity(claims.len());
        let mut columns = Claims::default();
        let mut candidates: Vec<(usize, Bits)> = Vec::new();
        let mut min_values = Groups::default();
        for claim in claims.iter_mut() {
            let Some(pool) = self.pools.get(claim.pool) else { continue };
            let Some(view) = self.views.get(pool.view) else { continue };
            view.settle(&mut claim.types, &mut claim.offerings);
            let minimums = self.tables.min_values(&claim.requirements, self.symbols);
            let key = (claim.pool, claim.offerings.clone(), claim.load.used.clone(), claim.len(), minimums.clone());
            let next = candidates.len();
            let row = *rows.entry(key).or_insert(next);
            if row == next {
                let requests = self.resources.sparse(&self.requests(claim, &claim.types, pool));
                let state = u32::from(claim.requirements.has_min_values());
                let nodepool = self.pool_rows.get(claim.pool).copied().unwrap_or(u32::MAX);
                columns.push(nodepool, &requests, claim.len(), state);
                candidates.push((pool.view, claim.offerings.clone()));
                min_values.push(minimums);
            } else if let Some(count) = columns.count.get_mut(row) {
                *count += 1;
            }
            row_of.push(row);
        }
        columns.set_min_values(min_values);
        let removed = filter_claims(self.tables, self.round, &columns, &mut candidates, policies);
        let costs = score_claims(self.tables, self.round, &columns, &candidates, policies);
        let ranked: Vec<Arc<Vec<Ranked>>> = candidates
            .iter()
            .zip(costs)
            .map(|((view, offerings), costs)| {
                let ranked = self.views.get(*view).map(|view| rank(view, offerings.iter().zip(costs)));
                Arc::new(ranked.unwrap_or_default())
            })
            .collect();
        let types: Vec<Arc<Vec<u32>>> = ranked.iter().map(|ranked| Arc::new(types_in_order(ranked))).collect();
        let outcome = |(claim, row): (&OpenClaim, usize)| {
            let nothing = (Arc::default(), Arc::default());
            let (ranked, types) = ranked.get(row).cloned().zip(types.get(row).cloned()).unwrap_or(nothing);
            self.outcome(claim, ranked, types, removed.get(row).cloned().unwrap_or_default())
        };
        claims.iter().zip(row_of).map(outcome).collect()
    }

    /// Requests of pods and of the DaemonSets that run whatever type is launched.
    fn requests(&self, claim: &OpenClaim, types: &Bits, pool: &Pool<'_>) -> Vec<i64> {
        let overhead = pool.least_overhead(types);
        claim.load.used.iter().zip(overhead).map(|(used, overhead)| used.saturating_add(overhead)).collect()
    }

    fn outcome(&self, claim: &OpenClaim, ranked: Arc<Vec<Ranked>>, types: Arc<Vec<u32>>, mut removed: Bits) -> Outcome {
        let Some(around) = self.around(claim) else { return Outcome::Rejected(Blocker::NoNodePool, removed) };
        if types.is_empty() {
            // A scorer may have dropped what the filters left.
            removed.or(&claim.offerings);
            return Outcome::Rejected(super::reason::by_policy(&claim.types), removed);
        }
        let kept: Arc<Vec<u32>> = if types.len() > self.options.max_instance_types {
            Arc::new(types.iter().copied().take(self.options.max_instance_types).collect())
        } else {
            types
        };
        let bits: Bits = kept.iter().copied().collect();
        let mut requirements = claim.requirements.clone();
        let mut relaxed = claim.min_values_relaxed;
        while let Some((key, have)) = first_unmet(around, &requirements, &bits) {
            if !self.options.min_values_best_effort {
                return Outcome::Rejected(Blocker::MinValues(self.symbols.key_name(key)), Bits::default());
            }
            let lowered = ValueSet { min_values: Some(have), ..requirements.get(key).cloned().unwrap_or_default() };
            requirements.set(key, lowered);
            relaxed = true;
        }
        // minValues are what the NodePool keeps open; what its own pods close is no breach, and is no longer promised.
        for (key, values) in requirements.clone().iter() {
            let have = around.view.distinct_values(key, values, &bits);
            if values.min_values.is_some_and(|wanted| have < wanted) {
                requirements.set(key, ValueSet { min_values: Some(have), ..values.clone() });
                relaxed = true;
            }
        }
        Outcome::Launch(ranked, kept, requirements, relaxed)
    }

    /// The NodeClaim of an outcome that launches.
    pub(crate) fn claim(
        &self,
        claim: &OpenClaim,
        outcome: &Outcome,
        (pods, buffer_pods): (Vec<PodKey>, u32),
    ) -> Option<Claim> {
        let Outcome::Launch(ranked, types, requirements, relaxed) = outcome else { return None };
        let around = self.around(claim)?;
        let source = around.pool.source;
        let kept: Bits = types.iter().copied().collect();
        let markets: BTreeSet<&str> =
            ranked.iter().filter(|one| kept.contains(one.of_type)).map(|one| one.capacity_type.as_str()).collect();
        let markets = markets.into_iter().map(Arc::from).collect();
        let mut annotations = source.annotations.clone();
        if around.pool.template.has_min_values() {
            annotations.insert(Arc::from(MIN_VALUES_RELAXED), Arc::from(relaxed.to_string()));
        }
        let resources = self.requests(claim, &kept, around.pool);
        Some(Claim {
            nodepool: Arc::clone(&source.name),
            nodepool_uid: Arc::clone(&source.uid),
            node_class: source.node_class.clone(),
            labels: self.labels(around, requirements),
            annotations,
            requirements: self.requirements(around, requirements, types, markets),
            requests: self.resources.sparse(&resources),
            taints: source.taints.clone(),
            startup_taints: source.startup_taints.clone(),
            expire_after: source.expire_after.clone(),
            termination_grace_period: source.termination_grace_period.clone(),
            pods,
            buffer_pods,
            cheapest: ranked.first().and_then(|one| choice(around.view, one)),
        })
    }

    /// Requirements as written on the claim, by key; instance types in order of cost.
    fn requirements(
        &self,
        around: Surroundings<'_, '_>,
        requirements: &SymbolSet,
        types: &[u32],
        markets: BTreeSet<Arc<str>>,
    ) -> Vec<Requirement> {
        let mut out: BTreeMap<Arc<str>, Vec<Requirement>> = BTreeMap::new();
        let mut minimums: BTreeMap<Arc<str>, Option<u32>> = BTreeMap::new();
        for (key, values) in requirements.iter() {
            let name = self.symbols.key_name(key);
            minimums.insert(Arc::clone(&name), values.min_values);
            if ![key::HOSTNAME, key::REGISTERED, key::INITIALIZED].contains(&&*name) {
                let list = values.to_values(key, self.symbols).to_requirements(&name);
                out.insert(name, list);
            }
        }
        let names = types
            .iter()
            .filter_map(|of_type| {
                around.view.catalog.types.get(*of_type as usize).map(|of_type| Arc::clone(&of_type.name))
            })
            .collect();
        for (name, values) in [(key::INSTANCE_TYPE, names), (key::CAPACITY_TYPE, markets.into_iter().collect())] {
            let name: Arc<str> = Arc::from(name);
            let minimum = minimums.get(&name).copied().flatten();
            let list = vec![exactly(&name, values, minimum)];
            out.insert(name, list);
        }
        out.into_values().flatten().collect()
    }

    /// Labels of the claim: the template's, the NodePool's and class's, and one value for every further custom key.
    fn labels(&self, around: Surroundings<'_, '_>, requirements: &SymbolSet) -> BTreeMap<Arc<str>, Arc<str>> {
        let source = around.pool.source;
        let mut labels = BTreeMap::new();
        for (key, values) in requirements.iter() {
            let name = self.symbols.key_name(key);
            if around.pool.allow_undefined.contains(key) || is_restricted(&name) || &*name == key::HOSTNAME {
                continue;
            }
            if let Some(value) = any_value(&values.to_values(key, self.symbols)) {
                labels.insert(name, value);
            }
        }
        labels.extend(source.labels.iter().map(|(key, value)| (Arc::clone(key), Arc::clone(value))));
        labels.insert(Arc::from(key::NODEPOOL), Arc::clone(&source.name));
        labels.insert(node_class_label(source), Arc::clone(&source.node_class.2));
        labels
    }
}
