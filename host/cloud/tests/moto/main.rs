//! The provider with the real SDK against moto, an EC2 stand-in over HTTP.
//!
//! Needs `moto_server` below `$MORTISE_TOOLS/moto/bin` (`~/.cache/mortise` when unset); `make test` installs it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod proxy;
mod recovery;
mod server;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mortise_api::EC2NodeClass;
use mortise_api::condition::{self, Conditions as _, Status};
use mortise_cloud::aws::{AwsProvider, AwsSettings, TestEndpoint};
use mortise_cloud::{CallObserver, CloudProvider, Finalize, LaunchError, LaunchRequest, Verdict};
use mortise_engine::catalog::{CapacityType, Catalog};
use mortise_engine::decision::{Choice, LaunchList};
use mortise_engine::quantity::Resources;
use mortise_engine::taint::{Effect, Taint};
use server::Moto;

/// Remembers calls.
#[derive(Default)]
struct Calls(Mutex<Vec<(&'static str, Option<String>)>>);

impl CallObserver for Calls {
    fn observe(&self, call: &'static str, duration: Duration, error_code: Option<&str>) {
        assert!(duration < Duration::from_secs(60));
        self.0.lock().unwrap().push((call, error_code.map(str::to_owned)));
    }
}

impl Calls {
    fn count(&self, call: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|(c, _)| *c == call).count()
    }
}

fn settings(moto: &Moto) -> AwsSettings {
    let mut settings = AwsSettings::new("prod");
    settings.for_tests = Some(TestEndpoint { url: moto.url.clone() });
    settings.region = Some(Arc::from("us-east-1"));
    settings.cluster_endpoint = Some(Arc::from("https://cluster.example"));
    settings.cluster_ca_bundle = Some(Arc::from("Q0E="));
    settings.service_cidr = Some(Arc::from("10.100.0.0/16"));
    settings.kubernetes_version = Some(Arc::from("1.33"));
    settings
}

async fn connect(moto: &Moto) -> (AwsProvider, Arc<Calls>) {
    let calls = Arc::new(Calls::default());
    let provider = AwsProvider::connect(settings(moto), Arc::clone(&calls) as Arc<dyn CallObserver>).await.unwrap();
    (provider, calls)
}

fn class(extra: serde_json::Value) -> EC2NodeClass {
    let mut spec = serde_json::json!({
        "role": "NodeRole",
        "amiFamily": "AL2023",
        "amiSelectorTerms": [{"ssmParameter": "/images/x86_64"}, {"ssmParameter": "/images/arm64"}],
        "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "prod"}}],
        "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "prod"}}],
        "tags": {"team": "infra"},
    });
    for (key, value) in extra.as_object().unwrap() {
        spec[key] = value.clone();
    }
    let mut class = EC2NodeClass::new("default", serde_json::from_value(spec).unwrap());
    // Each is an object of its own: what is found is kept by uid and generation.
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    class.metadata.uid = Some(format!("class-uid-{number}"));
    class.metadata.generation = Some(1);
    class
}

/// Resolves and writes the status as the controller would.
async fn ready(provider: &AwsProvider, mut class: EC2NodeClass) -> EC2NodeClass {
    let resolution = provider.resolve(&class).await;
    assert!(resolution.is_ready(), "{:?}", resolution.first_trouble());
    class.status = Some(resolution.status);
    let now = k8s_openapi::jiff::Timestamp::now();
    for outcome in resolution.conditions {
        class.set_condition(outcome.condition, Status::True, outcome.condition, "", now);
    }
    class.set_condition(condition::READY, Status::True, "Ready", "", now);
    class
}

fn choice(catalog: &Catalog, name: &str, zone: &str, capacity_type: CapacityType) -> Choice {
    let it = catalog.types.iter().find(|t| &*t.name == name).unwrap();
    let offering = it.offerings.iter().find(|o| &*o.zone == zone && o.capacity_type == capacity_type).unwrap();
    Choice {
        instance_type: Arc::clone(&it.name),
        zone: Arc::clone(&offering.zone),
        capacity_type,
        price: offering.price,
        effective_cost: None,
    }
}

fn request(class: &EC2NodeClass, name: &str, choices: Vec<Choice>) -> LaunchRequest {
    let label = |k: &str, v: &str| (Arc::<str>::from(k), Arc::<str>::from(v));
    LaunchRequest {
        claim_name: Arc::from(name),
        claim_uid: Arc::from(format!("uid-of-{name}")),
        nodepool: Arc::from("general"),
        class: Arc::new(class.clone()),
        labels: BTreeMap::from([label("karpenter.sh/nodepool", "general"), label("team", "a")]),
        taints: vec![Taint { key: Arc::from("dedicated"), value: Arc::from("x"), effect: Effect::NoSchedule }],
        startup_taints: Vec::new(),
        requirements: Vec::new(),
        requests: Resources { cpu_milli: 1000, ..Resources::default() },
        list: LaunchList {
            capacity_type: choices.first().map_or(CapacityType::OnDemand, |c| c.capacity_type),
            choices,
            prioritized: false,
        },
        may_exist: false,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn from_class_to_machine_and_back() {
    let moto = Moto::start();
    moto.prepare().await;
    let (provider, calls) = connect(&moto).await;
    provider.check().await.unwrap();
    let class = ready(&provider, class(serde_json::json!({}))).await;
    let status = class.status.clone().unwrap();
    assert_eq!(status.subnets.len(), 3, "three of six are tagged");
    assert_eq!(status.security_groups.len(), 1);
    assert_eq!(status.amis.len(), 2, "x86_64 and arm64");
    let profile = status.instance_profile.clone().unwrap();
    assert!(profile.starts_with("prod_"));
    assert_eq!((calls.count("CreateFleet"), calls.count("RunInstances")), (1, 1), "dry runs");
    assert_eq!(provider.list().await.unwrap(), [], "which start nothing");
    let again = provider.resolve(&class).await;
    assert!(again.is_ready());
    assert_eq!(calls.count("RunInstances"), 1, "not tried again for half an hour");
    let made = calls.count("CreateLaunchTemplate");

    let catalog = provider.catalog(&class).await.unwrap();
    assert_eq!(
        catalog.types.len(),
        1377,
        "1,395 types less those of macOS, and those of i386 that moto's filter leaves out"
    );
    let m5 = catalog.types.iter().find(|t| &*t.name == "m5.large").unwrap();
    assert_eq!(m5.allocatable.memory, 6903 << 20);
    assert_eq!(m5.capacity.pods, 29);
    let open: Vec<&str> = m5.offerings.iter().filter(|o| o.available).map(|o| &*o.zone).collect();
    assert!(open.iter().all(|z| ["us-east-1a", "us-east-1b", "us-east-1c"].contains(z)), "{open:?}");
    assert!(Arc::ptr_eq(&catalog, &provider.catalog(&class).await.unwrap()), "kept while nothing changes");

    // Launch: EC2's answer says all, so there is no second call.
    let choices = vec![
        choice(&catalog, "m5.large", "us-east-1b", CapacityType::OnDemand),
        choice(&catalog, "c6g.xlarge", "us-east-1a", CapacityType::OnDemand),
    ];
    let launch = request(&class, "general-abc", choices);
    let instance = provider.launch(&launch).await.unwrap();
    assert_eq!(calls.count("CreateFleet"), 2);
    assert_eq!(calls.count("CreateLaunchTemplate"), made + 2, "one per architecture");
    assert_eq!(&*instance.instance_type, "m5.large");
    assert_eq!(&*instance.zone, "us-east-1b");
    assert!(instance.provider_id.starts_with("aws:///us-east-1b/i-"));
    assert_eq!(instance.allocatable, m5.allocatable);
    let label = |key: &str| instance.labels.get(key).map(|v| v.to_string());
    assert_eq!(label("karpenter.k8s.aws/instance-family").as_deref(), Some("m5"));
    assert_eq!(label("karpenter.sh/capacity-type").as_deref(), Some("on-demand"));
    assert_eq!(label("topology.kubernetes.io/zone").as_deref(), Some("us-east-1b"));
    assert_eq!(label("karpenter.sh/nodepool").as_deref(), Some("general"));
    assert!(label("topology.k8s.aws/zone-id").is_some_and(|id| id.starts_with("use1-az")));
    assert_eq!(instance.annotations.get("karpenter.k8s.aws/instance-profile-name").map(|v| &**v), Some(&*profile));

    // The machine says from the start whose it is.
    let found = provider.find_by_claim("uid-of-general-abc").await.unwrap().unwrap();
    assert_eq!(found.provider_id, instance.provider_id);
    assert_eq!(found.claim_name.as_deref(), Some("general-abc"));
    assert_eq!(found.node_class.as_deref(), Some("default"));
    assert_eq!(found.tags.get("team").map(|v| &**v), Some("infra"));
    assert_eq!(found.tags.get("kubernetes.io/cluster/prod").map(|v| &**v), Some("owned"));
    let user_data = moto.user_data(&found.provider_id).await;
    for part in
        ["kind: NodeConfig", "apiServerEndpoint: https://cluster.example", "karpenter.sh/unregistered", "team=a"]
    {
        assert!(user_data.contains(part), "{part} is missing in {user_data}");
    }

    // Another process that lost the answer finds it instead of starting another.
    let (second, second_calls) = connect(&moto).await;
    second.check().await.unwrap();
    let adopted = second.launch(&LaunchRequest { may_exist: true, ..launch.clone() }).await.unwrap();
    assert_eq!(adopted.provider_id, instance.provider_id);
    assert_eq!(adopted.allocatable, instance.allocatable);
    assert_eq!(adopted.labels, instance.labels);
    assert_eq!(second_calls.count("CreateFleet"), 0);

    // Templates are reused.
    let again = request(&class, "general-def", launch.list.choices.clone());
    let other = provider.launch(&again).await.unwrap();
    assert_eq!(calls.count("CreateLaunchTemplate"), made + 2);
    assert_eq!(provider.list().await.unwrap().len(), 2);

    // Tags are added where absent, never overwritten.
    let tags = BTreeMap::from([
        (Arc::<str>::from("Name"), Arc::<str>::from("node-1")),
        (Arc::from("team"), Arc::from("overwritten")),
    ]);
    provider.tag(&other.provider_id, &tags).await.unwrap();
    let tagged = provider.get(&other.provider_id).await.unwrap();
    assert_eq!(tagged.tags.get("Name").map(|v| &**v), Some("node-1"));
    assert_eq!(tagged.tags.get("team").map(|v| &**v), Some("infra"));

    // Ending: both at once, with one that never was.
    let gone = "aws:///us-east-1a/i-0123456789abcdef0";
    let (a, b, c) = tokio::join!(
        provider.terminate(&instance.provider_id),
        provider.terminate(&other.provider_id),
        provider.terminate(gone),
    );
    a.unwrap();
    b.unwrap();
    assert!(c.unwrap_err().is_not_found());
    assert!(provider.get(&instance.provider_id).await.unwrap_err().is_not_found());
    assert!(provider.get(gone).await.unwrap_err().is_not_found());
    assert_eq!(provider.list().await.unwrap(), []);
    assert_eq!(provider.find_by_claim("uid-of-general-abc").await.unwrap(), None);

    // Removing the class: not while a claim is left, then everything goes.
    let waiting = provider.finalize(&class, &[Arc::from("general-abc")]).await.unwrap();
    assert_eq!(waiting, Finalize::WaitingForClaims { claims: vec![Arc::from("general-abc")] });
    assert_eq!(provider.finalize(&class, &[]).await.unwrap(), Finalize::Done);
    assert_eq!(moto.launch_templates().await, 0);
    assert_eq!(moto.instance_profiles().await, 0);
    assert_eq!(provider.finalize(&class, &[]).await.unwrap(), Finalize::Done, "twice is as good as once");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_part_of_a_class_speaks_for_itself() {
    let moto = Moto::start();
    moto.prepare().await;
    let (provider, _) = connect(&moto).await;
    let reason = |resolution: &mortise_cloud::ClassResolution, condition: &str| {
        let outcome = resolution.conditions.iter().find(|c| c.condition == condition).unwrap();
        match &outcome.verdict {
            Verdict::Ready => "Ready".to_owned(),
            Verdict::NotReady { reason, .. } | Verdict::Unknown { reason, .. } | Verdict::Unasked { reason, .. } => {
                reason.to_string()
            }
        }
    };

    let wrong = class(serde_json::json!({
        "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "elsewhere"}}],
        "role": "NoSuchRole",
        "amiSelectorTerms": [{"id": "ami-00000000"}],
    }));
    let resolution = provider.resolve(&wrong).await;
    assert_eq!(reason(&resolution, "SubnetsReady"), "SubnetsNotFound");
    assert_eq!(reason(&resolution, "SecurityGroupsReady"), "Ready");
    assert_eq!(reason(&resolution, "AMIsReady"), "AMINotFound");
    assert_eq!(reason(&resolution, "InstanceProfileReady"), "RoleNotFound");
    assert_eq!(reason(&resolution, "ValidationSucceeded"), "DependenciesNotReady");
    assert!(!resolution.is_ready());
    let (_, _, message) = resolution.first_trouble().unwrap();
    assert!(message.contains("amiSelectorTerms") && message.contains("ami-00000000"), "{message}");

    let unpublished = class(serde_json::json!({"amiSelectorTerms": [{"alias": "al2023@v20991231"}]}));
    let resolution = provider.resolve(&unpublished).await;
    assert_eq!(reason(&resolution, "AMIsReady"), "AMINotFound");
    let (_, _, message) = resolution.first_trouble().unwrap();
    assert!(message.contains("al2023@v20991231 for Kubernetes 1.33"), "{message}");

    for (field, value, expected) in [
        ("amiFamily", serde_json::json!("Bottlerocket"), "AMIFamilyNotSupported"),
        ("kubelet", serde_json::json!({"maxPods": "vcpus * 10"}), "KubeletExpressionsDisabled"),
        ("kubelet", serde_json::json!({"maxPodz": 3}), "InvalidKubeletConfiguration"),
        ("tags", serde_json::json!({"karpenter.sh/nodepool": "x"}), "TagValidationFailed"),
        ("userData", serde_json::json!("x".repeat(20_000)), "UserDataSizeLimitExceeded"),
        ("userData", serde_json::json!("MIME-Version: 1.0\n\nno boundary"), "InvalidUserData"),
    ] {
        let resolution = provider.resolve(&class(serde_json::json!({field: value}))).await;
        assert_eq!(reason(&resolution, "ValidationSucceeded"), expected, "{field}");
    }

    let grouped = class(serde_json::json!({
        "placementGroupSelector": {"name": "g"}, "capacityReservationSelectorTerms": [{"id": "cr-1"}],
    }));
    let resolution = provider.resolve(&grouped).await;
    assert_eq!(reason(&resolution, "PlacementGroupReady"), "PlacementGroupNotSupported");
    assert_eq!(reason(&resolution, "CapacityReservationsReady"), "CapacityReservationsNotSupported");

    // A profile of the user's own needs no IAM.
    let mut own = class(serde_json::json!({"instanceProfile": "mine"}));
    own.spec.role = None;
    let resolution = provider.resolve(&own).await;
    assert_eq!(resolution.status.instance_profile.as_deref(), Some("mine"));
    assert_eq!(reason(&resolution, "ValidationSucceeded"), "InstanceProfileNotFound");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_ready_is_not_launched() {
    let moto = Moto::start();
    moto.prepare().await;
    let (provider, calls) = connect(&moto).await;
    provider.check().await.unwrap();
    let bare = class(serde_json::json!({}));
    let error = provider.launch(&request(&bare, "a", Vec::new())).await.unwrap_err();
    assert!(matches!(error, LaunchError::ClassNotReady { .. }), "{error}");
    let mut changed = ready(&provider, bare).await;
    changed.metadata.generation = Some(2);
    let error = provider.launch(&request(&changed, "a", Vec::new())).await.unwrap_err();
    assert!(matches!(&error, LaunchError::ClassNotReady { message } if message.contains("changed")), "{error}");
    changed.metadata.generation = Some(1);
    let error = provider.launch(&request(&changed, "a", Vec::new())).await.unwrap_err();
    assert!(matches!(error, LaunchError::InsufficientCapacity { .. }), "no offering at all: {error}");
    assert_eq!(calls.count("CreateFleet"), 1, "the dry run");
}

#[tokio::test(flavor = "multi_thread")]
async fn spot_prices_move_the_catalogue() {
    let moto = Moto::start();
    moto.prepare().await;
    let (provider, calls) = connect(&moto).await;
    provider.check().await.unwrap();
    let class = ready(&provider, class(serde_json::json!({}))).await;
    let before = provider.catalog(&class).await.unwrap();
    let spot = |catalog: &Catalog| {
        let m5 = catalog.types.iter().find(|t| &*t.name == "m5.large").unwrap();
        let offering = m5.offerings.iter().find(|o| o.capacity_type == CapacityType::Spot && o.available).unwrap();
        (offering.price.map(|p| p.0), offering.price_estimated)
    };
    assert_eq!(spot(&before), (Some(96_000), true), "the list price until the market is seen");
    let mut changed = provider.catalog_changed();
    changed.mark_unchanged();
    let provider = Arc::new(provider);
    let background = Arc::clone(&provider);
    let (_leader, receiver) = tokio::sync::watch::channel(true);
    let task = tokio::spawn(async move { background.run(receiver).await });
    tokio::time::timeout(Duration::from_secs(60), changed.changed()).await.unwrap().unwrap();
    let after = provider.catalog(&class).await.unwrap();
    task.abort();
    assert!(after.generation > before.generation);
    assert_eq!(spot(&after), (Some(10), false), "moto's price of 0.00001 $");
    assert!(calls.count("DescribeSpotPriceHistory") >= 1);

    let launch = request(&class, "s", vec![choice(&after, "m5.large", "us-east-1a", CapacityType::Spot)]);
    let instance = provider.launch(&launch).await.unwrap();
    assert_eq!(instance.capacity_type, CapacityType::Spot);
    let read = provider.get(&instance.provider_id).await.unwrap();
    assert_eq!(read.capacity_type, CapacityType::Spot);
}
