//! The audit log against the roles: every permission that was refused, and every permission that nobody used.

use anyhow::{Context, Result};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, Subject};
use kube::{Api, Client};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::Path;

/// One request of the audit log.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Access {
    /// `get`, `list`, …
    pub verb: String,
    /// API group; the core group is empty.
    pub group: String,
    /// Resource, with `/subresource`.
    pub resource: String,
    /// Name of the object, if the request named one.
    pub name: String,
    /// Namespace, if any.
    pub namespace: String,
}

/// What a user asked for.
#[derive(Debug, Clone, Default)]
pub struct Record {
    /// Requests that were let in (whatever came of them).
    pub allowed: BTreeSet<Access>,
    /// Requests that were refused with 403.
    pub refused: BTreeSet<Access>,
}

/// Reads what `user` did.
///
/// # Errors
/// The log cannot be read.
pub fn read(log: &Path, user: &str) -> Result<Record> {
    #[derive(Deserialize)]
    struct Event {
        verb: String,
        user: User,
        #[serde(rename = "objectRef")]
        object: Option<Object>,
        #[serde(rename = "responseStatus")]
        response: Option<Response>,
    }
    #[derive(Deserialize)]
    struct User {
        username: String,
    }
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Object {
        resource: String,
        subresource: String,
        #[serde(rename = "apiGroup")]
        group: String,
        name: String,
        namespace: String,
    }
    #[derive(Deserialize)]
    struct Response {
        code: Option<u16>,
    }
    let text = std::fs::read_to_string(log).with_context(|| format!("reading {}", log.display()))?;
    let mut record = Record::default();
    for line in text.lines() {
        // The last line may be half written.
        let Ok(event) = serde_json::from_str::<Event>(line) else { continue };
        let Some(object) = event.object.filter(|_| event.user.username == user) else { continue };
        let resource = if object.subresource.is_empty() {
            object.resource
        } else {
            format!("{}/{}", object.resource, object.subresource)
        };
        let access =
            Access { verb: event.verb, group: object.group, resource, name: object.name, namespace: object.namespace };
        if event.response.and_then(|response| response.code) == Some(403) {
            record.refused.insert(access);
        } else {
            record.allowed.insert(access);
        }
    }
    Ok(record)
}

/// One permission that a role of the ServiceAccount grants.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grant {
    /// Verb.
    pub verb: String,
    /// API group.
    pub group: String,
    /// Resource, with `/subresource`.
    pub resource: String,
    /// Names that it is limited to; empty = all.
    pub names: Vec<String>,
    /// Namespace that it is limited to; empty = everywhere.
    pub namespace: String,
}

impl std::fmt::Display for Grant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let group = if self.group.is_empty() { "core" } else { &self.group };
        write!(f, "{} {group} {}", self.verb, self.resource)?;
        if !self.names.is_empty() {
            write!(f, " named {}", self.names.join(", "))?;
        }
        if !self.namespace.is_empty() {
            write!(f, " in {}", self.namespace)?;
        }
        Ok(())
    }
}

impl Grant {
    /// Whether this grant let that request in.
    pub fn covers(&self, access: &Access) -> bool {
        self.verb == access.verb
            && self.group == access.group
            && self.resource == access.resource
            && (self.names.is_empty() || self.names.contains(&access.name))
            && (self.namespace.is_empty() || self.namespace == access.namespace)
    }
}

/// All grants of a ServiceAccount, from the roles that are bound to it.
///
/// # Errors
/// The API server cannot be reached.
pub async fn grants(client: &Client, namespace: &str, account: &str) -> Result<BTreeSet<Grant>> {
    let ours = |subjects: &Option<Vec<Subject>>| {
        subjects.iter().flatten().any(|subject| {
            subject.kind == "ServiceAccount"
                && subject.name == account
                && subject.namespace.as_deref() == Some(namespace)
        })
    };
    let mut grants = BTreeSet::new();
    let everything = kube::api::ListParams::default();
    let cluster_roles: Api<ClusterRole> = Api::all(client.clone());
    for binding in Api::<ClusterRoleBinding>::all(client.clone()).list(&everything).await? {
        if ours(&binding.subjects) {
            let role = cluster_roles.get(&binding.role_ref.name).await?;
            expand(role.rules.as_deref().unwrap_or_default(), "", &mut grants);
        }
    }
    for binding in Api::<RoleBinding>::all(client.clone()).list(&everything).await? {
        if !ours(&binding.subjects) {
            continue;
        }
        let within = binding.metadata.namespace.unwrap_or_default();
        let rules = if binding.role_ref.kind == "ClusterRole" {
            cluster_roles.get(&binding.role_ref.name).await?.rules
        } else {
            Api::<Role>::namespaced(client.clone(), &within).get(&binding.role_ref.name).await?.rules
        };
        expand(rules.as_deref().unwrap_or_default(), &within, &mut grants);
    }
    Ok(grants)
}

fn expand(rules: &[PolicyRule], namespace: &str, grants: &mut BTreeSet<Grant>) {
    for rule in rules {
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                for verb in &rule.verbs {
                    grants.insert(Grant {
                        verb: verb.clone(),
                        group: group.clone(),
                        resource: resource.clone(),
                        names: rule.resource_names.clone().unwrap_or_default(),
                        namespace: namespace.to_owned(),
                    });
                }
            }
        }
    }
}

/// A permission that the suites do not use, and why it is granted all the same.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exception {
    /// API group; the core group is empty.
    pub group: String,
    /// Resources, with `/subresource`.
    pub resources: Vec<String>,
    /// Verbs.
    pub verbs: Vec<String>,
    /// Why.
    pub reason: String,
    /// Whether a run meets it is chance: used or not, it is no complaint.
    #[serde(default)]
    pub sometimes: bool,
}

impl Exception {
    /// Reads the list.
    ///
    /// # Errors
    /// It is not a list of exceptions, or one has no reason.
    pub fn list(yaml: &str) -> Result<Vec<Self>> {
        let list: Vec<Self> = serde_norway::from_str(yaml).context("reading the list of unused permissions")?;
        for exception in &list {
            anyhow::ensure!(!exception.reason.trim().is_empty(), "an unused permission has no reason: {exception:?}");
        }
        Ok(list)
    }

    fn names(&self, grant: &Grant) -> bool {
        self.group == grant.group && self.resources.contains(&grant.resource) && self.verbs.contains(&grant.verb)
    }
}

/// Complaints: refused requests, unused grants without a reason, and exceptions that no longer are any.
pub fn judge(record: &Record, grants: &BTreeSet<Grant>, exceptions: &[Exception]) -> Vec<String> {
    let mut complaints = Vec::new();
    for access in &record.refused {
        // A restarted API server refuses everybody until it has read the roles: that is not the roles' fault.
        if grants.iter().any(|grant| grant.covers(access)) {
            continue;
        }
        complaints.push(format!(
            "refused: {} {} {} {}/{}: the chart's roles lack it",
            access.verb, access.group, access.resource, access.namespace, access.name
        ));
    }
    for grant in grants {
        let used = record.allowed.iter().any(|access| grant.covers(access));
        let excused = exceptions.iter().any(|exception| exception.names(grant));
        if !used && !excused {
            complaints.push(format!("never used: {grant}: drop it from the chart's roles or list it with a reason"));
        }
    }
    for exception in exceptions {
        for resource in &exception.resources {
            for verb in &exception.verbs {
                let granted: Vec<&Grant> = grants
                    .iter()
                    .filter(|grant| {
                        grant.group == exception.group && &grant.resource == resource && &grant.verb == verb
                    })
                    .collect();
                if granted.is_empty() {
                    complaints.push(format!("listed as unused but not granted: {verb} {} {resource}", exception.group));
                } else if !exception.sometimes
                    && granted.iter().all(|grant| record.allowed.iter().any(|access| grant.covers(access)))
                {
                    complaints.push(format!("listed as unused but used: {verb} {} {resource}", exception.group));
                }
            }
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(verb: &str, resource: &str) -> Access {
        Access {
            verb: verb.into(),
            group: String::new(),
            resource: resource.into(),
            name: String::new(),
            namespace: String::new(),
        }
    }

    fn grant(verb: &str, resource: &str) -> Grant {
        Grant {
            verb: verb.into(),
            group: String::new(),
            resource: resource.into(),
            names: Vec::new(),
            namespace: String::new(),
        }
    }

    #[test]
    fn judges_refusals_and_unused_grants() {
        let record = Record {
            allowed: BTreeSet::from([access("get", "pods"), access("list", "nodes")]),
            refused: BTreeSet::from([access("delete", "secrets"), access("get", "pods")]),
        };
        let grants = BTreeSet::from([
            grant("get", "pods"),
            grant("list", "pods"),
            grant("watch", "pods"),
            grant("list", "nodes"),
        ]);
        let exceptions = Exception::list(
            "[{group: '', resources: [pods], verbs: [watch], reason: later}, {group: '', resources: [nodes], verbs: [list], reason: wrong}]",
        )
        .expect("list");
        let complaints = judge(&record, &grants, &exceptions);
        assert_eq!(complaints.len(), 3, "{complaints:#?}");
        assert!(complaints[0].contains("delete  secrets"));
        assert!(complaints[1].contains("never used: list core pods"));
        assert!(complaints[2].contains("listed as unused but used: list  nodes"));
    }
}
