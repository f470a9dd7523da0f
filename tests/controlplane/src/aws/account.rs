//! What a cluster's AWS account holds before the first node: network, node role, cluster, image parameters, queue.

use super::{ACCOUNT, AwsClient};
use anyhow::{Context, Result};
use serde_json::json;
use std::collections::BTreeMap;

/// The EKS cluster of the stand-in account, also its discovery tag.
pub const CLUSTER_NAME: &str = "my-cluster";
/// The zones that have subnets, all those that the articles' NodePools name.
pub const ZONES: [&str; 3] = ["us-east-1a", "us-east-1b", "us-east-1c"];
/// Where EKS publishes its images.
pub const SSM_PREFIX: &str = "/aws/service/eks/optimized-ami";
/// Where they are kept instead: names under `/aws` are AWS's own, moto refuses to store them. The proxy translates.
pub const SSM_STORED_PREFIX: &str = "/stand-in/eks/optimized-ami";

/// The identifiers that setting up gave.
#[derive(Debug, Clone)]
pub struct Account {
    /// Zone of every subnet, those that no discovery tag selects included.
    pub zone_of_subnet: BTreeMap<String, String>,
    /// The security group with the discovery tag.
    pub security_group: String,
    /// The role that nodes take.
    pub node_role: String,
}

impl Account {
    /// Creates everything at the endpoint. `kubernetes` is the minor version that image parameters are filed under.
    ///
    /// # Errors
    /// A call is refused.
    pub async fn create(aws: &AwsClient, kubernetes: &str) -> Result<Self> {
        let vpc = aws.ec2("CreateVpc", &[("CidrBlock", "10.0.0.0/16")]).await?.text("vpcId")?;
        let mut zone_of_subnet = BTreeMap::new();
        for (index, zone) in ZONES.iter().enumerate() {
            // A /18 each: 16,379 addresses, enough for every burst of the tests.
            let block = format!("10.0.{}.0/18", index * 64);
            let subnet = aws
                .ec2("CreateSubnet", &[("VpcId", &vpc), ("CidrBlock", &block), ("AvailabilityZone", zone)])
                .await?
                .text("subnetId")?;
            tag(aws, &subnet, &[("karpenter.sh/discovery", CLUSTER_NAME), ("Name", zone)]).await?;
            zone_of_subnet.insert(subnet, (*zone).to_owned());
        }
        let security_group = aws
            .ec2(
                "CreateSecurityGroup",
                &[("GroupName", "nodes"), ("GroupDescription", "nodes of the cluster"), ("VpcId", &vpc)],
            )
            .await?
            .text("groupId")?;
        tag(aws, &security_group, &[("karpenter.sh/discovery", CLUSTER_NAME)]).await?;

        let node_role = format!("KarpenterNodeRole-{CLUSTER_NAME}");
        let trust = json!({"Version": "2012-10-17", "Statement": [
            {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}]})
        .to_string();
        aws.query("iam", "2010-05-08", "CreateRole", &[("RoleName", &node_role), ("AssumeRolePolicyDocument", &trust)])
            .await?;

        let subnets: Vec<&String> = zone_of_subnet.keys().collect();
        aws.rest(
            "eks",
            http::Method::POST,
            "/clusters",
            &json!({
                "name": CLUSTER_NAME, "version": kubernetes,
                "roleArn": format!("arn:aws:iam::{ACCOUNT}:role/eks"),
                "resourcesVpcConfig": {"subnetIds": subnets, "securityGroupIds": [security_group]},
                "kubernetesNetworkConfig": {"serviceIpv4Cidr": crate::control_plane::SERVICE_CIDR},
            }),
        )
        .await
        .context("creating the EKS cluster")?;
        publish_images(aws, kubernetes).await?;
        aws.json("sqs", "AmazonSQS.CreateQueue", &json!({"QueueName": CLUSTER_NAME}))
            .await
            .context("creating the queue")?;
        Ok(Self { zone_of_subnet, security_group, node_role })
    }
}

/// Files the images as EKS does: every release by its name, and the newest as `recommended`.
async fn publish_images(aws: &AwsClient, kubernetes: &str) -> Result<()> {
    let xml = aws.ec2("DescribeImages", &[]).await?;
    let document = roxmltree::Document::parse(&xml.0)?;
    let mut latest: BTreeMap<String, (String, String)> = BTreeMap::new();
    for item in document.descendants().filter(|node| node.tag_name().name() == "item") {
        let field = |name: &str| {
            item.children().find(|node| node.tag_name().name() == name).and_then(|node| node.text()).unwrap_or_default()
        };
        let (id, name, architecture) = (field("imageId"), field("name"), field("architecture"));
        let Some((_, release)) = name.rsplit_once('-') else { continue };
        if id.is_empty() || !name.starts_with("amazon-eks-node-al2023") {
            continue;
        }
        let folder = format!("{SSM_STORED_PREFIX}/{kubernetes}/amazon-linux-2023/{architecture}/standard");
        put(aws, &format!("{folder}/{name}/image_id"), id).await?;
        let newest = latest.entry(folder).or_default();
        if newest.0.as_str() < release {
            *newest = (release.to_owned(), id.to_owned());
        }
    }
    anyhow::ensure!(!latest.is_empty(), "the endpoint has no EKS images: {}", xml.0);
    for (folder, (_, id)) in latest {
        put(aws, &format!("{folder}/recommended/image_id"), &id).await?;
    }
    Ok(())
}

async fn put(aws: &AwsClient, name: &str, value: &str) -> Result<()> {
    let body = json!({"Name": name, "Value": value, "Type": "String"});
    aws.json("ssm", "AmazonSSM.PutParameter", &body).await.with_context(|| format!("storing {name}")).map(drop)
}

async fn tag(aws: &AwsClient, resource: &str, tags: &[(&str, &str)]) -> Result<()> {
    let mut parameters = vec![("ResourceId.1".to_owned(), resource.to_owned())];
    for (index, (key, value)) in tags.iter().enumerate() {
        parameters.push((format!("Tag.{}.Key", index + 1), (*key).to_owned()));
        parameters.push((format!("Tag.{}.Value", index + 1), (*value).to_owned()));
    }
    let borrowed: Vec<(&str, &str)> = parameters.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    aws.ec2("CreateTags", &borrowed).await.map(drop)
}
