//! What a new node must know of its cluster: endpoint, CA, service CIDR, version. Given, or asked from EKS once.

use std::sync::Arc;

use tokio::sync::Mutex;

use super::clients::Clients;
use super::error::ApiError;
use super::settings::AwsSettings;

/// A cluster as its nodes see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClusterInfo {
    pub(crate) name: Arc<str>,
    pub(crate) endpoint: Option<Arc<str>>,
    /// Base64 of the PEM.
    pub(crate) ca_bundle: Option<Arc<str>>,
    pub(crate) service_cidr: Option<Arc<str>>,
    /// `1.33`.
    pub(crate) kubernetes: Option<Arc<str>>,
    pub(crate) dns_ip: Option<Arc<str>>,
}

impl ClusterInfo {
    /// What the settings alone say.
    pub(crate) fn from_settings(settings: &AwsSettings) -> Self {
        Self {
            name: Arc::clone(&settings.cluster_name),
            endpoint: settings.cluster_endpoint.clone(),
            ca_bundle: settings.cluster_ca_bundle.clone(),
            service_cidr: settings.service_cidr.clone(),
            kubernetes: settings.kubernetes_version.clone(),
            dns_ip: settings.kube_dns_ip.clone(),
        }
    }

    fn is_complete(&self) -> bool {
        self.endpoint.is_some() && self.ca_bundle.is_some() && self.service_cidr.is_some() && self.kubernetes.is_some()
    }

    /// Nodes get IPv6 addresses.
    pub(crate) fn is_ipv6(&self) -> bool {
        self.dns_ip.as_deref().is_some_and(|ip| ip.contains(':'))
    }
}

/// The cluster, looked up when first needed.
#[derive(Debug, Default)]
pub(crate) struct Cluster(Mutex<Option<ClusterInfo>>);

impl Cluster {
    /// What is known; asks EKS once for what the settings leave open.
    pub(crate) async fn info(&self, clients: &Clients, settings: &AwsSettings) -> Result<ClusterInfo, ApiError> {
        let mut known = self.0.lock().await;
        if let Some(info) = &*known {
            return Ok(info.clone());
        }
        let mut info = ClusterInfo::from_settings(settings);
        if !info.is_complete() {
            let request = clients.eks.describe_cluster().name(info.name.to_string()).send();
            let answer = clients.call("DescribeCluster", request).await?;
            if let Some(cluster) = answer.cluster() {
                let fill = |slot: &mut Option<Arc<str>>, value: Option<&str>| {
                    if slot.is_none() {
                        *slot = value.map(Arc::from);
                    }
                };
                let network = cluster.kubernetes_network_config();
                let cidr = network.and_then(|n| n.service_ipv4_cidr().or_else(|| n.service_ipv6_cidr()));
                fill(&mut info.endpoint, cluster.endpoint());
                fill(&mut info.ca_bundle, cluster.certificate_authority().and_then(|c| c.data()));
                fill(&mut info.service_cidr, cidr);
                fill(&mut info.kubernetes, cluster.version());
            }
        }
        *known = Some(info.clone());
        Ok(info)
    }
}
