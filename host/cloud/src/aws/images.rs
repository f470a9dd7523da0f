//! Images (AMIs) by selector terms, and which of them an instance type starts from.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_sdk_ec2::types::{ArchitectureValues, Filter, Image};
use mortise_api::EC2NodeClass;
use mortise_api::ec2nodeclass::{Ami, AmiSelectorTerm};
use mortise_api::labels;
use mortise_api::requirement::{Operator, Requirement};

use super::alias::{Variant, al2023};
use super::clients::Clients;
use super::error::ApiError;
use super::filters::{Kept, filter, tag_filters};
use crate::catalog_build::AmiFamily;

/// How long a published parameter is believed: it names one image until the next release.
const PUBLISHED_TTL: Duration = Duration::from_secs(24 * 3600);
/// How long a user's own parameter is believed.
const CUSTOM_TTL: Duration = Duration::from_secs(300);

/// Why there are no images.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImageError {
    #[error(transparent)]
    Api(#[from] ApiError),
    /// Nothing to do but change the class: condition reason and message.
    #[error("{0}: {1}")]
    Class(&'static str, String),
}

/// One DescribeImages request.
#[derive(Debug, Default)]
struct Query {
    filters: Vec<Filter>,
    owners: Vec<String>,
    /// What the images are for, by id; an image that is not listed is for its architecture.
    variants: BTreeMap<String, Vec<Variant>>,
}

/// SSM parameters read, `None` = not there.
#[derive(Debug, Default)]
pub(crate) struct Parameters(Kept<Option<String>>);

impl Parameters {
    async fn get(&self, clients: &Clients, path: &str, ttl: Duration) -> Result<Option<String>, ApiError> {
        if let Some(known) = self.0.get(path, ttl).flatten() {
            return Ok(Some(known));
        }
        let answer = clients.call("GetParameter", clients.ssm.get_parameter().name(path).send()).await;
        let value = match answer {
            Ok(output) => output.parameter().and_then(|p| p.value()).map(str::to_owned),
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error),
        };
        self.0.put(path, value.clone());
        Ok(value)
    }

    /// Forgets a parameter whose image turned out to be deprecated.
    fn forget(&self, path: &str) {
        self.0.remove(path);
    }
}

/// Images of a class, newest first.
pub(crate) async fn find_images(
    clients: &Clients,
    parameters: &Parameters,
    class: &EC2NodeClass,
    kubernetes: Option<&str>,
    now_rfc3339: &str,
) -> Result<Vec<Ami>, ImageError> {
    let mut alias_paths: BTreeMap<String, String> = BTreeMap::new();
    let queries = match class.spec.alias() {
        Some(alias) => {
            if alias.family() != Some(mortise_api::ec2nodeclass::AmiFamily::Al2023) {
                return Err(ImageError::Class(
                    "UnsupportedAlias",
                    format!(
                        "spec.amiSelectorTerms[0].alias: the family {:?} is not acted on yet; use al2023@…, or select images by id, name or tags with amiFamily AL2023 or Custom",
                        alias.family
                    ),
                ));
            }
            let kubernetes = kubernetes.ok_or_else(|| {
                ImageError::Class(
                    "KubernetesVersionUnknown",
                    "the cluster's Kubernetes version is not known, and the alias's image depends on it".to_owned(),
                )
            })?;
            vec![alias_query(clients, parameters, kubernetes, alias.version, &mut alias_paths).await?]
        }
        None => term_queries(clients, parameters, &class.spec.ami_selector_terms).await?,
    };
    let mut found: Vec<(Ami, String)> = Vec::new();
    for query in queries {
        for image in describe(clients, &query).await? {
            push(&mut found, &image, &query, now_rfc3339);
        }
    }
    for (ami, _) in &found {
        if let (Some(true), Some(path)) = (ami.deprecated, alias_paths.get(&ami.id)) {
            parameters.forget(path);
        }
    }
    Ok(newest_first(found))
}

/// One query for all images that the alias's parameters name.
async fn alias_query(
    clients: &Clients,
    parameters: &Parameters,
    kubernetes: &str,
    version: &str,
    paths: &mut BTreeMap<String, String>,
) -> Result<Query, ImageError> {
    let mut variants: BTreeMap<String, Vec<Variant>> = BTreeMap::new();
    let mut trouble = None;
    for parameter in al2023(kubernetes, version) {
        // A variant that cannot be read costs its instance types only.
        match parameters.get(clients, &parameter.path, PUBLISHED_TTL).await {
            Ok(Some(id)) => {
                paths.insert(id.clone(), parameter.path);
                variants.entry(id).or_default().push(parameter.variant);
            }
            Ok(None) => {}
            Err(error) => trouble = Some(error),
        }
    }
    if variants.is_empty() {
        return Err(match trouble {
            Some(error) => error.into(),
            None => ImageError::Class(
                "AMINotFound",
                format!(
                    "spec.amiSelectorTerms[0].alias: no image is published as al2023@{version} for Kubernetes {kubernetes}; check the version, or use al2023@latest"
                ),
            ),
        });
    }
    let ids: Vec<String> = variants.keys().cloned().collect();
    Ok(Query { filters: vec![filter("image-id", ids)], owners: Vec::new(), variants })
}

/// One query for all ids, and one per name or tag map.
async fn term_queries(
    clients: &Clients,
    parameters: &Parameters,
    terms: &[AmiSelectorTerm],
) -> Result<Vec<Query>, ApiError> {
    let mut ids: Vec<String> = Vec::new();
    let mut queries: Vec<Query> = Vec::new();
    for term in terms {
        if let Some(id) = &term.id {
            ids.push(id.clone());
        } else if let Some(path) = &term.ssm_parameter {
            match parameters.get(clients, path, CUSTOM_TTL).await? {
                Some(id) if id.starts_with("ami-") => ids.push(id),
                found => tracing::warn!(parameter = %path, ?found, "SSM parameter names no image"),
            }
        } else {
            let mut filters = tag_filters(&term.tags);
            let mut owners: Vec<String> = term.owner.iter().cloned().collect();
            if let Some(name) = &term.name {
                filters.push(filter("name", [name.clone()]));
                if owners.is_empty() {
                    owners = vec!["self".to_owned(), "amazon".to_owned()];
                }
            }
            if !filters.is_empty() {
                queries.push(Query { filters, owners, variants: BTreeMap::new() });
            }
        }
    }
    if !ids.is_empty() {
        queries.push(Query { filters: vec![filter("image-id", ids)], ..Query::default() });
    }
    Ok(queries)
}

async fn describe(clients: &Clients, query: &Query) -> Result<Vec<Image>, ApiError> {
    let mut pages = clients
        .ec2
        .describe_images()
        .set_filters(Some(query.filters.clone()))
        .filters(filter("state", ["available".to_owned()]))
        .set_owners((!query.owners.is_empty()).then(|| query.owners.clone()))
        .include_deprecated(true)
        .max_results(1000)
        .into_paginator()
        .send();
    let mut images = Vec::new();
    while let Some(page) = clients.call("DescribeImages", pages.try_next()).await? {
        images.extend(page.images.unwrap_or_default());
    }
    Ok(images)
}

/// Adds an image once per set of requirements known for it.
fn push(found: &mut Vec<(Ami, String)>, image: &Image, query: &Query, now_rfc3339: &str) {
    let Some(id) = image.image_id() else { return };
    let arch = match image.architecture() {
        Some(ArchitectureValues::X8664) => "amd64",
        Some(ArchitectureValues::Arm64) => "arm64",
        _ => return,
    };
    // Both are RFC 3339 in UTC, so text order is time order.
    let deprecated = image.deprecation_time().is_some_and(|at| at <= now_rfc3339).then_some(true);
    let created = image.creation_date().unwrap_or_default().to_owned();
    let arch = Requirement::new(labels::ARCH, Operator::In, [arch]);
    let sets = match query.variants.get(id) {
        Some(variants) => variants.iter().map(|v| v.requirements()).collect(),
        None => vec![Vec::new()],
    };
    for mut requirements in sets {
        requirements.push(arch.clone());
        requirements.sort_by(|a, b| a.key.len().cmp(&b.key.len()).then_with(|| a.key.cmp(&b.key)));
        let ami = Ami { id: id.to_owned(), name: image.name().map(str::to_owned), deprecated, requirements };
        found.push((ami, created.clone()));
    }
}

/// Keeps one image per set of requirements (not deprecated before deprecated, newer before older, then by greater
/// name), newest first.
fn newest_first(mut found: Vec<(Ami, String)>) -> Vec<Ami> {
    found.sort_by(|(a, a_at), (b, b_at)| {
        a.deprecated
            .cmp(&b.deprecated)
            .then_with(|| b_at.cmp(a_at))
            .then_with(|| b.name.cmp(&a.name))
            .then_with(|| a.id.cmp(&b.id))
    });
    let mut kept: Vec<(Ami, String)> = Vec::new();
    for (ami, at) in found {
        if !kept.iter().any(|(k, _)| k.requirements == ami.requirements) {
            kept.push((ami, at));
        }
    }
    kept.sort_by(|(a, a_at), (b, b_at)| b_at.cmp(a_at).then_with(|| a.id.cmp(&b.id)));
    kept.into_iter().map(|(ami, _)| ami).collect()
}

/// The first image whose requirements an instance type meets.
pub(crate) fn image_for<'a>(amis: &'a [Ami], instance_type: &mortise_engine::catalog::InstanceType) -> Option<&'a Ami> {
    amis.iter().find(|ami| ami.requirements.iter().all(|r| meets(instance_type, r)))
}

/// Image requirements use In, Exists and DoesNotExist only.
fn meets(instance_type: &mortise_engine::catalog::InstanceType, asked: &Requirement) -> bool {
    use mortise_engine::requirement::Operator as Has;
    let defined =
        instance_type.requirements.iter().find(|r| r.key == asked.key).filter(|r| r.operator != Has::DoesNotExist);
    match &asked.operator {
        Operator::In => defined.is_some_and(|d| d.values.iter().any(|v| asked.values.contains(v))),
        Operator::Exists => defined.is_some(),
        Operator::DoesNotExist => defined.is_none(),
        _ => false,
    }
}

/// Families that nodes can be started with today.
pub(crate) fn supported_family(family: AmiFamily) -> bool {
    matches!(family, AmiFamily::Al2023 | AmiFamily::Custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(id: &str, arch: ArchitectureValues, created: &str, deprecated: Option<&str>) -> Image {
        Image::builder()
            .image_id(id)
            .name(format!("name-{id}"))
            .architecture(arch)
            .creation_date(created)
            .set_deprecation_time(deprecated.map(str::to_owned))
            .build()
    }

    fn collect(images: &[Image], query: &Query) -> Vec<Ami> {
        let mut found = Vec::new();
        for i in images {
            push(&mut found, i, query, "2026-01-01T00:00:00.000Z");
        }
        newest_first(found)
    }

    #[test]
    fn newest_of_each_architecture_wins_and_deprecated_loses() {
        let images = [
            image("ami-old", ArchitectureValues::X8664, "2025-01-01T00:00:00.000Z", None),
            image("ami-new", ArchitectureValues::X8664, "2025-06-01T00:00:00.000Z", None),
            image(
                "ami-newest",
                ArchitectureValues::X8664,
                "2025-07-01T00:00:00.000Z",
                Some("2025-12-01T00:00:00.000Z"),
            ),
            image("ami-arm", ArchitectureValues::Arm64, "2025-08-01T00:00:00.000Z", Some("2027-12-01T00:00:00.000Z")),
            image("ami-mac", ArchitectureValues::Arm64Mac, "2025-09-01T00:00:00.000Z", None),
        ];
        let amis = collect(&images, &Query::default());
        let ids: Vec<_> = amis.iter().map(|a| (a.id.as_str(), a.deprecated)).collect();
        assert_eq!(ids, [("ami-arm", None), ("ami-new", None)]);
    }

    #[test]
    fn one_image_may_be_for_two_variants() {
        let mut query = Query::default();
        query.variants.insert("ami-1".to_owned(), vec![Variant::Standard, Variant::Nvidia]);
        let amis = collect(&[image("ami-1", ArchitectureValues::X8664, "2025", None)], &query);
        assert_eq!(amis.len(), 2);
        let keys: Vec<_> = amis[0].requirements.iter().map(|r| &*r.key).collect();
        assert_eq!(
            keys,
            [
                "kubernetes.io/arch",
                "karpenter.k8s.aws/instance-gpu-count",
                "karpenter.k8s.aws/instance-accelerator-count"
            ],
            "shortest key first"
        );
    }

    #[test]
    fn a_type_takes_the_first_image_it_meets() {
        use mortise_engine::requirement::{Operator as Op, Requirement as Req};
        let it = |gpu: Option<&str>| mortise_engine::catalog::InstanceType {
            requirements: vec![
                Req { key: labels::ARCH.into(), operator: Op::In, values: vec!["amd64".into()], min_values: None },
                Req {
                    key: labels::INSTANCE_GPU_COUNT.into(),
                    operator: if gpu.is_some() { Op::In } else { Op::DoesNotExist },
                    values: gpu.iter().map(|g| (*g).into()).collect(),
                    min_values: None,
                },
            ],
            ..Default::default()
        };
        let mut query = Query::default();
        query.variants.insert("ami-std".to_owned(), vec![Variant::Standard]);
        query.variants.insert("ami-gpu".to_owned(), vec![Variant::Nvidia]);
        let amis = collect(
            &[
                image("ami-std", ArchitectureValues::X8664, "2025-02", None),
                image("ami-gpu", ArchitectureValues::X8664, "2025-01", None),
            ],
            &query,
        );
        assert_eq!(image_for(&amis, &it(None)).map(|a| a.id.as_str()), Some("ami-std"));
        assert_eq!(image_for(&amis, &it(Some("4"))).map(|a| a.id.as_str()), Some("ami-gpu"));
        let arm = collect(&[image("ami-arm", ArchitectureValues::Arm64, "2025", None)], &Query::default());
        assert_eq!(image_for(&arm, &it(None)), None);
    }
}
