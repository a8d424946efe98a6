//! `check` is asked what `run` is: the same words, without the run.

use crate::common::{file, nandscape, refused};
use std::collections::BTreeSet;

/// Options of a command, from its help.
fn options(command: &str) -> BTreeSet<String> {
    let help = nandscape(&[command, "--help"]).well().stdout;
    let words = help.lines().filter_map(|line| line.trim_start().strip_prefix("--"));
    words.filter_map(|rest| rest.split([' ', '=']).next()).map(str::to_owned).collect()
}

#[test]
fn check_has_every_option_of_run_that_changes_what_is_run() {
    let of_the_result =
        ["json", "output-format", "out", "log", "requests", "requests-keep", "timeline", "timeline-show"]
            .map(str::to_owned);
    // A run that takes a state finds what one that makes it finds.
    let of_states = ["save-state", "load-state", "state-cache"].map(str::to_owned);
    let (mut run, check) = (options("run"), options("check"));
    run.retain(|name| !of_the_result.contains(name) && !of_states.contains(name));
    assert!(run.contains("queue-depth") && run.contains("time-scale"), "{run:?}");
    assert_eq!(check, run);
}

/// 400 days are beyond the clock, and a replay at a queue depth does not use it.
#[test]
fn a_trace_beyond_the_clock_is_checked_at_a_queue_depth() {
    let folder = tempfile::tempdir().unwrap();
    let days = (0..=400_u64).map(|day| format!("7,W,{},4096,{}\n", day % 7 * 4096, day * 86_400_000_000));
    let trace = file(folder.path(), "long.csv", days.collect::<String>());
    let check = ["check", "d16", "--workload", &trace];
    refused(&check, &["goes on for 1.1 years", "--queue-depth"]);
    nandscape(&[&check[..], &["--queue-depth", "4"]].concat()).well();
    refused(&[&check[..], &["--queue-depth", "0"]].concat(), &["--queue-depth 0", "give 1 or more"]);
    let both = ["--queue-depth", "4", "--time-scale", "1/2"];
    refused(&[&check[..], &both].concat(), &["--time-scale with --queue-depth"]);
    refused(&["check", "d16", "--queue-depth", "4"], &["--queue-depth is for block traces"]);
}

#[test]
fn the_state_of_the_device_is_checked_and_shown() {
    let shown = nandscape(&["check", "d16", "--precondition", "none"]).well().stdout;
    assert!(shown.contains("precondition = \"none\""), "{shown}");
    refused(&["check", "d16", "--precondition", "sequentail"], &["did you mean `sequential`"]);
    refused(&["check", "d16", "--warmup", "soon"], &["--warmup takes a number of requests or a time"]);
}
