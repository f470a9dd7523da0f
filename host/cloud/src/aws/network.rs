//! Subnets and security groups by selector terms.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use aws_sdk_ec2::types::Filter;
use mortise_api::EC2NodeClass;
use mortise_api::ec2nodeclass::{SecurityGroup, Subnet};

use super::clients::Clients;
use super::error::ApiError;
use super::filters::{Term, filter_sets};

/// A subnet with what launches need to know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundSubnet {
    pub(crate) subnet: Subnet,
    /// Free IPv4 addresses.
    pub(crate) free: i64,
}

/// Filter sets of a class's subnet terms.
pub(crate) fn subnet_filters(class: &EC2NodeClass) -> Vec<Vec<Filter>> {
    let terms: Vec<Term<'_>> = class
        .spec
        .subnet_selector_terms
        .iter()
        .map(|t| t.id.as_deref().map_or(Term::Tags(&t.tags), Term::Id))
        .collect();
    filter_sets(&terms, "subnet-id", "subnet-id")
}

/// Filter sets of a class's security group terms.
pub(crate) fn security_group_filters(class: &EC2NodeClass) -> Vec<Vec<Filter>> {
    let terms: Vec<Term<'_>> = class
        .spec
        .security_group_selector_terms
        .iter()
        .map(|t| match (&t.id, &t.name) {
            (Some(id), _) => Term::Id(id),
            (None, Some(name)) => Term::Name(name),
            (None, None) => Term::Tags(&t.tags),
        })
        .collect();
    filter_sets(&terms, "group-id", "group-name")
}

/// Subnets that any filter set finds, those with most free addresses first.
pub(crate) async fn find_subnets(clients: &Clients, sets: &[Vec<Filter>]) -> Result<Vec<FoundSubnet>, ApiError> {
    let mut found: BTreeMap<String, FoundSubnet> = BTreeMap::new();
    for set in sets {
        let request = clients.ec2.describe_subnets().set_filters(Some(set.clone())).max_results(500);
        let mut pages = request.into_paginator().send();
        while let Some(page) = clients.call("DescribeSubnets", pages.try_next()).await? {
            for s in page.subnets() {
                let (Some(id), Some(zone)) = (s.subnet_id(), s.availability_zone()) else { continue };
                let subnet = Subnet {
                    id: id.to_owned(),
                    zone: zone.to_owned(),
                    zone_id: s.availability_zone_id().map(str::to_owned),
                };
                let free = i64::from(s.available_ip_address_count().unwrap_or(0));
                found.insert(id.to_owned(), FoundSubnet { subnet, free });
            }
        }
    }
    let mut found: Vec<FoundSubnet> = found.into_values().collect();
    found.sort_by(|a, b| b.free.cmp(&a.free).then_with(|| a.subnet.id.cmp(&b.subnet.id)));
    Ok(found)
}

/// Security groups that any filter set finds, by id.
pub(crate) async fn find_security_groups(
    clients: &Clients,
    sets: &[Vec<Filter>],
) -> Result<Vec<SecurityGroup>, ApiError> {
    let mut found: BTreeMap<String, SecurityGroup> = BTreeMap::new();
    for set in sets {
        let request = clients.ec2.describe_security_groups().set_filters(Some(set.clone())).max_results(500);
        let mut pages = request.into_paginator().send();
        while let Some(page) = clients.call("DescribeSecurityGroups", pages.try_next()).await? {
            for g in page.security_groups() {
                let Some(id) = g.group_id() else { continue };
                let group = SecurityGroup { id: id.to_owned(), name: g.group_name().map(str::to_owned) };
                found.insert(id.to_owned(), group);
            }
        }
    }
    Ok(found.into_values().collect())
}

/// Free addresses per subnet, less what launches since the last look will take.
#[derive(Debug, Default)]
pub(crate) struct Addresses(Mutex<BTreeMap<String, i64>>);

impl Addresses {
    /// Takes over fresh counts: launches in flight are in them or soon will be.
    pub(crate) fn refresh(&self, subnets: &[FoundSubnet]) {
        let mut map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for s in subnets {
            map.insert(s.subnet.id.clone(), s.free);
        }
    }

    /// The subnet with most free addresses in each zone; ties go to the earlier. Unknown counts rank last.
    pub(crate) fn best_per_zone<'s>(&self, subnets: impl Iterator<Item = &'s Subnet>) -> BTreeMap<String, String> {
        let map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut best: BTreeMap<String, (i64, String)> = BTreeMap::new();
        for s in subnets {
            let free = map.get(&s.id).copied().unwrap_or(0);
            match best.get(&s.zone) {
                Some((most, _)) if *most >= free => {}
                _ => {
                    best.insert(s.zone.clone(), (free, s.id.clone()));
                }
            }
        }
        best.into_iter().map(|(zone, (_, id))| (zone, id)).collect()
    }

    /// Counts `addresses` as taken.
    pub(crate) fn take(&self, subnet: &str, addresses: i64) {
        if let Some(free) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get_mut(subnet) {
            *free = free.saturating_sub(addresses);
        }
    }

    /// Gives back what a launch did not take.
    pub(crate) fn give_back(&self, subnet: &str, addresses: i64) {
        self.take(subnet, addresses.saturating_neg());
    }

    /// EC2 says that there is none left.
    pub(crate) fn exhausted(&self, subnet: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(subnet.to_owned(), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subnet(id: &str, zone: &str, free: i64) -> FoundSubnet {
        FoundSubnet { subnet: Subnet { id: id.into(), zone: zone.into(), zone_id: None }, free }
    }

    #[test]
    fn launches_in_flight_move_the_choice() {
        let subnets = [subnet("s1", "a", 100), subnet("s2", "a", 90), subnet("s3", "b", 5)];
        let addresses = Addresses::default();
        addresses.refresh(&subnets);
        let best = |a: &Addresses| a.best_per_zone(subnets.iter().map(|s| &s.subnet)).get("a").cloned();
        assert_eq!(best(&addresses).as_deref(), Some("s1"));
        addresses.take("s1", 29);
        assert_eq!(best(&addresses).as_deref(), Some("s2"));
        addresses.give_back("s1", 29);
        assert_eq!(best(&addresses).as_deref(), Some("s1"));
        addresses.exhausted("s1");
        assert_eq!(best(&addresses).as_deref(), Some("s2"));
        addresses.refresh(&subnets);
        assert_eq!(best(&addresses).as_deref(), Some("s1"));
    }
}
