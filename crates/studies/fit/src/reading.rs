//! Alternative readings of the same metrics: differences between their predictions show what the metrics leave open.

use super::base::Base;
use super::choose::{Chosen, Target, as_time};
use super::job::Measure;
use super::knob::{Knob, patience};

/// Alternative drive that could have the same metrics.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    pub(super) name: &'static str,
    /// Overrides of the drive before its values are searched.
    pub(super) set: Vec<String>,
    pub(super) targets: Vec<Target>,
}

/// Factor on the cores of the initial drive.
const MANY: u32 = 4;
/// Maximum share of idle latency taken as exit latency. *Chosen*: a drive that takes 155 us alone and 112 us with two
/// in flight has 28 %.
const EXIT: f64 = 0.3;

/// Readings that the points allow.
pub(super) fn readings(chosen: &Chosen, base: &Base) -> Vec<Reading> {
    let cores = |name, cores: u32| {
        let set = format!("{}.host.controller.cores={cores}", base.flash);
        let scale = f64::from(cores) / f64::from(base.controller.cores);
        let scaled = |target: &Target| {
            let is_rate = target.knob == Knob::Command && target.measure == Measure::Iops;
            Target { guess: target.guess * if is_rate { scale } else { 1.0 }, ..target.clone() }
        };
        let targets = chosen.targets.iter().map(scaled).collect();
        (cores != base.controller.cores).then_some(Reading { name, set: vec![set], targets })
    };
    let all = [
        cores("one core takes all commands", 1),
        cores("four times as many cores, each as much slower", MANY * base.controller.cores),
        host(chosen),
        drive(chosen, base),
        Some(latency(chosen, base)),
        asleep(chosen, base),
        core(chosen, base),
    ];
    all.into_iter().flatten().collect()
}

/// Reading: saturated reads of one thread are limited by the host.
fn host(chosen: &Chosen) -> Option<Reading> {
    let is_open = |t: &Target| t.knob == Knob::Command && t.measure == Measure::Iops && t.job.jobs == 1;
    let known = chosen.thread_is_known;
    let change = |t: &Target| match is_open(t) {
        true => Target { knob: Knob::Thread, guess: 1e6 / t.figure, ..t.clone() },
        false => t.clone(),
    };
    (!known && chosen.targets.iter().any(is_open)).then(|| Reading {
        name: "the job's thread limits saturated reads",
        set: Vec::new(),
        targets: chosen.targets.iter().map(change).collect(),
    })
}

/// Reading: idle latency includes an exit latency, where no point with few requests in flight tells.
fn asleep(chosen: &Chosen, base: &Base) -> Option<Reading> {
    let idle = chosen.targets.iter().find(|t| chosen.may_sleep && t.knob == Knob::Read)?;
    let exit = EXIT * as_time(idle.measure, idle.figure);
    Some(Reading {
        name: "the link or the host sleeps while nothing is in flight",
        set: vec![Knob::LinkExit.assignment(base, exit)],
        targets: chosen.targets.clone(),
    })
}

/// Reading: a core sleeps, not the link.
fn core(chosen: &Chosen, base: &Base) -> Option<Reading> {
    chosen.targets.iter().find(|t| t.knob == Knob::LinkExit)?;
    let awake = chosen.targets.iter().find(|t| t.knob == Knob::Read)?;
    let change = |t: &Target| match t.knob {
        Knob::LinkExit => Target { knob: Knob::CoreExit, ..t.clone() },
        _ => t.clone(),
    };
    Some(Reading {
        name: "a core of the host sleeps, not the link",
        set: vec![Knob::CoreAfter.assignment(base, patience(as_time(awake.measure, awake.figure)))],
        targets: chosen.targets.iter().map(change).collect(),
    })
}

/// Reading: where the host is the limit, the drive is just as fast.
fn drive(chosen: &Chosen, base: &Base) -> Option<Reading> {
    let limit = chosen.targets.iter().find(|t| t.knob == Knob::Thread)?;
    if chosen.targets.iter().any(|t| t.knob == Knob::Command && t.measure == Measure::Iops) {
        return None;
    }
    let command = Target {
        knob: Knob::Command,
        guess: f64::from(base.controller.cores) * 1e6 / limit.figure,
        ..limit.clone()
    };
    let others = chosen.targets.iter().filter(|t| !matches!(t.knob, Knob::Thread | Knob::Command)).cloned();
    Some(Reading {
        name: "the drive is exactly as fast as the thread was",
        set: Vec::new(),
        targets: [command].into_iter().chain(others).collect(),
    })
}

/// Reading: idle latency beyond that of the initial drive is the software's, not the flash's.
fn latency(chosen: &Chosen, base: &Base) -> Reading {
    let change = |t: &Target| match t.knob {
        Knob::Read => Target { knob: Knob::Interrupt, guess: base.interrupt, ..t.clone() },
        _ => t.clone(),
    };
    Reading {
        name: "the flash is unchanged, and the additional idle latency is in the controller and the driver",
        set: Vec::new(),
        targets: chosen.targets.iter().map(change).collect(),
    }
}
