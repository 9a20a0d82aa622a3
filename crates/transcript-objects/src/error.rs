//! Errors of stores, as errors of a disk.
//!
//! What a server answers may repeat keys and signatures of the request, and an address of a proxy its password. So nothing of the
//! error of the library is shown: each kind has a sentence of our own.

use std::error::Error as _;
use std::io;

use object_store::Error;
use object_store::client::{HttpError, HttpErrorKind};

/// The reasons that a server gives for a bucket that is not there, by the maker of the server.
const NO_BUCKET: [&str; 4] = [
    "NoSuchBucket",
    "ContainerNotFound",
    "specified bucket does not exist",
    "InvalidBucketName",
];

/// The reasons that a server gives for a request with credentials that do not hold, with whichever status.
const WRONG_CREDENTIALS: [&str; 4] = [
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "InvalidToken",
    "ExpiredToken",
];
/// Those for a request whose time is not that of the server.
const OTHER_CLOCK: [&str; 2] = ["RequestTimeTooSkewed", "RequestExpired"];
/// Those for a request that was signed for another region.
const OTHER_REGION: [&str; 2] = ["AuthorizationHeaderMalformed", "PermanentRedirect"];
const OF_REGION: &str =
    "the bucket is in another region: set AWS_REGION, or add ?region=NAME to the address";

/// The text before the status of an answer.
const STATUS_BEFORE: &str = "status code: ";

/// The servers that give a machine its credentials: asked when the environment has none.
const METADATA_SERVERS: [&str; 2] = ["169.254.169.254", "metadata.google.internal"];

/// Returns an error of a disk for that of a store.
pub(crate) fn to_io(error: &Error) -> io::Error {
    use io::ErrorKind;
    let answer = answer_of(error);
    let said = |kinds: &[&str]| kinds.iter().any(|kind| answer.body.contains(kind));
    if said(&NO_BUCKET) {
        return io::Error::other("the bucket does not exist: create it, or correct its name");
    }
    let of_credentials = "the store refuses the credentials: check the environment variables, or the profile, that have them";
    let (kind, what) = match error {
        Error::NotFound { .. } => return ErrorKind::NotFound.into(),
        Error::AlreadyExists { .. } => return ErrorKind::AlreadyExists.into(),
        Error::Precondition { .. } | Error::NotModified { .. } => (
            ErrorKind::ResourceBusy,
            "another program replaced the object meanwhile".to_owned(),
        ),
        Error::NotSupported { .. } | Error::NotImplemented { .. } => (
            ErrorKind::Unsupported,
            "the store cannot do this".to_owned(),
        ),
        Error::InvalidPath { .. } => (
            ErrorKind::InvalidInput,
            "no object can have this name".to_owned(),
        ),
        Error::Unauthenticated { .. } => (ErrorKind::PermissionDenied, of_credentials.to_owned()),
        _ if said(&OTHER_CLOCK) => (
            ErrorKind::PermissionDenied,
            "the store refuses the time of the request: set the clock of this machine".to_owned(),
        ),
        _ if said(&WRONG_CREDENTIALS) => (ErrorKind::PermissionDenied, of_credentials.to_owned()),
        _ if said(&OTHER_REGION) => (ErrorKind::Other, OF_REGION.to_owned()),
        Error::PermissionDenied { .. } => (
            ErrorKind::PermissionDenied,
            "the store does not let these credentials do this".to_owned(),
        ),
        _ => of_answer(&answer),
    };
    io::Error::new(kind, what)
}

fn of_answer(answer: &Answer) -> (io::ErrorKind, String) {
    use io::ErrorKind;
    if answer.is_of_credentials {
        let what = "no credentials were found: set the environment variables of the store (AWS_ACCESS_KEY_ID …), or AWS_PROFILE";
        return (ErrorKind::PermissionDenied, what.into());
    }
    match (answer.status, answer.failure) {
        (Some(301 | 307 | 308), _) => (ErrorKind::Other, OF_REGION.into()),
        (Some(status @ (400 | 401 | 403)), _) => (
            ErrorKind::PermissionDenied,
            format!(
                "the store refuses the request with status {status}: check the credentials and the region"
            ),
        ),
        (Some(status), _) => (
            ErrorKind::Other,
            format!("the store fails with status {status}; try again later"),
        ),
        (None, Some(HttpErrorKind::Connect)) => (
            ErrorKind::ConnectionRefused,
            "the server cannot be reached: check the network, and the endpoint of the address"
                .into(),
        ),
        (None, Some(HttpErrorKind::Timeout)) => (
            ErrorKind::TimedOut,
            "the server does not answer in time; try again later".into(),
        ),
        (None, Some(HttpErrorKind::Interrupted | HttpErrorKind::Request)) => (
            ErrorKind::ConnectionAborted,
            "the connection was cut; try again".into(),
        ),
        (None, _) => (
            ErrorKind::Other,
            "the store cannot be used: check its address and its credentials".into(),
        ),
    }
}

/// What the chain of errors says of the answer of the server.
#[derive(Default)]
struct Answer {
    status: Option<u16>,
    /// The texts of all errors: only looked into.
    body: String,
    failure: Option<HttpErrorKind>,
    is_of_credentials: bool,
}

fn answer_of(error: &Error) -> Answer {
    let mut answer = Answer::default();
    let mut next = error.source();
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<HttpError>() {
            answer.failure = Some(error.kind());
        }
        let text = error.to_string();
        // The library has the status in its text only.
        let status = text.split_once(STATUS_BEFORE).map(|(_, rest)| rest);
        let status = status.and_then(|rest| rest.get(..3)?.parse().ok());
        answer.status = answer.status.or(status);
        answer.is_of_credentials |= METADATA_SERVERS.iter().any(|of| text.contains(of));
        answer.body.push_str(&text);
        next = error.source();
    }
    answer
}
