//! The provider itself: puts the parts together.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use mortise_api::EC2NodeClass;
use mortise_engine::catalog::Catalog;
use tokio::sync::{Semaphore, watch};

use super::catalogs::Catalogs;
use super::clients::Clients;
use super::cluster::Cluster;
use super::instances::Instances;
use super::launcher::Launcher;
use super::network::Addresses;
use super::profile;
use super::resolve::Resolver;
use super::settings::AwsSettings;
use super::template::Templates;
use crate::catalog_build::ShapeSettings;
use crate::class::{ClassResolution, Finalize};
use crate::error::CloudError;
use crate::instance::Instance;
use crate::launch::{LaunchError, LaunchRequest};
use crate::observe::CallObserver;
use crate::provider::CloudProvider;

/// Types, zones and spot prices are read anew this often.
const REFRESH: Duration = Duration::from_secs(12 * 3600);
/// After a failed refresh.
const RETRY: Duration = Duration::from_secs(30);
/// Launch templates are looked through this often.
const COLLECT: Duration = Duration::from_secs(60);

/// EC2.
pub struct AwsProvider {
    clients: Clients,
    settings: Arc<AwsSettings>,
    catalogs: Arc<Catalogs>,
    templates: Arc<Templates>,
    instances: Arc<Instances>,
    resolver: Resolver,
    launcher: Launcher,
}

impl AwsProvider {
    /// Connects. Makes no call yet but those that find region and credentials.
    ///
    /// # Errors
    /// No region.
    pub async fn connect(settings: AwsSettings, observer: Arc<dyn CallObserver>) -> Result<Self, CloudError> {
        let clients = Clients::connect(&settings, observer).await?;
        let shape = ShapeSettings {
            region: Arc::clone(&clients.region),
            reserved_enis: settings.reserved_enis,
            vm_memory_overhead_ppm: settings.vm_memory_overhead_ppm,
        };
        let settings = Arc::new(settings);
        let catalogs = Arc::new(Catalogs::new(clients.clone(), shape));
        let templates = Arc::new(Templates::default());
        let addresses = Arc::new(Addresses::default());
        let cluster = Arc::new(Cluster::default());
        let instances = Arc::new(Instances::new(clients.clone(), Arc::clone(&settings.cluster_name)));
        let launcher = Launcher {
            clients: clients.clone(),
            settings: Arc::clone(&settings),
            catalogs: Arc::clone(&catalogs),
            cluster: Arc::clone(&cluster),
            templates: Arc::clone(&templates),
            addresses: Arc::clone(&addresses),
            instances: Arc::clone(&instances),
            permits: Semaphore::new(settings.launch_concurrency.max(1)),
            attempts: Default::default(),
        };
        let resolver =
            Resolver::new(clients.clone(), Arc::clone(&settings), cluster, addresses, Arc::clone(&templates));
        Ok(Self { clients, settings, catalogs, templates, instances, resolver, launcher })
    }

    /// Region that it works in.
    #[must_use]
    pub fn region(&self) -> &str {
        &self.clients.region
    }

    async fn refresh_types(&self) -> Duration {
        match self.catalogs.refresh_types().await {
            Ok(()) => REFRESH,
            Err(error) => {
                tracing::warn!(%error, "instance types could not be read, what was known before stays");
                RETRY
            }
        }
    }

    async fn refresh_spot(&self) -> Duration {
        match self.catalogs.refresh_spot().await {
            Ok(()) => REFRESH,
            Err(error) => {
                tracing::warn!(%error, "spot prices could not be read, what was known before stays");
                RETRY
            }
        }
    }

    /// Deletes unused launch templates, having taken note of all when `first`.
    async fn collect_templates(&self, first: bool) -> bool {
        let cluster = &self.settings.cluster_name;
        let noted = if first { self.templates.adopt_existing(&self.clients, cluster).await } else { Ok(()) };
        let done = match noted {
            Ok(()) => self.templates.collect(&self.clients, Instant::now()).await,
            Err(error) => Err(error),
        };
        if let Err(error) = &done {
            tracing::warn!(%error, "unused launch templates could not be deleted");
        }
        done.is_ok()
    }
}

#[async_trait]
impl CloudProvider for AwsProvider {
    fn name(&self) -> &'static str {
        "aws"
    }

    async fn check(&self) -> Result<(), CloudError> {
        if !self.catalogs.is_loaded() {
            self.catalogs.refresh_types().await?;
        }
        Ok(())
    }

    async fn run(&self, leader: watch::Receiver<bool>) {
        let types = async {
            let mut wait = if self.catalogs.is_loaded() { REFRESH } else { Duration::ZERO };
            loop {
                tokio::time::sleep(wait).await;
                wait = self.refresh_types().await;
            }
        };
        let spot = async {
            loop {
                let wait = self.refresh_spot().await;
                tokio::time::sleep(wait).await;
            }
        };
        let marks = async {
            loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
                self.catalogs.expire();
            }
        };
        let templates = async {
            let mut noted = false;
            loop {
                if *leader.borrow() {
                    noted |= self.collect_templates(!noted).await;
                } else {
                    noted = false;
                }
                tokio::time::sleep(COLLECT).await;
            }
        };
        tokio::join!(types, spot, marks, templates);
    }

    async fn resolve(&self, class: &EC2NodeClass) -> ClassResolution {
        Box::pin(self.resolver.resolve(class)).await
    }

    async fn finalize(&self, class: &EC2NodeClass, claims_left: &[Arc<str>]) -> Result<Finalize, CloudError> {
        if !claims_left.is_empty() {
            let mut claims = claims_left.to_vec();
            claims.sort();
            return Ok(Finalize::WaitingForClaims { claims });
        }
        let name = class.metadata.name.as_deref().unwrap_or_default();
        let cluster = &self.settings.cluster_name;
        if !self.settings.isolated_vpc {
            let uid = class.metadata.uid.as_deref().unwrap_or_default();
            profile::delete_all(&self.clients, cluster, uid).await?;
        }
        self.templates.delete_class(&self.clients, cluster, name).await?;
        self.catalogs.forget(name);
        self.resolver.forget(class);
        Ok(Finalize::Done)
    }

    async fn catalog(&self, class: &EC2NodeClass) -> Result<Arc<Catalog>, CloudError> {
        self.catalogs.get(class)
    }

    fn catalog_changed(&self) -> watch::Receiver<u64> {
        self.catalogs.changed()
    }

    async fn launch(&self, request: &LaunchRequest) -> Result<Instance, LaunchError> {
        self.launcher.launch(request).await
    }

    async fn find_by_claim(&self, claim_uid: &str) -> Result<Option<Instance>, CloudError> {
        self.instances.find(claim_uid).await
    }

    async fn get(&self, provider_id: &str) -> Result<Instance, CloudError> {
        self.instances.get(provider_id).await
    }

    async fn list(&self) -> Result<Vec<Instance>, CloudError> {
        self.instances.list().await
    }

    async fn terminate(&self, provider_id: &str) -> Result<(), CloudError> {
        self.instances.terminate(provider_id).await
    }

    async fn tag(&self, provider_id: &str, tags: &BTreeMap<Arc<str>, Arc<str>>) -> Result<(), CloudError> {
        self.instances.tag(provider_id, tags).await
    }
}
