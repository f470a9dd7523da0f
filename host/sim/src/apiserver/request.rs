//! What a request asks for: path, query and negotiated representation.

use std::collections::BTreeMap;

use super::error::{ApiError, ApiResult};

/// A request path, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A resource, an object or a subresource.
    Resource(ResourcePath),
    /// Anything else: discovery, health, OpenAPI. Path segments.
    Other(Vec<String>),
}

/// `/api/v1/…` or `/apis/GROUP/VERSION/…`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResourcePath {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) namespace: Option<String>,
    pub(crate) plural: String,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
}

/// Parses a path that is still percent-encoded.
pub(crate) fn parse_path(path: &str) -> Target {
    let segments: Vec<String> = path.split('/').filter(|s| !s.is_empty()).map(percent_decode).collect();
    let refs: Vec<&str> = segments.iter().map(String::as_str).collect();
    let (group, version, rest) = match refs.as_slice() {
        ["api", version, rest @ ..] if !rest.is_empty() => ("", *version, rest),
        ["apis", group, version, rest @ ..] if !rest.is_empty() => (*group, *version, rest),
        _ => return Target::Other(segments),
    };
    let (namespace, rest) = match rest {
        // `namespaces/NAME/status` is a subresource of the Namespace itself.
        ["namespaces", _, "status" | "finalize"] => (None, rest),
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some((*namespace).to_owned()), rest),
        rest => (None, rest),
    };
    let mut rest = rest.iter().map(|s| (*s).to_owned());
    let plural = rest.next().unwrap_or_default();
    let name = rest.next();
    let subresource: Vec<String> = rest.collect();
    Target::Resource(ResourcePath {
        group: group.to_owned(),
        version: version.to_owned(),
        namespace,
        plural,
        name,
        subresource: (!subresource.is_empty()).then(|| subresource.join("/")),
    })
}

fn percent_decode(segment: &str) -> String {
    if !segment.contains('%') {
        return segment.to_owned();
    }
    // A path segment may hold a literal `+`, which form decoding would turn into a space.
    let escaped = segment.replace('+', "%2B").replace('&', "%26").replace('=', "%3D");
    form_urlencoded::parse(escaped.as_bytes()).next().map(|(key, _)| key.into_owned()).unwrap_or_default()
}

/// Query parameters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(BTreeMap<String, String>);

impl Query {
    pub(crate) fn parse(query: Option<&str>) -> Self {
        Self(form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned().collect())
    }

    /// A parameter that is present and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        matches!(self.0.get(name).map(String::as_str), Some("true" | "1" | "True"))
    }

    pub(crate) fn number(&self, name: &str) -> ApiResult<Option<u64>> {
        self.get(name)
            .map(|text| {
                text.parse().map_err(|_| {
                    ApiError::bad_request(format!(
                        "query parameter {name}: found \"{text}\", want a non-negative integer"
                    ))
                })
            })
            .transpose()
    }

    pub(crate) fn dry_run(&self) -> ApiResult<bool> {
        match self.get("dryRun") {
            None => Ok(false),
            Some("All") => Ok(true),
            Some(other) => {
                Err(ApiError::bad_request(format!("query parameter dryRun: found \"{other}\", want \"All\"")))
            }
        }
    }
}

/// Representation the client asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The object or list itself.
    Full,
    /// A `Table`, as `kubectl get` prints.
    Table,
    /// Metadata only.
    Metadata,
}

/// First representation in an `Accept` header that can be served. Only JSON is ever written; a client that asks for
/// protobuf alone gets JSON too, as the content type of the answer tells it.
pub(crate) fn negotiate(accept: Option<&str>) -> Form {
    for media in accept.unwrap_or_default().split(',') {
        let mut parts = media.split(';').map(str::trim);
        if !matches!(parts.next(), Some("application/json" | "*/*" | "application/*")) {
            continue;
        }
        let params: BTreeMap<&str, &str> = parts.filter_map(|p| p.split_once('=')).collect();
        match (params.get("as").copied(), params.get("v").copied()) {
            (None, _) => return Form::Full,
            (Some("Table"), Some("v1")) => return Form::Table,
            (Some("PartialObjectMetadata" | "PartialObjectMetadataList"), Some("v1")) => return Form::Metadata,
            _ => {}
        }
    }
    Form::Full
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_apart() {
        let Target::Resource(p) = parse_path("/api/v1/namespaces/default/pods/web-0/eviction") else { panic!() };
        assert_eq!(
            (p.namespace.as_deref(), p.plural.as_str(), p.name.as_deref()),
            (Some("default"), "pods", Some("web-0"))
        );
        assert_eq!(p.subresource.as_deref(), Some("eviction"));
        let Target::Resource(p) = parse_path("/apis/karpenter.sh/v1/nodepools") else { panic!() };
        assert_eq!((p.group.as_str(), p.plural.as_str(), p.name), ("karpenter.sh", "nodepools", None));
        let Target::Resource(p) = parse_path("/api/v1/namespaces/x/status") else { panic!() };
        assert_eq!((p.namespace, p.plural.as_str(), p.name.as_deref()), (None, "namespaces", Some("x")));
        let Target::Resource(p) = parse_path("/api/v1/namespaces/x") else { panic!() };
        assert_eq!((p.namespace, p.name.as_deref()), (None, Some("x")));
        assert_eq!(parse_path("/apis/apps/v1"), Target::Other(vec!["apis".into(), "apps".into(), "v1".into()]));
        let Target::Resource(p) = parse_path("/api/v1/nodes/a%3Ab%2Bc") else { panic!() };
        assert_eq!(p.name.as_deref(), Some("a:b+c"));
    }

    #[test]
    fn accept_is_negotiated_in_order() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(negotiate(Some(table)), Form::Table);
        assert_eq!(negotiate(Some("application/vnd.kubernetes.protobuf,application/json")), Form::Full);
        assert_eq!(negotiate(Some("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")), Form::Metadata);
        assert_eq!(negotiate(None), Form::Full);
    }
}
