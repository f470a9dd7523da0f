use super::*;

const REQUIRED: (&str, &str) = ("CLUSTER_NAME", "demo");

fn validate(pairs: &[(&str, &str)]) -> Result<Settings, Vec<SettingError>> {
    let mut all = vec![REQUIRED];
    all.extend_from_slice(pairs);
    Settings::validate(&Typed::from_pairs(&all))
}

/// Every default is valid and makes no warning.
#[test]
fn defaults_hold() {
    let settings = validate(&[]).unwrap();
    assert_eq!(settings.warnings, Vec::<String>::new());
    assert_eq!((settings.metrics_port, settings.extra_metrics_port, settings.health_probe_port), (8080, 8000, 8081));
    assert_eq!((settings.batch_idle, settings.batch_max), (Duration::from_secs(1), Duration::from_secs(10)));
    assert!(settings.gate("ReservedCapacity") && !settings.gate("NodeRepair"));
    assert_eq!(settings.leader_election_name, "karpenter-leader-election");
    assert!((settings.vm_memory_overhead_percent - 0.075).abs() < 1e-12);
    let _ = Settings::for_tests("karpenter");
}

/// One row per check: variable, wrong value, and what the message must name.
#[test]
fn wrong_values_are_named() {
    for (env, value, found) in [
        ("METRICS_PORT", "http", "\"http\" is not a port"),
        ("METRICS_PORT", "70000", "\"70000\" is not a port"),
        ("HEALTH_PROBE_PORT", "-1", "\"-1\" is not a port"),
        ("KUBE_CLIENT_QPS", "many", "\"many\" is not an integer"),
        ("KUBE_CLIENT_BURST", "0", "0 is too small"),
        ("ENABLE_PROFILING", "yes", "\"yes\" is not a boolean"),
        ("DISABLE_LEADER_ELECTION", "1", "\"1\" is not a boolean"),
        ("DISABLE_CONTROLLER_WARMUP", "TRUE", "\"TRUE\" is not a boolean"),
        ("IGNORE_DRA_REQUESTS", "no", "\"no\" is not a boolean"),
        ("ISOLATED_VPC", "maybe", "\"maybe\" is not a boolean"),
        ("MEMORY_LIMIT", "1Gi", "\"1Gi\" is not an integer"),
        ("CPU_REQUESTS", "1.5", "\"1.5\" is not an integer"),
        ("LOG_LEVEL", "warn", "\"warn\" is unknown; give one of debug, info, error"),
        ("BATCH_MAX_DURATION", "10", "\"10\" is not a duration"),
        ("BATCH_IDLE_DURATION", "0s", "\"0s\" is too short"),
        ("PREFERENCE_POLICY", "ignore", "\"ignore\" is unknown; give one of Respect, Ignore"),
        ("MIN_VALUES_POLICY", "Loose", "give one of Strict, BestEffort"),
        ("FEATURE_GATES", "NodeRepair", "write NodeRepair=true or NodeRepair=false"),
        ("FEATURE_GATES", "NodeRepair=on", "\"NodeRepair=on\" does not say true or false"),
        ("CLUSTER_ENDPOINT", "example.com", "\"example.com\" is not an absolute URL"),
        ("VM_MEMORY_OVERHEAD_PERCENT", "-0.1", "\"-0.1\" is not a number of at least 0"),
        ("VM_MEMORY_OVERHEAD_PERCENT", "NaN", "\"NaN\" is not a number"),
        ("RESERVED_ENIS", "-1", "-1 is too small"),
        ("AMI_REFRESH_INTERVAL", "30s", "\"30s\" is too short; give at least 60s"),
        ("SUBNET_REFRESH_INTERVAL", "1", "is not a duration"),
        ("SECURITY_GROUP_REFRESH_INTERVAL", "59s", "too short"),
        ("CLOUD_PROVIDER", "gcp", "\"gcp\" is unknown; give one of aws, kwok"),
    ] {
        let errors = validate(&[(env, value)]).unwrap_err();
        let text = errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        assert_eq!(errors.len(), 1, "{env}={value}: {text}");
        assert!(text.contains(found), "{env}={value}: {text}");
        assert!(text.contains(env) && text.contains(&errors[0].flag), "{text}");
    }
}

#[test]
fn cluster_name_is_required() {
    let errors = Settings::validate(&Typed::from_pairs(&[])).unwrap_err();
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].env, "CLUSTER_NAME");
}

/// What is accepted but not acted on is named; the unknown gate is ignored with a word.
#[test]
fn not_acted_on_warns() {
    for (env, value, word) in [
        ("INTERRUPTION_QUEUE", "karpenter-demo", "INTERRUPTION_QUEUE"),
        ("FEATURE_GATES", "NodeRepair=true", "NodeRepair"),
        ("FEATURE_GATES", "Unheard=true", "Unheard"),
        ("AWS_FEATURE_GATES", "DRAEFA=true", "DRAEFA"),
        ("ENABLE_ZONAL_SHIFT", "true", "ENABLE_ZONAL_SHIFT"),
    ] {
        let settings = validate(&[(env, value)]).unwrap();
        assert_eq!(settings.warnings.len(), 1, "{env}: {:?}", settings.warnings);
        assert!(settings.warnings[0].contains(word));
        assert!(!settings.warnings[0].contains("karpenter-demo"));
    }
    assert!(validate(&[("FEATURE_GATES", "NodeRepair=false,ReservedCapacity=false")]).unwrap().warnings.is_empty());
}

/// Flags are the variables in lower case with dashes; a boolean flag alone means true.
#[test]
fn flags() {
    let typed =
        Settings::typed_from(["mortise", "--cluster-name", "a", "--isolated-vpc", "--batch-max-duration=3s"]).unwrap();
    let settings = Settings::validate(&typed).unwrap();
    assert_eq!((settings.cluster_name.as_str(), settings.isolated_vpc), ("a", true));
    assert_eq!(settings.batch_max, Duration::from_secs(3));
    let typed = Settings::typed_from(["mortise", "--cluster-name=a", "--isolated-vpc=false"]).unwrap();
    assert!(!Settings::validate(&typed).unwrap().isolated_vpc);
    let error = Settings::typed_from(["mortise", "--cluster-nam=a"]).unwrap_err();
    assert_eq!(error.exit_code(), 2);
}

/// Zero or less falls back to one CPU, as the reference does.
#[test]
fn cpu_requests_floor() {
    for (value, milli) in [("0", 1000), ("-5", 1000), ("500", 500)] {
        assert_eq!(validate(&[("CPU_REQUESTS", value)]).unwrap().cpu_requests_milli, milli);
    }
}
