use super::counter::{Axis, Counter, Site, least};
use crate::symbol::Bits;

fn bits(domains: &[u32]) -> Bits {
    domains.iter().copied().collect()
}

fn zones() -> Counter {
    Counter::new(Axis::Key(0), 0)
}

#[test]
fn the_least_domain_is_among_those_asked_for() {
    let mut counter = zones();
    counter.add(0, 5);
    counter.add(1, 2);
    assert_eq!(least(&counter, &bits(&[0, 1]), 0), 2);
    assert_eq!(least(&counter, &bits(&[0]), 0), 5);
    assert_eq!(least(&counter, &bits(&[0, 1, 7]), 0), 0, "a domain never seen has no pod");
    assert_eq!(least(&counter, &bits(&[0, 1]), 3), 0, "fewer than minDomains: as if one were empty");
    assert_eq!(least(&counter, &Bits::default(), 0), 0);
}

#[test]
fn a_pod_that_waits_counts_once_when_it_is_decided() {
    let mut counter = zones();
    counter.wait(2);
    assert_eq!((counter.waiting, counter.total, counter.count(3)), (2, 2, 0));
    counter.decided(Some(3), 2);
    assert_eq!((counter.waiting, counter.total, counter.count(3)), (0, 2, 2));
    assert_eq!(counter.taken(), &bits(&[3]));
    counter.wait(1);
    counter.decided(None, 1);
    assert_eq!((counter.waiting, counter.total), (0, 2), "its node turned out to have no such label");
}

#[test]
fn a_pod_that_may_be_in_several_domains_takes_none_for_certain() {
    let mut counter = zones();
    counter.add(1, 1);
    counter.add_somewhere(&bits(&[0, 2]), 1);
    assert_eq!(counter.taken(), &bits(&[1]));
    assert_eq!(counter.perhaps_taken(), bits(&[0, 1, 2]));
    assert_eq!((counter.count(0), counter.total), (0, 2));
}

#[test]
fn nodes_and_claims_are_domains_apart() {
    let mut counter = Counter::new(Axis::Host, 0);
    counter.add(0, 1);
    counter.add_on_claim(0, 3);
    assert_eq!((counter.on(Site::Node(0)), counter.on(Site::Claim(0)), counter.on(Site::Claim(1))), (1, 3, 0));
    assert_eq!((counter.taken(), counter.taken_claims()), (&bits(&[0]), &bits(&[0])));
    assert_eq!(counter.total, 4);
}

#[test]
fn every_change_shows_in_the_version() {
    let mut counter = zones();
    let changes: [fn(&mut Counter); 5] = [
        |c| c.add(0, 1),
        |c| c.add_on_claim(0, 1),
        |c| c.add_somewhere(&bits(&[1]), 1),
        |c| c.add_nowhere(),
        |c| c.wait(1),
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let before = counter.version;
        change(&mut counter);
        assert!(counter.version > before, "change {at}");
    }
}
