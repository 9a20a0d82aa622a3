//! Requests for other providers than the Messages API.

use transcript_messages::{Provider, lint};
use transcript_resume::Policy;
use transcript_resume::request::{Fit, RequestOptions};

use crate::strict::{Loaded, for_each_session, forms};

#[test]
fn every_session_gives_a_request_that_each_provider_takes() {
    const MAX_BYTES: usize = 1 << 20;
    let mut checked = 0;
    for_each_session(300, |name, bytes| {
        if bytes.len() > MAX_BYTES {
            return;
        }
        let session = Loaded::new(bytes);
        for options in forms() {
            let default = session.request(Policy::Recover, &options);
            if !default.is_resumable() {
                continue;
            }
            for provider in Provider::ALL {
                let options = options.clone().provider(provider);
                let request = session.request(Policy::Recover, &options);
                let problems = request.lint().problems;
                assert!(problems.is_empty(), "{name}: {problems:?}");
                assert_eq!(request.provider, provider);
                if provider == Provider::Messages {
                    assert_eq!(request.messages, default.messages, "{name}");
                    assert_eq!(request.omissions, default.omissions, "{name}");
                }
                let limit = Fit::messages(request.tokens().messages / 2);
                let fitted = session.request(Policy::Recover, &options.fit(limit));
                let problems = fitted.lint().problems;
                assert!(problems.is_empty(), "{name}, to fit: {problems:?}");
                checked += 1;
            }
        }
    });
    assert!(checked > 1_000, "{checked}");
}

#[test]
fn the_client_makes_requests_for_its_own_provider() {
    for_each_session(20, |name, bytes| {
        let session = Loaded::new(bytes);
        let options = RequestOptions::new();
        let request = session.request(Policy::Vendor, &options);
        let options = options.provider(Provider::Converse);
        let named = session.request(Policy::Vendor, &options);
        assert_eq!(named.messages, request.messages, "{name}");
        assert_eq!(named.provider, Provider::Messages);
        assert_eq!(named.lint(), lint(&request.messages), "{name}");
    });
}
