//! Drives targets for a time: `nandscape-fuzzing SECONDS [TARGET [SEED [CASE]]]`. With a case, runs only that one.
//! `nandscape-fuzzing seeds FOLDER` writes the corpus of libFuzzer.

use fuzzing::{TARGETS, Target, drive, find};
use std::cell::Cell;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Number of cases between two checks of the clock.
const BATCH: u64 = 20;

thread_local! {
    /// Current case: a panic names it.
    static AT: Cell<(&'static str, u64, u64)> = const { Cell::new(("", 0, 0)) };
}

fn main() -> ExitCode {
    let usage = "usage: nandscape-fuzzing SECONDS [TARGET [SEED [CASE]]], or seeds FOLDER";
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [word, folder] = &words[..]
        && word == "seeds"
    {
        return match fuzzing::write_seeds(folder.as_ref()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(fault) => {
                eprintln!("cannot write seeds into {folder}: {fault}");
                ExitCode::from(1)
            }
        };
    }
    let number = |n: usize| words.get(n).map(|word| word.parse::<u64>()).transpose();
    let (Ok(Some(seconds)), Ok(seed), Ok(case)) = (number(0), number(2), number(3)) else {
        eprintln!("{usage}");
        return ExitCode::from(2);
    };
    let targets: Vec<&Target> = match words.get(1).map(String::as_str) {
        None | Some("all") => TARGETS.iter().collect(),
        Some(name) => match find(name) {
            Some(target) => vec![target],
            None => {
                let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
                eprintln!("no target `{name}`: all, {}", names.join(", "));
                return ExitCode::from(2);
            }
        },
    };
    name_what_panics();
    let seed = seed.unwrap_or(1);
    let each = Duration::from_secs(seconds) / targets.len() as u32;
    for target in targets {
        let cases = match case {
            Some(case) => {
                drive(target, seed, case..case + 1, &mut |case| AT.set((target.name, seed, case)));
                1
            }
            None => for_a_time(target, seed, each),
        };
        println!("{}: {cases} cases from seed {seed}: {}", target.name, target.about);
    }
    ExitCode::SUCCESS
}

/// Cases of one seed after the other until the time is over; how many.
fn for_a_time(target: &Target, seed: u64, time: Duration) -> u64 {
    let begun = Instant::now();
    let mut cases = 0;
    while begun.elapsed() < time {
        drive(target, seed, cases..cases + BATCH, &mut |case| AT.set((target.name, seed, case)));
        cases += BATCH;
    }
    cases
}

fn name_what_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let (target, seed, case) = AT.get();
        eprintln!("target {target}, seed {seed}, case {case}");
        usual(panic);
    }));
}
