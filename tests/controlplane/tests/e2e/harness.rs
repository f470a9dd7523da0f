//! The harness itself: if one of these fails, no scenario says anything about the controller.

use crate::world::World;
use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use mortise_controlplane_tests::aws::{AwsClient, CLUSTER_NAME, Xml};
use mortise_controlplane_tests::cluster::{Aws, Cluster};
use mortise_controlplane_tests::control_plane::SERVICE_CIDR;
use mortise_controlplane_tests::proxy::{Effect, Fault, Market, Outcome};
use mortise_controlplane_tests::{helm, kwok, wait};
use serde_json::json;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(30);

fn pod(name: &str, selector: &serde_json::Value) -> String {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "nodeSelector": selector, "terminationGracePeriodSeconds": 0,
            "tolerations": [{"key": "karpenter.sh/unregistered", "operator": "Exists"}],
            "containers": [{"name": "pause", "image": "pause", "resources": {"requests": {"cpu": "100m"}}}],
        },
    })
    .to_string()
}

async fn runs(cluster: &Cluster, name: &str) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), "default");
    wait::until(&format!("pod {name} to run"), LIMIT, async || {
        let pod = pods.get(name).await?;
        Ok(pod.status.is_some_and(|status| status.phase.as_deref() == Some("Running")).then_some(()))
    })
    .await?;
    cluster.kubectl.run(&["delete", "pod", name, "--wait"]).await.map(drop)
}

async fn ready(cluster: &Cluster, name: &str) -> Result<Node> {
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    wait::until(&format!("node {name} to be Ready"), LIMIT, async || {
        let Some(node) = nodes.get_opt(name).await? else { return Ok(None) };
        let ready = node
            .status
            .iter()
            .flat_map(|status| status.conditions.iter().flatten())
            .any(|condition| condition.type_ == "Ready" && condition.status == "True");
        Ok(ready.then_some(node))
    })
    .await
}

pub(crate) async fn control_plane_runs_a_pod_on_a_hand_made_node(world: &mut World) -> Result<()> {
    let cluster = &world.cluster;
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": "by-hand", "labels": {"made": "by-hand", "kubernetes.io/hostname": "by-hand"},
            "annotations": {kwok::ANNOTATION: kwok::MANAGED},
        },
        "status": {
            "capacity": {"cpu": "4", "memory": "8Gi", "pods": "20"},
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "20"},
        },
    });
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    nodes.create(&kube::api::PostParams::default(), &serde_json::from_value(node)?).await?;
    ready(cluster, "by-hand").await?;
    cluster.kubectl.apply(&pod("hello", &json!({"made": "by-hand"}))).await?;
    runs(cluster, "hello").await?;
    cluster.kubectl.run(&["delete", "node", "by-hand"]).await.map(drop)
}

/// User data as nodeadm wants it.
fn user_data(cluster: &Cluster) -> String {
    let ca = base64::engine::general_purpose::STANDARD.encode(&cluster.plane.ca_pem);
    let config = format!(
        "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  cluster:\n    name: {CLUSTER_NAME}\n    \
         apiServerEndpoint: {}\n    certificateAuthority: {ca}\n    cidr: {SERVICE_CIDR}\n  kubelet:\n    config:\n      \
         maxPods: 29\n      registerWithTaints:\n      - key: karpenter.sh/unregistered\n        effect: NoExecute\n    \
         flags:\n    - --node-labels=\"karpenter.sh/nodepool=by-hand\"\n",
        cluster.plane.server
    );
    let mime = format!(
        "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n--//\nContent-Type: application/node.eks.aws\n\n{config}\n--//--\n"
    );
    base64::engine::general_purpose::STANDARD.encode(mime)
}

async fn template(cluster: &Cluster, aws: &AwsClient, name: &str) -> Result<()> {
    let image = aws.ec2("DescribeImages", &[]).await?.text("imageId")?;
    let data = user_data(cluster);
    aws.ec2(
        "CreateLaunchTemplate",
        &[("LaunchTemplateName", name), ("LaunchTemplateData.ImageId", &image), ("LaunchTemplateData.UserData", &data)],
    )
    .await
    .map(drop)
}

async fn fleet(aws: &Aws, through: &AwsClient, template: &str, token: &str, types: &[&str], count: u32) -> Result<Xml> {
    let mut parameters = vec![
        ("Type".to_owned(), "instant".to_owned()),
        ("ClientToken".to_owned(), token.to_owned()),
        ("TargetCapacitySpecification.TotalTargetCapacity".to_owned(), count.to_string()),
        ("TargetCapacitySpecification.DefaultTargetCapacityType".to_owned(), "on-demand".to_owned()),
        ("OnDemandOptions.AllocationStrategy".to_owned(), "lowest-price".to_owned()),
        ("TagSpecification.1.ResourceType".to_owned(), "instance".to_owned()),
        ("TagSpecification.1.Tag.1.Key".to_owned(), "made".to_owned()),
        ("TagSpecification.1.Tag.1.Value".to_owned(), token.to_owned()),
        ("LaunchTemplateConfigs.1.LaunchTemplateSpecification.LaunchTemplateName".to_owned(), template.to_owned()),
        ("LaunchTemplateConfigs.1.LaunchTemplateSpecification.Version".to_owned(), "$Latest".to_owned()),
    ];
    let mut number = 0;
    for instance_type in types {
        for (subnet, zone) in &aws.account.zone_of_subnet {
            number += 1;
            let path = format!("LaunchTemplateConfigs.1.Overrides.{number}");
            parameters.push((format!("{path}.InstanceType"), (*instance_type).to_owned()));
            parameters.push((format!("{path}.SubnetId"), subnet.clone()));
            parameters.push((format!("{path}.AvailabilityZone"), zone.clone()));
        }
    }
    let borrowed: Vec<(&str, &str)> = parameters.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    through.ec2("CreateFleet", &borrowed).await
}

pub(crate) async fn fleet_takes_the_cheapest_in_stock_and_remembers_tokens(world: &mut World) -> Result<()> {
    let aws = world.cluster.aws()?;
    aws.joiner.pause(true);
    let through = AwsClient::new(&aws.proxy.endpoint);
    template(&world.cluster, &through, "choice").await?;
    let price = |name| Market::price(name, "us-east-1a", "on-demand").context("no price");
    ensure!(price("m5.large")? > price("c5.large")?, "the test assumes that c5.large costs less");

    let xml = fleet(aws, &through, "choice", "token-1", &["m5.large", "c5.large"], 1).await?;
    ensure!(xml.0.contains("<instanceType>c5.large</instanceType>"), "not the cheapest: {}", xml.0);
    let again = fleet(aws, &through, "choice", "token-1", &["m5.large", "c5.large"], 1).await?;
    ensure!(again.0 == xml.0, "the same token started something new");
    let other = fleet(aws, &through, "choice", "token-1", &["m5.large"], 1).await;
    ensure!(format!("{other:?}").contains("IdempotentParameterMismatch"), "{other:?}");

    aws.proxy.market(|market| market.sell_out("c5.large", "", "", 0));
    let xml = fleet(aws, &through, "choice", "token-2", &["m5.large", "c5.large"], 2).await?;
    let starts = xml.texts("lifecycle")?.len() - xml.texts("errorCode")?.len();
    ensure!(xml.texts("errorCode")?.len() == 3 && starts == 2, "three zones sold out, two started: {}", xml.0);
    aws.proxy.market(|market| market.sell_out("", "", "", 0));
    let xml = fleet(aws, &through, "choice", "token-3", &["m5.large"], 1).await?;
    ensure!(xml.texts("instanceIds")?.is_empty() && xml.texts("errorCode")?.len() == 3, "{}", xml.0);
    aws.proxy.heal();

    let calls = aws.proxy.calls_since(0, "CreateFleet");
    ensure!(calls.len() == 5 && calls[1].replayed && calls[0].tags("instance")["made"] == "token-1", "{calls:?}");
    let living: Vec<_> = aws.direct.instances("made").await?.into_iter().filter(|it| it.lives()).collect();
    ensure!(living.len() == 3, "one and two: {living:?}");
    end_all(aws).await
}

async fn end_all(aws: &Aws) -> Result<()> {
    for instance in aws.direct.instances("made").await?.into_iter().filter(|it| it.lives()) {
        aws.direct.ec2("TerminateInstances", &[("InstanceId.1", &instance.id)]).await?;
    }
    aws.joiner.pause(false);
    Ok(())
}

pub(crate) async fn instance_joins_from_its_user_data(world: &mut World) -> Result<()> {
    let cluster = &world.cluster;
    let aws = cluster.aws()?;
    let through = AwsClient::new(&aws.proxy.endpoint);
    template(cluster, &through, "join").await?;
    fleet(aws, &through, "join", "join-1", &["m5.large"], 1).await?;
    let instance = aws.direct.instances("made").await?.into_iter().find(|it| it.lives()).context("no instance")?;
    let node = ready(cluster, &instance.private_dns).await?;
    let labels = node.metadata.labels.clone().unwrap_or_default();
    ensure!(
        labels["karpenter.sh/nodepool"] == "by-hand" && labels["topology.kubernetes.io/zone"] == instance.zone,
        "{labels:?}"
    );
    let spec = node.spec.context("no spec")?;
    ensure!(spec.provider_id.as_deref() == Some(&instance.provider_id()), "{:?}", spec.provider_id);
    ensure!(spec.taints.iter().flatten().any(|taint| taint.key == "karpenter.sh/unregistered"), "{:?}", spec.taints);
    cluster.kubectl.apply(&pod("joined", &json!({"karpenter.sh/nodepool": "by-hand"}))).await?;
    runs(cluster, "joined").await?;

    end_all(aws).await?;
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    wait::until("KWOK to let go of the node", LIMIT, async || {
        let annotations = nodes.get(&instance.private_dns).await?.metadata.annotations.unwrap_or_default();
        Ok((annotations[kwok::ANNOTATION] != kwok::MANAGED).then_some(()))
    })
    .await?;
    cluster.kubectl.run(&["delete", "node", &instance.private_dns]).await?;
    ensure!(aws.joiner.refused().is_empty(), "{:?}", aws.joiner.refused());
    Ok(())
}

pub(crate) async fn a_lost_reply_still_starts_the_instance(world: &mut World) -> Result<()> {
    let aws = world.cluster.aws()?;
    aws.joiner.pause(true);
    let through = AwsClient::new(&aws.proxy.endpoint);
    template(&world.cluster, &through, "lost").await?;
    let mark = aws.proxy.mark();
    aws.proxy.inject(Fault::on("CreateFleet", Effect::LoseReply).with_value("lost-1").times(1));
    aws.proxy.inject(Fault::on("DescribeSubnets", Effect::LoseRequest).times(1));
    let refuse =
        Effect::Refuse { status: 503, code: "RequestLimitExceeded".to_owned(), message: "slow down".to_owned() };
    aws.proxy.inject(Fault::on("DescribeImages", refuse).times(1));
    ensure!(fleet(aws, &through, "lost", "lost-1", &["m5.large"], 1).await.is_err(), "the reply was not lost");
    ensure!(through.ec2("DescribeSubnets", &[]).await.is_err(), "the request was not lost");
    ensure!(format!("{:?}", through.ec2("DescribeImages", &[]).await).contains("RequestLimitExceeded"), "not refused");
    let calls = aws.proxy.calls_since(mark, "CreateFleet");
    ensure!(calls.len() == 1 && calls[0].outcome == Outcome::Dropped { reached: true }, "{calls:?}");
    let living = aws.direct.instances("made").await?.into_iter().filter(|it| it.lives()).count();
    ensure!(living == 1 && calls[0].instances.len() == 1, "{living} instances; {calls:?}");
    let retried = fleet(aws, &through, "lost", "lost-1", &["m5.large"], 1).await?;
    ensure!(retried.0.contains(&calls[0].instances[0]), "the retry did not get the first answer: {}", retried.0);
    aws.proxy.heal();
    end_all(aws).await
}

pub(crate) async fn helm_installs_a_chart(world: &mut World) -> Result<()> {
    let cluster = &world.cluster;
    let chart = cluster.workspace.file("trivial");
    std::fs::create_dir_all(chart.join("templates"))?;
    std::fs::write(chart.join("Chart.yaml"), "apiVersion: v2\nname: trivial\nversion: 0.1.0\n")?;
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "trivial"},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "trivial"}}, "template": {
            "metadata": {"labels": {"app": "trivial"}},
            "spec": {"serviceAccountName": "trivial", "containers": [{
                "name": "controller", "image": "pause", "args": ["controller"],
                "resources": {"requests": {"cpu": "500m"}, "limits": {"memory": "1Gi"}},
                "env": [
                    {"name": "PLAIN", "value": "{{ .Values.plain }}"},
                    {"name": "SYSTEM_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
                    {"name": "CPU_REQUESTS", "valueFrom": {"resourceFieldRef": {"resource": "requests.cpu", "divisor": "1m"}}},
                    {"name": "MEMORY_LIMIT", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory"}}},
                ],
            }]},
        }},
    });
    std::fs::write(chart.join("templates/all.yaml"), deployment.to_string())?;
    std::fs::write(chart.join("templates/NOTES.txt"), "Well done.\n")?;
    let values = cluster.workspace.write("trivial.yaml", "plain: hello\n")?;
    let notes = cluster.helm.install("trivial", "trivial", &chart, &[&values]).await?;
    ensure!(notes.contains("Well done."), "{notes}");
    let read = helm::Installation::read(&cluster.client, "trivial").await?;
    for (name, value) in
        [("PLAIN", "hello"), ("SYSTEM_NAMESPACE", "trivial"), ("CPU_REQUESTS", "500"), ("MEMORY_LIMIT", "1073741824")]
    {
        ensure!(read.variable(name) == Some(value), "{name}: {read:?}");
    }
    cluster.kubectl.run(&["delete", "namespace", "trivial", "--wait=false"]).await.map(drop)
}

pub(crate) async fn api_server_restarts_on_the_same_store(world: &mut World) -> Result<()> {
    let cluster = &mut world.cluster;
    cluster.kubectl.run(&["create", "configmap", "kept"]).await?;
    cluster.plane.restart_apiserver(Duration::from_millis(200)).await?;
    cluster.kubectl.run(&["delete", "configmap", "kept"]).await?;
    cluster.check()
}
