//! Instance types of a problem as the engine's catalogue.

use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow, bail};
use mortise_api::requirement::{Operator, Requirement};
use mortise_engine::catalog::{CapacityType, Catalog, InstanceType, Offering};
use mortise_engine::quantity::{MicroUsd, Resources};
use mortise_engine::requirement::key;
use mortise_kube::convert::api_requirements;
use mortise_problem::api::Quantity;
use mortise_problem::{Offering as Offered, Problem};

/// The catalogue of the types that are offered.
///
/// # Errors
/// An offering without zone or market, a quantity that is none.
pub(crate) fn catalog(problem: &Problem, offered: impl Fn(&str) -> bool) -> Result<Catalog> {
    let reserved = problem.options.reserved_capacity;
    let types = problem.instance_types.iter().filter(|of_type| offered(&of_type.name)).map(|of_type| {
        let (requirements, problems) = api_requirements(&of_type.requirements);
        if let Some(problem) = problems.first() {
            bail!("instance type {}: {problem}", of_type.name);
        }
        let capacity = resources(&of_type.capacity)?;
        let allocatable = capacity.saturating_sub(&resources(&of_type.overhead)?).at_least_zero();
        let offerings = of_type.offerings.iter().map(offering).collect::<Result<Vec<_>>>();
        let mut offerings = offerings.with_context(|| format!("instance type {}", of_type.name))?;
        offerings.retain(|offering| reserved || offering.capacity_type != CapacityType::Reserved);
        Ok(InstanceType {
            name: Arc::from(&*of_type.name),
            requirements,
            capacity,
            allocatable,
            volume_limits: of_type.volume_limits.iter().map(|(driver, n)| (Arc::from(&**driver), *n)).collect(),
            offerings,
            ..InstanceType::default()
        })
    });
    Ok(Catalog::new(1, types.collect::<Result<Vec<_>>>()?))
}

fn offering(from: &Offered) -> Result<Offering> {
    let mut labels: std::collections::BTreeMap<Arc<str>, Arc<str>> =
        from.requirements.iter().filter_map(|r| Some((Arc::clone(&r.key), single(r)?))).collect();
    let zone = labels.remove(key::ZONE).context("an offering has no zone")?;
    let market = labels.remove(key::CAPACITY_TYPE).context("an offering has no capacity type")?;
    let capacity_type = CapacityType::parse(&market).with_context(|| format!("capacity type {market} is unknown"))?;
    Ok(Offering {
        zone,
        capacity_type,
        price: from.price.map(micro_usd),
        price_estimated: false,
        available: from.available,
        labels,
        reserved_left: (capacity_type == CapacityType::Reserved).then_some(from.reservation_capacity),
    })
}

/// The value of a requirement that leaves one.
fn single(requirement: &Requirement) -> Option<Arc<str>> {
    match (&requirement.operator, &*requirement.values) {
        (Operator::In, [one]) => Some(Arc::clone(one)),
        _ => None,
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, and prices are not negative")]
fn micro_usd(usd: f64) -> MicroUsd {
    MicroUsd((usd * 1e6).round() as u64)
}

fn resources(amounts: &std::collections::BTreeMap<String, Quantity>) -> Result<Resources> {
    let pairs = amounts.iter().map(|(name, quantity)| (name.as_str(), quantity.0.as_str()));
    Resources::parse(pairs).map_err(|(name, error)| anyhow!("{name}: {error}"))
}
