//! Rules of EC2NodeClass.

use super::Rule;
use crate::labels;

/// All of them.
pub(super) fn rules() -> Vec<Rule> {
    let mut rules = vec![
        Rule::new(
            "spec",
            "has(self.role) != has(self.instanceProfile)",
            "give exactly one of role and instanceProfile",
        ),
        Rule::new("spec.role", "self != ''", "must not be empty: write the name of the nodes' IAM role"),
        Rule::new(
            "spec.instanceProfile",
            "self != ''",
            "must not be empty: write the name of the nodes' instance profile",
        ),
    ];
    rules.extend(images());
    rules.extend(selectors());
    rules.extend(tags());
    rules.extend(devices());
    rules
}

fn images() -> Vec<Rule> {
    const TERMS: &str = "spec.amiSelectorTerms";
    const TERM: &str = "spec.amiSelectorTerms[]";
    const ALIAS: &str = "spec.amiSelectorTerms[].alias";
    vec![
        Rule::new(
            "spec",
            "!has(self.amiFamily) || self.amiFamily == 'Custom' || self.amiSelectorTerms.all(t, !has(t.alias) || t.alias.lowerAscii().startsWith(self.amiFamily.lowerAscii() + '@'))",
            "amiFamily and the alias name different families: leave amiFamily out or make them agree",
        ),
        Rule::new(
            "spec",
            "has(self.amiFamily) || self.amiSelectorTerms.exists(t, has(t.alias))",
            "amiFamily is needed when amiSelectorTerms has no alias",
        ),
        Rule::new(TERMS, "size(self) > 0", "at least one term is needed, such as alias: al2023@latest"),
        Rule::new(
            TERMS,
            "size(self) == 1 || !self.exists(t, has(t.alias))",
            "a term with an alias must be the only term",
        ),
        Rule::new(
            TERM,
            "has(self.tags) || has(self.id) || has(self.name) || has(self.alias) || has(self.ssmParameter)",
            "give at least one of alias, tags, id, name and ssmParameter",
        ),
        Rule::new(
            TERM,
            "!has(self.id) || !(has(self.alias) || has(self.tags) || has(self.name) || has(self.owner))",
            "id says it all: leave out alias, tags, name and owner",
        ),
        Rule::new(
            TERM,
            "!has(self.alias) || !(has(self.id) || has(self.tags) || has(self.name) || has(self.owner))",
            "alias says it all: leave out id, tags, name and owner",
        ),
        Rule::new(
            ALIAS,
            "self.matches('^[a-zA-Z0-9]+@.+$')",
            "write an alias as family@version, such as al2023@latest or bottlerocket@v1.20.4",
        ),
        Rule::new(
            ALIAS,
            "self.split('@')[0] in ['al2', 'al2023', 'bottlerocket', 'windows2019', 'windows2022', 'windows2025']",
            "unknown family: use al2, al2023, bottlerocket, windows2019, windows2022 or windows2025",
        ),
        Rule::new(
            ALIAS,
            "!self.startsWith('windows') || self.endsWith('@latest')",
            "Windows images cannot be pinned: use @latest",
        ),
    ]
}

fn selectors() -> Vec<Rule> {
    let mut rules = Vec::new();
    for (terms, selectors, fields) in [
        ("subnetSelectorTerms", "has(self.tags) || has(self.id)", "tags and id"),
        ("securityGroupSelectorTerms", "has(self.tags) || has(self.id) || has(self.name)", "tags, id and name"),
        (
            "capacityReservationSelectorTerms",
            "has(self.tags) || has(self.id) || has(self.instanceMatchCriteria)",
            "tags, id and instanceMatchCriteria",
        ),
    ] {
        rules.push(Rule::new(format!("spec.{terms}[]"), selectors, format!("give at least one of {fields}")));
    }
    for (terms, example) in [
        ("subnetSelectorTerms", "tags: {karpenter.sh/discovery: CLUSTER}"),
        ("securityGroupSelectorTerms", "tags: {karpenter.sh/discovery: CLUSTER}"),
    ] {
        let message = format!("at least one term is needed, such as {example}");
        rules.push(Rule::new(format!("spec.{terms}"), "size(self) > 0", message));
    }
    // Of several terms upstream lets one break these as long as another does not, so the same objects pass here;
    // run-time validation warns about the others.
    for (terms, breaks, message) in [
        ("subnetSelectorTerms", "has(t.id) && has(t.tags)", "id says it all: leave out tags"),
        (
            "securityGroupSelectorTerms",
            "has(t.id) && (has(t.tags) || has(t.name))",
            "id says it all: leave out tags and name",
        ),
        (
            "securityGroupSelectorTerms",
            "has(t.name) && (has(t.tags) || has(t.id))",
            "name says it all: leave out tags and id",
        ),
        (
            "capacityReservationSelectorTerms",
            "has(t.id) && (has(t.tags) || has(t.ownerID) || has(t.instanceMatchCriteria))",
            "id says it all: leave out tags, ownerID and instanceMatchCriteria",
        ),
    ] {
        rules.push(Rule::new(format!("spec.{terms}"), format!("size(self) == 0 || !self.all(t, {breaks})"), message));
    }
    for terms in
        ["amiSelectorTerms", "subnetSelectorTerms", "securityGroupSelectorTerms", "capacityReservationSelectorTerms"]
    {
        rules.push(Rule::new(
            format!("spec.{terms}[].tags"),
            "self.all(k, k != '' && self[k] != '')",
            "tags need a key and a value; the value * stands for any",
        ));
    }
    rules.push(Rule::new(
        "spec.placementGroupSelector",
        "has(self.name) != has(self.id)",
        "give exactly one of name and id",
    ));
    rules
}

fn tags() -> Vec<Rule> {
    let reserved = [labels::NODEPOOL, "karpenter.sh/nodeclaim", labels::EC2NODECLASS, "eks:eks-cluster-name"];
    vec![
        Rule::new("spec.tags", "!('' in self)", "tags need a key"),
        Rule::new(
            "spec.tags",
            "self.all(k, !k.startsWith('kubernetes.io/cluster'))",
            "tags that start with kubernetes.io/cluster are set by the controller",
        ),
        Rule::new(
            "spec.tags",
            format!("!self.exists(k, k in ['{}'])", reserved.join("', '")),
            format!("these tags are set by the controller: {}", reserved.join(", ")),
        ),
    ]
}

fn devices() -> Vec<Rule> {
    vec![
        Rule::new(
            "spec.blockDeviceMappings",
            "self.filter(m, has(m.rootVolume) && m.rootVolume).size() <= 1",
            "only one volume can be the root volume",
        ),
        Rule::new(
            "spec.blockDeviceMappings[].ebs",
            "has(self.snapshotID) || has(self.volumeSize)",
            "give volumeSize, snapshotID or both",
        ),
        Rule::new(
            "spec.blockDeviceMappings[].ebs",
            "!has(self.volumeInitializationRate) || (has(self.snapshotID) && self.snapshotID != '')",
            "volumeInitializationRate needs a snapshotID",
        ),
        Rule::new(
            "spec.networkInterfaces",
            "size(self) == 0 || self.exists(n, n.networkCardIndex == 0 && n.deviceIndex == 0 && n.interfaceType == 'interface')",
            "one entry must be the primary interface: networkCardIndex 0, deviceIndex 0, interfaceType interface",
        ),
        Rule::new(
            "spec.networkInterfaces",
            "self.all(a, self.exists_one(b, a.networkCardIndex == b.networkCardIndex && a.deviceIndex == b.deviceIndex))",
            "two entries have the same networkCardIndex and deviceIndex",
        ),
        Rule::new(
            "spec.networkInterfaces",
            "self.all(a, a.interfaceType != 'efa-only' || self.exists_one(b, b.interfaceType == 'efa-only' && a.networkCardIndex == b.networkCardIndex))",
            "a network card takes one efa-only interface",
        ),
        Rule::new(
            "spec.connectionTracking",
            "has(self.tcpEstablishedTimeout) || has(self.udpStreamTimeout) || has(self.udpTimeout)",
            "give at least one of tcpEstablishedTimeout, udpStreamTimeout and udpTimeout",
        ),
    ]
}
