//! What the templates mention. Read as text: this must see what no rendering with some values would reach.

use std::collections::BTreeSet;

use anyhow::{Context, Result};

use crate::files;

/// Where the environment is written.
const ENV: &str = "_env.tpl";
/// What Helm prints after an installation.
const NOTES: &str = "NOTES.txt";

/// Name and text of every template.
pub(super) struct Templates(Vec<(String, String)>);

impl Templates {
    /// All templates of a folder.
    pub(super) fn read(folder: &str) -> Result<Self> {
        let path = files::root().join(folder);
        let mut templates = Vec::new();
        for entry in std::fs::read_dir(&path).with_context(|| format!("listing {folder}"))? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            templates.push((name.clone(), files::read(&format!("{folder}/{name}"))?));
        }
        templates.sort();
        Ok(Self(templates))
    }

    fn text(&self, name: &str) -> &str {
        self.0.iter().find(|(file, _)| file == name).map(|(_, text)| text.as_str()).unwrap_or_default()
    }

    /// Those of the keys whose last part some template names: as `.key` or `"key"`.
    pub(super) fn values(&self, keys: &BTreeSet<String>) -> BTreeSet<String> {
        let used = |key: &&String| {
            let last = key.rsplit('.').next().unwrap_or(key);
            let parents = key.rsplit('.').skip(1).map(str::to_owned).next();
            self.0.iter().filter(|(file, _)| file != NOTES).any(|(_, text)| {
                words(text).any(|word| {
                    word == format!(".Values.{key}")
                        || word.ends_with(&format!(".{last}"))
                        || word == format!("\"{last}\"")
                        || parents.as_deref() == Some("securityContext") && word.ends_with(".securityContext")
                })
            })
        };
        keys.iter().filter(used).cloned().collect()
    }

    /// Every `.Values.path`, with the file that it is in.
    pub(super) fn paths(&self) -> BTreeSet<(String, String)> {
        let mut paths = BTreeSet::new();
        for (file, text) in &self.0 {
            for word in words(text) {
                if let Some((_, path)) = word.split_once(".Values.") {
                    paths.insert((file.clone(), path.trim_end_matches('.').to_owned()));
                }
            }
        }
        paths
    }

    /// Names of the variables that the controller is given.
    pub(super) fn variables(&self) -> BTreeSet<String> {
        let name = |line: &str| {
            let line = line.trim();
            let quoted = line.strip_prefix("(list \"").and_then(|rest| rest.split('"').next());
            quoted.or_else(|| line.strip_prefix("- name: ").filter(|name| !name.contains('{'))).map(str::to_owned)
        };
        self.text(ENV).lines().filter_map(name).collect()
    }

    /// (variable, path of the value) of the variables that simply hold a value.
    pub(super) fn assignments(&self) -> Vec<(String, String)> {
        let pair = |line: &str| {
            let (name, rest) = line.trim().strip_prefix("(list \"")?.split_once('"')?;
            let path = words(rest).find_map(|word| {
                let settings = word.strip_prefix("$settings.").map(|key| format!("settings.{key}"));
                settings.or_else(|| word.strip_prefix(".Values.").map(str::to_owned))
            })?;
            Some((name.to_owned(), path))
        };
        self.text(ENV).lines().filter_map(pair).collect()
    }

    /// Keys that the notes warn of: those of the dict before `get $.Values.<object> $key`.
    pub(super) fn warned_of(&self, object: &str) -> BTreeSet<String> {
        let notes = self.text(NOTES);
        let before = notes.split(&format!("get $.Values.{object} $key")).next();
        let listed = before.and_then(|text| text.rsplit(":= dict").next());
        let key = |line: &str| line.trim().strip_prefix('"').and_then(|rest| rest.split('"').next()).map(str::to_owned);
        listed.unwrap_or_default().lines().filter_map(key).collect()
    }

    /// Whether the notes name a value at all.
    pub(super) fn notes_name(&self, key: &str) -> bool {
        let last = key.rsplit('.').next().unwrap_or(key);
        words(self.text(NOTES)).any(|word| word.trim_matches('"').rsplit('.').next() == Some(last))
    }

    /// RBAC rules for everything.
    pub(super) fn wildcards(&self) -> Vec<String> {
        let files = self.0.iter().filter(|(_, text)| text.contains("rbac.authorization.k8s.io"));
        let wild = |text: &str| ["[*", "\"*\"", "'*'"].iter().any(|star| text.contains(star));
        files.filter(|(_, text)| wild(text)).map(|(file, _)| format!("{file}: a rule with a wildcard")).collect()
    }
}

/// Runs of the characters that paths and quoted names consist of.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '$' | '"')))
        .filter(|word| !word.is_empty())
}
