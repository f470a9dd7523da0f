//! SDK clients with our timeouts, and the one place through which every call goes.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region};
use aws_sdk_ec2::config::Credentials;
use aws_sdk_ec2::config::http::HttpResponse;
use aws_sdk_ec2::error::{ProvideErrorMetadata, SdkError};

use super::error::ApiError;
use super::settings::AwsSettings;
use crate::error::CloudError;
use crate::observe::CallObserver;

/// Time for one attempt. Long enough for the slowest page of DescribeInstanceTypes.
const ATTEMPT: Duration = Duration::from_secs(25);
/// Time for a call with its retries.
const CALL: Duration = Duration::from_secs(70);
/// Attempts per call.
const ATTEMPTS: u32 = 4;

/// The clients, and who counts their calls.
#[derive(Clone)]
pub(crate) struct Clients {
    pub(crate) ec2: aws_sdk_ec2::Client,
    pub(crate) eks: aws_sdk_eks::Client,
    pub(crate) iam: aws_sdk_iam::Client,
    pub(crate) ssm: aws_sdk_ssm::Client,
    pub(crate) region: Arc<str>,
    observer: Arc<dyn CallObserver>,
}

impl Clients {
    /// Reads region and credentials as the SDK does: environment, profile, web identity, container, instance metadata.
    pub(crate) async fn connect(settings: &AwsSettings, observer: Arc<dyn CallObserver>) -> Result<Self, CloudError> {
        let mut loader = aws_config::defaults(BehaviorVersion::latest())
            .retry_config(RetryConfig::standard().with_max_attempts(ATTEMPTS).with_max_backoff(Duration::from_secs(10)))
            .timeout_config(
                TimeoutConfig::builder()
                    .connect_timeout(Duration::from_secs(5))
                    .operation_attempt_timeout(ATTEMPT)
                    .operation_timeout(CALL)
                    .build(),
            );
        if let Some(region) = &settings.region {
            loader = loader.region(Region::new(region.to_string()));
        }
        if let Some(test) = &settings.for_tests {
            loader = loader
                .endpoint_url(test.url.clone())
                .credentials_provider(Credentials::new("test", "test", None, None, "test"));
        }
        let config = loader.load().await;
        let Some(region) = config.region() else {
            return Err(CloudError::Invalid {
                message: "AWS region is not known: set AWS_REGION, or let the pod reach the instance metadata service"
                    .to_owned(),
            });
        };
        Ok(Self {
            region: Arc::from(region.as_ref()),
            ec2: aws_sdk_ec2::Client::new(&config),
            eks: aws_sdk_eks::Client::new(&config),
            iam: aws_sdk_iam::Client::new(&config),
            ssm: aws_sdk_ssm::Client::new(&config),
            observer,
        })
    }

    /// Makes a call, counts it, and reads its error.
    pub(crate) async fn call<T, E>(
        &self,
        call: &'static str,
        request: impl Future<Output = Result<T, SdkError<E, HttpResponse>>>,
    ) -> Result<T, ApiError>
    where
        E: ProvideErrorMetadata + std::error::Error + 'static,
    {
        let start = Instant::now();
        let result = request.await.map_err(|e| {
            let status = e.raw_response().map(|r| r.status().as_u16());
            ApiError::new(call, &e, status)
        });
        // A dry run that would have succeeded is told as an error; it is none.
        let code = result.as_ref().err().map(|e| e.code.as_str()).filter(|c| *c != "DryRunOperation");
        self.observer.observe(call, start.elapsed(), code);
        if let Err(error) = &result {
            tracing::debug!(call, code = %error.code, message = %error.message, "AWS call failed");
        }
        result
    }
}
