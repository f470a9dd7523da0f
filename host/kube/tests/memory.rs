//! What 20,000 pods and 2,000 nodes cost: live bytes as the allocator counts them, and time per event. The numbers are
//! printed with `--nocapture`; the bounds are far enough from them that they hold in any build profile.
#![expect(unsafe_code, reason = "a counting allocator cannot be written without")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use mortise_kube::convert::Converter;
use mortise_kube::objects;
use mortise_kube::state::ClusterState;
use mortise_kube::watch::{Delta, Event};
use serde_json::{Value, json};

/// The system's allocator, counting what is live.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator with the arguments unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as promised by the caller.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const PODS: usize = 20_000;
const NODES: usize = 2_000;
const WORKLOADS: usize = 20;

/// The pod as it waits, and as it is once bound, with places to fill in.
fn templates(mut pod: Value) -> [String; 2] {
    pod["metadata"]["labels"]["shard"] = json!("SHARD");
    let waiting = pod.to_string();
    pod["spec"]["nodeName"] = json!("NODE");
    pod["status"]["phase"] = json!("Running");
    pod["status"]["conditions"] =
        json!([{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "True"}]);
    [waiting, pod.to_string()]
}

fn pod(template: &str, i: usize) -> String {
    template
        .replace("\"NAME\"", &format!("\"burst-6d4b75cb6d-{i:05}\""))
        .replace("\"UID\"", &format!("\"6f1c1d2e-0000-4000-8000-{i:012}\""))
        .replace("SHARD", &(i % WORKLOADS).to_string())
        .replace("\"NODE\"", &format!("\"{}\"", node_name(i % NODES)))
}

fn node_name(i: usize) -> String {
    format!("ip-10-0-{}-{}.ec2.internal", i / 256, i % 256)
}

fn node(i: usize) -> String {
    let conditions: Vec<Value> = ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"]
        .map(|kind| json!({"type": kind, "status": if kind == "Ready" { "True" } else { "False" }, "reason": "Kubelet", "message": "fine", "lastTransitionTime": "2026-01-01T00:00:00Z"}))
        .into();
    let labels: BTreeMap<String, String> = (0..25)
        .map(|n| (format!("karpenter.k8s.aws/label-{n}"), format!("value-{}", i % (n + 1))))
        .chain([("kubernetes.io/hostname".to_owned(), node_name(i))])
        .collect();
    json!({
        "metadata": {"name": node_name(i), "uid": format!("node-{i}"), "resourceVersion": "1", "labels": labels},
        "spec": {"providerID": format!("aws:///us-east-1a/i-{i:017}")},
        "status": {"capacity": {"cpu": "16", "memory": "64Gi", "pods": "110"}, "allocatable": {"cpu": "15", "memory": "60Gi", "pods": "110"},
            "conditions": conditions, "images": vec![json!({"names": ["registry.k8s.io/pause:3.10"], "sizeBytes": 300_000}); 50]},
    })
    .to_string()
}

fn live() -> usize {
    LIVE.load(Ordering::Relaxed)
}

#[test]
fn a_large_cluster_fits_in_little() {
    let template: Value = serde_json::from_str(include_str!("data/pod.json")).unwrap();
    let mut state = ClusterState::new();
    let (mut pods, mut nodes) = (Converter::default(), Converter::default());
    let start = live();

    for i in 0..NODES {
        let text = node(i);
        let record = nodes.node(&serde_json::from_str::<objects::Node>(&text).unwrap());
        state.apply(Event::Node(Delta::Applied(Arc::new(record))), 0);
    }
    let with_nodes = live();

    let mut reading = std::time::Duration::ZERO;
    let mut bytes = 0;
    let mut events = 0;
    // All are bound; one in ten was seen waiting before.
    for (template, every) in templates(template).iter().zip([10, 1]) {
        for i in (0..PODS).step_by(every) {
            let text = pod(template, i);
            bytes += text.len();
            events += 1;
            let started = Instant::now();
            let record = pods.pod(&serde_json::from_str::<objects::Pod>(&text).unwrap());
            state.apply(Event::Pod(Delta::Applied(Arc::new(record))), 0);
            reading += started.elapsed();
        }
    }
    let with_pods = live();

    let started = Instant::now();
    let snapshot = state.snapshot(0, &BTreeMap::new());
    let first = started.elapsed();
    let with_snapshot = live();
    let started = Instant::now();
    let again = state.snapshot(0, &BTreeMap::new());
    let second = started.elapsed();

    let per_pod = (with_pods - with_nodes) / PODS;
    println!(
        "{} bytes of JSON per pod event, {:?} to read and apply one",
        bytes / events,
        reading / u32::try_from(events).unwrap()
    );
    println!("{per_pod} bytes kept per pod, {} per node", (with_nodes - start) / NODES);
    println!(
        "snapshot: {} KiB more and {first:?} for the first, {second:?} for an unchanged one",
        (with_snapshot - with_pods) / 1024
    );
    println!("{} MiB in all", (with_snapshot - start) >> 20);

    assert_eq!(snapshot.nodes.len(), NODES);
    assert!(snapshot.pending.is_empty());
    assert_eq!(snapshot.nodes[node_name(7).as_str()].pods.len(), PODS / NODES);
    assert!(snapshot.nodes.iter().all(|(name, node)| Arc::ptr_eq(node, &again.nodes[name])), "nothing is built twice");
    assert_eq!(pods.held().1, WORKLOADS, "one shape per workload");
    assert!(per_pod < 800, "{per_pod} bytes per pod");
    assert!(with_snapshot - start < 40 << 20, "{} bytes", with_snapshot - start);
}
