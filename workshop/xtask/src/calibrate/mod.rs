//! `cargo xtask calibrate-pagecache`: what the page cache of a real Linux does with fixed fio jobs, for the model to be compared with.
//!
//! A guest of User-Mode Linux boots anew for each run, on a block device whose speed follows a law of few numbers.

mod boot;
mod disk;
mod document;
mod figures;
mod guest;
mod jobs;
mod law;
mod memory;
mod options;
mod plan;
mod ring;
mod sample;
mod store;
mod vhost;

use crate::workspace;
use anyhow::{Result, bail};
use boot::Programs;
use clap::Args;
use document::{DeviceFacts, Document, Made, Measured};
use jobs::{COMMON_SETTINGS, JOBS, Job};
use law::Law;
use options::{COMMON_FIO, PREPARE_FIO};
use plan::{Outcome, Plan, Target};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use store::Store;

/// Slow enough that the host's own speed does not matter.
const LAW: Law = Law { bytes_per_s: 40_000_000, latency_us: 200 };
const COMMITTED: &str = "tests/calibration/pagecache/uml-6.1.toml";
const PREPARE_LIMIT: Duration = Duration::from_secs(120);
const RUN_LIMIT: Duration = Duration::from_secs(100);

/// What is measured, and with which programs.
#[derive(Args)]
pub(crate) struct Options {
    /// The document, if it is not the committed one; jobs that are measured replace those of the same name in it
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Only these jobs, or groups of jobs by their letter
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    jobs: Vec<String>,
    /// Runs of each job
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=9))]
    repeats: u32,
    /// User-Mode Linux, if it is not in the path
    #[arg(long, value_name = "PATH")]
    uml: Option<PathBuf>,
    /// The side inside of the guest, with the folder that it shares with the host
    #[arg(long, value_name = "FOLDER", hide = true)]
    guest: Option<PathBuf>,
}

/// Measures; all jobs or an error.
pub(crate) fn run(options: &Options) -> Result<bool> {
    if let Some(folder) = &options.guest {
        return guest::run(folder).map(|()| true);
    }
    let jobs = chosen(&options.jobs)?;
    let programs = Programs::find(options.uml.as_deref())?;
    let out = options.out.clone().unwrap_or_else(|| workspace::root().join(COMMITTED));
    let mut document = document::load(&out)?;
    if !go_first() {
        println!("note: not allowed to go before other programs; other work on this machine disturbs more");
    }
    println!("preparing the device");
    let (_, prepared) = boot::run(&programs, 1024, &prepare(), None, Store::default(), PREPARE_LIMIT)?;
    for job in jobs {
        let (outcomes, measured) = measure(&programs, job, options.repeats, &prepared.store)?;
        let facts = made(&outcomes[0]);
        let document =
            document.get_or_insert_with(|| Document { made: facts.clone(), device: device(), job: vec![] });
        if document.device != device() || document.made != facts {
            bail!("{} was made with something else: give another --out", out.display());
        }
        put(&mut document.job, measured);
        document::save(&out, document)?;
    }
    Ok(true)
}

/// The jobs of a list; all of an empty one.
fn chosen(list: &[String]) -> Result<Vec<&'static Job>> {
    let is = |job: &Job, wanted: &str| job.name == wanted || job.name.split('-').next() == Some(wanted);
    if let Some(odd) = list.iter().find(|wanted| !JOBS.iter().any(|job| is(job, wanted))) {
        bail!("no job `{odd}`: there are {}", JOBS.iter().map(|job| job.name).collect::<Vec<_>>().join(", "));
    }
    Ok(JOBS.iter().filter(|job| list.is_empty() || list.iter().any(|wanted| is(job, wanted))).collect())
}

/// Has the system prefer this program and all that it starts, as far as the user may.
fn go_first() -> bool {
    let own = std::process::id().to_string();
    let status =
        Command::new("renice").args(["-n", "-20", "-p", &own]).stdout(std::process::Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn prepare() -> Plan {
    let fio = COMMON_FIO.iter().chain(PREPARE_FIO).map(ToString::to_string).collect();
    Plan { prepare: true, target: Target::Ext4, settings: vec![], fio }
}

/// Runs a job so many times, each time in a guest that boots with the prepared device.
fn measure(
    programs: &Programs,
    job: &Job,
    repeats: u32,
    prepared: &Store,
) -> Result<(Vec<Outcome>, Measured)> {
    let settings = COMMON_SETTINGS.iter().chain(job.settings);
    let plan = Plan {
        prepare: false,
        target: job.target,
        settings: settings.map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        fio: COMMON_FIO.iter().chain(job.fio).map(ToString::to_string).collect(),
    };
    let (mut outcomes, mut runs, mut load) = (Vec::new(), Vec::new(), Vec::new());
    for repeat in 1..=repeats {
        load.push(load_of_host());
        let (outcome, served) =
            boot::run(programs, job.memory_mib, &plan, Some(LAW), prepared.clone(), RUN_LIMIT)?;
        let mut figures = figures::of(&outcome)?;
        if let Some(most) = served.lateness_us.last() {
            figures
                .insert("device_late_p99_us".into(), served.lateness_us[served.lateness_us.len() * 99 / 100]);
            figures.insert("device_late_max_us".into(), *most);
        }
        println!(
            "{} {repeat}/{repeats}: {} ms, {} dirty pages of {}, load {}",
            job.name,
            figures["duration_ms"],
            figures["dirty_steady_pages"],
            figures["threshold_steady_pages"],
            load[load.len() - 1]
        );
        runs.push(figures);
        outcomes.push(outcome);
    }
    let of_kernel = |name: &str| ["kernel.", "config."].iter().any(|prefix| name.starts_with(prefix));
    let measured = Measured {
        name: job.name.into(),
        about: job.about.into(),
        day: day(),
        load,
        memory_mib: job.memory_mib,
        target: job.target,
        settings: job.settings.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        fio: job.fio.iter().map(ToString::to_string).collect(),
        runs: runs.len(),
        facts: outcomes[0].facts.clone().into_iter().filter(|(name, _)| !of_kernel(name)).collect(),
        figures: document::spread(&runs),
        series: document::series(&outcomes[document::median_run(&runs)].samples),
    };
    Ok((outcomes, measured))
}

/// What is the same for all jobs of a document.
fn made(outcome: &Outcome) -> Made {
    let fact = |name: &str| outcome.facts.get(name).cloned().unwrap_or_default();
    let config =
        |(name, value): (&String, &String)| Some((name.strip_prefix("config.")?.to_owned(), value.clone()));
    Made {
        by: "cargo xtask calibrate-pagecache".into(),
        kernel: format!("{} {}, User-Mode Linux", fact("kernel.ostype"), fact("kernel.osrelease")),
        kernel_version: fact("kernel.version"),
        time: "real".into(),
        fio: outcome.fio["fio version"].as_str().unwrap_or_default().into(),
        config: outcome.facts.iter().filter_map(config).collect(),
        common_fio: COMMON_FIO.iter().map(ToString::to_string).collect(),
        common_settings: COMMON_SETTINGS
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect(),
    }
}

fn device() -> DeviceFacts {
    DeviceFacts { law: LAW, bytes: boot::DEVICE_BYTES, depth: boot::DEPTH, request_max_kib: 256 }
}

/// Replaces the job of the same name, and keeps the order of the list.
fn put(jobs: &mut Vec<Measured>, measured: Measured) {
    jobs.retain(|job| job.name != measured.name);
    jobs.push(measured);
    let places: BTreeMap<_, _> = JOBS.iter().enumerate().map(|(place, job)| (job.name, place)).collect();
    jobs.sort_by_key(|job| places.get(job.name.as_str()).copied().unwrap_or(usize::MAX));
}

/// The load of the last minute.
fn load_of_host() -> f64 {
    let text = std::fs::read_to_string(Path::new("/proc/loadavg")).unwrap_or_default();
    text.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0)
}

/// Today in UTC.
fn day() -> String {
    let output = Command::new("date").args(["-u", "+%Y-%m-%d"]).output();
    output.map_or(String::new(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_names_jobs_or_groups() {
        let names = |list: &[&str]| -> Vec<_> {
            let list: Vec<_> = list.iter().map(ToString::to_string).collect();
            chosen(&list).unwrap().iter().map(|job| job.name).collect()
        };
        assert_eq!(names(&["d-ahead-0", "i"]), ["d-ahead-0", "i-by-age"]);
        assert_eq!(names(&[]).len(), JOBS.len());
        let error = chosen(&["d-ahead".to_owned()]).unwrap_err().to_string();
        assert!(error.starts_with("no job `d-ahead`: there are law-direct, "), "{error}");
    }

    #[test]
    fn the_committed_measurement_is_of_this_device_and_has_every_job() {
        let document = document::load(&workspace::root().join(COMMITTED)).unwrap().unwrap();
        assert_eq!(document.device, device());
        let names: Vec<_> = document.job.iter().map(|job| job.name.as_str()).collect();
        assert_eq!(names, JOBS.iter().map(|job| job.name).collect::<Vec<_>>());
        for job in &document.job {
            let series = &job.series;
            let columns = [
                &series.dirty_pages,
                &series.writeback_pages,
                &series.dirtied_pages,
                &series.written_pages,
                &series.cached_kib,
                &series.read_kib,
            ];
            assert!(columns.iter().all(|column| column.len() == series.t_ms.len()), "{}", job.name);
            assert!(series.t_ms.is_sorted(), "{}", job.name);
            assert!(
                job.figures
                    .values()
                    .all(|spread| spread.low <= spread.median && spread.median <= spread.high)
            );
        }
    }
}
