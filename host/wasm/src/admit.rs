//! Admission: everything that is tried before a plugin may answer for real. Nothing that runs is touched here.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};
use wasmtime::component::Component;

use crate::config::{Entry, Source};
use crate::fault::Fault;
use crate::limits::Hook;
use crate::plugin::{Compiled, Manifest, Plugin};
use crate::sandbox::Sandbox;
use crate::schema;
use crate::source::{ConfigMapData, POLICIES_KEY, Rejection};

pub(crate) mod bytes;
mod golden;
pub(crate) mod shape;

/// A component that was found good for any configuration: what is kept of it.
#[derive(Clone)]
pub(crate) struct Checked {
    pub compiled: Compiled,
    pub manifest: Manifest,
    pub sha256: String,
}

/// The embedded components, checked.
pub(crate) type Builtins = Vec<(&'static str, Checked)>;

/// Takes entries of a ConfigMap through admission.
pub(crate) struct Admission<'a> {
    pub sandbox: &'a Arc<Sandbox>,
    pub builtins: &'a Builtins,
    pub config_map: &'a ConfigMapData,
    pub max_component_bytes: usize,
}

impl Admission<'_> {
    /// The plugin that an entry asks for, with the hooks it is asked for.
    ///
    /// # Errors
    /// What is wrong, by key path.
    pub(crate) fn plugin(&self, entry: &Entry, hooks: &[Hook]) -> Result<Plugin, Vec<Rejection>> {
        let at = |key: &str| format!("{POLICIES_KEY}: {}.{key}", entry.path);
        let one = |key: &str, message: String| vec![Rejection { path: at(key), message }];
        let checked = self.component(entry).map_err(|(key, message)| one(key, message))?;
        let whole = || format!("{POLICIES_KEY}: {}", entry.path);
        for hook in hooks {
            if !checked.compiled.serves(*hook) {
                let message = format!("{:?} has no {} hook", entry.name, hook.name());
                return Err(vec![Rejection { path: whole(), message }]);
            }
        }
        check_config(&checked.manifest.config_schema, &entry.config).map_err(|problems| {
            let reject = |(path, message): (String, String)| match path.is_empty() {
                true => Rejection { path: at("config"), message },
                false => Rejection { path: at(&format!("config.{path}")), message },
            };
            problems.into_iter().map(reject).collect::<Vec<_>>()
        })?;
        let plugin = Plugin {
            name: entry.name.as_str().into(),
            compiled: checked.compiled,
            manifest: checked.manifest,
            config: Value::Object(entry.config.clone()).to_string(),
            limits: entry.limits,
            sha256: checked.sha256,
            source: entry.source.text(),
        };
        let failed = |step: &str, fault: Fault| one("source", format!("{step}: the plugin {fault}"));
        let mut instance =
            (plugin.compiled.instantiate(&plugin.name, plugin.limits)).map_err(|f| failed("start", f))?;
        let configured = instance.configure(&plugin.config).map_err(|f| failed("configure", f))?;
        drop(instance);
        configured.map_err(|diagnostics| {
            let reject = |d: crate::bindings::v0_1::exports::mortise::policy::lifecycle::Diagnostic| {
                let path = if d.path.is_empty() { at("config") } else { at(&format!("config.{}", d.path)) };
                Rejection { path, message: d.message }
            };
            let reasons: Vec<_> = diagnostics.into_iter().take(100).map(reject).collect();
            if reasons.is_empty() {
                one("config", "the plugin refuses it and does not say why".into())
            } else {
                reasons
            }
        })?;
        golden::run(&plugin, hooks).map_err(|(step, fault)| failed(&format!("trial round: {step}"), fault))?;
        Ok(plugin)
    }

    fn component(&self, entry: &Entry) -> Result<Checked, (&'static str, String)> {
        match &entry.source {
            Source::Builtin(name) => {
                let found = self.builtins.iter().find(|(n, _)| n == name).map(|(_, checked)| checked.clone());
                let names: Vec<&str> = self.builtins.iter().map(|(name, _)| *name).collect();
                let unknown = || format!("there is no builtin {name:?}; there are: {}", names.join(", "));
                let checked = found.ok_or_else(|| ("source.builtin", unknown()))?;
                match &entry.sha256 {
                    Some(pinned) if *pinned != checked.sha256 => {
                        let message = format!("the builtin {name} of this version has sha256 {}", checked.sha256);
                        Err(("sha256", message))
                    }
                    _ => Ok(checked),
                }
            }
            Source::Inline(key) => {
                let binary = &self.config_map.binary_data;
                let raw = binary.get(key).ok_or_else(|| {
                    let keys: Vec<&str> = binary.keys().map(String::as_str).collect();
                    let there =
                        if keys.is_empty() { "it is empty".into() } else { format!("it has: {}", keys.join(", ")) };
                    ("source.inline", format!("binaryData has no key {key:?}; {there}"))
                })?;
                let component = bytes::unpack(raw, self.max_component_bytes).map_err(|m| ("source.inline", m))?;
                let sha256 = bytes::sha256(&component);
                let pinned = entry.sha256.as_deref().unwrap_or_default();
                if pinned != sha256 {
                    let hint =
                        if bytes::sha256(raw) == pinned { " (the one given is that of the packed bytes)" } else { "" };
                    return Err(("sha256", format!("the component has sha256 {sha256}, not {pinned}{hint}")));
                }
                check(self.sandbox, &component, sha256).map_err(|message| ("source.inline", message))
            }
        }
    }
}

/// The components that passed last: going back to one of them costs nothing. A few hundred kilobytes each.
static PASSED: Mutex<VecDeque<Checked>> = Mutex::new(VecDeque::new());
/// Three built-ins, and what a person goes back and forth between.
const MAX_PASSED: usize = 8;

/// Takes a component through the steps that do not depend on its configuration. `sha256` is that of `component`.
pub(crate) fn check(sandbox: &Arc<Sandbox>, component: &[u8], sha256: String) -> Result<Checked, String> {
    let passed = || PASSED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = passed().iter().find(|known| known.sha256 == sha256) {
        return Ok(known.clone());
    }
    let checked = check_new(sandbox, component, sha256)?;
    let mut passed = passed();
    passed.truncate(MAX_PASSED - 1);
    passed.push_front(checked.clone());
    Ok(checked)
}

fn check_new(sandbox: &Arc<Sandbox>, component: &[u8], sha256: String) -> Result<Checked, String> {
    bytes::require_component(component)?;
    shape::check(component)?;
    let compiled = Component::new(&sandbox.engine, component)
        .and_then(|component| Compiled::link(sandbox, &component))
        .map_err(|error| format!("does not compile and link as a policy: {error:#}"))?;
    let name: Arc<str> = "admission".into();
    let mut instance = compiled.instantiate(&name, crate::Limits::default()).map_err(|f| format!("start: it {f}"))?;
    let manifest = instance.describe().map_err(|fault| format!("describe: it {fault}"))?;
    check_manifest(&manifest)?;
    Ok(Checked { compiled, manifest, sha256 })
}

fn check_manifest(manifest: &Manifest) -> Result<(), String> {
    let text = |what: &str, text: &str, most: usize| {
        if text.len() > most {
            Err(format!("describe: its {what} has {} bytes, at most {most}", text.len()))
        } else {
            Ok(())
        }
    };
    text("name", &manifest.name, 64)?;
    text("version", &manifest.version, 64)?;
    text("config-schema", &manifest.config_schema, 64 * 1024)?;
    for keys in [&manifest.label_keys, &manifest.annotation_keys] {
        if keys.len() > 64 {
            return Err(format!("describe: it names {} keys of pod metadata, at most 64", keys.len()));
        }
        keys.iter().try_for_each(|key| text("key of pod metadata", key, 317))?;
    }
    if let Some(key) = manifest.annotation_keys.first() {
        // The engine folds pods without their annotations: an empty answer would look like "no pod has it".
        return Err(format!(
            "describe: it reads the pod annotation {key}, which this version does not send to plugins"
        ));
    }
    if manifest.config_schema.is_empty() {
        return Ok(());
    }
    let parsed =
        serde_json::from_str(&manifest.config_schema).map_err(|e| format!("describe: its config-schema: {e}"))?;
    schema::check_schema(&parsed).map_err(|message| format!("describe: its config-schema: {message}"))
}

fn check_config(schema: &str, config: &Map<String, Value>) -> Result<(), Vec<schema::Problem>> {
    if schema.is_empty() {
        let keys =
            config.keys().map(|key| (key.clone(), "is not a key of this plugin; it takes no configuration".into()));
        let problems: Vec<_> = keys.collect();
        return if problems.is_empty() { Ok(()) } else { Err(problems) };
    }
    // It was read once already, when the component was checked.
    let parsed: Value = serde_json::from_str(schema).map_err(|e| vec![(String::new(), e.to_string())])?;
    let problems = schema::validate(&parsed, &Value::Object(config.clone()));
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// Deadline of a whole round that the trial round is held to.
pub(crate) const DEFAULT_ROUND_DEADLINE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_are_bounded_and_ask_for_nothing_that_is_not_sent() {
        let manifest = |change: fn(&mut Manifest)| {
            let mut manifest = Manifest {
                name: "p".into(),
                version: "1".into(),
                config_schema: r#"{"type":"object"}"#.into(),
                label_keys: vec!["app".into()],
                annotation_keys: Vec::new(),
            };
            change(&mut manifest);
            check_manifest(&manifest)
        };
        assert_eq!(manifest(|_| {}), Ok(()));
        type Change = fn(&mut Manifest);
        let cases: [(Change, &str); 5] = [
            (|m| m.name = "n".repeat(65), "its name has 65 bytes"),
            (|m| m.label_keys = vec!["k".into(); 65], "names 65 keys"),
            (|m| m.annotation_keys = vec!["a/b".into()], "reads the pod annotation a/b"),
            (|m| m.config_schema = "{".into(), "its config-schema: EOF"),
            (|m| m.config_schema = r#"{"$ref":"x"}"#.into(), "\"$ref\""),
        ];
        for (change, words) in cases {
            let refused = manifest(change).unwrap_err();
            assert!(refused.contains(words), "{refused}");
        }
    }
}
