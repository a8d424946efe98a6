//! The rows of `nandscape reproduce`, on runs short enough for a test. Statistical tolerances are wider by the
//! confidence interval of the shorter run.

use reproduce::{Effort, Evidence, Report, Request, choose, run, table};
use std::sync::atomic::AtomicBool;

fn reproduce(target: &str, only: &[&str], jobs: usize) -> Report {
    let only: Vec<String> = only.iter().map(|name| (*name).to_owned()).collect();
    static STOP: AtomicBool = AtomicBool::new(false);
    let chosen = choose(target, &only, Effort::Quick, None).expect("known rows").remove(0);
    run(chosen, &Request { jobs, stop: &STOP, progress: &|_, _| (), states: &|_| None })
}

fn all_within(target: &str, only: &[&str], least: usize) {
    let report = reproduce(target, only, 1);
    let (within, off): (Vec<_>, Vec<_>) = report.rows.into_iter().partition(|row| row.within != Some(false));
    assert!(off.is_empty(), "{}", table(&off));
    assert!(within.len() >= least, "only {} rows", within.len());
}

#[test]
fn one_request_is_the_sum_of_its_parts() {
    all_within("theory", &["latency"], 6);
}

#[test]
fn reads_rise_with_the_queue_as_the_data_sheet_has_it_and_below_it_in_mqsim() {
    all_within("mqms", &["mqms.curve", "mqms.motivation"], 31);
}

#[test]
fn the_slowest_resource_decides() {
    all_within("theory", &["throughput"], 11);
}

#[test]
fn queues_are_as_queueing_theory_has_them() {
    all_within("theory", &["queue"], 9);
}

#[test]
fn servers_are_as_queueing_theory_has_them() {
    all_within("theory", &["server"], 12);
}

#[test]
fn uniform_overwrites_amplify_as_the_formulas_say() {
    all_within("theory", &["wa"], 42);
}

#[test]
fn hot_and_cold_data_amplify_as_the_fixed_points_say() {
    all_within("theory", &["hot_cold"], 9);
}

#[test]
fn littles_law_is_checked_in_every_run_and_is_no_row() {
    // Two queues each of a read, a write, a closed network, and a device that collects.
    let report = reproduce(
        "theory",
        &["latency.read.d16", "latency.write.path", "queue.closed.32", "wa.greedy.12.timed"],
        1,
    );
    assert_eq!((report.rows.len(), report.checks), (5, 8));
    for target in ["theory", "peers"] {
        let only = ["little".to_owned()];
        assert!(choose(target, &only, Effort::Quick, None).is_err(), "a row of {target}");
    }
}

#[test]
fn d16_stands_beside_other_simulators() {
    all_within("peers", &["limit", "mqsim"], 23);
}

#[test]
fn known_gaps_are_still_open() {
    all_within("peers", &["gap"], 3);
}

/// Runs of seconds are too short for the figures themselves: what the paper says of their order must be there already.
#[test]
fn a_drive_that_drains_ahead_answers_uploads_sooner_than_one_that_is_full() {
    let report = reproduce("fastdrain", &["fastdrain.p99.fd", "fastdrain.p99.oracle"], 2);
    assert_eq!(report.rows.len(), 2);
    for row in &report.rows {
        assert!(row.measured.is_some_and(|fall| fall > 0.0), "{}", table(&report.rows));
        assert_eq!(row.evidence, Evidence::Seen);
    }
}

#[test]
fn rows_do_not_depend_on_the_number_of_threads() {
    let only = ["latency", "throughput.write"];
    let alone = reproduce("theory", &only, 1).rows;
    assert_eq!(reproduce("theory", &only, 4).rows, alone);
}
