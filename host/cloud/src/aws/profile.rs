//! Instance profiles: made for a class's `role`, found by the class's path, removed with the class.

use aws_sdk_iam::types::Tag;
use mortise_api::EC2NodeClass;

use super::clients::Clients;
use super::error::ApiError;
use super::hash::short_hash;

/// What a profile is made for.
pub(crate) struct ProfileRequest<'a> {
    pub(crate) cluster: &'a str,
    pub(crate) class: &'a EC2NodeClass,
    pub(crate) role: &'a str,
}

/// Path below which all profiles of a class lie.
pub(crate) fn path(region: &str, cluster: &str, class_uid: &str) -> String {
    format!("/karpenter/{region}/{cluster}/{class_uid}/")
}

/// A role's name without its path: IAM reads and answers with the bare name.
fn bare(role: &str) -> &str {
    role.rsplit('/').next().unwrap_or(role)
}

/// Name of the profile for this role: another role is another profile, so that nodes being launched keep theirs.
fn name(region: &str, request: &ProfileRequest<'_>) -> String {
    let uid = request.class.metadata.uid.as_deref().unwrap_or_default();
    let class = request.class.metadata.name.as_deref().unwrap_or_default();
    format!("{}_{}", request.cluster, short_hash(&[region, class, uid, bare(request.role)]))
}

/// Makes sure that a profile with the role exists; returns its name. One that the class already uses is kept if its role
/// is right, whoever made it.
pub(crate) async fn ensure(clients: &Clients, request: &ProfileRequest<'_>) -> Result<String, ApiError> {
    let role = bare(request.role);
    let current = request.class.status.as_ref().and_then(|s| s.instance_profile.clone());
    let wanted = name(&clients.region, request);
    if let Some(current) = current.filter(|c| *c != wanted)
        && roles_of(clients, &current).await?.is_some_and(|roles| roles == [role])
    {
        return Ok(current);
    }
    let roles = match roles_of(clients, &wanted).await? {
        Some(roles) => roles,
        None => {
            create(clients, request, &wanted).await?;
            Vec::new()
        }
    };
    for other in roles.iter().filter(|r| *r != role) {
        remove_role(clients, &wanted, other).await?;
    }
    if !roles.iter().any(|r| r == role) {
        let add = clients.iam.add_role_to_instance_profile().instance_profile_name(&wanted).role_name(role).send();
        match clients.call("AddRoleToInstanceProfile", add).await {
            Ok(_) => {}
            // Somebody else (our other replica) was faster.
            Err(e) if e.code == "LimitExceeded" || e.code == "EntityAlreadyExists" => {}
            Err(e) => return Err(e),
        }
    }
    Ok(wanted)
}

/// Roles of a profile; `None` when there is no such profile.
async fn roles_of(clients: &Clients, profile: &str) -> Result<Option<Vec<String>>, ApiError> {
    let request = clients.iam.get_instance_profile().instance_profile_name(profile).send();
    match clients.call("GetInstanceProfile", request).await {
        Ok(answer) => {
            Ok(answer.instance_profile().map(|p| p.roles().iter().map(|r| r.role_name().to_owned()).collect()))
        }
        Err(e) if e.is_not_found() => Ok(None),
        Err(e) => Err(e),
    }
}

async fn create(clients: &Clients, request: &ProfileRequest<'_>, profile: &str) -> Result<(), ApiError> {
    let class = request.class.metadata.name.as_deref().unwrap_or_default();
    let uid = request.class.metadata.uid.as_deref().unwrap_or_default();
    let mut tags = request.class.spec.tags.clone();
    tags.insert(format!("kubernetes.io/cluster/{}", request.cluster), "owned".to_owned());
    tags.insert("eks:eks-cluster-name".to_owned(), request.cluster.to_owned());
    tags.insert("karpenter.k8s.aws/ec2nodeclass".to_owned(), class.to_owned());
    tags.insert("topology.kubernetes.io/region".to_owned(), clients.region.to_string());
    // Key and value are set, which is all that the builder checks.
    let tags = tags.into_iter().filter_map(|(k, v)| Tag::builder().key(k).value(v).build().ok()).collect();
    let create = clients
        .iam
        .create_instance_profile()
        .instance_profile_name(profile)
        .path(path(&clients.region, request.cluster, uid))
        .set_tags(Some(tags))
        .send();
    match clients.call("CreateInstanceProfile", create).await {
        Ok(_) => Ok(()),
        Err(e) if e.code == "EntityAlreadyExists" => Ok(()),
        Err(e) => Err(e),
    }
}

async fn remove_role(clients: &Clients, profile: &str, role: &str) -> Result<(), ApiError> {
    let request = clients.iam.remove_role_from_instance_profile().instance_profile_name(profile).role_name(role).send();
    match clients.call("RemoveRoleFromInstanceProfile", request).await {
        Ok(_) => Ok(()),
        Err(e) if e.is_not_found() => Ok(()),
        Err(e) => Err(e),
    }
}

/// Deletes every profile of a class.
pub(crate) async fn delete_all(clients: &Clients, cluster: &str, class_uid: &str) -> Result<(), ApiError> {
    // Without a uid the path would be that of all classes.
    if class_uid.is_empty() {
        return Ok(());
    }
    let prefix = path(&clients.region, cluster, class_uid);
    let mut pages = clients.iam.list_instance_profiles().path_prefix(prefix).into_paginator().send();
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    while let Some(page) = clients.call("ListInstanceProfiles", pages.try_next()).await? {
        found.extend(page.instance_profiles().iter().map(|p| {
            (p.instance_profile_name().to_owned(), p.roles().iter().map(|r| r.role_name().to_owned()).collect())
        }));
    }
    for (profile, roles) in found {
        for role in roles {
            remove_role(clients, &profile, &role).await?;
        }
        let request = clients.iam.delete_instance_profile().instance_profile_name(&profile).send();
        match clients.call("DeleteInstanceProfile", request).await {
            Ok(_) => {}
            Err(e) if e.is_not_found() => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
