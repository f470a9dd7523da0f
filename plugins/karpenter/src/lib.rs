//! Built-in policy: karpenter.
