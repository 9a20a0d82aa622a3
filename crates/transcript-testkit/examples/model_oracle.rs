//! Lists the oracle cases that the slow model does not explain.
//!
//! `cargo run -p transcript-testkit --example model_oracle -- [FOLDER] [PREFIX]` prints each case
//! with its first difference, then a count per group. FOLDER is one of the oracle folders, or a path.

#![expect(clippy::print_stdout, reason = "this is what it is for")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use transcript_testkit::model::{Options, vendor_request_with};
use transcript_testkit::oracle;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().unwrap_or_else(|| "oracle2".to_owned());
    let prefix = arguments.next().unwrap_or_default();
    // Group → (cases that differ, all cases).
    let mut groups: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let path = Path::new(&folder);
    let cases = if path.is_absolute() {
        oracle::cases_in(path)
    } else {
        oracle::cases(&folder)
    };
    for case in cases {
        if !case.name.starts_with(&prefix) {
            continue;
        }
        let group: Vec<&str> = case.name.split('-').take(2).collect();
        let count = groups.entry(group.join("-")).or_default();
        count.1 += 1;
        let bytes = fs::read(&case.input).expect("a case has both files");
        let request = |model| {
            let options = Options {
                prompt: Some(&case.prompt),
                model,
                now: Some(oracle::RECORDED_AT),
                ..Options::default()
            };
            vendor_request_with(&bytes, &options).messages
        };
        if let Some(difference) = oracle::difference(&case, request(None).as_deref()) {
            // A path without an answer does not say which model gets the request.
            let model = case.model.as_deref();
            if oracle::difference(&case, request(model).as_deref()).is_none() {
                println!("{}: equal with the model of the case", case.name);
                continue;
            }
            count.0 += 1;
            println!("{}\n  {}\n  {difference}", case.name, case.about);
        }
    }
    for (group, (different, all)) in &groups {
        println!("{group}: {different} of {all} differ");
    }
}
