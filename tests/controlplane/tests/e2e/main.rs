//! The scenarios, one after the other on one control plane, and at the end the roles against the audit log.
//!
//! `cargo test -p mortise-controlplane-tests [FILTER]…` as with the usual runner; this one exists because the scenarios
//! share a cluster that must outlive each of them and die with the run.

mod buffer;
mod burst;
mod capacity;
mod crds;
mod drain;
mod harness;
mod input;
mod installation;
mod lost;
mod objects;
mod overlay;
mod pools;
mod roles;
mod runner;
mod static_pool;
mod swap;
mod topology;
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
        case!(crds::chart_installs_them),
        case!(crds::good_manifests_go_in),
        case!(crds::bad_manifests_are_refused_with_words_that_help),
        case!(crds::the_v1beta1_policy_is_refused_by_name),
        case!(installation::wrong_values_are_refused_by_name),
        case!(installation::the_articles_values_install_unchanged),
        case!(installation::replicas_answer_on_all_their_ports),
        case!(input::wrong_flags_and_settings_are_named),
        case!(input::simulate_tells_what_is_wrong_with_its_input),
        case!(input::simulate_plans_manifests),
        case!(input::simulate_plans_for_the_live_cluster),
        case!(burst::up_and_to_zero),
        case!(burst::deleting_nodes_by_hand_ends_every_instance),
        case!(burst::a_budget_of_zero_holds_until_it_is_lifted),
        case!(pools::weights_decide_and_broken_pools_say_why),
        case!(pools::pods_that_fit_nowhere_are_told_why),
        case!(pools::limits_stop_a_pool),
        case!(capacity::the_next_offering_is_taken_within_a_round),
        case!(capacity::sold_out_everywhere_waits_calmly_and_recovers),
        case!(lost::a_lost_reply_launches_nothing_twice),
        case!(lost::a_refused_call_is_tried_again),
        case!(lost::an_instance_nobody_knows_of_is_adopted),
        case!(lost::an_instance_without_a_claim_is_collected),
        case!(lost::the_second_replica_finishes_what_a_killed_leader_began),
        case!(lost::a_leader_told_to_stop_hands_over_at_once),
        case!(lost::the_api_server_restarts_in_mid_burst),
        case!(drain::a_budget_that_allows_nothing_holds_one_node_only),
        case!(drain::a_grace_period_ends_even_a_forbidden_drain),
        case!(drain::do_not_disrupt_keeps_an_otherwise_empty_node),
        case!(drain::a_machine_that_never_joins_does_not_count_as_capacity_for_ever),
        case!(topology::pods_are_spread_over_three_zones),
        case!(topology::pods_that_keep_apart_get_a_node_each),
        case!(topology::pods_follow_others_into_their_zone),
        case!(topology::a_host_port_is_given_once_a_node),
        case!(topology::a_volume_not_made_yet_decides_the_zone),
        case!(topology::a_full_attach_limit_asks_for_another_node),
        case!(swap::policies_are_swapped_under_load),
        case!(overlay::another_price_changes_what_is_bought),
        case!(buffer::room_is_kept_and_taken),
        case!(static_pool::keeps_its_number_of_nodes),
        case!(roles::hold_what_was_used_and_nothing_else),
    ];
    runner::run(&cases).await
}
