//! End-to-end tests on a real Kubernetes control plane and a real AWS API endpoint.
