//! Settings in two stages: what was typed ([`Typed`]: flags, environment, defaults, all text) and what holds
//! ([`Settings`]: validated values). Names, defaults and checks are Karpenter's; the table is in [`table`].

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

mod default_spread;
pub mod table;
#[cfg(test)]
mod tests;

use mortise_engine::pod::Spread;
use table::{AWS_FEATURE_GATES, FEATURE_GATES, Form, SETTINGS, Setting, Support};

/// What was typed, by environment variable name; everything has a value, the default if nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Typed {
    values: BTreeMap<&'static str, String>,
}

/// One thing wrong with the settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("--{flag} (environment variable {env}): {problem}")]
pub struct SettingError {
    /// Flag.
    pub flag: String,
    /// Environment variable.
    pub env: &'static str,
    /// What was found and what to do.
    pub problem: String,
}

/// Where nodes come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// EC2.
    Aws,
    /// In-process, nodes are Node objects that KWOK keeps alive.
    Kwok,
}

/// Validated settings.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "field by field as described in the settings table")]
pub struct Settings {
    pub metrics_port: u16,
    pub extra_metrics_port: u16,
    pub health_probe_port: u16,
    pub kube_client_qps: u32,
    pub kube_client_burst: u32,
    pub disable_leader_election: bool,
    pub disable_cluster_state_observability: bool,
    pub leader_election_name: String,
    /// Empty: the controller's own namespace.
    pub leader_election_namespace: String,
    /// Always positive.
    pub cpu_requests_milli: u32,
    pub log_level: String,
    pub log_output_paths: Vec<String>,
    pub log_error_output_paths: Vec<String>,
    pub batch_max: Duration,
    pub batch_idle: Duration,
    pub ignore_preferences: bool,
    pub min_values_best_effort: bool,
    pub ignore_dra_requests: bool,
    /// Constraints of pods that have none of their own; their selectors are made for each pod.
    pub default_spread: Vec<Spread>,
    pub feature_gates: BTreeMap<&'static str, bool>,
    pub aws_feature_gates: BTreeMap<&'static str, bool>,
    pub cluster_name: String,
    pub cluster_endpoint: Option<String>,
    pub cluster_ca_bundle: Option<String>,
    pub isolated_vpc: bool,
    pub vm_memory_overhead_percent: f64,
    pub interruption_queue: Option<String>,
    pub reserved_enis: u32,
    pub disable_dry_run: bool,
    pub ami_refresh: Duration,
    pub subnet_refresh: Duration,
    pub security_group_refresh: Duration,
    pub system_namespace: Option<String>,
    pub provider: Provider,
    pub policies_configmap: String,
    /// What is accepted but not acted on, each a sentence for the log.
    pub warnings: Vec<String>,
}

impl Typed {
    /// Reads the environment given and flags already matched by [`args`].
    #[must_use]
    pub fn from_matches(matches: &clap::ArgMatches) -> Self {
        let values = SETTINGS.iter().map(|s| {
            let typed = matches.get_one::<String>(s.env).map(String::as_str).unwrap_or_default();
            (s.env, if typed.is_empty() { s.default } else { typed }.to_owned())
        });
        Self { values: values.collect() }
    }

    /// Defaults, overlaid by the pairs given (names as environment variables).
    #[must_use]
    pub fn from_pairs(pairs: &[(&str, &str)]) -> Self {
        let given: BTreeMap<&str, &str> = pairs.iter().copied().collect();
        let values = SETTINGS.iter().map(|s| (s.env, given.get(s.env).copied().unwrap_or(s.default).to_owned()));
        Self { values: values.collect() }
    }

    fn get(&self, env: &str) -> &str {
        self.values.get(env).map(String::as_str).unwrap_or_default()
    }
}

/// One clap argument per setting: the flag, its environment variable, help with the default.
#[must_use]
pub fn args() -> Vec<clap::Arg> {
    SETTINGS.iter().map(arg).collect()
}

fn arg(setting: &'static Setting) -> clap::Arg {
    let mut help = setting.help.to_owned();
    if let Support::NotYet(so) = setting.support {
        help.push_str(&format!(" (accepted, not acted on yet: {so})"));
    }
    if !setting.default.is_empty() {
        help.push_str(&format!(" [default: {}]", setting.default));
    }
    let arg = clap::Arg::new(setting.env).long(setting.flag()).env(setting.env).help(help).value_name("VALUE");
    match setting.form {
        // As Go's flag package: `--flag` alone means true, `--flag=false` the other.
        Form::Bool => arg.num_args(0..=1).require_equals(true).default_missing_value("true"),
        _ => arg.num_args(1),
    }
    .hide_env_values(true)
    .value_parser(clap::builder::ValueParser::string())
}

impl Settings {
    /// Validates what was typed. All errors are reported, not only the first.
    ///
    /// # Errors
    /// One per setting that is wrong.
    pub fn validate(typed: &Typed) -> Result<Self, Vec<SettingError>> {
        let mut check = Check { typed, errors: Vec::new(), warnings: Vec::new() };
        let provider = if check.word("CLOUD_PROVIDER") == "kwok" { Provider::Kwok } else { Provider::Aws };
        let settings = Self {
            metrics_port: check.port("METRICS_PORT"),
            extra_metrics_port: check.port("EXTRA_METRICS_PORT"),
            health_probe_port: check.port("HEALTH_PROBE_PORT"),
            kube_client_qps: u32::try_from(check.integer("KUBE_CLIENT_QPS")).unwrap_or(u32::MAX),
            kube_client_burst: u32::try_from(check.integer("KUBE_CLIENT_BURST")).unwrap_or(u32::MAX),
            disable_leader_election: check.bool("DISABLE_LEADER_ELECTION"),
            disable_cluster_state_observability: check.bool("DISABLE_CLUSTER_STATE_OBSERVABILITY"),
            leader_election_name: check.text("LEADER_ELECTION_NAME"),
            leader_election_namespace: check.text("LEADER_ELECTION_NAMESPACE"),
            cpu_requests_milli: u32::try_from(check.integer("CPU_REQUESTS")).ok().filter(|m| *m > 0).unwrap_or(1000),
            log_level: check.word("LOG_LEVEL"),
            log_output_paths: check.paths("LOG_OUTPUT_PATHS"),
            log_error_output_paths: check.paths("LOG_ERROR_OUTPUT_PATHS"),
            batch_max: check.duration("BATCH_MAX_DURATION"),
            batch_idle: check.duration("BATCH_IDLE_DURATION"),
            ignore_preferences: check.word("PREFERENCE_POLICY") == "Ignore",
            min_values_best_effort: check.word("MIN_VALUES_POLICY") == "BestEffort",
            ignore_dra_requests: check.bool("IGNORE_DRA_REQUESTS"),
            default_spread: check.default_spread("SCHEDULER_CONFIG"),
            feature_gates: check.gates("FEATURE_GATES", FEATURE_GATES),
            aws_feature_gates: check.gates("AWS_FEATURE_GATES", AWS_FEATURE_GATES),
            cluster_name: check.text("CLUSTER_NAME"),
            cluster_endpoint: check.url("CLUSTER_ENDPOINT"),
            cluster_ca_bundle: check.some("CLUSTER_CA_BUNDLE"),
            isolated_vpc: check.bool("ISOLATED_VPC"),
            vm_memory_overhead_percent: check.fraction("VM_MEMORY_OVERHEAD_PERCENT"),
            interruption_queue: check.some("INTERRUPTION_QUEUE"),
            reserved_enis: u32::try_from(check.integer("RESERVED_ENIS")).unwrap_or(0),
            disable_dry_run: check.bool("DISABLE_DRY_RUN"),
            ami_refresh: check.duration("AMI_REFRESH_INTERVAL"),
            subnet_refresh: check.duration("SUBNET_REFRESH_INTERVAL"),
            security_group_refresh: check.duration("SECURITY_GROUP_REFRESH_INTERVAL"),
            system_namespace: check.some("SYSTEM_NAMESPACE"),
            provider,
            policies_configmap: check.text("POLICIES_CONFIGMAP"),
            warnings: Vec::new(),
        };
        check.required(&settings);
        check.not_acted_on();
        if check.errors.is_empty() { Ok(Self { warnings: check.warnings, ..settings }) } else { Err(check.errors) }
    }

    /// All defaults, for a controller inside a test or the demo: no lease, no ports.
    #[must_use]
    pub fn for_tests(namespace: &str) -> Self {
        let pairs = [
            ("CLUSTER_NAME", "test"),
            ("CLOUD_PROVIDER", "kwok"),
            ("METRICS_PORT", "0"),
            ("EXTRA_METRICS_PORT", "0"),
            ("HEALTH_PROBE_PORT", "0"),
            ("DISABLE_LEADER_ELECTION", "true"),
            ("SYSTEM_NAMESPACE", namespace),
        ];
        match Self::validate(&Typed::from_pairs(&pairs)) {
            Ok(settings) => settings,
            // The pairs above are constants that a unit test validates.
            Err(errors) => unreachable!("defaults are valid: {errors:?}"),
        }
    }

    /// Is the gate on?
    #[must_use]
    pub fn gate(&self, name: &str) -> bool {
        self.feature_gates.get(name).copied().unwrap_or(false)
    }

    /// Namespace of the controller: the setting, else the service account's, else `kube-system`.
    #[must_use]
    pub fn namespace(&self) -> String {
        let mounted = || std::fs::read_to_string("/var/run/secrets/kubernetes.io/serviceaccount/namespace").ok();
        self.system_namespace
            .clone()
            .or_else(|| mounted().map(|n| n.trim().to_owned()).filter(|n| !n.is_empty()))
            .unwrap_or_else(|| "kube-system".into())
    }

    /// Parses flags alone (no environment), for tests of the command line.
    ///
    /// # Errors
    /// Clap's own error for unknown flags.
    pub fn typed_from<I: IntoIterator<Item = T>, T: Into<OsString> + Clone>(argv: I) -> Result<Typed, clap::Error> {
        let command = clap::Command::new("mortise").args(args());
        Ok(Typed::from_matches(&command.try_get_matches_from(argv)?))
    }
}

/// Collects errors while values are read.
struct Check<'a> {
    typed: &'a Typed,
    errors: Vec<SettingError>,
    warnings: Vec<String>,
}

impl Check<'_> {
    fn text(&self, env: &str) -> String {
        self.typed.get(env).to_owned()
    }

    fn some(&self, env: &str) -> Option<String> {
        Some(self.text(env)).filter(|t| !t.is_empty())
    }

    fn form(env: &str) -> (&'static str, Form, &'static str) {
        match SETTINGS.iter().find(|s| s.env == env) {
            Some(s) => (s.env, s.form, s.default),
            None => ("", Form::Text, ""),
        }
    }

    fn fail(&mut self, env: &str, problem: String) {
        let (env, ..) = Self::form(env);
        self.errors.push(SettingError { flag: env.to_ascii_lowercase().replace('_', "-"), env, problem });
    }

    fn bool(&mut self, env: &str) -> bool {
        match self.typed.get(env) {
            "true" => true,
            "false" => false,
            other => {
                self.fail(env, format!("\"{other}\" is not a boolean; give true or false"));
                false
            }
        }
    }

    fn integer(&mut self, env: &str) -> i64 {
        let text = self.text(env);
        let minimum = if let (_, Form::Integer(m), _) = Self::form(env) { m } else { i64::MIN };
        match text.parse::<i64>() {
            Ok(n) if n >= minimum => n,
            Ok(n) => {
                self.fail(env, format!("{n} is too small; give an integer of at least {minimum}"));
                minimum
            }
            Err(_) => {
                self.fail(env, format!("\"{text}\" is not an integer"));
                0
            }
        }
    }

    fn port(&mut self, env: &str) -> u16 {
        let text = self.text(env);
        text.parse().unwrap_or_else(|_| {
            self.fail(env, format!("\"{text}\" is not a port; give a number from 0 to 65535 (0 = not served)"));
            0
        })
    }

    fn fraction(&mut self, env: &str) -> f64 {
        let text = self.text(env);
        match text.parse::<f64>() {
            Ok(f) if f.is_finite() && f >= 0.0 => f,
            _ => {
                self.fail(env, format!("\"{text}\" is not a number of at least 0; give for example 0.075 for 7.5 %"));
                0.0
            }
        }
    }

    fn duration(&mut self, env: &str) -> Duration {
        let text = self.text(env);
        let minimum =
            if let (_, Form::Duration(m), _) = Self::form(env) { Duration::from_millis(m) } else { Duration::ZERO };
        match mortise_api::duration::parse(&text) {
            Ok(d) if d >= minimum => d,
            Ok(_) => {
                self.fail(env, format!("\"{text}\" is too short; give at least {minimum:?}"));
                minimum
            }
            Err(problem) => {
                self.fail(env, problem.to_string());
                minimum
            }
        }
    }

    fn word(&mut self, env: &str) -> String {
        let text = self.text(env);
        if let (_, Form::OneOf(words), _) = Self::form(env)
            && !words.contains(&text.as_str())
        {
            let words: Vec<&str> = words.iter().copied().filter(|w| !w.is_empty()).collect();
            self.fail(env, format!("\"{text}\" is unknown; give one of {}", words.join(", ")));
        }
        text
    }

    fn default_spread(&mut self, env: &str) -> Vec<Spread> {
        default_spread::parse(&self.text(env)).unwrap_or_else(|problem| {
            self.fail(env, problem);
            Vec::new()
        })
    }

    fn paths(&mut self, env: &str) -> Vec<String> {
        let text = self.text(env);
        text.split(',').map(str::trim).filter(|p| !p.is_empty()).map(str::to_owned).collect()
    }

    fn url(&mut self, env: &str) -> Option<String> {
        let text = self.some(env)?;
        let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        if rest.is_none_or(|r| r.is_empty() || r.starts_with('/')) {
            self.fail(env, format!("\"{text}\" is not an absolute URL; give for example https://example.com"));
        }
        Some(text)
    }

    fn gates(
        &mut self,
        env: &str,
        known: &'static [(&'static str, bool, Option<&'static str>)],
    ) -> BTreeMap<&'static str, bool> {
        let mut gates: BTreeMap<&'static str, bool> = known.iter().map(|(name, on, _)| (*name, *on)).collect();
        let text = self.text(env);
        for pair in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (name.trim(), value.trim());
            let Ok(on) = value.parse::<bool>() else {
                self.fail(env, format!("\"{pair}\" does not say true or false; write {name}=true or {name}=false"));
                continue;
            };
            match known.iter().find(|(k, ..)| *k == name) {
                Some((k, default, missing)) => {
                    gates.insert(k, on);
                    // ReservedCapacity is on by default and without effect unless a class selects reservations.
                    if on
                        && !default
                        && let Some(missing) = missing
                    {
                        self.warnings.push(format!("feature gate {name} is on but not acted on yet: {missing}"));
                    }
                }
                None => self.warnings.push(format!("feature gate {name} of {env} is unknown and ignored")),
            }
        }
        gates
    }

    fn required(&mut self, settings: &Settings) {
        if settings.cluster_name.is_empty() {
            self.fail("CLUSTER_NAME", "is required; give the name of the cluster".into());
        }
        if settings.batch_idle > settings.batch_max {
            let (idle, max) = (settings.batch_idle, settings.batch_max);
            self.warnings.push(format!(
                "BATCH_IDLE_DURATION ({idle:?}) is longer than BATCH_MAX_DURATION ({max:?}), which therefore always ends a batch"
            ));
        }
    }

    fn not_acted_on(&mut self) {
        for setting in SETTINGS {
            let typed = self.typed.get(setting.env);
            if let Support::NotYet(so) = setting.support
                && typed != setting.default
            {
                // The value is left out: a queue name or a configuration may be long or private.
                self.warnings.push(format!("{} is set but not acted on yet: {so}", setting.env));
            }
            // Settings nobody reads are still checked, so that a typing error does not wait for the day they count.
            match (setting.support, setting.form) {
                (Support::Yes, _) => {}
                (_, Form::Bool) if setting.env != "IGNORE_DRA_REQUESTS" => {
                    let _ = self.bool(setting.env);
                }
                (_, Form::Integer(_)) => {
                    let _ = self.integer(setting.env);
                }
                _ => {}
            }
        }
    }
}
