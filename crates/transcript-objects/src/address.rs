//! Addresses of folders in object storage.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A kind of object storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// S3, and servers that speak its protocol.
    S3,
    /// Google Cloud Storage.
    Gs,
    /// Azure Blob Storage. The bucket is a container; the account is in the environment.
    Az,
}

impl Scheme {
    const ALL: [Self; 3] = [Self::S3, Self::Gs, Self::Az];

    /// Returns the text before `://`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Gs => "gs",
            Self::Az => "az",
        }
    }
}

/// The address of a folder in a bucket: `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX` or `az://CONTAINER/PREFIX`.
///
/// Options follow `?`: `endpoint` is the URL of a server of one's own, `region` the region of the bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub(crate) scheme: Scheme,
    pub(crate) bucket: String,
    /// Without slashes at its ends; may be empty.
    pub(crate) prefix: String,
    pub(crate) endpoint: Option<String>,
    pub(crate) region: Option<String>,
}

/// The reason why a text is not an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressError(String);

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for AddressError {}

impl Address {
    /// Returns whether a path is meant as an address: it starts with the name of a [`Scheme`] and `://`.
    #[must_use]
    pub fn is_address(path: &Path) -> bool {
        let text = path.as_os_str().as_encoded_bytes();
        let scheme = |scheme: &Scheme| {
            let rest = text.strip_prefix(scheme.name().as_bytes());
            rest.is_some_and(|rest| rest.starts_with(b"://"))
        };
        Scheme::ALL.iter().any(scheme)
    }

    /// Returns the kind of storage.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Returns the path under which an [`ObjectDisk`](crate::ObjectDisk) has the folder: the address without options.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        let mut folder = self.bucket_folder();
        folder.extend(self.prefix.split('/').filter(|part| !part.is_empty()));
        folder
    }

    /// Returns the path of the whole bucket.
    pub(crate) fn bucket_folder(&self) -> PathBuf {
        PathBuf::from(format!("{}://{}", self.scheme.name(), self.bucket))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.folder().display())?;
        let options = [("endpoint", &self.endpoint), ("region", &self.region)];
        let mut separator = '?';
        for (name, value) in options {
            if let Some(value) = value {
                write!(f, "{separator}{name}={value}")?;
                separator = '&';
            }
        }
        Ok(())
    }
}

impl FromStr for Address {
    type Err = AddressError;

    /// # Errors
    /// [`AddressError`], which does not repeat the text: it may hold a password.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let error = |what: &str| AddressError(what.into());
        let (scheme, rest) = text.split_once("://").unwrap_or_default();
        let scheme = Scheme::ALL.into_iter().find(|known| known.name() == scheme);
        let scheme = scheme.ok_or_else(|| {
            error("an address starts with s3://, gs:// or az://, and the name of a bucket")
        })?;
        let (place, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
        if bucket.contains(['@', ':']) {
            return Err(error(
                "an address has no user, password or port: credentials come from the environment, and a server from ?endpoint=URL",
            ));
        }
        let is_of_bucket = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        if bucket.is_empty() || !bucket.chars().all(is_of_bucket) {
            return Err(error(
                "the address has no valid name of a bucket: letters, digits, '-', '.' and '_'",
            ));
        }
        let prefix = prefix.trim_matches('/');
        let is_part = |part: &str| {
            // A backslash divides the names of a path on Windows.
            let is_name = !matches!(part, "" | "." | "..") && !part.contains('\\');
            is_name && object_store::path::Path::parse(part).is_ok()
        };
        if !prefix.is_empty() && !prefix.split('/').all(is_part) {
            return Err(error(
                "the address has a prefix with an empty part, '..', or a character that names of objects cannot have",
            ));
        }
        let mut address = Self {
            scheme,
            bucket: bucket.into(),
            prefix: prefix.into(),
            endpoint: None,
            region: None,
        };
        for option in options.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("endpoint", url)) if is_server(url) => {
                    address.endpoint = Some(url.trim_end_matches('/').into());
                }
                Some(("endpoint", _)) => {
                    return Err(error(
                        "the endpoint of an address is the URL of a server, http://HOST:PORT or https://HOST, without a user",
                    ));
                }
                Some(("region", region)) if is_region(region) => {
                    address.region = Some(region.into());
                }
                _ => return Err(error("an address has the options endpoint and region")),
            }
        }
        Ok(address)
    }
}

/// Returns the folder of this machine that a `file://` URL names; `None` for any other text.
///
/// # Errors
/// When the URL names another machine, or no absolute path.
pub fn local_folder(text: &str) -> Result<Option<PathBuf>, AddressError> {
    if !text.starts_with("file://") {
        return Ok(None);
    }
    let url = url::Url::parse(text).ok();
    let folder = url.and_then(|url| url.to_file_path().ok());
    let wrong = "a file:// address is that of a folder of this machine: file:///FOLDER";
    folder.map(Some).ok_or_else(|| AddressError(wrong.into()))
}

fn is_region(name: &str) -> bool {
    let is_of_region = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    !name.is_empty() && name.chars().all(is_of_region)
}

fn is_server(url: &str) -> bool {
    let host = url.strip_prefix("http://");
    let host = host.or_else(|| url.strip_prefix("https://"));
    host.is_some_and(|host| {
        let is_plain = |c: char| c.is_ascii_graphic() && c != '@';
        !host.is_empty() && host.chars().all(is_plain)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Address, AddressError> {
        text.parse()
    }

    #[test]
    fn an_address_is_a_bucket_a_prefix_and_options() {
        let address =
            parse("s3://b/a/b/?endpoint=http://127.0.0.1:9000/&region=eu-1").expect("valid");
        assert_eq!(address.folder(), Path::new("s3://b/a/b"));
        let shown = "s3://b/a/b?endpoint=http://127.0.0.1:9000&region=eu-1";
        assert_eq!(address.to_string(), shown);
        assert_eq!(parse(shown), Ok(address));
        assert_eq!(
            parse("gs://b").expect("valid").folder(),
            Path::new("gs://b")
        );
        assert!(Address::is_address(Path::new("az://c/d")));
        for path in ["/tmp/s3:/b", "s3:/b", "https://h/b", "s3", ""] {
            assert!(!Address::is_address(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn what_is_not_an_address_is_refused_and_not_repeated() {
        let refused = [
            "",
            "s3",
            "s3://",
            "ftp://b",
            "s3:///p",
            "s3://u:canary@b/p",
            "s3://b:80/p",
            "s3://b/a//b",
            "s3://b/../c",
            "s3://b/a\\canary",
            "s3://b?endpoint=canary",
            "s3://b?endpoint=http://u:canary@h",
            "s3://b?key=canary",
            "s3://b?region=",
            "s3://b?region=a\nb",
            "s3://b?endpoint=http://h\n",
        ];
        for text in refused {
            let error = parse(text).expect_err(text).to_string();
            assert!(!error.contains("canary"), "{error}");
        }
    }
}
