//! Every setting, once: name, default, meaning, and whether this version acts on it. Flags, help, validation and the
//! start-up warnings all come from here.

use std::sync::LazyLock;

/// What a setting's text must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Any text.
    Text,
    /// `true` or `false`.
    Bool,
    /// An integer of at least the given minimum.
    Integer(i64),
    /// A number of at least zero.
    Fraction,
    /// A TCP port, 0..=65535; 0 = not served.
    Port,
    /// A Go duration (`1s`, `1m30s`, `100ms`) of at least so many milliseconds.
    Duration(u64),
    /// One of the words.
    OneOf(&'static [&'static str]),
    /// A comma list of paths, `stdout` and `stderr` among them.
    Paths,
    /// An absolute URL or nothing.
    Url,
    /// A comma list of `Name=true|false`.
    Gates,
}

/// How far this version acts on a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// Acted on.
    Yes,
    /// Accepted, read nowhere, and rightly so: the text says why. No warning.
    Moot(&'static str),
    /// Accepted but not acted on yet; a value other than the default is a warning at start, which the text ends.
    NotYet(&'static str),
}

/// A setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Environment variable. The flag is the same in lower case with dashes.
    pub env: &'static str,
    /// Value when neither flag nor variable is given (or both are empty).
    pub default: &'static str,
    /// Form.
    pub form: Form,
    /// One line of help.
    pub help: &'static str,
    /// Support.
    pub support: Support,
}

impl Setting {
    /// Name of the flag, without the leading dashes.
    #[must_use]
    pub fn flag(&self) -> &'static str {
        // Clap wants names that live as long as the process; made once for all settings.
        static FLAGS: LazyLock<Vec<String>> =
            LazyLock::new(|| SETTINGS.iter().map(|s| s.env.to_ascii_lowercase().replace('_', "-")).collect());
        let at = SETTINGS.iter().position(|s| s.env == self.env);
        at.and_then(|at| FLAGS.get(at)).map(String::as_str).unwrap_or_default()
    }
}

/// Feature gates of `FEATURE_GATES`: name, default, and what is missing when it is switched on.
pub const FEATURE_GATES: &[(&str, bool, Option<&str>)] = &[
    ("NodeRepair", false, Some("nodes that stay unhealthy are not replaced")),
    ("ReservedCapacity", true, Some("capacity reservations are neither resolved nor launched into")),
    ("SpotToSpotConsolidation", false, Some("only empty nodes are consolidated")),
    ("NodeOverlay", false, None),
    ("StaticCapacity", false, None),
    ("CapacityBuffer", false, None),
    ("TerminateFirstDrift", false, Some("drifted nodes are not replaced")),
    ("TerminateFirstRepair", false, Some("nodes that stay unhealthy are not replaced")),
    ("PodDeletionCostManagement", false, Some("pod deletion costs are not written")),
];

/// Feature gates of `AWS_FEATURE_GATES`, in the same form.
pub const AWS_FEATURE_GATES: &[(&str, bool, Option<&str>)] = &[
    ("NodeClassCEL", false, Some("CEL expressions in the kubelet block are not evaluated")),
    ("DRANVIDIAGPU", false, Some("DRA devices are not offered")),
    ("DRAEFA", false, Some("DRA devices are not offered")),
    ("RebootForRepair", false, Some("nodes that stay unhealthy are not rebooted")),
];

const fn yes(env: &'static str, default: &'static str, form: Form, help: &'static str) -> Setting {
    Setting { env, default, form, help, support: Support::Yes }
}

const fn moot(env: &'static str, default: &'static str, form: Form, help: &'static str, why: &'static str) -> Setting {
    Setting { env, default, form, help, support: Support::Moot(why) }
}

const fn not_yet(
    env: &'static str,
    default: &'static str,
    form: Form,
    help: &'static str,
    so: &'static str,
) -> Setting {
    Setting { env, default, form, help, support: Support::NotYet(so) }
}

/// Default of `FEATURE_GATES`.
const GATES: &str = "NodeRepair=false,ReservedCapacity=true,SpotToSpotConsolidation=false,NodeOverlay=false,\
                     StaticCapacity=false,CapacityBuffer=false,TerminateFirstDrift=false,TerminateFirstRepair=false,\
                     PodDeletionCostManagement=false";
/// Default of `AWS_FEATURE_GATES`.
const AWS_GATES: &str = "NodeClassCEL=false,DRANVIDIAGPU=false,DRAEFA=false,RebootForRepair=false";

/// All settings, Karpenter's first and in its order, then ours.
pub const SETTINGS: &[Setting] = &[
    moot("KARPENTER_SERVICE", "", Form::Text, "Name of the controller's Service", "nothing needs it"),
    yes("METRICS_PORT", "8080", Form::Port, "Port of /metrics"),
    yes("HEALTH_PROBE_PORT", "8081", Form::Port, "Port of /healthz and /readyz"),
    yes("KUBE_CLIENT_QPS", "200", Form::Integer(1), "Requests per second to the API server"),
    yes("KUBE_CLIENT_BURST", "300", Form::Integer(1), "Requests to the API server that may go out at once"),
    not_yet("ENABLE_PROFILING", "false", Form::Bool, "Serve profiles on the metrics port", "no profiles are served"),
    moot(
        "DISABLE_CONTROLLER_WARMUP",
        "true",
        Form::Bool,
        "Start watches only after the lease is won",
        "both replicas always watch, so that a hand-over starts warm",
    ),
    yes("DISABLE_LEADER_ELECTION", "false", Form::Bool, "Run without a lease; for a single replica only"),
    yes("DISABLE_CLUSTER_STATE_OBSERVABILITY", "false", Form::Bool, "Leave out the metrics per pod, node and NodePool"),
    yes("LEADER_ELECTION_NAME", "karpenter-leader-election", Form::Text, "Name of the lease"),
    yes("LEADER_ELECTION_NAMESPACE", "", Form::Text, "Namespace of the lease; own namespace when empty"),
    moot("MEMORY_LIMIT", "-1", Form::Integer(-1), "Memory limit in bytes", "there is no garbage collector to tune"),
    yes("CPU_REQUESTS", "1000", Form::Integer(i64::MIN), "Requested CPU in thousandths; scales concurrency"),
    yes("LOG_LEVEL", "info", Form::OneOf(&["", "debug", "info", "error"]), "Log level"),
    yes("LOG_OUTPUT_PATHS", "stdout", Form::Paths, "Where logs go: comma list of stdout, stderr and files"),
    yes("LOG_ERROR_OUTPUT_PATHS", "stderr", Form::Paths, "Where trouble with logging itself goes"),
    yes("BATCH_MAX_DURATION", "10s", Form::Duration(1), "Longest time that pending pods are gathered"),
    yes("BATCH_IDLE_DURATION", "1s", Form::Duration(1), "Quiet time that ends the gathering"),
    yes("PREFERENCE_POLICY", "Respect", Form::OneOf(&["Respect", "Ignore"]), "Whether preferences of pods count"),
    yes("MIN_VALUES_POLICY", "Strict", Form::OneOf(&["Strict", "BestEffort"]), "Whether minValues may be relaxed"),
    not_yet(
        "IGNORE_DRA_REQUESTS",
        "true",
        Form::Bool,
        "Ignore resource claims of pods",
        "pods with resource claims stay pending with that reason",
    ),
    not_yet("LEGACY_NODE_REPAIR", "false", Form::Bool, "Repair nodes in the manner of 1.14", "nodes are not repaired"),
    yes("FEATURE_GATES", GATES, Form::Gates, "Feature gates"),
    yes("SCHEDULER_CONFIG", "", Form::Text, "Default topology spread constraints, in YAML or JSON"),
    yes("CLUSTER_NAME", "", Form::Text, "Name of the cluster; required"),
    yes("CLUSTER_ENDPOINT", "", Form::Url, "API server as nodes reach it; asked of EKS when empty"),
    yes("CLUSTER_CA_BUNDLE", "", Form::Text, "CA of the API server in base64; asked of EKS when empty"),
    yes("ISOLATED_VPC", "false", Form::Bool, "No reach to the pricing and IAM endpoints"),
    not_yet("EKS_CONTROL_PLANE", "false", Form::Bool, "Take the version from EKS", "it is taken from the API server"),
    yes("VM_MEMORY_OVERHEAD_PERCENT", "0.075", Form::Fraction, "Share of memory that the hypervisor keeps"),
    not_yet("INTERRUPTION_QUEUE", "", Form::Text, "Queue of interruption messages", "interruptions are not acted on"),
    yes("RESERVED_ENIS", "0", Form::Integer(0), "Network interfaces that pods may not use"),
    yes("DISABLE_DRY_RUN", "false", Form::Bool, "Do not try node classes out by dry runs"),
    not_yet("ENABLE_ZONAL_SHIFT", "false", Form::Bool, "Follow zonal shifts", "zonal shifts are not followed"),
    yes("AMI_REFRESH_INTERVAL", "1m", Form::Duration(60_000), "How often AMIs are resolved"),
    yes("SUBNET_REFRESH_INTERVAL", "1m", Form::Duration(60_000), "How often subnets are resolved"),
    yes("SECURITY_GROUP_REFRESH_INTERVAL", "1m", Form::Duration(60_000), "How often security groups are resolved"),
    yes("AWS_FEATURE_GATES", AWS_GATES, Form::Gates, "Feature gates of the AWS provider"),
    moot("KUBERNETES_MIN_VERSION", "", Form::Text, "Set by the chart", "the API server's own version counts"),
    yes("SYSTEM_NAMESPACE", "", Form::Text, "Namespace of the controller; that of its service account when empty"),
    yes("CLOUD_PROVIDER", "aws", Form::OneOf(&["aws", "kwok"]), "Where nodes come from; kwok = in-process, for tests"),
    yes(
        "EXTRA_METRICS_PORT",
        "8000",
        Form::Port,
        "Second port of /metrics, for scrapers set up for older releases; 0 = off",
    ),
    yes(
        "POLICIES_CONFIGMAP",
        "mortise-policies",
        Form::Text,
        "ConfigMap with the policies, in the controller's namespace",
    ),
];
