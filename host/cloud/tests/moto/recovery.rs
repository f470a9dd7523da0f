//! Nothing is lost and nothing is doubled, whatever goes missing between us and EC2.

use super::*;
use proxy::{Fault, Proxy, error, no_instances};

struct Scene {
    proxy: Proxy,
    moto: Moto,
    provider: AwsProvider,
    class: EC2NodeClass,
    catalog: Arc<Catalog>,
}

async fn through(proxy: &Proxy, moto: &Moto) -> AwsProvider {
    let mut settings = settings(moto);
    settings.for_tests = Some(TestEndpoint { url: proxy.url.clone() });
    settings.disable_dry_run = true;
    let provider = AwsProvider::connect(settings, Arc::new(mortise_cloud::Unobserved)).await.unwrap();
    provider.check().await.unwrap();
    provider
}

async fn scene() -> Scene {
    let moto = Moto::start();
    moto.prepare().await;
    let proxy = Proxy::start(&moto.url);
    let provider = through(&proxy, &moto).await;
    let class = ready(&provider, class(serde_json::json!({}))).await;
    let catalog = provider.catalog(&class).await.unwrap();
    Scene { proxy, moto, provider, class, catalog }
}

impl Scene {
    fn request(&self, name: &str, offerings: &[(&str, &str)]) -> LaunchRequest {
        let choices = offerings.iter().map(|(t, z)| choice(&self.catalog, t, z, CapacityType::OnDemand)).collect();
        request(&self.class, name, choices)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_replies() {
    let scene = scene().await;
    // One reply is lost: the SDK asks again with the same token, and EC2 answers as before.
    scene.proxy.inject([Fault::LoseReply]);
    let launch = scene.request("once", &[("m5.large", "us-east-1a")]);
    let once = scene.provider.launch(&launch).await.unwrap();
    assert_eq!(scene.proxy.fleets(), (2, 1));
    assert_eq!(scene.provider.list().await.unwrap().len(), 1);

    // Every reply is lost: it is not known what happened, and said so; the next try finds the machine.
    scene.proxy.inject((0..4).map(|_| Fault::LoseReply));
    let launch = scene.request("lost", &[("m5.large", "us-east-1a")]);
    let lost = scene.provider.launch(&launch).await.unwrap_err();
    assert!(matches!(lost, LaunchError::Transient { .. }), "{lost}");
    assert_eq!(scene.provider.list().await.unwrap().len(), 2, "it is there all the same");
    let found = scene.provider.launch(&LaunchRequest { may_exist: true, ..launch.clone() }).await.unwrap();
    assert_ne!(found.provider_id, once.provider_id);
    assert_eq!(scene.proxy.fleets().1, 2);

    // Another process, which has chosen other offerings since and does not look first: the token stops it.
    let next = through(&scene.proxy, &scene.moto).await;
    let other = scene.request("lost", &[("c5.large", "us-east-1b"), ("m5.large", "us-east-1a")]);
    let adopted = next.launch(&other).await.unwrap();
    assert_eq!(adopted.provider_id, found.provider_id);
    assert_eq!(&*adopted.instance_type, "m5.large");
    assert_eq!(scene.proxy.fleets().1, 2);
    assert_eq!(scene.provider.list().await.unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn sold_out() {
    let scene = scene().await;
    let code = "InsufficientInstanceCapacity";
    let launch = scene.request("ice", &[("m5.large", "us-east-1a"), ("c5.large", "us-east-1b")]);
    let mut changed = scene.provider.catalog_changed();
    changed.mark_unchanged();
    let answer = no_instances(&[(code, "m5.large", "us-east-1a"), (code, "c5.large", "us-east-1b")]);
    scene.proxy.inject([Fault::Answer(200, answer)]);
    let failed = scene.provider.launch(&launch).await.unwrap_err();
    let LaunchError::InsufficientCapacity { message, offerings, .. } = &failed else { panic!("{failed}") };
    assert_eq!(offerings.len(), 2);
    assert!(message.contains("m5.large/us-east-1a"), "{message}");
    assert!(changed.has_changed().unwrap());

    // The next round sees it: the offerings are listed, with their price, but not to be had.
    let now = scene.provider.catalog(&scene.class).await.unwrap();
    assert!(now.generation > scene.catalog.generation);
    let available = |name: &str, zone: &str| {
        let it = now.types.iter().find(|t| &*t.name == name).unwrap();
        let mut on_demand = it.offerings.iter().filter(|o| o.capacity_type == CapacityType::OnDemand);
        on_demand.find(|o| &*o.zone == zone).map(|o| (o.available, o.price.is_some())).unwrap()
    };
    assert_eq!(available("m5.large", "us-east-1a"), (false, true));
    assert_eq!(available("m5.large", "us-east-1b"), (true, true));
    // A list made before is not tried again in vain.
    let (seen, _) = scene.proxy.fleets();
    let again = scene.provider.launch(&scene.request("ice-2", &[("m5.large", "us-east-1a")])).await.unwrap_err();
    assert!(matches!(again, LaunchError::InsufficientCapacity { .. }), "{again}");
    assert_eq!(scene.proxy.fleets().0, seen);
    // The next offering comes, even for the same claim: its old token is used up.
    let other = scene.provider.launch(&scene.request("ice", &[("m5.large", "us-east-1b")])).await.unwrap();
    assert_eq!(&*other.zone, "us-east-1b");
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_and_throttled() {
    let scene = scene().await;
    let launch = scene.request("r", &[("m5.large", "us-east-1a")]);
    let denied = error("UnauthorizedOperation", "You are not authorized to perform this operation.");
    scene.proxy.inject([Fault::Answer(403, denied)]);
    let failed = scene.provider.launch(&launch).await.unwrap_err();
    assert!(matches!(&failed, LaunchError::Create { reason, .. } if &**reason == "Unauthorized"), "{failed}");

    let slow = || Fault::Answer(503, error("RequestLimitExceeded", "Request limit exceeded."));
    scene.proxy.inject((0..4).map(|_| slow()));
    let failed = scene.provider.launch(&launch).await.unwrap_err();
    let LaunchError::Transient { reason, retry_after, .. } = &failed else { panic!("{failed}") };
    assert_eq!(&**reason, "RequestLimitExceeded");
    assert!(retry_after.is_some());

    // A template deleted by somebody else is made anew within the launch.
    let gone = error("InvalidLaunchTemplateName.NotFoundException", "does not exist");
    scene.moto.delete_launch_templates().await;
    scene.proxy.inject([Fault::Answer(400, gone)]);
    let instance = scene.provider.launch(&launch).await.unwrap();
    assert_eq!(scene.moto.launch_templates().await, 1);
    assert_eq!(scene.provider.list().await.unwrap().len(), 1);
    assert_eq!(instance.claim_uid.as_deref(), Some("uid-of-r"));
}
