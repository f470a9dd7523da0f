//! Last: the chart's roles against what the API server saw over the whole run.

use crate::world::World;
use anyhow::{Context, Result, ensure};
use mortise_controlplane_tests::audit;

const UNUSED: &str = include_str!("../../rbac-unused.yaml");

pub(crate) async fn hold_what_was_used_and_nothing_else(world: &mut World) -> Result<()> {
    let installed = world.installed.clone().context("the chart was not installed: run all scenarios")?;
    let user = format!("system:serviceaccount:{}:{}", installed.namespace, installed.service_account);
    let record = audit::read(world.cluster.plane.audit_log(), &user)?;
    ensure!(!record.allowed.is_empty(), "the audit log knows nothing of {user}");
    let grants = audit::grants(&world.cluster.client, &installed.namespace, &installed.service_account).await?;
    ensure!(!grants.is_empty(), "no role is bound to {user}");
    let complaints = audit::judge(&record, &grants, &audit::Exception::list(UNUSED)?);
    ensure!(complaints.is_empty(), "{}", complaints.join("\n"));
    let panics = world.panics();
    ensure!(panics.is_empty(), "a replica panicked:\n{}", panics.join("\n"));
    Ok(())
}
