//! Static NodePools: so many nodes whatever the pods are.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::decision::Claim;
use crate::node::{Node, NodePod};
use crate::nodepool::NodePool;
use crate::quantity::Resources;
use crate::requirement::{Requirements, key};
use crate::snapshot::Snapshot;

/// NodeClaims of one plan: the next plan has the rest, and a slip of the pen in `replicas` does not cost all memory.
const MOST_AT_ONCE: i64 = 1000;

/// What a static NodePool needs now.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct StaticPlan {
    /// NodeClaims to create now: all equal, without pods, and open to every instance type of the NodePool. At most a
    /// thousand.
    pub create: Vec<Claim>,
    /// Nodes to delete (keys of the snapshot), first those that are missed least. Neither budgets nor
    /// PodDisruptionBudgets are asked: somebody lowered `replicas`.
    pub remove: Vec<Arc<str>>,
    /// Nodes that are missing and not created because `limits.nodes` is reached.
    pub held_back: u32,
}

/// Compares a static NodePool with its nodes.
///
/// `being_replaced`: nodes that are `deleting` in the snapshot whose replacement is the business of the command that
/// chose them; they still count as nodes that are wanted. A NodePool without `replicas` is left as it is; one that cannot
/// be used gets no nodes and loses those that are too many.
pub fn plan(snapshot: &Snapshot, pool: &NodePool, being_replaced: u32) -> StaticPlan {
    let mut plan = StaticPlan::default();
    let Some(replicas) = pool.replicas else { return plan };
    let own = || snapshot.nodes.iter().filter(|(_, node)| node.nodepool.as_ref() == Some(&pool.name));
    let active: Vec<(&Arc<str>, &Node)> =
        own().filter(|(_, node)| !node.deleting).map(|(name, node)| (name, &**node)).collect();
    let count = |nodes: usize| i64::try_from(nodes).unwrap_or(i64::MAX);
    let missing = i64::from(replicas) - count(active.len());
    if missing > 0 {
        if !pool.unusable.is_empty() {
            return plan;
        }
        let missing = missing - i64::from(being_replaced);
        // Nodes on their way out still exist, so they count against the limit.
        let room = pool.limits.nodes.map_or(i64::MAX, |limit| limit - count(own().count()));
        let create = missing.min(room).max(0);
        plan.create = (0..create.min(MOST_AT_ONCE)).map(|_| claim(pool)).collect();
        plan.held_back = u32::try_from((missing - create).max(0)).unwrap_or(u32::MAX);
    } else if missing < 0 {
        let mut ranked: Vec<(Missed, &Arc<str>)> =
            active.into_iter().map(|(name, node)| (missed(node, pool, snapshot.now_unix_ms), name)).collect();
        ranked.sort();
        let surplus = usize::try_from(-missing).unwrap_or(usize::MAX);
        plan.remove = ranked.into_iter().take(surplus).map(|(_, name)| Arc::clone(name)).collect();
    }
    plan
}

/// How much a node would be missed, least first: it has no instance yet, it is empty, nothing on it asks not to be
/// disrupted, what its pods cost to evict over the life that it has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Missed {
    has_instance: bool,
    occupied: bool,
    do_not_disrupt: bool,
    cost: i128,
}

fn missed(node: &Node, pool: &NodePool, now_unix_ms: i64) -> Missed {
    let stays = |pod: &&NodePod| !pod.terminating;
    let asks = node.do_not_disrupt
        || node.pods.iter().filter(stays).any(|pod| pod.do_not_disrupt)
        || !node.blocking_pods.is_empty();
    let cost: i128 = node.pods.iter().filter(stays).map(|pod| i128::from(pod.eviction_cost_milli)).sum();
    Missed {
        has_instance: node.provider_id.is_some(),
        occupied: asks || node.pods.iter().any(|pod| !pod.terminating),
        do_not_disrupt: asks,
        cost: cost * life_left(node, pool, now_unix_ms),
    }
}

/// Share of its life that a node has left, in millionths; whole where it does not expire.
fn life_left(node: &Node, pool: &NodePool, now_unix_ms: i64) -> i128 {
    const WHOLE: i128 = 1_000_000;
    let Some(life) = pool.expire_after.as_deref().and_then(milliseconds).filter(|life| *life > 0) else { return WHOLE };
    let age = i128::from(now_unix_ms.saturating_sub(node.created_unix_ms).max(0));
    (WHOLE - age * WHOLE / i128::from(life)).max(0)
}

/// A duration as Go writes it (`720h`, `1h30m`), in milliseconds; `None` for `Never` and what is no duration.
fn milliseconds(text: &str) -> Option<i64> {
    let mut rest = text;
    let mut total: i64 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit()).filter(|end| *end > 0)?;
        let (number, tail) = rest.split_at(digits);
        let (unit, length) = [("ms", 1), ("h", 3_600_000), ("m", 60_000), ("s", 1000)]
            .into_iter()
            .find(|(unit, _)| tail.starts_with(unit))?;
        total = total.checked_add(number.parse::<i64>().ok()?.checked_mul(length)?)?;
        rest = tail.get(unit.len()..)?;
    }
    (!text.is_empty()).then_some(total)
}

/// A NodeClaim of a static NodePool.
fn claim(pool: &NodePool) -> Claim {
    let mut requirements = Requirements::new(&pool.requirements);
    let mut labels: BTreeMap<Arc<str>, Arc<str>> = requirements
        .keys
        .iter()
        .filter(|(name, _)| {
            !key::WELL_KNOWN.contains(&&***name)
                && pool
                    .catalog
                    .types
                    .iter()
                    .all(|of_type| of_type.requirements.iter().all(|requirement| requirement.key != **name))
        })
        .filter_map(|(name, values)| Some((Arc::clone(name), crate::requirement::any_value(values)?)))
        .collect();
    labels.extend(pool.labels.iter().map(|(name, value)| (Arc::clone(name), Arc::clone(value))));
    labels.insert(Arc::from(key::NODEPOOL), Arc::clone(&pool.name));
    labels.insert(crate::schedule::node_class_label(pool), Arc::clone(&pool.node_class.2));
    requirements.extend(&Requirements::from_labels(&labels));
    Claim {
        nodepool: Arc::clone(&pool.name),
        nodepool_uid: Arc::clone(&pool.uid),
        node_class: pool.node_class.clone(),
        labels,
        annotations: pool.annotations.clone(),
        requirements: requirements.to_requirements(),
        requests: Resources::default(),
        taints: pool.taints.clone(),
        startup_taints: pool.startup_taints.clone(),
        expire_after: pool.expire_after.clone(),
        termination_grace_period: pool.termination_grace_period.clone(),
        pods: Vec::new(),
        buffer_pods: 0,
        cheapest: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requirement::{Operator, Requirement};

    fn pool(replicas: u32, limit: Option<i64>) -> NodePool {
        let mut pool = crate::schedule::tests::pool("static");
        pool.is_static = true;
        pool.replicas = Some(replicas);
        pool.limits.nodes = limit;
        pool
    }

    fn node(name: &str) -> (Arc<str>, Arc<Node>) {
        let node = Node {
            name: name.into(),
            nodepool: Some("static".into()),
            provider_id: Some(name.into()),
            ..Node::default()
        };
        (name.into(), Arc::new(node))
    }

    fn with(name: &str, change: impl FnOnce(&mut Node)) -> (Arc<str>, Arc<Node>) {
        let (name, mut node) = node(name);
        change(Arc::make_mut(&mut node));
        (name, node)
    }

    fn pod(cost: i64, do_not_disrupt: bool) -> NodePod {
        NodePod { eviction_cost_milli: cost, do_not_disrupt, ..NodePod::default() }
    }

    fn snapshot(nodes: impl IntoIterator<Item = (Arc<str>, Arc<Node>)>) -> Snapshot {
        Snapshot { nodes: nodes.into_iter().collect(), ..Snapshot::default() }
    }

    #[test]
    fn missing_nodes_are_created_up_to_the_limit() {
        let two = snapshot([node("a"), node("b")]);
        let counts = |plan: StaticPlan| (plan.create.len(), plan.remove.len(), plan.held_back);
        assert_eq!(counts(plan(&two, &pool(5, None), 0)), (3, 0, 0));
        assert_eq!(counts(plan(&two, &pool(5, Some(4)), 0)), (2, 0, 1));
        assert_eq!(counts(plan(&two, &pool(5, Some(1)), 0)), (0, 0, 3));
        assert_eq!(counts(plan(&two, &pool(2, None), 0)), (0, 0, 0));
        assert_eq!(counts(plan(&snapshot([]), &pool(0, None), 0)), (0, 0, 0));
        let unusable = NodePool { unusable: vec!["not ready".into()], ..pool(5, None) };
        assert_eq!(counts(plan(&two, &unusable, 0)), (0, 0, 0));
        let smaller = NodePool { replicas: Some(1), ..unusable };
        assert_eq!(counts(plan(&two, &smaller, 0)), (0, 1, 0), "what is too much goes all the same");
        assert_eq!(counts(plan(&two, &pool(u32::MAX, None), 0)), (1000, 0, 0), "one plan is bounded");
        let dynamic = NodePool { replicas: None, ..pool(5, None) };
        assert_eq!(counts(plan(&two, &dynamic, 0)), (0, 0, 0));
    }

    #[test]
    fn nodes_on_their_way_out_are_refilled_and_count_against_the_limit() {
        let nodes = || snapshot([node("a"), with("b", |node| node.deleting = true)]);
        let counts = |plan: StaticPlan| (plan.create.len(), plan.held_back);
        assert_eq!(counts(plan(&nodes(), &pool(2, None), 0)), (1, 0));
        assert_eq!(counts(plan(&nodes(), &pool(2, Some(2)), 0)), (0, 1));
        // The command that replaces it makes the replacement.
        assert_eq!(counts(plan(&nodes(), &pool(2, None), 1)), (0, 0));
    }

    #[test]
    fn what_is_missed_least_goes_first() {
        let nodes = snapshot([
            with("protected", |node| node.pods = vec![pod(1, true)]),
            with("dear", |node| node.pods = vec![pod(9000, false)]),
            with("cheap", |node| node.pods = vec![pod(1000, false)]),
            node("empty"),
            with("launching", |node| node.provider_id = None),
            with("leaving", |node| node.deleting = true),
        ]);
        let order = plan(&nodes, &pool(0, None), 0).remove;
        assert_eq!(
            order.iter().map(|name| &**name).collect::<Vec<_>>(),
            ["launching", "empty", "cheap", "dear", "protected"]
        );
        assert_eq!(plan(&nodes, &pool(4, None), 0).remove, [Arc::from("launching")]);
    }

    #[test]
    fn a_node_near_its_end_is_missed_less() {
        let hour = 3_600_000;
        let nodes = Snapshot {
            now_unix_ms: 10 * hour,
            ..snapshot([
                with("a-young", |node| (node.created_unix_ms, node.pods) = (9 * hour, vec![pod(1000, false)])),
                with("b-old", |node| (node.created_unix_ms, node.pods) = (hour, vec![pod(1000, false)])),
            ])
        };
        let expiring = NodePool { expire_after: Some("10h".into()), ..pool(1, None) };
        assert_eq!(plan(&nodes, &expiring, 0).remove, [Arc::from("b-old")]);
        assert_eq!(plan(&nodes, &pool(1, None), 0).remove, [Arc::from("a-young")], "without expiry the name decides");
        for (text, expected) in
            [("720h", Some(720 * hour)), ("1h30m", Some(hour + hour / 2)), ("Never", None), ("", None)]
        {
            assert_eq!(milliseconds(text), expected, "{text}");
        }
    }

    #[test]
    fn claims_carry_the_template_and_no_list_of_types() {
        let mut pool = pool(1, None);
        pool.labels.insert("team".into(), "x".into());
        pool.requirements = vec![
            Requirement::new(key::ARCH, Operator::In, ["amd64"]),
            Requirement::new("tier", Operator::NotIn, ["0", "1"]),
            Requirement::new("tier", Operator::Exists, [""; 0]),
            Requirement::new("absent", Operator::NotIn, ["0"]),
        ];
        let claim = plan(&snapshot([]), &pool, 0).create.remove(0);
        assert!(claim.requirements.iter().all(|requirement| &*requirement.key != key::INSTANCE_TYPE));
        assert!(claim.requirements.contains(&Requirement::new(key::ARCH, Operator::In, ["amd64"])));
        assert_eq!(
            (claim.labels.get("team").map(|v| &**v), claim.labels.get("tier").map(|v| &**v)),
            (Some("x"), Some("2"))
        );
        assert!(!claim.labels.contains_key("absent"), "a key that may be absent gets no value");
        assert!(claim.pods.is_empty() && claim.requests.is_zero());
    }
}
