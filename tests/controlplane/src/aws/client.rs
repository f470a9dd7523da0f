//! Requests to an AWS endpoint without an SDK: moto checks no signature, it reads the service and the region from it.

use super::{Instance, REGION};
use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use std::collections::BTreeMap;

/// A client of one endpoint.
#[derive(Debug, Clone)]
pub struct AwsClient {
    endpoint: String,
    http: Client<HttpConnector, Full<Bytes>>,
}

/// An XML answer.
#[derive(Debug, Clone)]
pub struct Xml(pub String);

impl Xml {
    /// The text of the first element with this name.
    ///
    /// # Errors
    /// There is none, or the answer is no XML.
    pub fn text(&self, element: &str) -> Result<String> {
        self.texts(element)?.into_iter().next().with_context(|| format!("no <{element}> in {}", self.0))
    }

    /// The texts of all elements with this name, in order.
    ///
    /// # Errors
    /// The answer is no XML.
    pub fn texts(&self, element: &str) -> Result<Vec<String>> {
        let document = roxmltree::Document::parse(&self.0).with_context(|| format!("not XML: {}", self.0))?;
        Ok(document
            .descendants()
            .filter(|node| node.has_tag_name(element) || node.tag_name().name() == element)
            .map(|node| node.text().unwrap_or_default().to_owned())
            .collect())
    }
}

impl AwsClient {
    /// A client for `http://host:port`.
    pub fn new(endpoint: &str) -> Self {
        Self {
            endpoint: endpoint.trim_end_matches('/').to_owned(),
            http: Client::builder(TokioExecutor::new()).build_http(),
        }
    }

    /// An EC2 action with its flattened parameters (`InstanceId.1`, …).
    ///
    /// # Errors
    /// The endpoint cannot be reached or refuses.
    pub async fn ec2(&self, action: &str, parameters: &[(&str, &str)]) -> Result<Xml> {
        self.query("ec2", "2016-11-15", action, parameters).await
    }

    /// An action of a service with the query protocol.
    ///
    /// # Errors
    /// The endpoint cannot be reached or refuses.
    pub async fn query(&self, service: &str, version: &str, action: &str, parameters: &[(&str, &str)]) -> Result<Xml> {
        let body = form_urlencoded::Serializer::new(String::new())
            .append_pair("Action", action)
            .append_pair("Version", version)
            .extend_pairs(parameters)
            .finish();
        let headers = [("content-type", "application/x-www-form-urlencoded; charset=utf-8")];
        self.send(service, http::Method::POST, "/", &headers, body)
            .await
            .map(Xml)
            .with_context(|| format!("{service} {action}"))
    }

    /// An operation of a service with the JSON protocol, for example SSM's `AmazonSSM.PutParameter`.
    ///
    /// # Errors
    /// The endpoint cannot be reached or refuses.
    pub async fn json(&self, service: &str, target: &str, body: &serde_json::Value) -> Result<serde_json::Value> {
        let headers = [("content-type", "application/x-amz-json-1.1"), ("x-amz-target", target)];
        let text = self.send(service, http::Method::POST, "/", &headers, body.to_string()).await?;
        if text.is_empty() { Ok(serde_json::Value::Null) } else { Ok(serde_json::from_str(&text)?) }
    }

    /// An operation of a service with the REST protocol.
    ///
    /// # Errors
    /// The endpoint cannot be reached or refuses.
    pub async fn rest(
        &self,
        service: &str,
        method: http::Method,
        path: &str,
        body: &serde_json::Value,
    ) -> Result<serde_json::Value> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let text = self.send(service, method, path, &[("content-type", "application/json")], body).await?;
        Ok(serde_json::from_str(&text)?)
    }

    async fn send(
        &self,
        service: &str,
        method: http::Method,
        path: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> Result<String> {
        let mut request = http::Request::builder().method(method).uri(format!("{}{path}", self.endpoint)).header(
            "authorization",
            format!(
                "AWS4-HMAC-SHA256 Credential=test/20260101/{REGION}/{service}/aws4_request, SignedHeaders=host, Signature=none"
            ),
        );
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self
            .http
            .request(request.body(Full::new(Bytes::from(body)))?)
            .await
            .context("no answer from the AWS endpoint")?;
        let status = response.status();
        let bytes = response.into_body().collect().await?.to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if !status.is_success() {
            bail!("the AWS endpoint answered {status}: {text}");
        }
        Ok(text)
    }

    /// All instances, terminated ones included, that carry `tag_key` (all if empty).
    ///
    /// # Errors
    /// The endpoint cannot be reached or its answer cannot be read.
    pub async fn instances(&self, tag_key: &str) -> Result<Vec<Instance>> {
        let filter = [("Filter.1.Name", "tag-key"), ("Filter.1.Value.1", tag_key)];
        let mut found = Vec::new();
        let mut next = String::new();
        loop {
            let mut parameters: Vec<(&str, &str)> = if tag_key.is_empty() { Vec::new() } else { filter.to_vec() };
            if !next.is_empty() {
                parameters.push(("NextToken", &next));
            }
            let xml = self.ec2("DescribeInstances", &parameters).await?;
            let document = roxmltree::Document::parse(&xml.0)?;
            for set in document.descendants().filter(|node| node.tag_name().name() == "instancesSet") {
                found.extend(set.children().filter(roxmltree::Node::is_element).map(instance));
            }
            // Ended instances stay listed, so a long run has more than one page.
            next = match document.root_element().children().find(|node| node.tag_name().name() == "nextToken") {
                Some(token) => token.text().unwrap_or_default().to_owned(),
                None => String::new(),
            };
            if next.is_empty() {
                break;
            }
        }
        Ok(found)
    }

    /// The user data of an instance, decoded, as the instance metadata service gives it to the instance.
    ///
    /// # Errors
    /// The endpoint cannot be reached or the data is not base64.
    pub async fn user_data(&self, instance: &str) -> Result<String> {
        use base64::Engine as _;
        let xml = self.ec2("DescribeInstanceAttribute", &[("Attribute", "userData"), ("InstanceId", instance)]).await?;
        let document = roxmltree::Document::parse(&xml.0)?;
        let encoded = document
            .descendants()
            .find(|node| node.tag_name().name() == "userData")
            .and_then(|node| child(node, "value"))
            .unwrap_or_default();
        let bytes =
            base64::engine::general_purpose::STANDARD.decode(encoded.trim()).context("user data is not base64")?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn child(node: roxmltree::Node<'_, '_>, name: &str) -> Option<String> {
    node.children()
        .find(|child| child.tag_name().name() == name)
        .map(|child| child.text().unwrap_or_default().to_owned())
}

fn inner(node: roxmltree::Node<'_, '_>, outer: &str, name: &str) -> String {
    node.children()
        .find(|child| child.tag_name().name() == outer)
        .and_then(|found| child(found, name))
        .unwrap_or_default()
}

fn instance(item: roxmltree::Node<'_, '_>) -> Instance {
    let mut tags = BTreeMap::new();
    for tag in item.children().filter(|node| node.tag_name().name() == "tagSet").flat_map(|set| set.children()) {
        if let (Some(key), Some(value)) = (child(tag, "key"), child(tag, "value")) {
            tags.insert(key, value);
        }
    }
    let lifecycle = child(item, "instanceLifecycle").unwrap_or_default();
    Instance {
        id: child(item, "instanceId").unwrap_or_default(),
        state: inner(item, "instanceState", "name"),
        instance_type: child(item, "instanceType").unwrap_or_default(),
        zone: inner(item, "placement", "availabilityZone"),
        capacity_type: if lifecycle == "spot" { lifecycle } else { "on-demand".to_owned() },
        image: child(item, "imageId").unwrap_or_default(),
        private_dns: child(item, "privateDnsName").unwrap_or_default(),
        private_ip: child(item, "privateIpAddress").unwrap_or_default(),
        tags,
    }
}
