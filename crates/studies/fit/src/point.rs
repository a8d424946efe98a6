//! Measured points, as a user gives them.

use super::job::{Figures, Job};
use config::units::Bandwidth;
use config::{Diagnostic, Place};
use requests::fio::{JobSpec, Pattern, Quantity, parse_inline};
use std::collections::BTreeMap;

/// Job with its measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Job.
    pub job: Job,
    /// True if the drive had been overwritten at random before.
    pub worn: bool,
    /// Measured metrics.
    pub figures: Figures,
    /// True for a point that is only compared with the fit and chooses no value.
    pub held: bool,
    /// Share of a core used by each thread, if known.
    pub busy: Option<f64>,
    /// Source of the point.
    pub place: String,
}

/// Options that define a job; all others are irrelevant to a fit, or make the job incomparable.
const SAID: [&str; 10] = [
    "rw",
    "readwrite",
    "bs",
    "blocksize",
    "kb_base",
    "iodepth",
    "numjobs",
    "ioengine",
    "size",
    "norandommap",
];
/// Options of jobs that a fit cannot compare: paced, mixed, of several sizes, or over a part of the drive in some
/// order.
const OTHER: [&str; 22] = [
    "bsrange",
    "bssplit",
    "rate",
    "rate_iops",
    "rate_process",
    "thinktime",
    "rwmixread",
    "rwmixwrite",
    "percentage_random",
    "random_distribution",
    "fsync",
    "fdatasync",
    "sync",
    "zonemode",
    "verify",
    "offset_increment",
    "flow",
    "iodepth_batch",
    "latency_target",
    "io_submit_mode",
    "blockalign",
    "replay_redirect",
];
/// Metrics that a point may have.
const FIGURES: [&str; 7] = ["clat", "lat", "iops", "bw", "p99", "p99.9", "p99.999"];
/// Example of a point.
const EXAMPLE: &str = "rw=randread,bs=4k,iodepth=1,clat=80us";

impl Point {
    /// Parses a point: an fio job and its measurement, `rw=randread,bs=4k,iodepth=1,clat=80us`. Metrics are `clat`
    /// (mean, from submission; `lat` is treated alike), `iops` (`460k`), `bw` (`2.8GB/s`), `p99`, `p99.9`, `p99.999`;
    /// `worn` marks a drive that had been overwritten before. `option` is the name of the option that carried the text.
    ///
    /// # Errors
    /// fio would reject the job, a fit cannot compare it, or a metric is invalid or missing.
    pub fn parse(option: &str, text: &str) -> Result<Point, Diagnostic> {
        let at = || Place { source: option.to_owned(), text: text.to_owned(), ..Place::default() };
        let (mut figures, mut job, mut worn) = (BTreeMap::new(), Vec::new(), false);
        for piece in text.split(',').map(str::trim) {
            match piece.split_once('=').unwrap_or((piece, "")) {
                ("worn", "") => worn = true,
                (key, value) if FIGURES.contains(&key) => {
                    figures.insert(key, value);
                }
                (key, _) if SAID.contains(&key) => job.push(piece),
                (key, _) => return Err(unknown(key).at(at())),
            }
        }
        for (names, what) in [
            (["rw", "readwrite"], "pattern"),
            (["bs", "blocksize"], "block size"),
            (["iodepth", "iodepth"], "depth"),
        ] {
            if !job.iter().any(|piece| names.iter().any(|name| piece.split('=').next() == Some(name))) {
                let what = format!("the point does not state its {what} (`{}`)", names[0]);
                return Err(Diagnostic::new(what).at(at()).help(format!("for example `{EXAMPLE}`")));
            }
        }
        let job = job_of(&job.join(",")).map_err(|fault| moved(fault, option))?;
        let figures = figures_of(&figures, job.block).map_err(|fault| fault.at(at()))?;
        Ok(Point { job, worn, figures, held: false, busy: None, place: format!("{option} {text}") })
    }

    /// Builds a point from a job's options as fio repeats them; the inner error is the reason why a fit cannot use it.
    ///
    /// # Errors
    /// fio would reject the options.
    pub fn of_fio(
        options: &[(String, String)],
        write: bool,
        figures: Figures,
        busy: Option<f64>,
        place: &str,
    ) -> Result<Result<Point, String>, Diagnostic> {
        if let Some((key, _)) = options.iter().find(|(key, _)| OTHER.contains(&key.as_str())) {
            return Ok(Err(format!("{place}: a fit does not compare jobs with `{key}`")));
        }
        let said = options.iter().filter(|(key, _)| SAID.contains(&key.as_str()));
        let text: Vec<String> = said.map(|(key, value)| format!("{key}={value}")).collect();
        let of = parse_inline(&text.join(",")).map_err(|fault| moved(fault, place))?;
        Ok(match settled(&of.jobs[0]) {
            Ok(job) if job.write == write => {
                Ok(Point { job, worn: false, figures, held: false, busy, place: place.to_owned() })
            }
            Ok(_) => Err(format!("{place}: its requests do not match its pattern")),
            Err(why) => Err(format!("{place}: {why}")),
        })
    }
}

/// Moves a fault of a generated text to the user's place.
fn moved(mut fault: Diagnostic, source: &str) -> Diagnostic {
    if let Some(place) = &mut fault.place {
        source.clone_into(&mut place.source);
    }
    fault
}

fn unknown(key: &str) -> Diagnostic {
    let known = SAID.into_iter().chain(FIGURES).chain(["worn"]);
    Diagnostic::new(format!("`{key}` is not part of a point")).allowed(key, known)
}

fn job_of(text: &str) -> Result<Job, Diagnostic> {
    let jobs = parse_inline(text)?;
    settled(&jobs.jobs[0]).map_err(|why| Diagnostic::new(format!("`{text}`: {why}")))
}

/// Converts the job; the error is the reason why a fit cannot compare it.
fn settled(spec: &JobSpec) -> Result<Job, &'static str> {
    let write = match spec.rw.pattern {
        Pattern::Read => false,
        Pattern::Write => true,
        _ => return Err("a fit compares reads and writes separately, not mixed"),
    };
    if spec.rw.modifier.is_some() {
        return Err("a pattern with a number after the colon is neither random nor sequential");
    }
    let block = spec.bs[usize::from(write)];
    let depth = if spec.engine == Some(requests::fio::Engine::Blocking) { 1 } else { spec.iodepth };
    let span = match spec.size {
        Some(Quantity::Bytes(bytes)) if bytes >= block => Some(bytes),
        _ => None,
    };
    Ok(Job { write, random: spec.rw.random, block, depth, jobs: u32::from(spec.numjobs), span })
}

fn figures_of(given: &BTreeMap<&str, &str>, block: u64) -> Result<Figures, Diagnostic> {
    if given.is_empty() {
        let what = "the point has no measurement";
        return Err(Diagnostic::new(what).allowed("", FIGURES).help(format!("for example `{EXAMPLE}`")));
    }
    let us = |key: &str| given.get(key).map(|text| time(key, text)).transpose();
    let iops = given.get("iops").map(|text| count(text)).transpose()?;
    let bandwidth = given.get("bw").map(|text| text.parse::<Bandwidth>()).transpose()?;
    if bandwidth.is_some_and(|bw| bw.bytes_per_s() == 0) {
        return Err(Diagnostic::new("`bw` is 0: a fit needs a drive that does some work"));
    }
    let of_bandwidth = bandwidth.map(|bw| bw.bytes_per_s() as f64 / block as f64);
    Ok(Figures {
        iops: iops.or(of_bandwidth),
        mean: us("clat")?.or(us("lat")?),
        p99: us("p99")?,
        p99_9: us("p99.9")?,
        p99_999: us("p99.999")?,
    })
}

/// Parses a time to microseconds: measurements may have more digits than a spec.
fn time(key: &str, text: &str) -> Result<f64, Diagnostic> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let us = match (digits.parse::<f64>(), unit.trim()) {
        (Ok(number), "ns") => number / 1e3,
        (Ok(number), "us") => number,
        (Ok(number), "ms") => number * 1e3,
        (Ok(number), "s") => number * 1e6,
        _ => {
            return Err(Diagnostic::new(format!("`{key}={text}` is not a time"))
                .help(format!("give a number with ns, us, ms or s: `{key}=80us`")));
        }
    };
    match us {
        0.0 => Err(Diagnostic::new(format!("`{key}` is 0: too fast for a drive"))),
        us if us < 1e12 => Ok(us),
        _ => Err(Diagnostic::new(format!("`{key}={text}`: too slow for a drive"))),
    }
}

/// Parses requests per second: `167200`, `460k`, `1.5M`.
fn count(text: &str) -> Result<f64, Diagnostic> {
    let (digits, scale) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1e3),
        None => text.strip_suffix('M').map_or((text, 1.0), |digits| (digits, 1e6)),
    };
    let number = digits.parse::<f64>().ok().map(|number| number * scale);
    number.filter(|number| *number >= 1.0 && *number < 1e12).ok_or_else(|| {
        Diagnostic::new(format!("`iops={text}` is not a number of requests per second"))
            .help("give a number, with k for thousands or M for millions: `iops=460k`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_a_job_and_its_figures() {
        let point =
            Point::parse("--point", "rw=randwrite,bs=8k,iodepth=16,numjobs=2,bw=1.6384GB/s,p99.9=2ms,worn")
                .unwrap();
        let job = Job { write: true, random: true, block: 8192, depth: 16, jobs: 2, span: None };
        assert_eq!((point.job, point.worn, point.held), (job, true, false));
        assert_eq!((point.figures.iops, point.figures.p99_9), (Some(200_000.0), Some(2_000.0)));
        assert!((time("clat", "76.50999999999999us").unwrap() - 76.51).abs() < 1e-9);
        for (text, iops) in [("167200", 167_200.0), ("460k", 460_000.0), ("1.5M", 1_500_000.0)] {
            assert_eq!(count(text).unwrap(), iops);
        }
    }

    #[test]
    fn what_is_no_point_is_said() {
        for (text, said) in [
            ("rw=randread,bs=4k,clat=80us", "does not state its depth"),
            ("rw=randread,iodepth=1,clat=80us", "does not state its block size"),
            ("bs=4k,iodepth=1,clat=80us", "does not state its pattern"),
            ("rw=randread,bs=4k,iodepth=1", "has no measurement"),
            ("rw=randread,bs=4k,iodepth=1,clat=80", "a number with ns, us, ms or s"),
            ("rw=randread,bs=4k,iodepth=1,clat=0us", "too fast for a drive"),
            ("rw=randread,bs=4k,iodepth=1,p99=1000000000s", "too slow for a drive"),
            ("rw=randread,bs=4k,iodepth=1,bw=0MB/s", "`bw` is 0"),
            ("rw=randread,bs=4k,iodepth=1,iops=many", "not a number of requests"),
            ("rw=randrw,bs=4k,iodepth=1,iops=9k", "not mixed"),
            ("rw=randread,bs=4k,iodepth=1,latency=80us", "is not part of a point"),
            ("rw=randraed,bs=4k,iodepth=1,clat=80us", "randraed"),
        ] {
            let fault = Point::parse("--point", text).unwrap_err();
            assert!(fault.one_line().contains(said), "{text}: {}", fault.one_line());
        }
    }

    #[test]
    fn jobs_that_a_fit_does_not_compare_are_left_out_with_the_reason() {
        let options = |text: &str| -> Vec<(String, String)> {
            text.split(' ')
                .map(|pair| pair.split_once('=').unwrap())
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .collect()
        };
        let of =
            |text: &str| Point::of_fio(&options(text), false, Figures::default(), None, "f.json: a").unwrap();
        assert_eq!(
            of("rw=randread bs=4Ki iodepth=2 direct=1 size=119002849280").unwrap().job.span,
            Some(119_002_849_280)
        );
        assert_eq!(of("rw=randread bs=4k iodepth=8 ioengine=psync").unwrap().job.depth, 1);
        assert!(of("rw=randread bs=4k iodepth=2 rate_iops=500").unwrap_err().contains("`rate_iops`"));
        assert!(of("rw=randrw bs=4k iodepth=2").unwrap_err().contains("not mixed"));
    }
}
