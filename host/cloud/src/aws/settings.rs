//! What the operator decides about the AWS edge.

use std::sync::Arc;
use std::time::Duration;

use crate::catalog_build::DEFAULT_VM_MEMORY_OVERHEAD_PPM;

/// Settings of the AWS provider, by the names of the controller's environment variables.
#[derive(Clone, Debug)]
pub struct AwsSettings {
    /// `CLUSTER_NAME`.
    pub cluster_name: Arc<str>,
    /// `CLUSTER_ENDPOINT`; asked from EKS when absent.
    pub cluster_endpoint: Option<Arc<str>>,
    /// `CLUSTER_CA_BUNDLE`, base64 of the PEM; asked from EKS when absent.
    pub cluster_ca_bundle: Option<Arc<str>>,
    /// Service CIDR, for AL2023; asked from EKS when absent.
    pub service_cidr: Option<Arc<str>>,
    /// Kubernetes version as `major.minor`, from the API server; decides which EKS images an alias means. Asked from
    /// EKS when absent.
    pub kubernetes_version: Option<Arc<str>>,
    /// ClusterIP of the `kube-dns` service, when known.
    pub kube_dns_ip: Option<Arc<str>>,
    /// Region; from the environment or the instance's metadata when absent.
    pub region: Option<Arc<str>>,
    /// `VM_MEMORY_OVERHEAD_PERCENT` × 1,000,000.
    pub vm_memory_overhead_ppm: u32,
    /// `RESERVED_ENIS`.
    pub reserved_enis: u32,
    /// `ISOLATED_VPC`: no calls to services without an endpoint in the VPC (instance profiles are not cleaned up).
    pub isolated_vpc: bool,
    /// `DISABLE_DRY_RUN`: a class is not tried out against EC2.
    pub disable_dry_run: bool,
    /// `AMI_REFRESH_INTERVAL`.
    pub ami_refresh: Duration,
    /// `SUBNET_REFRESH_INTERVAL`.
    pub subnet_refresh: Duration,
    /// `SECURITY_GROUP_REFRESH_INTERVAL`.
    pub security_group_refresh: Duration,
    /// CreateFleet calls in flight at most.
    pub launch_concurrency: usize,
    /// Static credentials and endpoint for tests; the SDK's own chain (environment included) otherwise.
    pub for_tests: Option<TestEndpoint>,
}

/// Where a test's AWS stand-in listens.
#[derive(Clone, Debug)]
pub struct TestEndpoint {
    /// `http://127.0.0.1:5000`.
    pub url: String,
}

impl AwsSettings {
    /// Defaults for this cluster.
    #[must_use]
    pub fn new(cluster_name: &str) -> Self {
        Self {
            cluster_name: Arc::from(cluster_name),
            cluster_endpoint: None,
            cluster_ca_bundle: None,
            service_cidr: None,
            kubernetes_version: None,
            kube_dns_ip: None,
            region: None,
            vm_memory_overhead_ppm: DEFAULT_VM_MEMORY_OVERHEAD_PPM,
            reserved_enis: 0,
            isolated_vpc: false,
            disable_dry_run: false,
            ami_refresh: Duration::from_secs(60),
            subnet_refresh: Duration::from_secs(60),
            security_group_refresh: Duration::from_secs(60),
            launch_concurrency: 32,
            for_tests: None,
        }
    }
}
