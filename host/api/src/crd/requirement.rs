//! Rules that kinds share: requirements, label keys and the node class reference.

use super::Rule;
use crate::labels;

/// CEL list of these keys.
fn listed<'a>(keys: impl Iterator<Item = &'a str>) -> String {
    let mut keys: Vec<_> = keys.collect();
    keys.sort_unstable();
    format!("['{}']", keys.join("', '"))
}

/// CEL that is true of a label key `key` in the domain `suffix`. As upstream's, it also takes domains that merely end
/// in the same letters, so the same objects pass.
fn in_domain(key: &str, suffix: &str) -> String {
    format!("{key}.split('/')[0].endsWith('{suffix}')")
}

/// The three restrictions of label keys, for `self` being one key; `aws` are the keys of the EC2 domain that may be named.
pub(super) fn key<'a>(at: &str, aws: impl Iterator<Item = &'a str>) -> Vec<Rule> {
    vec![
        Rule::new(
            at,
            format!(
                "self in ['{}', '{}'] || !{}",
                labels::CAPACITY_TYPE,
                labels::NODEPOOL,
                in_domain("self", labels::GROUP)
            ),
            "labels of the domain karpenter.sh belong to the controller; only karpenter.sh/capacity-type may be required",
        ),
        Rule::new(
            at,
            format!("self != '{}'", labels::HOSTNAME),
            "kubernetes.io/hostname names one node and cannot be required of new ones",
        ),
        Rule::new(
            at,
            format!("self in {} || !{}", listed(aws), in_domain("self", labels::AWS_GROUP)),
            "a label of the domain karpenter.k8s.aws must be one of the well-known ones, such as karpenter.k8s.aws/instance-category",
        ),
    ]
}

/// The restrictions of label keys, for `self` being a map of labels. Naming the key in the message would cost more than
/// the API server allows for keys of any length; run-time validation names it.
pub(super) fn labels(at: &str) -> Vec<Rule> {
    vec![
        Rule::new(
            at,
            format!(
                "self.all(k, k in ['{}', '{}'] || !{})",
                labels::CAPACITY_TYPE,
                labels::NODEPOOL,
                in_domain("k", labels::GROUP)
            ),
            "labels of the domain karpenter.sh belong to the controller; only karpenter.sh/capacity-type may be set",
        ),
        Rule::new(
            at,
            format!("!('{}' in self)", labels::NODEPOOL),
            "karpenter.sh/nodepool is set by the controller, to the name of this NodePool",
        ),
        Rule::new(at, format!("!('{}' in self)", labels::HOSTNAME), "kubernetes.io/hostname is set by the kubelet"),
        Rule::new(
            at,
            format!("self.all(k, k in {} || !{})", listed(labels::aws_allowed()), in_domain("k", labels::AWS_GROUP)),
            "a label of the domain karpenter.k8s.aws must be one of the well-known ones, such as karpenter.k8s.aws/instance-category",
        ),
    ]
}

/// What an operator asks of its values and of `minValues`, for `self` being one requirement.
pub(super) fn operators(at: &str) -> Vec<Rule> {
    let mut rules = values(at);
    rules.push(Rule::new(
        at,
        "self.operator != 'In' || !has(self.minValues) || (has(self.values) && size(self.values) >= self.minValues)",
        "operator In needs at least minValues values",
    ));
    rules
}

/// What an operator asks of its values, for `self` being one requirement.
pub(super) fn values(at: &str) -> Vec<Rule> {
    vec![
        Rule::new(
            at,
            "self.operator != 'In' || (has(self.values) && size(self.values) > 0)",
            "operator In needs at least one value",
        ),
        Rule::new(
            at,
            "!(self.operator in ['Gt', 'Lt', 'Gte', 'Lte']) || (has(self.values) && size(self.values) == 1 && int(self.values[0]) >= 0)",
            "operators Gt, Lt, Gte and Lte need exactly one value, a whole number from 0 up",
        ),
    ]
}

/// The node class reference is complete.
pub(super) fn node_class_ref(at: &str) -> Vec<Rule> {
    ["group", "kind", "name"]
        .map(|field| {
            let example = match field {
                "group" => "karpenter.k8s.aws",
                "kind" => "EC2NodeClass",
                _ => "the name of an EC2NodeClass",
            };
            Rule::new(format!("{at}.{field}"), "self != ''", format!("must not be empty: write {example}"))
        })
        .into()
}
