//! The moto server: the AWS APIs on a loopback port.

use super::AwsClient;
use crate::process::Daemon;
use crate::tools::Tools;
use crate::wait;
use crate::workspace::{Workspace, free_port};
use anyhow::Result;
use std::time::Duration;

/// The images of the stand-in account: the EKS images of both architectures, two releases of each.
const IMAGES: &str = include_str!("../../aws/images.json");

/// A running moto server.
#[derive(Debug)]
pub struct Moto {
    /// Its address. Tests give the controller the address of the proxy in front instead.
    pub endpoint: String,
    daemon: Daemon,
}

impl Moto {
    /// Starts the server and waits until it answers.
    ///
    /// # Errors
    /// It does not start: the message carries the end of its log.
    pub async fn start(tools: &Tools, workspace: &Workspace) -> Result<Self> {
        let port = free_port()?;
        let images = workspace.write("images.json", IMAGES)?;
        let mut command = tools.moto();
        command.args(["-H", "127.0.0.1", "-p", &port.to_string()]).env("MOTO_AMIS_PATH", images);
        // Refuses launches with images and types that do not exist, as EC2 does.
        command.env("MOTO_ENABLE_AMI_VALIDATION", "true").env("MOTO_EC2_ENABLE_INSTANCE_TYPE_VALIDATION", "true");
        let mut daemon = Daemon::spawn("moto", command, &workspace.file("moto.log"))?;
        let endpoint = format!("http://127.0.0.1:{port}");
        let client = AwsClient::new(&endpoint);
        wait::until("moto to answer", Duration::from_secs(60), async || {
            daemon.check()?;
            Ok(Some(client.ec2("DescribeAvailabilityZones", &[]).await?))
        })
        .await?;
        Ok(Self { endpoint, daemon })
    }

    /// Fails if the server has ended.
    ///
    /// # Errors
    /// It has ended: the message carries the end of its log.
    pub fn check(&mut self) -> Result<()> {
        self.daemon.check()
    }
}
