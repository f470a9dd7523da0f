//! minValues: which exotic types a claim cannot do without.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use mortise_plugin_sdk::Rows;

use crate::Tables;

const ZONE: &str = "topology.kubernetes.io/zone";
const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";

/// The minValues of every claim.
#[derive(Clone, Copy, Debug, Default)]
pub struct MinValues<'a>(Rows<'a>);

impl<'a> MinValues<'a> {
    /// Extra column of claims: pairs of key symbol and count, rows one after another.
    pub const PAIRS: &'static str = "min-values";
    /// Extra column of claims: where each row ends in the column of pairs.
    pub const END: &'static str = "min-values-end";

    /// From the two extra columns of claims.
    #[must_use]
    pub fn new(end: &'a [u32], pairs: &'a [u32]) -> Self {
        Self(Rows { end, member: pairs })
    }

    pub(crate) fn row(&self, row: usize) -> &'a [u32] {
        self.0.row(row)
    }
}

/// Types among `exotic` that must stay so that `wanted` (pairs of key and count) can be met, cheapest first.
pub(crate) fn needed(tables: &Tables<'_>, wanted: &[u32], plain: &[u32], exotic: &[u32]) -> BTreeSet<u32> {
    let mut needed = BTreeSet::new();
    let mut open: Vec<(u32, u32, BTreeSet<u32>)> = Vec::new();
    for pair in wanted.chunks_exact(2) {
        let &[key, count] = pair else { continue };
        let values = plain.iter().flat_map(|o| values_of(tables, key, *o)).collect::<BTreeSet<u32>>();
        if values.len() < count as usize {
            open.push((key, count, values));
        }
    }
    if open.is_empty() {
        return needed;
    }
    let mut by_price = exotic.to_vec();
    by_price.sort_by_key(|o| (tables.price(*o), *o));
    for offering in by_price {
        let mut helps = false;
        for (key, count, values) in &mut open {
            if values.len() < *count as usize {
                for value in values_of(tables, *key, offering) {
                    helps |= values.insert(value);
                }
            }
        }
        if helps {
            needed.insert(tables.type_of(offering));
        }
    }
    needed
}

/// Values of a label key that a node of this offering may have: the offering's own zone or market, else its type's labels.
fn values_of<'a>(tables: &Tables<'a>, key: u32, offering: u32) -> impl Iterator<Item = u32> + use<'a> {
    let own = match tables.text(key) {
        ZONE => Some(tables.zone(offering)),
        CAPACITY_TYPE => Some(u32::from(tables.capacity(offering).code())),
        _ => None,
    };
    let labels = if own.is_some() { &[] } else { tables.types.labels.row(tables.type_of(offering) as usize) };
    let of_type = labels.chunks_exact(2).filter(move |pair| pair.first() == Some(&key));
    own.into_iter().chain(of_type.filter_map(|pair| pair.get(1).copied()))
}
