//! `cargo xtask chart`: charts/mortise agrees with itself and with the binary.
//!
//! - values.yaml and values.schema.json have the same keys, so that no value is refused that the chart has, and none
//!   accepted that it has not;
//! - every value is used in a template, and templates use no value that is not there;
//! - every setting of the binary can be set by a value, or is in the list of those set through `controller.env`, with
//!   the same default; the chart sets no variable that the binary does not know;
//! - NOTES.txt warns of exactly the feature gates and settings that the binary accepts without acting on them;
//! - every value of Karpenter's chart is there;
//! - no RBAC rule has a wildcard.

mod settings;
mod templates;
mod values;

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use serde_json::Value;

use crate::files;
use settings::{GATES, Settings};
use templates::Templates;

/// The chart.
const CHART: &str = "charts/mortise";
/// Where the binary lists its settings.
const TABLE: &str = "host/app/src/settings/table.rs";

/// Every value of Karpenter's chart.
const THEIRS: &str = "tests/fixtures/chart/every-karpenter-value.yaml";

/// Settings without a value of their own, as in Karpenter's chart: set through `controller.env`.
const THROUGH_ENV: &[&str] = &[
    "DISABLE_CONTROLLER_WARMUP",
    "DISABLE_LEADER_ELECTION",
    "ENABLE_PROFILING",
    "KUBE_CLIENT_BURST",
    "KUBE_CLIENT_QPS",
    "LEADER_ELECTION_NAME",
    "LEADER_ELECTION_NAMESPACE",
    "SCHEDULER_CONFIG",
];

/// Arguments.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Compare and fail on a difference. The task does nothing else, so it may be left out.
    #[arg(long)]
    check: bool,
}

/// Compares, and lists every difference.
pub(crate) fn run(_: &Args) -> Result<()> {
    let found = differences()?;
    if !found.is_empty() {
        bail!("{CHART} does not agree with itself or with the binary:\n  {}", found.join("\n  "));
    }
    Ok(())
}

/// Everything that does not agree, worded for whoever has to mend it.
fn differences() -> Result<Vec<String>> {
    let defaults: Value = serde_norway::from_str(&files::read(&format!("{CHART}/values.yaml"))?)?;
    let schema: Value = serde_json::from_str(&files::read(&format!("{CHART}/values.schema.json"))?)?;
    let templates = Templates::read(&format!("{CHART}/templates"))?;
    let settings = Settings::read(&files::read(TABLE)?)?;
    let mut found = Vec::new();

    let (in_values, in_schema) = (values::of_defaults(&defaults, &schema), values::of_schema(&schema));
    compare("values.yaml", &in_values, "values.schema.json", &in_schema, &mut found);
    for key in in_values.difference(&templates.values(&in_values)) {
        found.push(format!("values.yaml: {key} is used in no template"));
    }
    for (file, path) in templates.paths() {
        if !in_values.contains(&path) && !values::is_inside(&path, &in_values) {
            found.push(format!("{file}: .Values.{path} is not in values.yaml"));
        }
    }

    let set = templates.variables();
    let by_env: BTreeSet<String> = THROUGH_ENV.iter().map(ToString::to_string).collect();
    for name in settings.names().difference(&set).filter(|name| !by_env.contains(*name)) {
        found.push(format!("{TABLE}: {name} can be set by no value: add one, or name it in THROUGH_ENV"));
    }
    for name in by_env.iter().filter(|name| set.contains(*name) || !settings.names().contains(*name)) {
        found.push(format!("THROUGH_ENV names {name}, which has a value or is no setting"));
    }
    for name in set.difference(&settings.names()) {
        found.push(format!("{CHART}: sets {name}, which the binary does not know"));
    }
    for (name, key) in templates.assignments() {
        let (chart, binary) = (values::text(&defaults, &key), settings.default_of(&name));
        if chart.as_deref() != binary {
            found.push(format!("{key} is {chart:?} by default, but {name} is {binary:?} in the binary"));
        }
    }
    for (_, list) in GATES {
        let object = format!("settings.{list}");
        let (idle, warned) = (settings.gates_not_acted_on(list), templates.warned_of(&object));
        compare("gates not acted on", &idle, "gates that NOTES.txt warns of", &warned, &mut found);
        let switchable = values::under(&in_values, &format!("{object}."));
        compare("gates of the binary", &settings.gates(list), &object, &switchable, &mut found);
    }
    for (name, key) in templates.assignments() {
        let warned = templates.warned_of("settings").contains(key.rsplit('.').next().unwrap_or(&key));
        if settings.is_idle(&name) && !templates.notes_name(&key) {
            found.push(format!("NOTES.txt does not say that {key} is not acted on yet"));
        }
        if !settings.is_idle(&name) && warned {
            found.push(format!("NOTES.txt says that {key} is not acted on yet, but the binary does"));
        }
    }
    let theirs: Value = serde_norway::from_str(&files::read(THEIRS)?)?;
    for key in values::of_defaults(&theirs, &schema).difference(&in_schema) {
        found.push(format!("{key} is a value of Karpenter's chart ({THEIRS}) but not of this one"));
    }
    found.extend(templates.wildcards());
    Ok(found)
}

/// Keys that only one side has.
fn compare(left: &str, ours: &BTreeSet<String>, right: &str, theirs: &BTreeSet<String>, found: &mut Vec<String>) {
    found.extend(ours.difference(theirs).map(|key| format!("{key} is in {left} but not in {right}")));
    found.extend(theirs.difference(ours).map(|key| format!("{key} is in {right} but not in {left}")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chart_agrees_with_itself_and_with_the_binary() {
        let found = differences().unwrap();
        assert!(found.is_empty(), "{found:#?}");
    }
}
