use std::fs;

use transcript_testkit::model::vendor_request;
use transcript_testkit::oracle;

#[test]
fn the_model_sends_what_the_client_sent() {
    let cases = oracle::cases();
    if cases.is_empty() {
        println!("skipped: no shared data");
    }
    let different: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let bytes = fs::read(&case.input).expect("a case has both files");
            let request = vendor_request(&bytes, Some(&case.prompt), None);
            oracle::difference(case, request.messages.as_deref())
                .map(|difference| format!("{}: {difference}", case.name))
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
