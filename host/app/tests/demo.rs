//! `mortise demo` as a user runs it.
#![cfg(feature = "demo")]
#![allow(clippy::unwrap_used, reason = "helpers of tests may panic")]

use std::process::{Command, Output};

use serde_json::Value;

fn demo(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mortise")).arg("demo").args(args).output().unwrap()
}

#[test]
fn a_burst_runs_and_everything_goes_away() {
    let output = demo(&["--pods", "60", "--speed", "20", "--output", "json"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let summary = events.last().unwrap();
    assert!(output.status.success(), "{summary}\n{errors}");
    assert_eq!(
        (summary["event"].as_str(), summary["ok"].as_bool(), summary["pods"].as_u64()),
        (Some("summary"), Some(true), Some(60))
    );
    let nodes = summary["nodes"].as_array().unwrap();
    let count = |event: &str| events.iter().filter(|e| e["event"] == event).count();
    for event in ["nodeclaim-created", "launched", "ready", "leaving", "gone"] {
        assert_eq!(count(event), nodes.len(), "{event}");
    }
    assert_eq!(nodes.iter().filter_map(|n| n["pods"].as_u64()).sum::<u64>(), 60);
    assert!(nodes.iter().any(|n| n["capacityType"] == "on-demand"), "the steady pods ask for it");
    assert!(nodes.iter().all(|n| n["microUsdPerHour"].as_u64().is_some_and(|p| p > 0)), "{summary}");
    assert!(summary["policies"].as_array().unwrap().iter().any(|p| p["rounds"].as_u64() > Some(0)), "policies decide");
}

#[test]
fn a_pipe_gets_plain_lines() {
    let output = demo(&["--pods", "5", "--speed", "50"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    assert!(!text.contains('\u{1b}'), "no terminal control in a pipe");
    for part in
        ["KUBECONFIG=", "a burst of 5 pods", "launch", "ready", "scaled to zero", "gone", "summary", "5 pods ran"]
    {
        assert!(text.contains(part), "{part} not in:\n{text}");
    }
}

#[test]
fn wrong_flags_are_named() {
    for (args, part) in
        [(["--pods", "0"], "--pods"), (["--speed", "fast"], "0.1 to 100"), (["--output", "xml"], "json")]
    {
        let output = demo(&args);
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains(part), "{args:?}");
    }
}
