//! The binary's own table of settings, read from its source: linking the binary in for its names would make every task
//! wait for it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};

/// The lists of feature gates: constant of the table, object of the values.
pub(super) const GATES: [(&str, &str); 2] =
    [("FEATURE_GATES", "featureGates"), ("AWS_FEATURE_GATES", "awsFeatureGates")];

/// Names and defaults.
pub(super) struct Settings {
    defaults: BTreeMap<String, String>,
    /// Variables that are accepted but not acted on.
    idle: BTreeSet<String>,
    /// By list: gate as value key, and whether switching it on does nothing yet.
    gates: BTreeMap<&'static str, BTreeMap<String, bool>>,
}

impl Settings {
    /// Reads the table's source.
    pub(super) fn read(source: &str) -> Result<Self> {
        let table = source.split("pub const SETTINGS").nth(1).unwrap_or_default();
        let (mut defaults, mut idle) = (BTreeMap::new(), BTreeSet::new());
        for call in ["yes(", "moot(", "not_yet("] {
            for (at, _) in table.match_indices(call) {
                let boundary = table.get(..at).and_then(|before| before.chars().next_back());
                let mut texts = table.get(at + call.len()..).unwrap_or_default().split('"');
                let (before, name, between) = (texts.next(), texts.next(), texts.next());
                let (Some(before), Some(name), Some(between)) = (before, name, between) else { continue };
                if boundary.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') || !before.trim().is_empty() {
                    continue;
                }
                // A default is a text, or the name of a constant, which stands for the gates.
                let constant = between.trim_start_matches([',', ' ', '\n']).split(',').next().unwrap_or_default();
                let default = if constant.is_empty() { texts.next().unwrap_or_default() } else { constant };
                defaults.insert(name.to_owned(), default.to_owned());
                if call == "not_yet(" {
                    idle.insert(name.to_owned());
                }
            }
        }
        let gates: BTreeMap<_, BTreeMap<_, _>> = GATES
            .iter()
            .map(|(name, key)| {
                let list = source.split(&format!("pub const {name}:")).nth(1).and_then(|text| text.split("];").next());
                (*key, list.unwrap_or_default().lines().filter_map(gate).collect())
            })
            .collect();
        let readable = defaults.len() > 30 && gates.values().all(|gates| !gates.is_empty());
        ensure!(readable, "the settings table is not written as expected any more");
        Ok(Self { defaults, idle, gates })
    }

    /// Names of all environment variables.
    pub(super) fn names(&self) -> BTreeSet<String> {
        self.defaults.keys().cloned().collect()
    }

    /// Default of a variable.
    pub(super) fn default_of(&self, name: &str) -> Option<&str> {
        self.defaults.get(name).map(String::as_str)
    }

    /// Whether a variable is accepted but not acted on.
    pub(super) fn is_idle(&self, name: &str) -> bool {
        self.idle.contains(name)
    }

    /// Feature gates of a list, as value keys.
    pub(super) fn gates(&self, list: &str) -> BTreeSet<String> {
        self.gates.get(list).into_iter().flatten().map(|(name, _)| name.clone()).collect()
    }

    /// Feature gates of a list that do nothing yet when they are switched on, as value keys.
    pub(super) fn gates_not_acted_on(&self, list: &str) -> BTreeSet<String> {
        let gates = self.gates.get(list).into_iter().flatten();
        gates.filter(|(_, idle)| **idle).map(|(name, _)| name.clone()).collect()
    }
}

/// `("NodeRepair", false, Some("..."))` as (`nodeRepair`, true). One that is on by default was not switched on by anybody,
/// so it needs no warning.
fn gate(line: &str) -> Option<(String, bool)> {
    let (name, rest) = line.trim().strip_prefix("(\"")?.split_once('"')?;
    // An initialism at the start is lower-cased as a whole.
    let (first, others) = name.split_at_checked(if name.starts_with("DRA") { 3 } else { 1 })?;
    let idle = rest.contains("Some(") && rest.starts_with(", false");
    Some((first.to_lowercase() + others, idle))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_calls_over_one_line_or_several() {
        assert_eq!(gate(r#"    ("NodeRepair", false, Some("x")),"#), Some(("nodeRepair".into(), true)));
        assert_eq!(gate(r#"    ("ReservedCapacity", true, Some("x")),"#), Some(("reservedCapacity".into(), false)));
        assert_eq!(gate(r#"("DRAEFA", false, None),"#), Some(("draEFA".into(), false)));
        assert_eq!(gate("];"), None);
        let many: String = (0..31).map(|i| format!("yes(\"S{i}\", \"d\", Form::Text, \"\"),")).collect();
        let source = format!(
            "pub const FEATURE_GATES: X = &[\n{}];\npub const AWS_FEATURE_GATES: X = &[\n(\"G\", true, None),\n];\npub const SETTINGS: &[Setting] = &[{many} not_yet(\n  \"LONG\",\n  \"\",\n  Form::Text,\n  \"help\"), yes(\"GATES_OF\", GATES, Form::Gates, \"x\")];",
            "(\"A\", false, None),\n(\"B\", false, None),\n(\"C\", false, None),\n(\"D\", false, None),\n(\"E\", false, None),\n(\"F\", false, None),\n"
        );
        let settings = Settings::read(&source).unwrap();
        assert_eq!(settings.default_of("S30"), Some("d"));
        assert_eq!(settings.default_of("LONG"), Some(""));
        assert_eq!(settings.default_of("GATES_OF"), Some("GATES"));
        assert_eq!(settings.names().len(), 33);
        assert!(settings.is_idle("LONG") && !settings.is_idle("S1"));
        assert_eq!(settings.gates("awsFeatureGates").len(), 1);
    }
}
