//! `SCHEDULER_CONFIG`: default topology spread constraints, in the form of the kube-scheduler's own configuration. Only
//! `podTopologySpread.defaultConstraints` is known; anything else is a mistake worth stopping for.

use std::collections::BTreeSet;

use mortise_engine::pod::Spread;
use mortise_kube::convert::Converter;
use mortise_kube::objects::{LabelSelector, SpreadConstraint};
use serde::Deserialize;

/// The whole text.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Config {
    pod_topology_spread: Option<PodTopologySpread>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct PodTopologySpread {
    default_constraints: Vec<Constraint>,
}

/// One constraint, as in a pod.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Constraint {
    max_skew: i64,
    topology_key: String,
    when_unsatisfiable: String,
    min_domains: Option<i64>,
    node_affinity_policy: Option<String>,
    node_taints_policy: Option<String>,
    label_selector: Option<LabelSelector>,
    match_label_keys: Option<Vec<String>>,
}

/// The constraints of a configuration in YAML or JSON; empty text is none.
///
/// # Errors
/// Text that is not of this form, and constraints that no pod could have, each with its place.
pub(super) fn parse(text: &str) -> Result<Vec<Spread>, String> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let config: Option<Config> = serde_norway::from_str(text)
        .map_err(|error| format!("is not podTopologySpread.defaultConstraints in YAML or JSON: {error}"))?;
    let constraints = config.and_then(|c| c.pod_topology_spread).unwrap_or_default().default_constraints;
    let mut converter = Converter::default();
    let mut seen = BTreeSet::new();
    let mut spread = Vec::with_capacity(constraints.len());
    for (i, from) in constraints.into_iter().enumerate() {
        let field = format!("podTopologySpread.defaultConstraints[{i}]");
        for (name, given) in
            [("labelSelector", from.label_selector.is_some()), ("matchLabelKeys", from.match_label_keys.is_some())]
        {
            if given {
                return Err(format!(
                    "{field}.{name} must not be given: it is made of Services and owners for each pod"
                ));
            }
        }
        let constraint = converter.spread(
            &field,
            &SpreadConstraint {
                max_skew: from.max_skew,
                topology_key: from.topology_key,
                when_unsatisfiable: from.when_unsatisfiable,
                min_domains: from.min_domains,
                node_affinity_policy: from.node_affinity_policy,
                node_taints_policy: from.node_taints_policy,
                ..SpreadConstraint::default()
            },
        )?;
        if !seen.insert((constraint.topology_key.clone(), constraint.schedule_anyway)) {
            return Err(format!("{field} repeats topologyKey and whenUnsatisfiable of one before it"));
        }
        spread.push(constraint);
    }
    Ok(spread)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZONES: &str = "podTopologySpread:\n  defaultConstraints:\n  - maxSkew: 1\n    topologyKey: topology.kubernetes.io/zone\n    whenUnsatisfiable: ScheduleAnyway\n";

    #[test]
    fn yaml_and_json_say_the_same() {
        let json = r#"{"podTopologySpread":{"defaultConstraints":[{"maxSkew":1,"topologyKey":"topology.kubernetes.io/zone","whenUnsatisfiable":"ScheduleAnyway"}]}}"#;
        let expected = Spread {
            topology_key: "topology.kubernetes.io/zone".into(),
            max_skew: 1,
            schedule_anyway: true,
            ..Spread::default()
        };
        assert_eq!(parse(ZONES).unwrap(), std::slice::from_ref(&expected));
        assert_eq!(parse(json).unwrap(), [expected]);
        for empty in ["", "  \n", "{}", "podTopologySpread: {}", "# nothing\n"] {
            assert!(parse(empty).unwrap().is_empty(), "{empty:?}");
        }
        let both = format!(
            "{ZONES}  - maxSkew: 1\n    topologyKey: topology.kubernetes.io/zone\n    whenUnsatisfiable: DoNotSchedule\n"
        );
        assert_eq!(parse(&both).unwrap().len(), 2, "the other mode is no repetition");
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        let with = |from: &str, to: &str| ZONES.replace(from, to);
        let repeated = format!("{ZONES}{}", ZONES.lines().skip(2).map(|l| format!("{l}\n")).collect::<String>());
        for (text, expected) in [
            (with("maxSkew: 1", "maxSkew: 0"), "defaultConstraints[0].maxSkew is 0"),
            (with("maxSkew: 1", "maxSkew: one"), "invalid type"),
            (with("topologyKey: topology", "topologyKey: '-topology"), "is not podTopologySpread"),
            (with("topology.kubernetes.io/zone", "a b"), "\"a b\" is not a label key"),
            (with("    topologyKey: topology.kubernetes.io/zone\n", ""), "topologyKey: \"\" is not a label key"),
            (with("ScheduleAnyway", "Sometimes"), "use DoNotSchedule or ScheduleAnyway"),
            (with("maxSkew: 1", "maxSkew: 1\n    labelSelector: {}"), "labelSelector must not be given"),
            (with("maxSkew: 1", "maxSkew: 1\n    matchLabelKeys: []"), "matchLabelKeys must not be given"),
            (with("maxSkew", "maxSkews"), "unknown field `maxSkews`"),
            ("profiles: []".to_owned(), "unknown field `profiles`"),
            (repeated, "defaultConstraints[1] repeats"),
        ] {
            let found = parse(&text).unwrap_err();
            assert!(found.contains(expected), "{text}\n{found:?} lacks {expected:?}");
        }
    }
}
