//! The binary's answers to wrong settings: exit code 2, the flag named, nothing started.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

use std::process::{Command, Output};

fn mortise(args: &[&str], env: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mortise"));
    // Nothing of the machine's own environment may decide; PATH is harmless.
    command.env_clear().args(args).envs(env.iter().copied());
    command.output().unwrap()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn wrong_settings_end_with_two() {
    for (args, env, words) in [
        (&[][..], &[][..], &["--cluster-name", "CLUSTER_NAME", "is required"][..]),
        (&["--cluster-name=a", "--batch-max-duration=10"], &[], &["--batch-max-duration", "\"10\""]),
        (&["--cluster-name=a", "--nonsense"], &[], &["--nonsense"]),
        (&["nonsense"], &[], &["nonsense"]),
        (
            &["controller"],
            &[("CLUSTER_NAME", "a"), ("LOG_LEVEL", "loud"), ("METRICS_PORT", "x")],
            &["--log-level", "\"loud\"", "--metrics-port", "\"x\""],
        ),
    ] {
        let output = mortise(args, env);
        let said = text(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?} {env:?}: {said}");
        for word in words {
            assert!(said.contains(word), "{word} not in: {said}");
        }
        assert!(!said.contains("panicked"), "{said}");
    }
}

#[test]
fn no_cluster_is_told_and_ends_with_one() {
    let output = mortise(&["--cluster-name=a", "--cloud-provider=kwok"], &[("HOME", "/nonexistent")]);
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("KUBECONFIG"), "{said}");
}

#[test]
fn help_and_version() {
    let output = mortise(&["--help"], &[]);
    assert!(output.status.success());
    let said = text(&output);
    for word in ["--batch-idle-duration", "BATCH_IDLE_DURATION", "[default: 1s]", "not acted on yet"] {
        assert!(said.contains(word), "{word} not in: {said}");
    }
    let output = mortise(&["version", "-o", "json"], &[]);
    let version: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(version["version"], env!("CARGO_PKG_VERSION"));
}
