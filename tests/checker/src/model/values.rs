//! The values that a node label may have, and requirements on it.

use std::collections::{BTreeMap, BTreeSet};

use mortise_problem::api::labels::normalize;

/// The values that a label may have, one of which may be that it is absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Values {
    /// Only these; `None` = all but `except`, within the bounds.
    pub(crate) only: Option<BTreeSet<String>>,
    except: BTreeSet<String>,
    at_least: Option<i64>,
    at_most: Option<i64>,
    /// The label may be absent.
    pub(crate) absent: bool,
}

/// What the labels of a node may be, by normalised key. A key that is not there is a label that is absent.
pub(crate) type Labels = BTreeMap<String, Values>;

impl Values {
    const ANY: Self = Self { only: None, except: BTreeSet::new(), at_least: None, at_most: None, absent: true };

    /// Surely this value.
    pub(crate) fn one(value: &str) -> Self {
        Self { only: Some([value.to_owned()].into()), absent: false, ..Self::ANY }
    }

    /// Surely absent.
    pub(crate) fn none() -> Self {
        Self { only: Some(BTreeSet::new()), ..Self::ANY }
    }

    /// What a requirement admits. An operator that is not known, or a bound that is no integer, admits nothing.
    pub(crate) fn required<'a>(operator: &str, values: impl IntoIterator<Item = &'a str>) -> Self {
        let values: BTreeSet<String> = values.into_iter().map(str::to_owned).collect();
        let nothing = Self { only: Some(BTreeSet::new()), absent: false, ..Self::ANY };
        let present = Self { absent: false, ..Self::ANY };
        let bound: Option<i64> = values.first().and_then(|value| value.parse().ok());
        match (operator, bound) {
            ("In", _) => Self { only: Some(values), ..present },
            ("NotIn", _) => Self { except: values, ..Self::ANY },
            ("Exists", _) => present,
            ("DoesNotExist", _) => Self::none(),
            ("Gt", Some(n)) => Self { at_least: Some(n.saturating_add(1)), ..present },
            ("Gte", Some(n)) => Self { at_least: Some(n), ..present },
            ("Lt", Some(n)) => Self { at_most: Some(n.saturating_sub(1)), ..present },
            ("Lte", Some(n)) => Self { at_most: Some(n), ..present },
            _ => nothing,
        }
    }

    /// Whether the label may have the value (`None` = be absent).
    pub(crate) fn admits(&self, value: Option<&str>) -> bool {
        let Some(value) = value else { return self.absent };
        if self.only.as_ref().is_some_and(|only| !only.contains(value)) || self.except.contains(value) {
            return false;
        }
        if self.at_least.is_none() && self.at_most.is_none() {
            return true;
        }
        value.parse::<i64>().is_ok_and(|n| self.at_least.is_none_or(|l| n >= l) && self.at_most.is_none_or(|m| n <= m))
    }

    /// What both admit.
    pub(crate) fn and(&self, other: &Self) -> Self {
        let absent = self.absent && other.absent;
        let concrete = match (&self.only, &other.only) {
            (Some(values), _) => Some((values, other)),
            (None, Some(values)) => Some((values, self)),
            (None, None) => None,
        };
        if let Some((values, admitting)) = concrete {
            let only = values.iter().filter(|v| admitting.admits(Some(v.as_str()))).cloned().collect();
            return Self { only: Some(only), absent, ..Self::ANY };
        }
        let at_least = self.at_least.max(other.at_least);
        let at_most = [self.at_most, other.at_most].into_iter().flatten().min();
        if at_least.zip(at_most).is_some_and(|(low, high)| low > high) {
            return Self { only: Some(BTreeSet::new()), absent, ..Self::ANY };
        }
        Self { only: None, except: self.except.union(&other.except).cloned().collect(), at_least, at_most, absent }
    }

    /// Whether the label can have no value and cannot be absent.
    pub(crate) fn is_empty(&self) -> bool {
        !self.absent && self.only.as_ref().is_some_and(BTreeSet::is_empty)
    }

    /// Whether every value of `other` is one of these.
    pub(crate) fn contains(&self, other: &Self) -> bool {
        if other.absent && !self.absent {
            return false;
        }
        match (&other.only, &self.only) {
            (Some(values), _) => values.iter().all(|value| self.admits(Some(value))),
            (None, Some(_)) => false,
            (None, None) => {
                self.except.iter().all(|value| !other.admits(Some(value)))
                    && self.at_least.is_none_or(|low| other.at_least.is_some_and(|l| l >= low))
                    && self.at_most.is_none_or(|high| other.at_most.is_some_and(|h| h <= high))
            }
        }
    }
}

/// Narrows what a label may be.
pub(crate) fn narrow(labels: &mut Labels, key: &str, values: &Values) {
    let key = normalize(key);
    let narrowed = labels.get(key).map_or_else(|| values.clone(), |known| known.and(values));
    labels.insert(key.to_owned(), narrowed);
}

/// Whether a label that a node has satisfies a requirement whichever of its possible values it has.
pub(crate) fn surely(labels: &Labels, key: &str, required: &Values) -> bool {
    labels.get(normalize(key)).map_or(required.absent, |known| required.contains(known))
}

/// Whether a label that a node has satisfies a requirement for one of its possible values.
pub(crate) fn perhaps(labels: &Labels, key: &str, required: &Values) -> bool {
    labels.get(normalize(key)).map_or(required.absent, |known| !known.and(required).is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(operator: &str, values: &[&str]) -> Values {
        Values::required(operator, values.iter().copied())
    }

    #[test]
    fn operators_admit_what_kubernetes_says() {
        assert!(is("In", &["a"]).admits(Some("a")) && !is("In", &["a"]).admits(None));
        assert!(is("NotIn", &["a"]).admits(None) && !is("NotIn", &["a"]).admits(Some("a")));
        assert!(is("Exists", &[]).admits(Some("x")) && !is("Exists", &[]).admits(None));
        assert!(is("DoesNotExist", &[]).admits(None) && !is("DoesNotExist", &[]).admits(Some("x")));
        assert!(is("Gt", &["3"]).admits(Some("4")) && !is("Gt", &["3"]).admits(Some("3")));
        assert!(is("Lt", &["3"]).admits(Some("2")) && !is("Lt", &["3"]).admits(Some("x")));
        assert!(is("Gte", &["3"]).admits(Some("3")) && is("Lte", &["3"]).admits(Some("3")));
        assert!(is("Near", &["a"]).is_empty() && is("Gt", &["x"]).is_empty());
    }

    #[test]
    fn both_is_what_each_admits() {
        assert_eq!(is("In", &["a", "b"]).and(&is("NotIn", &["b"])), is("In", &["a"]));
        assert!(is("Gt", &["3"]).and(&is("Lt", &["4"])).is_empty());
        assert!(!is("NotIn", &["a"]).and(&is("DoesNotExist", &[])).is_empty());
        assert!(is("Exists", &[]).and(&is("DoesNotExist", &[])).is_empty());
    }

    #[test]
    fn an_open_label_satisfies_only_what_all_its_values_do() {
        assert!(is("In", &["a", "b"]).contains(&is("In", &["a"])));
        assert!(!is("In", &["a"]).contains(&is("In", &["a", "b"])));
        assert!(is("NotIn", &["a"]).contains(&is("NotIn", &["a", "b"])));
        assert!(!is("Exists", &[]).contains(&is("NotIn", &["a"])));
        assert!(is("Gt", &["3"]).contains(&is("Gt", &["4"])) && !is("Gt", &["3"]).contains(&is("Exists", &[])));
    }
}
