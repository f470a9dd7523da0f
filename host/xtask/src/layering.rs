//! The fences between the crates: what each of ours may depend on (from `cargo metadata`), and what must stay out of
//! whole subtrees (from `cargo tree`, which knows the features that each crate asks for by itself). ARCHITECTURE.md
//! explains why each fence stands.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// A crate of ours and the only workspace crates it may use, in every kind of dependency but dev.
const ALLOWED: &[(&str, &[&str])] = &[
    ("mortise-api", &[]),
    ("mortise-engine", &[]),
    ("mortise-kube", &["mortise-api", "mortise-engine"]),
    ("mortise-cloud", &["mortise-api", "mortise-engine"]),
    (
        "mortise-wasm",
        &[
            "mortise-engine",
            "mortise-plugin-bundle",
            "mortise-plugin-constraints",
            "mortise-plugin-cost",
            "mortise-plugin-karpenter",
            "mortise-plugin-price",
            "mortise-plugin-sdk",
        ],
    ),
    ("mortise-plugin-sdk", &[]),
    ("mortise-plugin-constraints", &["mortise-plugin-sdk"]),
    ("mortise-plugin-price", &["mortise-plugin-sdk"]),
    ("mortise-plugin-cost", &["mortise-plugin-sdk"]),
    ("mortise-plugin-karpenter", &["mortise-plugin-sdk"]),
    ("mortise-plugin-build", &[]),
    ("mortise-plugin-bundle", &["mortise-plugin-build"]),
    ("zone-discount", &["mortise-plugin-sdk"]),
    ("mortise-problem", &["mortise-api"]),
    ("mortise-checker", &["mortise-problem"]),
];

/// What may be reached from a crate by no path, dev-dependencies and the AWS feature aside: crate, what is banned, why.
const BANNED: &[(&str, &[&str], &str)] = &[
    (
        "mortise-engine",
        &["tokio", "kube-client", "hyper", "wasmtime", "tracing", "rand", "getrandom", "aws-config", "aws-sdk-ec2"],
        "the engine is pure: what varies is an argument",
    ),
    ("mortise-api", &["tokio", "hyper", "kube-client"], "the contract is types, without a client"),
    ("mortise-kube", &["wasmtime", "aws-sdk-ec2"], "the Kubernetes edge knows neither plugins nor the cloud"),
    ("mortise-cloud", &["wasmtime", "kube-client"], "the provider edge knows neither plugins nor the API server"),
    ("mortise-problem", &["mortise-engine"], "problems are read alike by the engine and by who judges it"),
    ("mortise-checker", &["mortise-engine"], "who judges the engine shares no code with it"),
    ("mortise-wasm", &["kube-client", "aws-sdk-ec2", "wasmtime-wasi"], "policies reach no network, file or clock"),
];

/// Checks every fence.
///
/// # Errors
/// Names each dependency that crosses a fence, and the path to it.
pub(crate) fn check() -> Result<()> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--format-version", "1", "--locked", "--all-features"])
        .output()
        .context("cargo metadata cannot be run")?;
    if !output.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let graph = Graph::parse(&serde_json::from_slice(&output.stdout).context("cargo metadata is not JSON")?)?;
    let mut faults = crossed(&graph);
    for (name, banned, reason) in BANNED {
        faults.extend(reached(name, &tree(name)?, banned, reason));
    }
    if faults.is_empty() {
        println!("layering: the fences of {} crates hold, and {} bans", ALLOWED.len(), BANNED.len());
        return Ok(());
    }
    bail!("{}", faults.join("\n"))
}

/// Names of all that a crate alone pulls in, one a line.
fn tree(name: &str) -> Result<String> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["tree", "--locked", "--prefix", "none", "--edges", "normal,build", "--format", "{p}", "--package", name])
        .output()
        .context("cargo tree cannot be run")?;
    if !output.status.success() {
        bail!("cargo tree of {name} failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn reached(name: &str, tree: &str, banned: &[&str], reason: &str) -> Vec<String> {
    let found: BTreeSet<&str> = tree.lines().filter_map(|line| line.split_whitespace().next()).collect();
    banned
        .iter()
        .filter(|target| found.contains(**target))
        .map(|target| format!("{name} reaches {target}: {reason} (cargo tree -p {name} -i {target} shows how)"))
        .collect()
}

fn crossed(graph: &Graph) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, allowed) in ALLOWED {
        let Some(dependencies) = graph.edges.get(*name) else {
            faults.push(format!("{name} is fenced but is no member of the workspace: update layering.rs"));
            continue;
        };
        for dependency in dependencies.iter().filter(|d| graph.members.contains(*d)) {
            if !allowed.contains(&dependency.as_str()) {
                faults.push(format!("{name} must not depend on {dependency}: it may use {allowed:?} of the workspace"));
            }
        }
    }
    faults
}

/// Packages by name with what they depend on, dev-dependencies left out. Two versions of a crate are one node: for a
/// fence that errs on the safe side.
struct Graph {
    members: BTreeSet<String>,
    edges: BTreeMap<String, BTreeSet<String>>,
}

impl Graph {
    fn parse(metadata: &Value) -> Result<Self> {
        let list =
            |value: &Value, what: &str| value.as_array().cloned().with_context(|| format!("no {what} in metadata"));
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let names: BTreeMap<String, String> = list(&metadata["packages"], "packages")?
            .iter()
            .map(|package| (text(&package["id"]), text(&package["name"])))
            .collect();
        let name_of = |id: &Value| names.get(&text(id)).cloned().unwrap_or_default();
        let members = list(&metadata["workspace_members"], "workspace_members")?.iter().map(name_of).collect();
        let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for node in list(&metadata["resolve"]["nodes"], "resolve.nodes")? {
            let row = edges.entry(name_of(&node["id"])).or_default();
            for dependency in list(&node["deps"], "deps")? {
                let kinds = list(&dependency["dep_kinds"], "dep_kinds")?;
                if kinds.iter().any(|kind| kind["kind"].as_str() != Some("dev")) {
                    row.insert(name_of(&dependency["pkg"]));
                }
            }
        }
        Ok(Self { members, edges })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(&str, &[&str])]) -> Graph {
        let mut all: BTreeMap<String, BTreeSet<String>> =
            ALLOWED.iter().map(|(name, _)| ((*name).to_owned(), BTreeSet::new())).collect();
        let members = all.keys().cloned().collect();
        for (from, to) in edges {
            all.entry((*from).to_owned()).or_default().extend(to.iter().map(|t| (*t).to_owned()));
        }
        Graph { members, edges: all }
    }

    #[test]
    fn crates_within_their_fences_pass() {
        assert!(crossed(&graph(&[("mortise-kube", &["mortise-api", "tokio"])])).is_empty());
    }

    #[test]
    fn an_edge_across_a_fence_is_named() {
        let faults = crossed(&graph(&[("mortise-kube", &["mortise-cloud"])]));
        assert!(faults.iter().any(|f| f.contains("mortise-kube must not depend on mortise-cloud")), "{faults:?}");
    }

    #[test]
    fn the_checker_knows_nothing_but_problems() {
        assert!(crossed(&graph(&[("mortise-checker", &["mortise-problem", "serde_json"])])).is_empty());
        for (name, _) in ALLOWED.iter().filter(|(name, _)| !["mortise-checker", "mortise-problem"].contains(name)) {
            let faults = crossed(&graph(&[("mortise-checker", &[name])]));
            assert!(faults.iter().any(|f| f.contains(&format!("mortise-checker must not depend on {name}"))), "{name}");
        }
    }

    #[test]
    fn a_banned_crate_in_the_tree_is_named() {
        let tree = "mortise-engine v0.1.0 (/src)\nserde v1.0.0\ntokio v1.2.3\n";
        let faults = reached("mortise-engine", tree, &["tokio", "kube-client"], "why");
        assert_eq!(faults, ["mortise-engine reaches tokio: why (cargo tree -p mortise-engine -i tokio shows how)"]);
    }
}
