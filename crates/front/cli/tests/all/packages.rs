//! What packages ship beside the binary: completions, pages for `man`, schemas.

use crate::common::{nandscape, refused, run_tiny};
use std::process::Command;

#[test]
fn completions_are_scripts_that_know_the_options() {
    let script = nandscape(&["completions", "bash"]).well().stdout;
    assert!(script.contains("--timeline-show") && script.contains("explain-run"), "{script}");
    let folder = tempfile::tempdir().unwrap();
    let path = crate::common::file(folder.path(), "nandscape.bash", script);
    assert!(Command::new("bash").args(["-n", &path]).status().expect("a shell").success());
    for shell in ["zsh", "fish", "powershell", "elvish"] {
        assert!(nandscape(&["completions", shell]).well().stdout.contains("timeline-show"), "{shell}");
    }
    assert_eq!(nandscape(&["completions", "basj"]).code, Some(2));
}

#[test]
fn every_command_has_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display().to_string();
    nandscape(&["man", &path]).well();
    let page = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect(name);
    assert!(page("nandscape.1").contains("explain\\-run"));
    assert!(page("nandscape-run.1").contains("\\-\\-timeline\\-show"));
    assert!(page("nandscape-trace-inspect.1").contains("inspect"));
    refused(&["man", "/nowhere/at/all"], &["/nowhere/at/all"]);
}

#[test]
fn the_schema_of_a_result_knows_every_part_of_one() {
    let schema = nandscape(&["schema", "result"]).well().json();
    let job = "fio:rw=randread,bs=4k,number_ios=100";
    let document = run_tiny(&["--workload", job, "--json"]).well().json();
    for part in document.as_object().unwrap().keys() {
        assert!(schema["properties"][part].is_object(), "{part}");
    }
    for part in schema["required"].as_array().unwrap() {
        assert!(document.get(part.as_str().unwrap()).is_some(), "{part}");
    }
}
