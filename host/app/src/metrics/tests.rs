use std::collections::BTreeSet;

use super::*;

#[test]
fn table_is_well_formed() {
    let mut names = BTreeSet::new();
    for m in TABLE {
        assert!(names.insert(m.name), "{} twice", m.name);
        assert!(!m.help.is_empty() && !m.help.contains('\n'), "{}", m.name);
        assert!(m.name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'), "{}", m.name);
        if let Kind::Histogram(bounds) = m.kind {
            assert!(bounds.windows(2).all(|w| w[0] < w[1]), "{}", m.name);
        }
    }
    // The names that the deployment guides' dashboards use, then and now.
    for name in [
        "karpenter_nodepools_usage",
        "karpenter_nodepools_limit",
        "karpenter_nodeclaims_launched",
        "karpenter_nodeclaims_registered",
        "karpenter_nodeclaims_disrupted",
        "karpenter_pods_state",
        "karpenter_disruption_evaluation_duration_seconds",
        "karpenter_cloudprovider_instance_type_price_estimate",
    ] {
        assert!(names.contains(name), "{name}");
    }
    assert_eq!(markdown().lines().count(), TABLE.len() + 2);
}

#[test]
fn text_format() {
    let registry = Registry::new();
    registry.inc(Id::NodeclaimsLaunched, &["de\"fault\n"]);
    registry.inc(Id::NodeclaimsLaunched, &["de\"fault\n"]);
    registry.observe(Id::BatchToLaunch, &[], 0.02);
    registry.observe(Id::BatchToLaunch, &[], 99.0);
    registry.on_scrape(|page| page.put(Id::ClusterStateNodeCount, &[], 7.0));
    let text = registry.render();
    for line in [
        "# TYPE karpenter_nodeclaims_launched counter",
        "karpenter_nodeclaims_launched{nodepool=\"de\\\"fault\\n\"} 2",
        "mortise_batch_to_launch_seconds_bucket{le=\"0.01\"} 0",
        "mortise_batch_to_launch_seconds_bucket{le=\"0.02\"} 1",
        "mortise_batch_to_launch_seconds_bucket{le=\"+Inf\"} 2",
        "mortise_batch_to_launch_seconds_count 2",
        "karpenter_cluster_state_node_count 7",
    ] {
        assert!(text.lines().any(|l| l == line), "{line} not in\n{text}");
    }
    // A family without series is left out, heading included.
    assert!(!text.contains("karpenter_pods_state"));
    registry.retain(Id::NodeclaimsLaunched, |labels| &*labels[0] == "other");
    assert!(!registry.render().contains("karpenter_nodeclaims_launched"));
}
