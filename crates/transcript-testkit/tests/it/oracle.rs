use std::fs;

use transcript_testkit::model::{Options, vendor_request_with};
use transcript_testkit::oracle;

#[expect(clippy::print_stdout, reason = "says what a test did not look at")]
fn check(folder: &str) {
    let cases = oracle::cases(folder);
    if cases.is_empty() {
        println!("skipped: no shared data");
    }
    let different: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let bytes = fs::read(&case.input).expect("a case has both files");
            let options = Options {
                prompt: Some(&case.prompt),
                now: Some(oracle::RECORDED_AT),
                ..Options::default()
            };
            let request = vendor_request_with(&bytes, &options);
            oracle::difference(case, request.messages.as_deref())
                .map(|difference| format!("{} ({}): {difference}", case.name, case.about))
        })
        .collect();
    assert!(
        different.is_empty(),
        "{} of {} differ\n{}",
        different.len(),
        cases.len(),
        different.join("\n")
    );
}

#[test]
fn the_model_sends_what_the_client_sent() {
    check(oracle::FOLDERS[0]);
}

#[test]
fn the_model_sends_what_the_client_sent_in_the_further_cases() {
    check(oracle::FOLDERS[1]);
}

#[test]
fn the_model_sends_what_the_client_sent_for_files_of_today() {
    check(oracle::FOLDERS[2]);
}
