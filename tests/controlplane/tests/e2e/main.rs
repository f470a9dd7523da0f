//! The scenarios, one after the other on one control plane, and at the end the roles against the audit log.
//!
//! `cargo test -p mortise-controlplane-tests [FILTER]…` as with the usual runner; this one exists because the scenarios
//! share a cluster that must outlive each of them and die with the run.

mod harness;
mod runner;
mod world;

use runner::{Case, case};

#[tokio::main]
async fn main() -> std::process::ExitCode {
    let cases: Vec<Case> = vec![
        case!(harness::control_plane_runs_a_pod_on_a_hand_made_node),
        case!(harness::fleet_takes_the_cheapest_in_stock_and_remembers_tokens),
        case!(harness::instance_joins_from_its_user_data),
        case!(harness::a_lost_reply_still_starts_the_instance),
        case!(harness::helm_installs_a_chart),
        case!(harness::api_server_restarts_on_the_same_store),
    ];
    runner::run(&cases).await
}
