//! NodeOverlays: another price changes what is bought, and faults are told on the overlay that has them.

use crate::installation::open_gates;
use crate::objects::{deployment, manifests, node_class, pool, require};
use crate::world::World;
use anyhow::{Result, ensure};
use kube::ResourceExt as _;
use mortise_controlplane_tests::aws::CLUSTER_NAME;
use serde_json::{Value, json};

fn overlay(name: &str, instance_type: &str, price: &str) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": {"name": name},
        "spec": {
            "requirements": [
                {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [instance_type]},
            ],
            "price": price, "weight": 10,
        },
    })
}

pub(crate) async fn another_price_changes_what_is_bought(world: &mut World) -> Result<()> {
    open_gates(world).await?;
    world.begin().await?;
    let types = ["m5.large", "m5.xlarge"];
    let both = require(pool("default"), "node.kubernetes.io/instance-type", "In", &types);
    let both = require(both, "karpenter.sh/capacity-type", "In", &["on-demand"]);
    let wrong = json!({
        "apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": {"name": "wrong"},
        "spec": {"requirements": [], "capacity": {"vpc.amazonaws.com/efa": "1"}},
    });
    let objects = [
        node_class("default", CLUSTER_NAME),
        both,
        overlay("z-paid-for", "m5.xlarge", "0.001"),
        overlay("a-as-well", "m5.xlarge", "0.001"),
        wrong,
    ];
    world.cluster.kubectl.apply(&manifests(&objects)).await?;
    world.condition("NodeOverlay", "z-paid-for", "Ready", "True").await?;
    let (reason, message) = world.condition("NodeOverlay", "a-as-well", "ValidationSucceeded", "False").await?;
    ensure!(reason == "Conflict" && message.contains("z-paid-for"), "{reason}: {message}");
    let (reason, message) = world.condition("NodeOverlay", "wrong", "ValidationSucceeded", "False").await?;
    ensure!(reason == "RuntimeValidation" && message.contains("vpc.amazonaws.com/efa"), "{reason}: {message}");
    // Whether it was valid alone for a moment depends on which was seen first; that it changed is told in any case.
    world.event("NodeOverlay", "a-as-well", "ValidationSucceeded").await?;

    world.cluster.kubectl.apply(&manifests(&[deployment("app", 1, "500m", "256Mi")])).await?;
    world.running("app", 1).await?;
    for claim in world.claims().await? {
        let bought = claim.labels().get("node.kubernetes.io/instance-type").cloned().unwrap_or_default();
        ensure!(bought == "m5.xlarge", "{bought} was bought, though another costs next to nothing");
        let noted = claim.annotations().get("karpenter.sh/price-overlay-applied").map(String::as_str);
        ensure!(noted == Some("true"), "the claim does not say so: {:?}", claim.annotations());
    }
    ensure!(world.panics().is_empty(), "{:?}", world.panics());
    Ok(())
}
