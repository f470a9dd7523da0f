//! Plans of small problems.

use alloc::vec;
use alloc::vec::Vec;

use super::*;

/// Slots (pool, micro-USD, cores, GiB, zone), groups (pods, millicores, MiB) that may use every slot.
struct World {
    nodepool: Vec<u32>,
    cost: Vec<i64>,
    cpu: Vec<u64>,
    memory: Vec<u64>,
    none: Vec<u32>,
    pods: Vec<u32>,
    zone: Vec<u32>,
    count: Vec<u32>,
    need_cpu: Vec<u64>,
    need_memory: Vec<u64>,
    all: Vec<u32>,
    end: Vec<u32>,
    set_of: Vec<u32>,
    most: Vec<u32>,
    skew: Vec<u32>,
    conflicts: (Vec<u32>, Vec<u32>),
    weight: Vec<u32>,
    cpu_left: Vec<u64>,
    nodes_left: Vec<u32>,
}

impl World {
    fn new(slots: &[(u32, i64, u64, u64, u32)], groups: &[(u32, u64, u64)]) -> Self {
        let pools = slots.iter().map(|slot| slot.0 as usize + 1).max().unwrap_or(0);
        Self {
            nodepool: slots.iter().map(|slot| slot.0).collect(),
            cost: slots.iter().map(|slot| slot.1).collect(),
            cpu: slots.iter().map(|slot| slot.2 * 1000).collect(),
            memory: slots.iter().map(|slot| slot.3 * 1024).collect(),
            none: vec![0; slots.len().max(groups.len())],
            pods: vec![110; slots.len()],
            zone: slots.iter().map(|slot| slot.4).collect(),
            count: groups.iter().map(|group| group.0).collect(),
            need_cpu: groups.iter().map(|group| group.1).collect(),
            need_memory: groups.iter().map(|group| group.2).collect(),
            all: (0..slots.len() as u32).collect(),
            end: vec![slots.len() as u32],
            set_of: vec![0; groups.len()],
            most: vec![u32::MAX; groups.len()],
            skew: vec![0; groups.len()],
            conflicts: (vec![0; groups.len()], Vec::new()),
            weight: vec![0; pools],
            cpu_left: vec![u64::MAX; pools],
            nodes_left: vec![u32::MAX; pools],
        }
    }

    fn problem(&self) -> Problem<'_> {
        let slots = self.cost.len();
        Problem {
            slots: Slots {
                nodepool: &self.nodepool,
                cost: &self.cost,
                cpu_milli: &self.cpu,
                memory_mib: &self.memory,
                gpu: &self.none[..slots],
                pods: &self.pods,
                extra: Vec::new(),
                zone: self.zone.clone(),
                cpu_charged_milli: self.cpu.clone(),
                memory_charged_mib: self.memory.clone(),
                nodes: vec![u32::MAX; slots],
            },
            pods: Pods {
                count: &self.count,
                cpu_milli: &self.need_cpu,
                memory_mib: &self.need_memory,
                gpu: &self.none[..self.count.len()],
                extra: Vec::new(),
            },
            pools: Pools {
                weight: &self.weight,
                cpu_left_milli: &self.cpu_left,
                memory_left_mib: &self.cpu_left,
                nodes_left: &self.nodes_left,
            },
            candidates: Candidates { sets: Rows { end: &self.end, member: &self.all }, set_of: &self.set_of },
            max_per_node: &self.most,
            zone_skew: &self.skew,
            conflicts: Rows { end: &self.conflicts.0, member: &self.conflicts.1 },
            node_cost_micro_usd: 0,
            steps: 100_000,
        }
    }
}

/// The nodes of a proposal: first slot and pods by group, sorted.
fn nodes(proposal: &Proposal) -> Vec<(u32, Vec<(u32, u32)>)> {
    let slots = Rows { end: &proposal.slot_end, member: &proposal.slot };
    let groups = Rows { end: &proposal.group_end, member: &proposal.group };
    let mut count = proposal.count.iter();
    let mut out: Vec<_> = slots
        .iter()
        .zip(groups.iter())
        .map(|(slots, groups)| (slots[0], groups.iter().copied().zip(count.by_ref().copied()).collect()))
        .collect();
    out.sort();
    out
}

fn placed(proposal: &Proposal) -> u32 {
    proposal.count.iter().sum()
}

#[test]
fn the_cheapest_mix_of_sizes() {
    // Ten pods of a core: one node of eight cores and one of two; a node of sixteen costs more than both.
    let world = World::new(&[(0, 200, 2, 8, 0), (0, 800, 8, 32, 0), (0, 1600, 16, 64, 0)], &[(10, 1000, 1024)]);
    let plan = nodes(&propose(&world.problem()));
    let cost: i64 = plan.iter().map(|(slot, _)| world.cost[*slot as usize]).sum();
    assert_eq!(cost, 1000);
}

#[test]
fn pods_that_complete_each_other_share_a_node() {
    let world = World::new(&[(0, 100, 8, 64, 0)], &[(4, 3000, 1024), (4, 200, 24 * 1024)]);
    let plan = nodes(&propose(&world.problem()));
    assert_eq!(plan, vec![(0, vec![(0, 2), (1, 2)]); 2]);
}

#[test]
fn a_cost_per_node_makes_fewer_bigger_nodes() {
    let world = World::new(&[(0, 100, 2, 8, 0), (0, 410, 8, 32, 0)], &[(8, 1000, 1024)]);
    assert_eq!(nodes(&propose(&world.problem())).len(), 4);
    let dear = Problem { node_cost_micro_usd: 50, ..world.problem() };
    assert_eq!(nodes(&propose(&dear)).len(), 1);
}

#[test]
fn at_most_so_many_on_a_node_and_conflicts_apart() {
    let mut world = World::new(&[(0, 100, 8, 32, 0)], &[(3, 100, 100), (2, 100, 100)]);
    world.most[0] = 1;
    world.conflicts = (vec![1, 1], vec![1]);
    let plan = nodes(&propose(&world.problem()));
    assert_eq!(plan, [(0, vec![(0, 1)]), (0, vec![(0, 1)]), (0, vec![(0, 1)]), (0, vec![(1, 2)])]);
}

#[test]
fn zones_are_kept_within_the_skew() {
    let slots = [(0, 100, 4, 16, 7), (0, 90, 4, 16, 8), (0, 300, 4, 16, 9)];
    let mut world = World::new(&slots, &[(11, 1000, 1024), (3, 500, 1024)]);
    world.skew[0] = 1;
    let plan = nodes(&propose(&world.problem()));
    let mut zones = [0; 3];
    for (slot, pods) in &plan {
        zones[*slot as usize] += pods.iter().filter(|(group, _)| *group == 0).map(|(_, pods)| pods).sum::<u32>();
    }
    assert_eq!(zones.iter().sum::<u32>(), 11);
    assert!(zones.iter().max().unwrap() - zones.iter().min().unwrap() <= 1, "{zones:?}");
}

#[test]
fn a_zone_without_room_holds_the_others_down() {
    // Pods need four cores, which zone 9 does not have: one more than none in each of the others.
    let mut world = World::new(&[(0, 100, 4, 16, 7), (0, 100, 4, 16, 8), (0, 100, 2, 16, 9)], &[(6, 4000, 1024)]);
    world.skew[0] = 1;
    assert_eq!(placed(&propose(&world.problem())), 2);
}

#[test]
fn lower_weights_only_get_what_higher_ones_cannot_hold() {
    let slots = [(0, 900, 2, 8, 0), (1, 100, 2, 8, 0), (1, 400, 8, 8, 0)];
    let mut world = World::new(&slots, &[(4, 1000, 1024), (1, 6000, 1024)]);
    world.weight = vec![10, 0];
    let plan = nodes(&propose(&world.problem()));
    assert_eq!(plan, [(0, vec![(0, 2)]), (0, vec![(0, 2)]), (2, vec![(1, 1)])]);
    world.nodes_left[0] = 1;
    let plan = nodes(&propose(&world.problem()));
    assert_eq!(plan.iter().filter(|(slot, _)| *slot == 0).count(), 1);
    assert_eq!(placed(&propose(&world.problem())), 5);
}

#[test]
fn limits_are_respected() {
    let mut world = World::new(&[(0, 100, 2, 8, 0), (0, 350, 8, 32, 0)], &[(20, 1000, 1024)]);
    world.cpu_left[0] = 9000;
    let mut problem = world.problem();
    problem.pools.memory_left_mib = &[u64::MAX];
    let proposal = propose(&problem);
    let cpu: u64 = nodes(&proposal).iter().map(|(slot, _)| world.cpu[*slot as usize]).sum();
    assert!(cpu <= 9000, "{cpu}");
    assert_eq!(placed(&proposal), 8);
}

#[test]
fn what_no_slot_holds_or_speaks_of_is_left_out() {
    let world = World::new(&[(0, 100, 2, 8, 0)], &[(1, 4000, 1024), (2, 100, 100)]);
    assert_eq!(nodes(&propose(&world.problem())), [(0, vec![(1, 2)])]);
    let mut problem = world.problem();
    problem.pods.extra = vec![("example.com/disk", &[0, 1])];
    assert_eq!(placed(&propose(&problem)), 0);
    problem.slots.extra = vec![("example.com/disk", &[1])];
    assert_eq!(nodes(&propose(&problem)).len(), 2);
}

#[test]
fn every_slot_that_holds_the_pods_at_the_price_is_named() {
    let slots = [(0, 100, 2, 8, 0), (0, 100, 2, 8, 1), (0, 90, 1, 8, 0), (0, 101, 4, 16, 0)];
    let proposal = propose(&World::new(&slots, &[(2, 1000, 1024)]).problem());
    assert_eq!(proposal.slot, [0, 1]);
}

#[test]
fn unknown_costs_and_malformed_columns_are_no_plan_and_no_panic() {
    let mut world = World::new(&[(0, i64::MAX, 2, 8, 0), (0, i64::MAX - 1, 2, 8, 0)], &[(1, 100, 100)]);
    assert_eq!(placed(&propose(&world.problem())), 0);
    world.all = vec![7, 9];
    assert_eq!(propose(&world.problem()), Proposal::default());
    world.nodepool.clear();
    world.set_of.clear();
    assert_eq!(propose(&world.problem()), Proposal::default());
    let world = World::new(&[(0, -5, 2, 8, 0), (0, 1, u64::MAX / 1000, 8, 0)], &[(u32::MAX, 1, 1), (3, 0, 0)]);
    assert!(placed(&propose(&world.problem())) > 0);
    let nothing = Problem { steps: 0, ..world.problem() };
    let _ = propose(&nothing);
}

#[test]
fn the_same_problem_gives_the_same_plan() {
    let slots: Vec<_> = (1..40).map(|size| (0, 100 * size + 7 * (size % 5), size as u64, 4 * size as u64, 0)).collect();
    let world = World::new(&slots, &[(50, 700, 900), (30, 300, 2900), (7, 2500, 1000)]);
    let plan = propose(&world.problem());
    assert_eq!(plan, propose(&world.problem()));
    assert_eq!(placed(&plan), 87);
}
