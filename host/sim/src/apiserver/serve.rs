//! The same API on a loopback port, for kubectl.

use std::net::SocketAddr;

use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::ApiServer;

/// A port that is served until this is dropped.
#[derive(Debug)]
pub struct Served {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Served {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://HOST:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A kubeconfig for it. There are no credentials in it, as none are checked.
    pub fn kubeconfig(&self) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: mortise-demo\nclusters:\n- name: mortise-demo\n  cluster:\n    server: {}\ncontexts:\n- name: mortise-demo\n  context:\n    cluster: mortise-demo\n    user: mortise-demo\n    namespace: default\nusers:\n- name: mortise-demo\n  user: {{}}\n",
            self.url()
        )
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ApiServer {
    /// Serves on a socket address over plain HTTP. It checks no credentials, so bind it to loopback.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub async fn serve(&self, address: SocketAddr) -> std::io::Result<Served> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let server = self.clone();
        let task = tokio::spawn(async move {
            // Connections end with the task that owns them.
            let mut connections = tokio::task::JoinSet::new();
            loop {
                tokio::select! {
                    accepted = listener.accept() => match accepted {
                        Ok((stream, _)) => {
                            // Small writes of a watch must not wait for more; a refusal only costs latency.
                            let _ = stream.set_nodelay(true);
                            connections.spawn(connection(server.clone(), stream));
                        }
                        Err(error) => {
                            tracing::warn!(%error, "accepting a connection");
                            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                        }
                    },
                    Some(_) = connections.join_next(), if !connections.is_empty() => {}
                }
            }
        });
        Ok(Served { address, task })
    }
}

async fn connection(server: ApiServer, stream: tokio::net::TcpStream) {
    let service = service_fn(move |request| {
        let server = server.clone();
        async move { Ok::<_, std::convert::Infallible>(server.handle(request).await) }
    });
    if let Err(error) = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await
    {
        tracing::debug!(%error, "connection");
    }
}
