use super::*;

#[test]
fn every_crd_is_made() {
    let names: Vec<_> = all().unwrap().iter().map(|crd| crd.metadata.name.clone().unwrap()).collect();
    assert_eq!(
        names,
        [
            "ec2nodeclasses.karpenter.k8s.aws",
            "nodeclaims.karpenter.sh",
            "nodepools.karpenter.sh",
            "nodeoverlays.karpenter.sh",
            "capacitybuffers.autoscaling.x-k8s.io"
        ]
    );
}

/// Structural schemas allow these keywords in logical branches only, or not at all.
fn walk(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let names_a_field = path.ends_with("/properties");
                if !names_a_field && matches!(key.as_str(), "nullable" | "title" | "$ref" | "oneOf" | "definitions") {
                    found.push(format!("{path}/{key}"));
                }
                walk(value, &format!("{path}/{key}"), found);
            }
        }
        Value::Array(list) => list.iter().enumerate().for_each(|(i, value)| walk(value, &format!("{path}/{i}"), found)),
        _ => {}
    }
}

#[test]
fn schemas_are_structural_and_every_field_is_described() {
    for crd in all().unwrap() {
        let value = serde_json::to_value(&crd.spec.versions[0].schema).unwrap();
        let mut found = Vec::new();
        walk(&value, "", &mut found);
        assert!(found.is_empty(), "{found:?}");
        let mut silent = Vec::new();
        undescribed(&value["openAPIV3Schema"], "", &mut silent);
        assert!(silent.is_empty(), "{}: no description: {silent:?}", crd.spec.names.kind);
    }
}

fn undescribed(schema: &Value, path: &str, found: &mut Vec<String>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        // Kubernetes describes these itself.
        if !matches!(path.as_str(), ".apiVersion" | ".kind" | ".metadata") && property["description"].is_null() {
            found.push(path.clone());
        }
        undescribed(property, &path, found);
        undescribed(&property["items"], &format!("{path}[]"), found);
    }
}

#[test]
fn defaults_stand_in_the_schema() {
    let crds: Vec<Value> = all().unwrap().iter().map(|crd| serde_json::to_value(crd).unwrap()).collect();
    let at = |kind: usize, path: &str| {
        crds[kind]
            .pointer(&format!("/spec/versions/0/schema/openAPIV3Schema/properties/{path}"))
            .unwrap_or(&Value::Null)
            .clone()
    };
    let pool = "spec/properties/";
    assert_eq!(at(2, &format!("{pool}disruption/default")), serde_json::json!({"consolidateAfter": "0s"}));
    let disruption = format!("{pool}disruption/properties/");
    assert_eq!(at(2, &format!("{disruption}consolidateAfter/default")), "0s");
    assert_eq!(at(2, &format!("{disruption}consolidationPolicy/default")), "WhenEmptyOrUnderutilized");
    assert_eq!(at(2, &format!("{disruption}budgets/default")), serde_json::json!([{"nodes": "10%"}]));
    assert_eq!(at(2, &format!("{disruption}budgets/items/properties/nodes/default")), "10%");
    let template = format!("{pool}template/properties/spec/properties/");
    assert_eq!(at(2, &format!("{template}expireAfter/default")), "720h");
    assert_eq!(at(2, "status/properties/nodes/default"), 0);
    assert_eq!(at(1, "spec/properties/expireAfter/default"), "720h");
    assert_eq!(
        at(0, "spec/properties/metadataOptions/default"),
        serde_json::json!({"httpEndpoint": "enabled", "httpProtocolIPv6": "disabled", "httpPutResponseHopLimit": 1, "httpTokens": "required"})
    );
    assert_eq!(at(4, "spec/properties/provisioningStrategy/default"), crate::capacitybuffer::ACTIVE_CAPACITY);
    // What a user did not write must stay away.
    for path in ["limits/default", "weight/default", "replicas/default"] {
        assert_eq!(at(2, &format!("{pool}{path}")), Value::Null, "{path}");
    }
    assert_eq!(at(2, &format!("{template}taints/default")), Value::Null);
    assert_eq!(at(2, &format!("{pool}template/properties/metadata/default")), Value::Null);
}

#[test]
fn required_fields() {
    let crds: Vec<Value> = all().unwrap().iter().map(|crd| serde_json::to_value(crd).unwrap()).collect();
    let required = |kind: usize, path: &str| {
        let schema = crds[kind].pointer(&format!("/spec/versions/0/schema/openAPIV3Schema{path}")).unwrap();
        let mut list: Vec<_> =
            schema["required"].as_array().into_iter().flatten().map(|v| v.as_str().unwrap().to_string()).collect();
        list.sort();
        list
    };
    assert_eq!(required(2, "/properties/spec"), ["template"]);
    let template = "/properties/spec/properties/template";
    assert_eq!(required(2, template), ["spec"]);
    assert_eq!(required(2, &format!("{template}/properties/spec")), ["nodeClassRef", "requirements"]);
    assert_eq!(required(2, "/properties/spec/properties/disruption/properties/budgets/items"), ["nodes"]);
    assert_eq!(required(2, "/properties/spec/properties/disruption"), Vec::<String>::new());
    assert_eq!(required(1, "/properties/spec"), ["nodeClassRef", "requirements"]);
    assert_eq!(
        required(0, "/properties/spec"),
        ["amiSelectorTerms", "securityGroupSelectorTerms", "subnetSelectorTerms"]
    );
    assert_eq!(required(0, "/properties/spec/properties/metadataOptions"), Vec::<String>::new());
    assert_eq!(required(0, ""), ["spec"]);
    assert_eq!(required(3, "/properties/spec"), ["requirements"]);
    assert_eq!(required(3, "/properties/spec/properties/requirements/items"), ["key", "operator"]);
    assert_eq!(required(4, "/properties/spec"), Vec::<String>::new());
    assert_eq!(required(4, "/properties/spec/properties/scalableRef"), ["kind", "name"]);
}
