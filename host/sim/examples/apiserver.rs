//! The bare API server on a loopback port, with the CustomResourceDefinitions of Mortise: `KUBECONFIG` is printed, and
//! kubectl works against it until this is interrupted.

use anyhow::Context as _;
use mortise_sim::apiserver::{ApiServer, Options};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let crds = mortise_api::crd::all()?.into_iter().map(serde_json::to_value).collect::<Result<_, _>>()?;
    let server = ApiServer::new(Options { crds, ..Options::default() })?;
    let port = std::env::args().nth(1).map_or(Ok(0), |text| text.parse()).context("argument: want a port number")?;
    let served = server.serve(([127, 0, 0, 1], port).into()).await?;
    println!("{}", served.kubeconfig());
    tokio::signal::ctrl_c().await?;
    Ok(())
}
