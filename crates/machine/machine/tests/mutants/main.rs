//! The suite of mutants: each fault of [`engine::Mutant`] is armed while a short run is made, and a check of that run must
//! fail. The same run without a fault must be sound.
//!
//! To add a mutant: a line in `crates/ground/engine/src/mutant.rs`, the question in the code that it breaks, and its name at the
//! run here that kills it. `cargo xtask mutants` prints what kills which.

#![cfg(debug_assertions)]

mod drives;
mod parts;
mod processors;

use engine::Mutant;
use engine::mutant::{arm, is_armed};
use machine::run::{Plan, run_alone};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A short run, and the faults that it has to find. It returns the names of the checks that fail.
struct Run {
    name: &'static str,
    make: fn() -> Vec<String>,
    kills: &'static [Mutant],
}

/// All runs, in two halves that take about as long.
const HALVES: [&[&[Run]]; 2] = [
    &[drives::DEVICES],
    &[drives::DRIVES, processors::GPUS, processors::SERVERS, processors::KERNELS, parts::PARTS],
];

fn runs() -> impl Iterator<Item = &'static Run> {
    HALVES.iter().flat_map(|half| half.iter()).flat_map(|runs| runs.iter())
}

/// The checks of a result document that fail.
fn failed(plan: &Plan) -> Vec<String> {
    match run_alone(plan) {
        Ok(document) => document.checks.into_iter().filter(|c| !c.ok).map(|c| c.name).collect(),
        Err(refused) => vec![format!("refused: {refused}")],
    }
}

/// A run of a system with its shadow.
fn shadowed(system: &str, workload: &str, set: &[&str]) -> Vec<String> {
    let plan = Plan::new(system, workload).set("sim.shadow=true");
    failed(&set.iter().fold(plan, |plan, assignment| plan.set(assignment)))
}

/// Failures of a run, panics included.
fn findings(run: &Run) -> Vec<String> {
    catch_unwind(AssertUnwindSafe(run.make)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        vec![format!("a panic: {}", text.unwrap_or_default())]
    })
}

/// Every mutant of some runs with what was found.
fn hunt(runs: &[&'static [Run]]) -> Vec<(Mutant, &'static str, Vec<String>)> {
    let mut found = Vec::new();
    for run in runs.iter().flat_map(|runs| runs.iter()) {
        found.extend(run.kills.iter().map(|mutant| {
            let _armed = arm(*mutant);
            (*mutant, run.name, findings(run))
        }));
    }
    found
}

#[test]
fn every_mutant_has_its_run() {
    for mutant in Mutant::ALL {
        let named = runs().filter(|run| run.kills.contains(mutant)).count();
        assert!(named > 0, "{mutant:?}: no run is named to kill it");
    }
    assert!(Mutant::ALL.len() > 40);
}

#[test]
fn every_run_is_sound() {
    for run in runs() {
        assert_eq!(findings(run), [""; 0], "{}", run.name);
    }
}

#[test]
fn every_mutant_is_killed() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !is_armed() {
            print(info);
        }
    }));
    let mut found = std::thread::scope(|scope| {
        let halves = HALVES.map(|half| scope.spawn(move || hunt(half)));
        halves.into_iter().flat_map(|half| half.join().expect("a hunt ends")).collect::<Vec<_>>()
    });
    found.sort_by_key(|(mutant, run, _)| (*mutant, *run));
    println!("| mutant | crate | run | killed by |\n|---|---|---|---|");
    for (mutant, run, checks) in &found {
        let by = if checks.is_empty() { "SURVIVES".to_owned() } else { checks.join("; ") };
        println!("| {mutant:?} | {} | {run} | {by} |", mutant.part());
    }
    let wrong = |(mutant, _, checks): &&(Mutant, &str, Vec<String>)| {
        checks.is_empty() != (mutant.part() == "control")
    };
    let wrong: Vec<_> =
        found.iter().filter(wrong).map(|(mutant, run, _)| (mutant, run, mutant.breaks().trim())).collect();
    assert!(wrong.is_empty(), "mutants that survive, or controls that do not: {wrong:#?}");
    // A run that breaks off or is stuck does not say what is wrong.
    let says_little = |check: &String| check.starts_with("a panic") || check == "no work is left";
    let unnamed = found.iter().filter(|(_, _, checks)| !checks.is_empty() && checks.iter().all(says_little));
    let unnamed: Vec<_> = unnamed.map(|(mutant, run, _)| (mutant, run)).collect();
    assert!(unnamed.is_empty(), "no check says what is wrong: {unnamed:?}");
}
