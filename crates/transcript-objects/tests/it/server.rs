//! Errors of servers: one sentence, without a credential.

use std::net::TcpListener;
use std::process::Command;
use std::{env, io};

use transcript_objects::{Address, ObjectDisk};
use transcript_storage::{Disk, ReadDisk};

use crate::stores;

/// Asks for the address in an own process, as credentials are in the environment. Returns what it prints.
fn ask(address: &Address, key: &str, secret: &str) -> String {
    let test = env::current_exe().expect("this program");
    let out = Command::new(test)
        .args([
            "--exact",
            "server::asked_in_a_process_of_its_own",
            "--nocapture",
            "--ignored",
        ])
        .env("TRANSCRIPT_TEST_ADDRESS", address.to_string())
        .env("AWS_ACCESS_KEY_ID", key)
        .env("AWS_SECRET_ACCESS_KEY", secret)
        .env_remove("AWS_PROFILE")
        .output()
        .expect("it runs");
    String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr)
}

#[test]
#[ignore = "run by the other tests, with an environment"]
fn asked_in_a_process_of_its_own() {
    let Ok(address) = env::var("TRANSCRIPT_TEST_ADDRESS") else {
        return;
    };
    let address: Address = address.parse().expect("an address");
    let disk = ObjectDisk::connect(&address).expect("a store");
    let path = address.folder().join("object");
    eprintln!("{disk:?} {address}");
    let tried = [
        disk.write_new(&path, b"a canary in a line").err(),
        disk.read(&path, 9).err(),
        disk.list(&address.folder()).err(),
        disk.new_file(&path).and_then(|file| file.keep(&path)).err(),
    ];
    for error in tried
        .into_iter()
        .flatten()
        .filter(|error| error.kind() != io::ErrorKind::NotFound)
    {
        eprintln!("error: {error}");
    }
}

#[test]
fn a_server_that_is_gone_is_one_sentence_without_a_credential() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = free.local_addr().expect("its address").port();
    drop(free);
    let address = format!("s3://b/p?endpoint=http://127.0.0.1:{port}")
        .parse()
        .expect("an address");
    let printed = ask(&address, "CANARYKEY", "canarysecret");
    assert!(
        printed.contains("error: the server cannot be reached"),
        "{printed}"
    );
    assert!(!printed.to_lowercase().contains("canary"), "{printed}");
}

#[test]
fn a_missing_bucket_is_one_sentence_without_a_credential() {
    let Some(address) = stores::on_server("missing") else {
        return;
    };
    let address = address
        .to_string()
        .replace("transcript-test", "transcript-missing");
    let printed = ask(
        &address.parse().expect("an address"),
        "CANARYKEY",
        "canarysecret",
    );
    assert!(
        printed.contains("error: the bucket does not exist"),
        "{printed}"
    );
    assert!(!printed.to_lowercase().contains("canary"), "{printed}");
}
