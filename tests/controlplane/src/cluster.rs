//! Everything together: a control plane, kubelets, an AWS account, and machines that join.

use crate::aws::{Account, AwsClient, Moto};
use crate::control_plane::{self, ControlPlane};
use crate::helm::Helm;
use crate::joiner::{self, Joiner};
use crate::kubectl::Kubectl;
use crate::kwok;
use crate::process::Daemon;
use crate::proxy::{ClusterFacts, Proxy};
use crate::tools::Tools;
use crate::workspace::Workspace;
use anyhow::Result;
use kube::Client;

/// Credentials and region for SDKs; moto takes any.
pub const AWS_ENVIRONMENT: [(&str, &str); 5] = [
    ("AWS_REGION", crate::aws::REGION),
    ("AWS_ACCESS_KEY_ID", "test"),
    ("AWS_SECRET_ACCESS_KEY", "test"),
    ("AWS_EC2_METADATA_DISABLED", "true"),
    // SDK defaults of the machine must not leak in.
    ("AWS_CONFIG_FILE", "/dev/null"),
];

/// What a cluster has.
#[derive(Debug, Clone)]
pub struct Options {
    /// Name of its directory.
    pub name: String,
    /// The control plane.
    pub control_plane: control_plane::Options,
    /// Whether it has an AWS account and a joiner. Without them nodes come from elsewhere (the in-process EC2).
    pub aws: bool,
}

impl Options {
    /// A control plane with an AWS account.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), control_plane: control_plane::Options::default(), aws: true }
    }
}

/// The AWS side of a cluster.
#[derive(Debug)]
pub struct Aws {
    /// Makes nodes of instances.
    pub joiner: Joiner,
    /// What the controller talks to.
    pub proxy: Proxy,
    /// What the account held at the start.
    pub account: Account,
    /// A client that goes round the proxy: its calls are not recorded and not disturbed.
    pub direct: AwsClient,
    /// The server behind.
    pub moto: Moto,
}

/// A cluster; everything ends on drop.
pub struct Cluster {
    /// The AWS side, if it has one.
    pub aws: Option<Aws>,
    /// The kubelets.
    pub kwok: Daemon,
    /// The control plane.
    pub plane: ControlPlane,
    /// An administrator's client.
    pub client: Client,
    /// An administrator's kubectl.
    pub kubectl: Kubectl,
    /// An administrator's Helm.
    pub helm: Helm,
    /// The real programs.
    pub tools: Tools,
    /// Directory with configuration and logs. Last: what runs in it must have ended before it goes.
    pub workspace: Workspace,
}

impl Cluster {
    /// Starts a cluster: about five seconds once the tools are built.
    ///
    /// # Errors
    /// A part does not start.
    pub async fn start(options: Options) -> Result<Self> {
        let tools = Tools::get()?;
        let mut workspace = Workspace::create(&options.name)?;
        match Self::assemble(&tools, &workspace, options).await {
            Ok((plane, kwok, aws, client)) => Ok(Self {
                kubectl: Kubectl::new(&tools, plane.kubeconfig()),
                helm: Helm::new(&tools, plane.kubeconfig(), workspace.file("helm")),
                aws,
                kwok,
                plane,
                client,
                tools,
                workspace,
            }),
            Err(error) => {
                workspace.keep();
                Err(error)
            }
        }
    }

    async fn assemble(
        tools: &Tools,
        workspace: &Workspace,
        options: Options,
    ) -> Result<(ControlPlane, Daemon, Option<Aws>, Client)> {
        // moto takes as long as the API server; there is no reason to wait for one before the other.
        let moto = async { if options.aws { Moto::start(tools, workspace).await.map(Some) } else { Ok(None) } };
        let (plane, moto) = futures::try_join!(ControlPlane::start(tools, workspace, options.control_plane), moto)?;
        let client = plane.client().await?;
        let kwok = kwok::start(tools, workspace, plane.kubeconfig())?;
        let aws = match moto {
            Some(moto) => Some(Self::account(moto, &plane, &client).await?),
            None => None,
        };
        Ok((plane, kwok, aws, client))
    }

    async fn account(moto: Moto, plane: &ControlPlane, client: &Client) -> Result<Aws> {
        let version = client.apiserver_version().await?;
        let minor = format!("{}.{}", version.major, version.minor.trim_end_matches('+'));
        let direct = AwsClient::new(&moto.endpoint);
        let account = Account::create(&direct, &minor).await?;
        let facts = ClusterFacts { endpoint: plane.server.clone(), ca_pem: plane.ca_pem.clone() };
        let proxy = Proxy::start(&moto.endpoint, &account, facts).await?;
        let joiner = Joiner::start(joiner::Options {
            aws: direct.clone(),
            client: client.clone(),
            server: plane.server.clone(),
            ca_pem: plane.ca_pem.clone(),
            version: version.git_version,
        });
        Ok(Aws { joiner, proxy, account, direct, moto })
    }

    /// The AWS side.
    ///
    /// # Errors
    /// The cluster was started without one.
    pub fn aws(&self) -> Result<&Aws> {
        self.aws.as_ref().ok_or_else(|| anyhow::anyhow!("this cluster has no AWS account"))
    }

    /// Fails if any of its programs has ended.
    ///
    /// # Errors
    /// A program has ended; the message carries the end of its log.
    pub fn check(&mut self) -> Result<()> {
        self.plane.check()?;
        self.kwok.check()?;
        if let Some(aws) = &mut self.aws {
            aws.moto.check()?;
        }
        Ok(())
    }
}
