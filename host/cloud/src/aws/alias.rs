//! EKS-optimised AL2023 images by alias: the SSM parameters that name them.

use mortise_api::requirement::{Operator, Requirement};

/// Variant of an image, which decides the instance types it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    Standard,
    Nvidia,
    Neuron,
}

impl Variant {
    fn as_str(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Nvidia => "nvidia",
            Self::Neuron => "neuron",
        }
    }

    /// Requirements of `status.amis[]`, without the architecture.
    pub(crate) fn requirements(self) -> Vec<Requirement> {
        let none: [&str; 0] = [];
        let one = |key: &str, operator| Requirement::new(key, operator, none);
        let gpu = mortise_api::labels::INSTANCE_GPU_COUNT;
        let accelerator = mortise_api::labels::INSTANCE_ACCELERATOR_COUNT;
        match self {
            Self::Standard => vec![one(accelerator, Operator::DoesNotExist), one(gpu, Operator::DoesNotExist)],
            Self::Nvidia => vec![one(gpu, Operator::Exists)],
            Self::Neuron => vec![one(accelerator, Operator::Exists)],
        }
    }
}

/// One parameter to read and what its image is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AliasParameter {
    pub(crate) path: String,
    pub(crate) variant: Variant,
}

/// Parameters of an AL2023 alias for a Kubernetes minor version such as `1.33`. `version` is `latest` or a release.
pub(crate) fn al2023(kubernetes: &str, version: &str) -> Vec<AliasParameter> {
    let mut out = Vec::new();
    for arch in ["x86_64", "arm64"] {
        for variant in [Variant::Standard, Variant::Nvidia, Variant::Neuron] {
            if variant == Variant::Neuron && arch == "arm64" {
                continue;
            }
            let name = variant.as_str();
            let release = match version {
                "latest" => "recommended".to_owned(),
                pinned => format!("amazon-eks-node-al2023-{arch}-{name}-{kubernetes}-{pinned}"),
            };
            let path = format!(
                "/aws/service/eks/optimized-ami/{kubernetes}/amazon-linux-2023/{arch}/{name}/{release}/image_id"
            );
            out.push(AliasParameter { path, variant });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latest_and_pinned_paths() {
        let latest = al2023("1.33", "latest");
        assert_eq!(latest.len(), 5, "no neuron on arm64");
        assert_eq!(
            latest[0].path,
            "/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/standard/recommended/image_id"
        );
        assert_eq!(
            al2023("1.33", "v20260701")[4].path,
            "/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/arm64/nvidia/amazon-eks-node-al2023-arm64-nvidia-1.33-v20260701/image_id"
        );
    }
}
