//! What to ask the cloud for, given one NodeClaim and the catalogue of its class.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::catalog::{CapacityType, Catalog, View};
use crate::decision::LaunchList;
use crate::explain::Blocker;
use crate::nodepool::{Limits, NodePool};
use crate::policy::{Claims, Groups, PolicySet, Tables};
use crate::quantity::Resources;
use crate::rank::{Ranked, choice, contradicts_list_price, rank, types_in_order};
use crate::requirement::Requirement;
use crate::schedule::round_of;
use crate::snapshot::Options;
use crate::symbol::{Bits, SymbolSet, Symbols, id_of};

#[cfg(test)]
mod tests;

/// Most instance types in one launch request.
pub const MAX_LAUNCH_TYPES: usize = 60;

/// A NodeClaim as its launch needs it: everything is on the object, so a new leader asks the same question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaunchRequest {
    /// NodePool name.
    pub nodepool: Arc<str>,
    /// `spec.requirements` of the claim, keys normalised.
    pub requirements: Vec<Requirement>,
    /// `spec.resources.requests` of the claim (pods and DaemonSets).
    pub requests: Resources,
    /// The claim replaces a disrupted node (policies may look at it).
    pub replaces: bool,
    /// Time of the decision, Unix milliseconds.
    pub now_unix_ms: i64,
}

/// One row of [`launch_lists`].
#[derive(Clone, Debug)]
pub struct LaunchInput<'a> {
    /// The claim.
    pub request: &'a LaunchRequest,
    /// Types and offerings of its class.
    pub catalog: &'a Arc<Catalog>,
}

/// [`launch_lists`] for one claim.
///
/// # Errors
/// What left no offering, with counts.
pub fn launch_list(
    request: &LaunchRequest,
    catalog: &Arc<Catalog>,
    options: &Options,
    policies: &dyn PolicySet,
) -> Result<LaunchList, Blocker> {
    launch_lists(&[LaunchInput { request, catalog }], options, policies).pop().unwrap_or(Err(Blocker::NoNodePool))
}

/// The launch list of every claim, in one round of the policies: filters and scorers are asked once for all of them.
pub fn launch_lists(
    inputs: &[LaunchInput<'_>],
    options: &Options,
    policies: &dyn PolicySet,
) -> Vec<Result<LaunchList, Blocker>> {
    let mut symbols = Symbols::default();
    let mut views: Vec<View<'_>> = Vec::new();
    let mut view_of = Vec::with_capacity(inputs.len());
    for input in inputs {
        let known = views.iter().position(|view| Arc::ptr_eq(view.catalog, input.catalog));
        view_of.push(known.unwrap_or_else(|| {
            views.push(View::new(input.catalog, &mut symbols));
            views.len() - 1
        }));
    }
    let mut rows: Vec<Result<Row, Blocker>> = Vec::with_capacity(inputs.len());
    for (input, view) in inputs.iter().zip(&view_of) {
        let requirements = SymbolSet::new(&input.request.requirements, &mut symbols);
        rows.push(match views.get(*view) {
            Some(in_view) => Row::new(input.request, requirements, *view, in_view, &symbols),
            None => Err(Blocker::NoNodePool),
        });
    }

    let mut tables = Tables::new(&views);
    let pools: BTreeSet<&Arc<str>> = inputs.iter().map(|input| &input.request.nodepool).collect();
    for name in pools {
        // A launch knows its NodePool by name; what the name stands for was decided when the claim was made.
        let pool = NodePool { name: Arc::clone(name), ..NodePool::default() };
        tables.add_nodepool(&pool, 0, &Limits::default(), (u32::MAX, u32::MAX));
    }
    let mut columns = Claims::default();
    let mut min_values = Groups::default();
    let live = || inputs.iter().zip(&rows).filter_map(|(input, row)| Some((input, row.as_ref().ok()?)));
    for (input, row) in live() {
        let state = u32::from(row.requirements.has_min_values()) | u32::from(input.request.replaces) << 1;
        let nodepool = tables.nodepool_row(&input.request.nodepool);
        let pods = id_of(usize::try_from(input.request.requests.pods).unwrap_or(0));
        columns.push(nodepool, &input.request.requests, pods, state);
        min_values.push(tables.min_values(&row.requirements, &symbols));
    }
    columns.set_min_values(min_values);
    let now = inputs.first().map_or(0, |input| input.request.now_unix_ms);
    let round = round_of(now, options);
    let mut policy = policies.begin(&tables.catalog, &tables.fleet);
    let mut candidates: Vec<(usize, Bits)> = live().map(|(_, row)| (row.view, row.offerings.clone())).collect();
    if !candidates.is_empty() {
        crate::policy::filter_claims(&tables, &round, &columns, &mut candidates, &mut *policy);
    }
    let costs = if candidates.is_empty() {
        Vec::new()
    } else {
        crate::policy::score_claims(&tables, &round, &columns, &candidates, &mut *policy)
    };
    // What went wrong with a policy was reported when the claim was decided and shows in the policies' own status.
    let _ = policy.end();

    let mut judged = candidates.into_iter().zip(costs);
    rows.into_iter()
        .map(|row| {
            let row = row?;
            let (offerings, costs) =
                judged.next().map(|((_, offerings), costs)| (offerings, costs)).unwrap_or_default();
            let view = views.get(row.view).ok_or(Blocker::NoNodePool)?;
            let ranked = rank(view, offerings.iter().zip(costs));
            list(view, &row, ranked, options, &symbols)
        })
        .collect()
}

/// One claim's candidates.
struct Row {
    view: usize,
    requirements: SymbolSet,
    types: Bits,
    offerings: Bits,
}

impl Row {
    /// Types and offerings that meet the requirements and hold the requests.
    fn new(
        request: &LaunchRequest,
        requirements: SymbolSet,
        at: usize,
        view: &View<'_>,
        symbols: &Symbols,
    ) -> Result<Self, Blocker> {
        let considered = view.columns.types();
        let (mut types, mut offerings) = view.matching(&requirements);
        let by_requirements = considered - types.len();
        let mut with_offering = types.clone();
        with_offering.and(&view.columns.types_with(&offerings));
        let by_offerings = types.len() - with_offering.len();
        types = with_offering;
        let mut short: BTreeMap<&str, usize> = BTreeMap::new();
        let before = types.len();
        types.retain(|of_type| {
            let Some(of_type) = view.catalog.types.get(of_type as usize) else { return false };
            let missing = request.requests.short_of(&of_type.allocatable);
            if let Some(missing) = missing {
                *short.entry(missing).or_default() += 1;
            }
            missing.is_none()
        });
        if types.is_empty() {
            if let Some(blocker) = unknown_value(&requirements, view, request, symbols) {
                return Err(blocker);
            }
            let most = short.into_iter().max_by_key(|(name, count)| (*count, std::cmp::Reverse(*name)));
            return Err(Blocker::NoInstanceType {
                considered: id_of(considered),
                by_requirements: id_of(by_requirements),
                by_resources: id_of(before),
                by_offerings: id_of(by_offerings),
                by_policy: 0,
                short_of: most.map(|(name, _)| Arc::from(name)),
            });
        }
        view.settle(&mut types, &mut offerings);
        Ok(Self { view: at, requirements, types, offerings })
    }
}

/// A value that nothing in the catalogue has: a type that does not exist, a zone without a subnet.
fn unknown_value(
    requirements: &SymbolSet,
    view: &View<'_>,
    request: &LaunchRequest,
    symbols: &Symbols,
) -> Option<Blocker> {
    requirements.iter().find_map(|(key, values)| {
        let types = view.types_agreeing(key, values);
        let offerings = view.offerings_agreeing(key, values);
        let met = !types.is_empty() && offerings.is_none_or(|offerings| !offerings.is_empty());
        (!met).then(|| crate::schedule::requirement_blocker(key, values, None, view, &request.nodepool, symbols))
    })
}

/// The cheapest types, the market, and the offerings of it.
fn list(
    view: &View<'_>,
    row: &Row,
    ranked: Vec<Ranked>,
    options: &Options,
    symbols: &Symbols,
) -> Result<LaunchList, Blocker> {
    let mut types = types_in_order(&ranked);
    if types.is_empty() {
        return Err(crate::schedule::by_policy(&row.types));
    }
    types.truncate(MAX_LAUNCH_TYPES);
    let kept: Bits = types.into_iter().collect();
    if !options.min_values_best_effort {
        let unmet = row.requirements.iter().find(|(key, values)| {
            values.min_values.is_some_and(|wanted| view.distinct_values(*key, values, &kept) < wanted)
        });
        if let Some((key, _)) = unmet {
            return Err(Blocker::MinValues(symbols.key_name(key)));
        }
    }
    let ranked: Vec<Ranked> = ranked.into_iter().filter(|one| kept.contains(one.of_type)).collect();
    // Reserved is paid for already; spot is worth its risk by configuration; on-demand is what is left.
    let capacity_type = ranked.iter().map(|one| one.capacity_type).min().unwrap_or(CapacityType::OnDemand);
    let ranked: Vec<Ranked> = ranked.into_iter().filter(|one| one.capacity_type == capacity_type).collect();
    Ok(LaunchList {
        capacity_type,
        choices: ranked.iter().filter_map(|one| choice(view, one)).collect(),
        prioritized: contradicts_list_price(&ranked),
    })
}
