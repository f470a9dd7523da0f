//! Sessions of the real kubectl against the embedded cluster.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests may panic")]

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use mortise_sim::Cluster;
use mortise_sim::apiserver::Served;
use mortise_sim::cluster::Options;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

struct Session {
    _cluster: Cluster,
    _served: Served,
    directory: PathBuf,
    tool: PathBuf,
}

impl Session {
    async fn start(name: &str) -> Self {
        let cache = std::env::var_os("MORTISE_TOOLS").map(PathBuf::from).unwrap_or_else(|| {
            let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
            base.unwrap_or_else(|| PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache")).join("mortise")
        });
        let tool = cache.join("bin/kubernetes");
        assert!(tool.is_file(), "{} is missing: run `make tools`, or set MORTISE_TOOLS to where it is", tool.display());
        let cluster = Cluster::start(&Options { speed: 50.0, ..Options::default() }).unwrap();
        let served = cluster.api().serve(([127, 0, 0, 1], 0).into()).await.unwrap();
        let directory = std::env::temp_dir().join(format!("mortise-kubectl-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("kubeconfig"), served.kubeconfig()).unwrap();
        Self { _cluster: cluster, _served: served, directory, tool }
    }

    fn command(&self, args: &str) -> Command {
        let mut command = Command::new(&self.tool);
        command.arg("kubectl").args(args.split_whitespace()).current_dir(&self.directory).kill_on_drop(true);
        command.env("KUBECONFIG", self.directory.join("kubeconfig")).env("HOME", &self.directory);
        command
    }

    /// Exit code zero or not, and everything it said.
    async fn try_run(&self, args: &str) -> (bool, String) {
        let output = tokio::time::timeout(Duration::from_secs(60), self.command(args).output()).await;
        let output = output.unwrap_or_else(|_| panic!("kubectl {args}: takes too long")).unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    }

    async fn run(&self, args: &str) -> String {
        let (ok, text) = self.try_run(args).await;
        assert!(ok, "kubectl {args}: {text}");
        text
    }

    #[track_caller]
    fn contains(text: &str, parts: &[&str]) {
        for part in parts {
            assert!(text.contains(part), "no \"{part}\" in: {text}");
        }
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.directory.join(name), text).unwrap();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

const NODE: &str = "
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {kubernetes.io/hostname: n1}}
status:
  capacity: {cpu: 8, memory: 16Gi, pods: 110}
  allocatable: {cpu: 8, memory: 16Gi, pods: 110}
";

fn deployment(image: &str, label: &str) -> String {
    format!(
        "
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, labels: {{app: web{label}}}}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      containers:
      - name: web
        image: {image}
        ports: [{{containerPort: 80}}]
        resources: {{requests: {{cpu: 100m, memory: 64Mi}}}}
"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workloads_are_created_watched_scaled_and_deleted() {
    let k = Session::start("workloads").await;
    k.write("node.yaml", NODE);
    Session::contains(&k.run("create -f node.yaml").await, &["node/n1 created"]);

    let mut watch = k.command("get pods -w --no-headers").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    Session::contains(
        &k.run("create deployment burst --image=pause:3.9 --replicas=3").await,
        &["deployment.apps/burst created"],
    );
    Session::contains(&k.run("rollout status deployment/burst --timeout=30s").await, &["successfully rolled out"]);
    let mut states = Vec::new();
    while !states.iter().any(|s| s == "Running") {
        let line =
            tokio::time::timeout(Duration::from_secs(30), lines.next_line()).await.expect("a line").unwrap().unwrap();
        states.extend(line.split_whitespace().nth(2).map(str::to_owned));
    }
    assert!(states.iter().any(|s| s == "Pending"), "{states:?}");
    Session::contains(&k.run("get nodes").await, &["n1", "Ready"]);
    Session::contains(&k.run("get deployments").await, &["burst", "3/3"]);
    Session::contains(&k.run("describe deployment burst").await, &["3 desired", "pause:3.9", "Available"]);
    Session::contains(&k.run("describe node n1").await, &["Non-terminated Pods", "burst-"]);
    Session::contains(&k.run("get pods -l app=burst -o name --field-selector=spec.nodeName=n1").await, &["pod/burst-"]);

    Session::contains(&k.run("scale deployment burst --replicas=1").await, &["scaled"]);
    k.run("wait --for=jsonpath={.status.replicas}=1 deployment/burst --timeout=30s").await;
    // A drain evicts, and a budget that allows nothing refuses it.
    k.run("create poddisruptionbudget keep --selector=app=burst --min-available=1").await;
    k.run("wait --for=jsonpath={.status.currentHealthy}=1 pdb/keep --timeout=30s").await;
    let (ok, text) = k.try_run("drain n1 --timeout=3s").await;
    assert!(!ok);
    Session::contains(&text, &["Cannot evict pod as it would violate the pod's disruption budget."]);
    k.run("uncordon n1").await;
    k.run("taint node n1 a=b:NoSchedule").await;
    Session::contains(&k.run("get node n1 -o jsonpath={.spec.taints[*].key}").await, &["a"]);

    Session::contains(&k.run("delete deployment burst").await, &["deleted"]);
    k.run("wait --for=delete pod -l app=burst --timeout=30s").await;
    Session::contains(&k.run("get all").await, &["No resources found"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn manifests_are_applied_both_ways() {
    let k = Session::start("manifests").await;
    k.write("web.yaml", &deployment("web:1", ""));
    Session::contains(&k.run("apply -f web.yaml").await, &["created"]);
    Session::contains(&k.run("apply -f web.yaml").await, &["unchanged"]);
    k.write("web.yaml", &deployment("web:2", ""));
    Session::contains(&k.try_run("diff -f web.yaml").await.1, &["- image: web:1", "- image: web:2"]);
    Session::contains(&k.run("apply -f web.yaml").await, &["configured"]);
    Session::contains(
        &k.run("get deployment web -o jsonpath={.spec.template.spec.containers[0].image}").await,
        &["web:2"],
    );
    // From client-side to server-side apply, then a conflict with another manager.
    Session::contains(&k.run("apply --server-side -f web.yaml").await, &["serverside-applied"]);
    k.write("web.yaml", &deployment("web:3", ""));
    Session::contains(&k.run("apply --server-side -f web.yaml").await, &["serverside-applied"]);
    let (ok, text) = k.try_run("apply --server-side --field-manager=other -f web.yaml").await;
    assert!(ok, "same values are no conflict: {text}");
    k.write("web.yaml", &deployment("web:4", ""));
    let (ok, text) = k.try_run("apply --server-side --field-manager=third -f web.yaml").await;
    assert!(!ok);
    Session::contains(&text, &["conflict", "image"]);
    k.run("apply --server-side --field-manager=third --force-conflicts -f web.yaml").await;
    Session::contains(
        &k.run("get deployment web -o yaml --show-managed-fields").await,
        &["manager: third", "operation: Apply"],
    );

    k.write("bad.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: bad}\nspec: {replicaz: 1}\n");
    let (ok, text) = k.try_run("apply -f bad.yaml").await;
    assert!(!ok);
    Session::contains(&text, &["unknown field \"spec.replicaz\""]);
    Session::contains(&k.run("delete -f web.yaml").await, &["deleted"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn custom_resources_have_columns_short_names_and_explanations() {
    let k = Session::start("custom").await;
    k.write(
        "pool.yaml",
        "
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  limits: {cpu: 100}
  template:
    spec:
      requirements: [{key: kubernetes.io/arch, operator: In, values: [amd64]}]
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
",
    );
    Session::contains(&k.run("apply -f pool.yaml").await, &["created"]);
    Session::contains(&k.run("get nodepools").await, &["NODECLASS", "READY", "default"]);
    Session::contains(&k.run("get nodepool default -o yaml").await, &["consolidateAfter", "budgets"]);
    Session::contains(&k.run("describe nodepool default").await, &["Node Class Ref"]);
    Session::contains(&k.run("explain nodepool.spec.limits").await, &["FIELD: limits"]);
    Session::contains(&k.run("explain pod.spec.tolerations").await, &["tolerationSeconds"]);
    Session::contains(&k.run("api-resources").await, &["nodeclaims", "ec2nodeclasses"]);
    let (ok, text) = k
        .try_run("patch nodepool default --type=merge -p {\"spec\":{\"disruption\":{\"consolidateAfter\":\"soon\"}}}")
        .await;
    assert!(!ok);
    Session::contains(&text, &["spec.disruption.consolidateAfter", "soon"]);
}
