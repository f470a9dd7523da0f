//! Label requirements as written, and their algebra on strings, for the edges and for messages.
//!
//! The scheduler's inner loops use the same algebra on interned symbols (`symbol`); a property test holds the
//! two together.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

mod hint;
#[cfg(test)]
mod tests;

pub use hint::similar;

/// Label keys the engine itself must know.
pub mod key {
    /// NodePool name.
    pub const NODEPOOL: &str = "karpenter.sh/nodepool";
    /// Market: reserved, spot or on-demand.
    pub const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";
    /// Set on registration.
    pub const REGISTERED: &str = "karpenter.sh/registered";
    /// Set on initialisation.
    pub const INITIALIZED: &str = "karpenter.sh/initialized";
    /// Zone.
    pub const ZONE: &str = "topology.kubernetes.io/zone";
    /// Region.
    pub const REGION: &str = "topology.kubernetes.io/region";
    /// Instance type.
    pub const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
    /// Architecture.
    pub const ARCH: &str = "kubernetes.io/arch";
    /// Operating system.
    pub const OS: &str = "kubernetes.io/os";
    /// Windows build.
    pub const WINDOWS_BUILD: &str = "node.kubernetes.io/windows-build";
    /// Host name.
    pub const HOSTNAME: &str = "kubernetes.io/hostname";
    /// Capacity reservation of a node, by id.
    pub const RESERVATION_ID: &str = "karpenter.k8s.aws/capacity-reservation-id";
    /// Keys that a new node may be asked for although its NodePool does not define them, because instance types do.
    pub const WELL_KNOWN: [&str; 8] = [NODEPOOL, CAPACITY_TYPE, ZONE, REGION, INSTANCE_TYPE, ARCH, OS, WINDOWS_BUILD];
}

/// Operator of a requirement. `Gte` and `Lte` are Karpenter's own additions to Kubernetes' six.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub enum Operator {
    /// Value is one of the values.
    In,
    /// Value is none of the values, or the key is absent.
    NotIn,
    /// The key is present.
    Exists,
    /// The key is absent.
    DoesNotExist,
    /// Integer value greater than the one value.
    Gt,
    /// Integer value less than the one value.
    Lt,
    /// Integer value greater than or equal to the one value.
    Gte,
    /// Integer value less than or equal to the one value.
    Lte,
}

/// One requirement on a label, as written in a NodePool, a pod or an instance type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Requirement {
    /// Label key, already normalised (`beta.kubernetes.io/arch` arrives as `kubernetes.io/arch`).
    pub key: Arc<str>,
    /// Operator.
    pub operator: Operator,
    /// Values; exactly one integer for the comparing operators, empty for `Exists` and `DoesNotExist`.
    #[serde(default)]
    pub values: Vec<Arc<str>>,
    /// NodePool only: how many distinct values the launch list must keep.
    #[serde(default)]
    pub min_values: Option<u32>,
}

impl Requirement {
    /// Without minValues.
    pub fn new(key: &str, operator: Operator, values: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        Self {
            key: Arc::from(key),
            operator,
            values: values.into_iter().map(|value| Arc::from(value.as_ref())).collect(),
            min_values: None,
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.key, Values::new(self))
    }
}

/// Integer bounds of a requirement with a comparing operator, both inclusive; for every other operator none.
/// A value that is no integer bounds everything away: nothing matches, and validation at the edge says so.
pub(crate) fn bounds(requirement: &Requirement) -> Option<(Option<i64>, Option<i64>)> {
    let value = requirement.values.first().and_then(|value| value.parse::<i64>().ok());
    match requirement.operator {
        Operator::Gt => Some((value.and_then(|v| v.checked_add(1)).or(Some(i64::MAX)), None)),
        Operator::Lt => Some((None, value.and_then(|v| v.checked_sub(1)).or(Some(i64::MIN)))),
        Operator::Gte => Some((value.or(Some(i64::MAX)), None)),
        Operator::Lte => Some((None, value.or(Some(i64::MIN)))),
        _ => None,
    }
}

/// Nothing can satisfy the requirement: a comparison with something that is no integer, or beyond the largest.
pub(crate) fn is_impossible(requirement: &Requirement) -> bool {
    let value = requirement.values.first().and_then(|value| value.parse::<i64>().ok());
    match requirement.operator {
        Operator::Gt => value.is_none_or(|v| v == i64::MAX),
        Operator::Lt => value.is_none_or(|v| v == i64::MIN),
        Operator::Gte | Operator::Lte => value.is_none(),
        _ => false,
    }
}

/// The values a key may take: a set or the complement of one, within integer bounds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values {
    /// `values` are those excluded.
    pub complement: bool,
    /// Allowed or excluded values.
    pub values: BTreeSet<Arc<str>>,
    /// The key must be there (every operator but `NotIn` and `DoesNotExist`). Kept beside the values, because `Exists`
    /// with `NotIn` has the same values as `NotIn` alone, which the absence of the key satisfies.
    pub present: bool,
    /// Smallest integer allowed (complements only; a concrete set has applied it already).
    pub gte: Option<i64>,
    /// Largest integer allowed.
    pub lte: Option<i64>,
    /// minValues.
    pub min_values: Option<u32>,
}

impl Values {
    /// What one requirement allows.
    pub fn new(requirement: &Requirement) -> Self {
        let values = || requirement.values.iter().cloned().collect();
        let min_values = requirement.min_values;
        if is_impossible(requirement) {
            return Self { present: true, min_values, ..Self::default() };
        }
        match requirement.operator {
            Operator::In => Self { values: values(), present: true, min_values, ..Self::default() },
            Operator::NotIn => Self { complement: true, values: values(), min_values, ..Self::default() },
            Operator::DoesNotExist => Self { min_values, ..Self::default() },
            _ => {
                let (gte, lte) = bounds(requirement).unwrap_or_default();
                Self { complement: true, present: true, gte, lte, min_values, ..Self::default() }
            }
        }
    }

    /// Whether a node with this value satisfies it.
    pub fn has(&self, value: &str) -> bool {
        self.values.contains(value) != self.complement && self.within(value)
    }

    /// Only the absence of the key satisfies it.
    pub fn is_does_not_exist(&self) -> bool {
        !self.complement && self.values.is_empty() && !self.present
    }

    /// Neither a value nor the absence of the key satisfies it: requirements that exclude one another.
    pub fn is_nothing(&self) -> bool {
        !self.complement && self.values.is_empty() && self.present
    }

    /// `NotIn` or `DoesNotExist`: satisfied by the absence of the key.
    pub fn allows_absence(&self) -> bool {
        !self.present && self.complement != self.values.is_empty()
    }

    /// Both at once.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let min_values = self.min_values.max(other.min_values);
        let present = self.present || other.present;
        let gte = self.gte.max(other.gte);
        let lte = match (self.lte, other.lte) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        if matches!((gte, lte), (Some(gte), Some(lte)) if gte > lte) {
            return Self { present, min_values, ..Self::default() };
        }
        let within = Self { gte, lte, ..Self::default() };
        let (complement, values): (bool, BTreeSet<Arc<str>>) = match (self.complement, other.complement) {
            (true, true) => (true, self.values.union(&other.values).cloned().collect()),
            (false, false) => (false, self.values.intersection(&other.values).cloned().collect()),
            (false, true) => (false, self.values.difference(&other.values).cloned().collect()),
            (true, false) => (false, other.values.difference(&self.values).cloned().collect()),
        };
        let values = values.into_iter().filter(|value| within.within(value)).collect();
        let (gte, lte) = if complement { (gte, lte) } else { (None, None) };
        Self { complement, values, present, gte, lte, min_values }
    }

    /// Whether some value satisfies both. Two complements always share one unless their bounds are disjoint.
    pub fn intersects(&self, other: &Self) -> bool {
        let both = self.intersection(other);
        both.complement || !both.values.is_empty()
    }

    fn within(&self, value: &str) -> bool {
        if self.gte.is_none() && self.lte.is_none() {
            return true;
        }
        value
            .parse::<i64>()
            .is_ok_and(|value| self.gte.is_none_or(|gte| value >= gte) && self.lte.is_none_or(|lte| value <= lte))
    }

    /// As requirements on `key`: one, or two when both bounds are set.
    pub fn to_requirements(&self, key: &Arc<str>) -> Vec<Requirement> {
        let one = |operator, values: Vec<Arc<str>>| Requirement {
            key: Arc::clone(key),
            operator,
            values,
            min_values: self.min_values,
        };
        let values = || self.values.iter().cloned().collect::<Vec<_>>();
        if !self.complement {
            return vec![if self.values.is_empty() {
                // Nothing at all has no operator of its own: In without values admits nothing either.
                one(if self.present { Operator::In } else { Operator::DoesNotExist }, Vec::new())
            } else {
                one(Operator::In, values())
            }];
        }
        let mut out = Vec::new();
        if !self.values.is_empty() {
            out.push(one(Operator::NotIn, values()));
        }
        if let Some(gte) = self.gte {
            out.push(one(Operator::Gte, vec![Arc::from(gte.to_string())]));
        }
        if let Some(lte) = self.lte {
            out.push(one(Operator::Lte, vec![Arc::from(lte.to_string())]));
        }
        if out.is_empty() || (self.present && self.gte.is_none() && self.lte.is_none()) {
            out.push(one(Operator::Exists, Vec::new()));
        }
        out
    }
}

/// A label value that satisfies a requirement on a key that nothing else defines: the first of a set, else the smallest
/// integer that is within the bounds and not excluded. `None` when the key may be absent or nothing satisfies it.
pub(crate) fn any_value(values: &Values) -> Option<Arc<str>> {
    if !values.present {
        return None;
    }
    if !values.complement {
        return values.values.first().cloned();
    }
    // Negative numbers are no label values.
    let from = values.gte.unwrap_or(0).max(0);
    // Of so many candidates one is not excluded.
    let last = from.saturating_add(i64::try_from(values.values.len()).unwrap_or(i64::MAX));
    (from..=last.min(values.lte.unwrap_or(i64::MAX)))
        .map(|number| Arc::from(number.to_string()))
        .find(|value: &Arc<str>| values.has(value))
}

impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Longer lists are cut, with the number of values left out.
        const SHOWN: usize = 5;
        let list = |f: &mut fmt::Formatter<'_>, word: &str| {
            write!(f, "{word} [")?;
            for (at, value) in self.values.iter().take(SHOWN).enumerate() {
                write!(f, "{}{value}", if at > 0 { ", " } else { "" })?;
            }
            match self.values.len().saturating_sub(SHOWN) {
                0 => write!(f, "]"),
                more => write!(f, " and {more} more]"),
            }
        };
        match (self.complement, self.values.is_empty(), self.gte, self.lte) {
            (false, true, ..) if self.present => write!(f, "no value"),
            (false, true, ..) => write!(f, "DoesNotExist"),
            (false, false, ..) => list(f, "In"),
            (true, true, None, None) => write!(f, "Exists"),
            (true, excluded_none, gte, lte) => {
                let mut separator = "";
                if !excluded_none {
                    list(f, "NotIn")?;
                    separator = " and ";
                }
                if let Some(gte) = gte {
                    write!(f, "{separator}Gte {gte}")?;
                    separator = " and ";
                }
                if let Some(lte) = lte {
                    write!(f, "{separator}Lte {lte}")?;
                }
                Ok(())
            }
        }
    }
}

/// Requirements on several keys, all of which hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requirements {
    /// What each key may be.
    pub keys: BTreeMap<Arc<str>, Values>,
}

impl Requirements {
    /// All of these at once.
    pub fn new<'a>(requirements: impl IntoIterator<Item = &'a Requirement>) -> Self {
        let mut set = Self::default();
        for requirement in requirements {
            set.add(&requirement.key, Values::new(requirement));
        }
        set
    }

    /// What a node with these labels is: each key exactly its value.
    pub fn from_labels<'a>(labels: impl IntoIterator<Item = (&'a Arc<str>, &'a Arc<str>)>) -> Self {
        let exact = |value: &Arc<str>| Values {
            values: BTreeSet::from([Arc::clone(value)]),
            present: true,
            ..Values::default()
        };
        Self { keys: labels.into_iter().map(|(key, value)| (Arc::clone(key), exact(value))).collect() }
    }

    /// Tightens `key`.
    pub fn add(&mut self, key: &Arc<str>, values: Values) {
        match self.keys.get_mut(key) {
            Some(known) => *known = known.intersection(&values),
            None => {
                self.keys.insert(Arc::clone(key), values);
            }
        }
    }

    /// Tightens by every key of `other`.
    pub fn extend(&mut self, other: &Self) {
        for (key, values) in &other.keys {
            self.add(key, values.clone());
        }
    }

    /// What `key` may be, if anything is said about it.
    pub fn get(&self, key: &str) -> Option<&Values> {
        self.keys.get(key)
    }

    /// A key whose requirements exclude one another: nothing meets them, not even a node without the key.
    pub fn contradiction(&self) -> Option<&Arc<str>> {
        self.keys.iter().find(|(_, values)| values.is_nothing()).map(|(key, _)| key)
    }

    /// Whether something is said about `key`.
    pub fn has(&self, key: &str) -> bool {
        self.keys.contains_key(key)
    }

    /// The first key on which both sides have no value in common. `NotIn` and `DoesNotExist` on both sides agree on
    /// the key's absence. A key known to one side only is no conflict.
    pub fn conflict<'a>(&'a self, other: &Self) -> Option<&'a Arc<str>> {
        self.keys
            .iter()
            .find(|(key, mine)| {
                other.keys.get(*key).is_some_and(|theirs| {
                    let absent = mine.allows_absence() && theirs.allows_absence();
                    !absent && !mine.intersects(theirs)
                })
            })
            .map(|(key, _)| key)
    }

    /// Whether what this side (a node) offers can meet what `asked` (a pod) requires.
    ///
    /// # Errors
    /// The first key that fails: asked for but undefined here and not in `allow_undefined`, or without a common value.
    pub fn compatible<'a>(&self, asked: &'a Self, allow_undefined: impl Fn(&str) -> bool) -> Result<(), &'a Arc<str>> {
        if let Some(key) = asked.contradiction() {
            return Err(key);
        }
        for (key, values) in &asked.keys {
            if !self.has(key) && !values.allows_absence() && !allow_undefined(key) {
                return Err(key);
            }
        }
        asked.conflict(self).map_or(Ok(()), Err)
    }

    /// As a list of requirements, by key.
    pub fn to_requirements(&self) -> Vec<Requirement> {
        self.keys.iter().flat_map(|(key, values)| values.to_requirements(key)).collect()
    }

    /// Labels that are pinned down: keys with exactly one value.
    pub fn labels(&self) -> BTreeMap<Arc<str>, Arc<str>> {
        self.keys
            .iter()
            .filter(|(_, values)| !values.complement && values.values.len() == 1)
            .filter_map(|(key, values)| Some((Arc::clone(key), Arc::clone(values.values.first()?))))
            .collect()
    }
}
