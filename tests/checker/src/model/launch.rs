//! What could be made for one pod alone.

use mortise_problem::k8s_openapi::api::core::v1::Pod;

use super::machine::{Machine, is_usable, machines, pool_name};
use super::pod;
use super::quantity::add;
use super::values::perhaps;
use super::volume::volumes;
use super::world::{World, pool_taints};
use crate::rules::limits::fits_in_limits;

/// Every machine that a new node for this pod alone might be: of a pool whose taints it tolerates and whose limits have
/// room for it beside the nodes that exist, by an available offering, with labels that its node selector, node affinity
/// and volumes admit, and room for it beside the DaemonSets.
pub(crate) fn alone<'a>(world: &World<'a>, pod: &Pod) -> Vec<Machine<'a>> {
    let Ok(volumes) = volumes(world.problem, pod) else { return Vec::new() };
    let mut all = Vec::new();
    for pool in world.problem.node_pools.iter().filter(|pool| is_usable(pool)) {
        let taints = pool_taints(pool);
        if pod::refused_by(pod, &taints).is_some() {
            continue;
        }
        for kind in &world.problem.instance_types {
            if !world.problem.is_offered(pool_name(pool), &kind.name) || !fits_in_limits(world, pool, kind) {
                continue;
            }
            all.extend(machines(pool, &[], kind, "a new node").into_iter().filter(|machine| {
                let mut needed = world.daemon_requests(&taints, machine, None);
                add(&mut needed, &pod::requests(pod));
                pod::perhaps_selects(pod, &machine.labels, None)
                    && volumes.iter().all(|volume| volume.reaches(&machine.labels, &perhaps))
                    && needed.iter().all(|(n, a)| *a <= machine.allocatable.get(n).copied().unwrap_or_default())
            }));
        }
    }
    all
}
