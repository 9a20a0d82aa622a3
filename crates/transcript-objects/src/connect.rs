//! Opens the store of an address with the credentials of the environment.

use std::env;
use std::io;
use std::sync::{Arc, Once};
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, S3ConditionalPut};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};
use transcript_storage::RealDisk;

use crate::address::{Address, Scheme};
use crate::error;
use crate::profile::Profile;
use crate::requests::Counter;

/// The time until a connection has to be there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The time within which a request has to end, also one for a large part of an object on a slow network.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(120);
/// The maximum number of times that a request is repeated after a failure of the server or the network.
const MAX_RETRIES: usize = 6;
/// The time after which a failed request is not repeated.
const RETRY_TIMEOUT: Duration = Duration::from_secs(60);
/// The region of servers that have none.
const DEFAULT_REGION: &str = "us-east-1";

/// Opens the store with the bucket of an address.
///
/// # Errors
/// When the environment lacks something without which no request can be made, or has something that cannot be used.
pub(crate) fn connect(address: &Address, counter: &Counter) -> io::Result<Arc<dyn ObjectStore>> {
    install_provider();
    let endpoint_is_plain = |endpoint: &Option<String>| {
        let endpoint = endpoint.as_deref().unwrap_or_default();
        endpoint.starts_with("http://")
    };
    let options = |is_plain: bool| {
        ClientOptions::new()
            .with_connect_timeout(CONNECT_TIMEOUT)
            .with_timeout(REQUEST_TIMEOUT)
            .with_allow_http(is_plain)
    };
    let retry = RetryConfig {
        backoff: BackoffConfig::default(),
        max_retries: MAX_RETRIES,
        retry_timeout: RETRY_TIMEOUT,
    };
    let built: object_store::Result<Arc<dyn ObjectStore>> = match address.scheme {
        Scheme::S3 => {
            let profile = Profile::read(&RealDisk, &|name| env::var(name).ok());
            let mut builder = AmazonS3Builder::from_env().with_bucket_name(&address.bucket);
            let has_keys = builder
                .get_config_value(&AmazonS3ConfigKey::AccessKeyId)
                .is_some();
            // The variables go before the files, as in the programs of AWS, unless the person names a profile.
            if (!has_keys || env::var_os("AWS_PROFILE").is_some())
                && let (Some(id), Some(secret)) = (profile.access_key_id, profile.secret_access_key)
            {
                builder = builder
                    .with_access_key_id(id)
                    .with_secret_access_key(secret);
                if let Some(token) = profile.session_token {
                    builder = builder.with_token(token);
                }
            }
            let of_environment = builder.get_config_value(&AmazonS3ConfigKey::Endpoint);
            let endpoint = address
                .endpoint
                .clone()
                .or(of_environment)
                .or(profile.endpoint);
            let of_environment = builder.get_config_value(&AmazonS3ConfigKey::Region);
            let of_environment = of_environment.or_else(|| env::var("AWS_DEFAULT_REGION").ok());
            let region = address.region.clone().or(of_environment).or(profile.region);
            builder = builder.with_region(region.unwrap_or_else(|| DEFAULT_REGION.into()));
            check_header_values(&builder)?;
            let is_plain = endpoint_is_plain(&endpoint);
            if let Some(endpoint) = endpoint {
                builder = builder.with_endpoint(endpoint);
            }
            builder
                .with_conditional_put(S3ConditionalPut::ETagMatch)
                .with_client_options(options(is_plain))
                .with_retry(retry)
                .with_http_connector(counter.clone())
                .build()
                .map(|store| Arc::new(store) as _)
        }
        Scheme::Gs => {
            let mut builder =
                GoogleCloudStorageBuilder::from_env().with_bucket_name(&address.bucket);
            if let Some(endpoint) = &address.endpoint {
                builder = builder.with_base_url(endpoint);
            }
            builder
                .with_client_options(options(endpoint_is_plain(&address.endpoint)))
                .with_retry(retry)
                .with_http_connector(counter.clone())
                .build()
                .map(|store| Arc::new(store) as _)
        }
        Scheme::Az => {
            let mut builder =
                MicrosoftAzureBuilder::from_env().with_container_name(&address.bucket);
            if let Some(endpoint) = &address.endpoint {
                builder = builder.with_endpoint(endpoint.clone());
            }
            builder
                .with_client_options(options(endpoint_is_plain(&address.endpoint)))
                .with_retry(retry)
                .with_http_connector(counter.clone())
                .build()
                .map(|store| Arc::new(store) as _)
        }
    };
    built.map_err(|error| error::to_io(&error))
}

/// Checks that the credentials can be sent. One that ends with a line feed, as a file of a secret often does, would make the library panic.
fn check_header_values(builder: &AmazonS3Builder) -> io::Result<()> {
    let keys = [
        (AmazonS3ConfigKey::AccessKeyId, "AWS_ACCESS_KEY_ID"),
        (AmazonS3ConfigKey::SecretAccessKey, "AWS_SECRET_ACCESS_KEY"),
        (AmazonS3ConfigKey::Token, "AWS_SESSION_TOKEN"),
        (AmazonS3ConfigKey::Region, "AWS_REGION"),
    ];
    for (key, name) in keys {
        let value = builder.get_config_value(&key).unwrap_or_default();
        if !value.chars().all(|c| c.is_ascii_graphic()) {
            let what = format!(
                "{name}, or the profile, has a character that it cannot have, such as a space or a line feed at its end"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
    }
    Ok(())
}

/// Says once which implementation of TLS the process uses, unless it has chosen one.
fn install_provider() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // An error means that the program has chosen another one.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}
