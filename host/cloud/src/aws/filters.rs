//! Selector terms to EC2 filters, and a small cache for what they find.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use aws_sdk_ec2::types::Filter;

/// One term, by the selector that counts: id before name before tags.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Term<'a> {
    Id(&'a str),
    Name(&'a str),
    Tags(&'a BTreeMap<String, String>),
}

pub(crate) fn filter(name: &str, values: impl IntoIterator<Item = String>) -> Filter {
    Filter::builder().name(name).set_values(Some(values.into_iter().collect())).build()
}

/// Filters of one tag map, all of which must hold; `*` stands for any value.
pub(crate) fn tag_filters(tags: &BTreeMap<String, String>) -> Vec<Filter> {
    tags.iter()
        .map(|(key, value)| match value.as_str() {
            "*" => filter("tag-key", [key.clone()]),
            _ => filter(&format!("tag:{key}"), [value.clone()]),
        })
        .collect()
}

/// Filter sets, one request each, whose results are united: one for all ids, one for all names, one per tag map.
pub(crate) fn filter_sets(terms: &[Term<'_>], id_filter: &str, name_filter: &str) -> Vec<Vec<Filter>> {
    let mut ids: Vec<String> = Vec::new();
    let mut names: Vec<String> = Vec::new();
    let mut sets = Vec::new();
    for term in terms {
        match term {
            Term::Id(id) => ids.push((*id).to_owned()),
            Term::Name(name) => names.push((*name).to_owned()),
            Term::Tags(tags) if tags.is_empty() => {}
            Term::Tags(tags) => sets.push(tag_filters(tags)),
        }
    }
    for (values, name) in [(ids, id_filter), (names, name_filter)] {
        if !values.is_empty() {
            sets.push(vec![filter(name, values)]);
        }
    }
    sets
}

/// Answers kept for a while, by what was asked.
#[derive(Debug)]
pub(crate) struct Kept<V>(Mutex<BTreeMap<String, (Instant, V)>>);

impl<V> Default for Kept<V> {
    fn default() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }
}

impl<V: Clone> Kept<V> {
    /// The answer, if it is younger than `ttl`. Older ones are dropped on the way.
    pub(crate) fn get(&self, key: &str, ttl: Duration) -> Option<V> {
        let mut map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        map.retain(|_, (at, _)| at.elapsed() < ttl);
        map.get(key).map(|(_, value)| value.clone())
    }

    pub(crate) fn put(&self, key: &str, value: V) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_owned(), (Instant::now(), value));
    }

    pub(crate) fn remove(&self, key: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_share_a_request_and_tag_maps_do_not() {
        let tags: BTreeMap<String, String> =
            [("team".to_owned(), "*".to_owned()), ("zone".to_owned(), "a".to_owned())].into();
        let other: BTreeMap<String, String> = [("x".to_owned(), "y".to_owned())].into();
        let terms =
            [Term::Id("subnet-1"), Term::Tags(&tags), Term::Id("subnet-2"), Term::Tags(&other), Term::Name("web")];
        let sets = filter_sets(&terms, "subnet-id", "group-name");
        let seen: Vec<Vec<(&str, &[String])>> =
            sets.iter().map(|s| s.iter().map(|f| (f.name().unwrap_or_default(), f.values())).collect()).collect();
        assert_eq!(seen[0], [("tag-key", &["team".to_owned()][..]), ("tag:zone", &["a".to_owned()][..])]);
        assert_eq!(seen[1], [("tag:x", &["y".to_owned()][..])]);
        assert_eq!(seen[2], [("subnet-id", &["subnet-1".to_owned(), "subnet-2".to_owned()][..])]);
        assert_eq!(seen[3], [("group-name", &["web".to_owned()][..])]);
    }

    #[test]
    fn an_empty_term_selects_nothing_rather_than_everything() {
        assert!(filter_sets(&[Term::Tags(&BTreeMap::new())], "subnet-id", "").is_empty());
    }
}
