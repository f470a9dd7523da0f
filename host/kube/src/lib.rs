//! The Kubernetes edge: watches, cluster state, conversions, status writes, Events, lease, policy ConfigMap.
