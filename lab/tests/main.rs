//! One binary for every promise the lab checks.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod faults {
    mod collected_events;
    mod cut_controller;
    mod damaged_ledger;
    mod dockerd;
    mod killed_agent;
}

mod kinds {
    mod container;
    mod directory;
    mod file;
    mod network;
}

mod stories {
    mod adopting;
    mod bad_input;
    mod broker_faults;
    mod broker_isolation;
    mod broker_link;
    mod broker_streams;
    pub(crate) mod collector;
    mod gateway;
    mod ledger_files;
    mod lost_network;
    mod one_change;
    mod plan_is_report;
    mod plan_knows;
    mod policy;
    mod proxy_mended;
    mod quiet_apply;
    mod reboot;
    mod replay;
    mod secrets_stay_hidden;
    mod two_controllers;
}

mod mutants;

/// A file in a folder of tests that nobody listed would be compiled by nobody.
#[test]
fn every_test_file_is_listed() {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let listed = std::fs::read_to_string(here.join("main.rs")).unwrap();
    for folder in ["stories", "kinds", "faults"] {
        let Ok(entries) = std::fs::read_dir(here.join(folder)) else { continue };
        for entry in entries {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            assert!(listed.contains(&format!("mod {name};")), "`{folder}/{name}.rs` is not listed in main.rs");
        }
    }
}
