//! The workloads and instance types of `data/`, and workloads made up on the spot.

use serde::Deserialize;

/// Pods with the same needs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct Group {
    /// Replicas.
    pub(crate) pods: u32,
    /// Requests of one pod.
    pub(crate) cpu_milli: u64,
    /// Requests of one pod.
    pub(crate) memory_mib: u64,
    /// Requests of one pod.
    pub(crate) gpu: u32,
    /// `kubernetes.io/arch` asked for.
    pub(crate) arch: Option<String>,
    /// `karpenter.sh/capacity-type` asked for.
    pub(crate) market: Option<String>,
    /// Hostname anti-affinity to itself.
    pub(crate) one_per_node: bool,
    /// Spread over zones with this `maxSkew`; 0 is no constraint.
    pub(crate) zone_skew: u32,
}

/// Pods of one cluster, all pending, and what the real Karpenter's plan of them costs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct Workload {
    /// Name.
    pub(crate) name: String,
    /// GPU types may be used.
    pub(crate) gpu: bool,
    /// Capacity types that the NodePool allows.
    pub(crate) markets: Vec<String>,
    /// DaemonSet pods of every node.
    pub(crate) daemon_pods: u32,
    /// Their requests together.
    pub(crate) daemon_cpu_milli: u64,
    /// Their requests together.
    pub(crate) daemon_memory_mib: u64,
    /// Cost of the real Karpenter's plan, USD per hour; 0 where it was not asked.
    pub(crate) karpenter_usd: f64,
    /// Nodes of that plan.
    pub(crate) karpenter_nodes: u32,
    /// Recorded linear-programming bound, USD per hour.
    pub(crate) bound_usd: f64,
    /// Pods.
    pub(crate) groups: Vec<Group>,
}

impl Workload {
    /// Pods of all groups.
    pub(crate) fn pods(&self) -> u32 {
        self.groups.iter().map(|group| group.pods).sum()
    }
}

/// An instance type of the bench.
#[derive(Clone, Debug)]
pub(crate) struct NodeType {
    /// `amd64` or `arm64`.
    pub(crate) arch: String,
    /// What pods can use: capacity less kubelet overhead.
    pub(crate) cpu_milli: u64,
    /// What pods can use: capacity less kubelet overhead.
    pub(crate) memory_mib: u64,
    /// Most pods.
    pub(crate) pods: u32,
    /// GPUs.
    pub(crate) gpu: u32,
    /// USD per hour.
    pub(crate) on_demand: f64,
    /// Spot price in each zone, `None` where the type is out of stock in both markets.
    pub(crate) spot: [Option<f64>; 4],
}

/// The recorded workloads.
///
/// # Errors
/// When the file is not as [`Workload`] says.
pub(crate) fn workloads() -> anyhow::Result<Vec<Workload>> {
    Ok(serde_json::from_str(include_str!("../data/workloads.json"))?)
}

/// The instance types.
///
/// # Errors
/// Names the line that cannot be read.
pub(crate) fn types() -> anyhow::Result<Vec<NodeType>> {
    let lines = include_str!("../data/types.csv").lines().skip(1);
    lines.map(|line| node_type(line).ok_or_else(|| anyhow::anyhow!("types.csv: cannot read {line:?}"))).collect()
}

fn node_type(line: &str) -> Option<NodeType> {
    let fields: Vec<&str> = line.split(',').collect();
    let [_, arch, cpu, memory, pods, gpu, reserved_cpu, reserved_memory, eviction, on_demand, spot @ ..] = &*fields
    else {
        return None;
    };
    let number = |text: &str| text.parse::<u64>().ok();
    let spot: [&str; 4] = spot.try_into().ok()?;
    Some(NodeType {
        arch: (*arch).to_owned(),
        cpu_milli: number(cpu)? * 1000 - number(reserved_cpu)?,
        memory_mib: number(memory)? - number(reserved_memory)? - number(eviction)?,
        pods: pods.parse().ok()?,
        gpu: gpu.parse().ok()?,
        on_demand: on_demand.parse().ok()?,
        spot: spot.map(|price| price.parse().ok()),
    })
}

/// Workloads of 2,000 small pods: eight to sixteen groups of 20 to 500 thousandths of a core and one to eight MiB of
/// memory for each, on-demand and on amd64 or any architecture.
pub(crate) fn generated(count: u32) -> Vec<Workload> {
    (0..count).map(small_pods).collect()
}

fn small_pods(seed: u32) -> Workload {
    let mut state = u64::from(seed) * 0x9E37_79B9 + 0x1234_5678_9ABC;
    let mut draw = |bound: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 16) % bound
    };
    let groups = 8 + draw(9);
    let mut left = 2000;
    let mut out = Vec::new();
    for at in 0..groups {
        let pods = if at + 1 == groups { left } else { (2000 / groups * (50 + draw(100)) / 100).min(left) };
        left -= pods;
        let cpu_milli = [20, 50, 100, 150, 200, 250, 300, 500][draw(8) as usize];
        let ratio = [1, 2, 2, 4, 4, 8][draw(6) as usize];
        let arch = (draw(3) == 0).then(|| "amd64".to_owned());
        let pods = u32::try_from(pods).unwrap_or(u32::MAX);
        out.push(Group { pods, cpu_milli, memory_mib: cpu_milli * ratio, arch, ..Group::default() });
    }
    out.retain(|group| group.pods > 0);
    Workload {
        name: format!("small-pods-{seed:02}"),
        markets: vec!["on-demand".to_owned()],
        daemon_pods: 2,
        daemon_cpu_milli: 200,
        daemon_memory_mib: 256,
        groups: out,
        ..Workload::default()
    }
}
