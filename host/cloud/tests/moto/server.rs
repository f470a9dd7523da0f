//! A moto server of our own per test, and what a test puts into it and asks of it.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use aws_config::{BehaviorVersion, Region};
use aws_sdk_ec2::config::Credentials;
use aws_sdk_ec2::types::{Filter, InstanceAttributeName, Tag};
use base64::Engine as _;

/// A running server; ended with the value.
pub(crate) struct Moto {
    child: Child,
    pub(crate) url: String,
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn tool() -> PathBuf {
    let tools = std::env::var_os("MORTISE_TOOLS").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").expect("HOME is set")).join(".cache/mortise"),
        PathBuf::from,
    );
    let path = tools.join("moto/bin/moto_server");
    assert!(
        path.exists(),
        "{} is missing: run `make tools`, or `python3 -m venv {dir} && {dir}/bin/pip install 'moto[server,ec2,ssm,iam,sqs,eks]==5.2.5'`",
        path.display(),
        dir = tools.join("moto").display()
    );
    path
}

impl Moto {
    /// Starts a server on a free port and waits until it answers.
    pub(crate) fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = Command::new(tool())
            .args(["-H", "127.0.0.1", "-p", &port.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let moto = Self { child, url: format!("http://127.0.0.1:{port}") };
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let end = Instant::now() + Duration::from_secs(90);
        while TcpStream::connect(address).is_err() {
            assert!(Instant::now() < end, "moto_server did not start on {address} within 90 s");
            std::thread::sleep(Duration::from_millis(100));
        }
        moto
    }

    async fn config(&self) -> aws_config::SdkConfig {
        aws_config::defaults(BehaviorVersion::latest())
            .region(Region::new("us-east-1"))
            .endpoint_url(&self.url)
            .credentials_provider(Credentials::new("test", "test", None, None, "test"))
            .load()
            .await
    }

    async fn ec2(&self) -> aws_sdk_ec2::Client {
        aws_sdk_ec2::Client::new(&self.config().await)
    }

    /// Tags subnets a to c and the security group, makes the role, publishes two images.
    pub(crate) async fn prepare(&self) {
        let config = self.config().await;
        let ec2 = aws_sdk_ec2::Client::new(&config);
        let iam = aws_sdk_iam::Client::new(&config);
        let ssm = aws_sdk_ssm::Client::new(&config);
        let tag = Tag::builder().key("karpenter.sh/discovery").value("prod").build();
        let zones = Filter::builder()
            .name("availability-zone")
            .set_values(Some(["us-east-1a", "us-east-1b", "us-east-1c"].map(str::to_owned).to_vec()))
            .build();
        let subnets = ec2.describe_subnets().filters(zones).send().await.unwrap();
        let groups = ec2.describe_security_groups().send().await.unwrap();
        let ids = subnets.subnets().iter().filter_map(|s| s.subnet_id().map(str::to_owned));
        let ids = ids.chain(groups.security_groups().iter().filter_map(|g| g.group_id().map(str::to_owned)));
        ec2.create_tags().set_resources(Some(ids.collect())).tags(tag).send().await.unwrap();
        iam.create_role().role_name("NodeRole").assume_role_policy_document("{}").send().await.unwrap();
        for arch in ["x86_64", "arm64"] {
            let filter = Filter::builder().name("architecture").values(arch).build();
            let found = ec2.describe_images().filters(filter).send().await.unwrap();
            let id = found.images().first().and_then(|i| i.image_id()).unwrap().to_owned();
            // The names that EKS publishes under are closed in moto.
            let path = format!("/images/{arch}");
            let kind = aws_sdk_ssm::types::ParameterType::String;
            ssm.put_parameter().name(path).value(id).r#type(kind).send().await.unwrap();
        }
    }

    /// A machine's user data in clear.
    pub(crate) async fn user_data(&self, provider_id: &str) -> String {
        let id = provider_id.rsplit('/').next().unwrap();
        let request = self.ec2().await.describe_instance_attribute().instance_id(id);
        let answer = request.attribute(InstanceAttributeName::UserData).send().await.unwrap();
        let text = answer.user_data().and_then(|u| u.value()).unwrap().to_owned();
        String::from_utf8(base64::engine::general_purpose::STANDARD.decode(text).unwrap()).unwrap()
    }

    pub(crate) async fn launch_templates(&self) -> usize {
        self.ec2().await.describe_launch_templates().send().await.unwrap().launch_templates().len()
    }

    pub(crate) async fn delete_launch_templates(&self) {
        let ec2 = self.ec2().await;
        for template in ec2.describe_launch_templates().send().await.unwrap().launch_templates() {
            let name = template.launch_template_name().unwrap();
            ec2.delete_launch_template().launch_template_name(name).send().await.unwrap();
        }
    }

    pub(crate) async fn instance_profiles(&self) -> usize {
        let iam = aws_sdk_iam::Client::new(&self.config().await);
        iam.list_instance_profiles().send().await.unwrap().instance_profiles().len()
    }
}
