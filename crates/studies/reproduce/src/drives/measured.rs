//! Tables of what fio measured, one line a job.

use super::super::row::{Row, Rule};
use super::super::study::Entry;
use super::data;
use fit::{Figures, Job};
use serde::Deserialize;
use std::collections::BTreeMap;

/// State of a drive before a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// Empty: new, or erased.
    Empty,
    /// All of it was written once, in order.
    Filled,
    /// Overwritten repeatedly.
    Worn,
}

/// A job on a drive, and what was measured of it.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Measured {
    /// The stand's name.
    pub(super) stand: &'static str,
    pub(super) job: Job,
    pub(super) state: State,
    /// Bytes over which it was measured, where that decides: from the first one on.
    pub(super) first: Option<u64>,
    pub(super) figures: Figures,
    /// Page where it is printed, or the lines that it is the mean of.
    pub(super) place: String,
}

/// The lines of a table that are one drive's.
pub(super) struct Set {
    /// The stand's name.
    pub(super) stand: &'static str,
    /// The table, among the data sets.
    pub(super) file: &'static str,
    /// Prefix of the drive's name there.
    pub(super) drive: &'static str,
}

/// A line, as far as it is needed.
#[derive(Deserialize)]
struct Line {
    drive: String,
    path: String,
    rw: String,
    bs: String,
    iodepth: String,
    numjobs: String,
    iops: Option<f64>,
    lat_mean_us: Option<f64>,
    p99_us: Option<f64>,
    p99_9_us: Option<f64>,
    total_ios: Option<u64>,
    size: String,
}

/// A line of fewer requests says how a job begins.
const LEAST_REQUESTS: u64 = 10_000;

impl Set {
    /// Points of the table; none if the table is not available.
    pub(super) fn points(&self) -> Vec<Measured> {
        let Some(path) = data(self.file) else { return Vec::new() };
        std::fs::read(path).map(|bytes| self.parse(&bytes)).unwrap_or_default()
    }

    /// The row that says that the table is not here.
    pub(super) fn absent(&self) -> Option<Entry> {
        if data(self.file).is_some() {
            return None;
        }
        let (id, file) = (format!("drives.{}", self.stand), self.file);
        let skipped = Row::new(&id, "", 0.0, 0.0, Rule::Exact).skipped(file);
        Some(Entry::new(id, Vec::new(), move |_| Ok(skipped.clone())))
    }

    /// The points of a table: lines of one job are one point. A line that names no job, or was over at once, is left
    /// out.
    fn parse(&self, table: &[u8]) -> Vec<Measured> {
        let mut jobs: BTreeMap<Job, Vec<Line>> = BTreeMap::new();
        let lines = csv::Reader::from_reader(table).into_deserialize::<Line>();
        let is_one = |line: &Line| {
            line.drive.starts_with(self.drive) && line.total_ios.is_some_and(|ios| ios >= LEAST_REQUESTS)
        };
        for line in lines.filter_map(Result::ok).filter(is_one) {
            if let Some(job) = job(&line) {
                jobs.entry(job).or_default().push(line);
            }
        }
        let point = |(job, lines): (Job, Vec<Line>)| {
            let figures = Figures {
                iops: mean(&lines, |line| line.iops),
                mean: mean(&lines, |line| line.lat_mean_us),
                p99: mean(&lines, |line| line.p99_us),
                p99_9: mean(&lines, |line| line.p99_9_us),
                p99_999: None,
            };
            let first = lines.first().map_or("", |line| line.path.as_str());
            let more = if lines.len() > 1 { format!(" and {} more", lines.len() - 1) } else { String::new() };
            let place = format!("{}: {first}{more}", self.file);
            Measured { stand: self.stand, job, state: State::Filled, first: None, figures, place }
        };
        jobs.into_iter().map(point).collect()
    }
}

/// The mean over those lines that have the figure; zero stands for none there.
fn mean(lines: &[Line], figure: impl Fn(&Line) -> Option<f64>) -> Option<f64> {
    let found: Vec<f64> = lines.iter().filter_map(figure).filter(|value| *value > 0.0).collect();
    (!found.is_empty()).then(|| found.iter().sum::<f64>() / found.len() as f64)
}

fn job(line: &Line) -> Option<Job> {
    let (random, write) = match line.rw.as_str() {
        "read" => (false, false),
        "write" => (false, true),
        "randread" => (true, false),
        "randwrite" => (true, true),
        _ => return None,
    };
    let count = |text: &str| if text.is_empty() { Some(1) } else { text.parse().ok() };
    Some(Job {
        write,
        random,
        block: kibibytes(&line.bs)?,
        depth: count(&line.iodepth)?,
        jobs: count(&line.numjobs)?,
        // The span of a whole drive, or of zones, is not in bytes.
        span: line.size.parse().ok(),
    })
}

/// fio's spelling of a block size in kibibytes: `4k`, `4K`, `128Ki`.
fn kibibytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = &text[digits.len()..];
    let known = ["k", "ki", "kib"].iter().any(|name| unit.eq_ignore_ascii_case(name));
    if known { digits.parse::<u64>().ok()?.checked_mul(1024) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
drive,path,rw,bs,iodepth,numjobs,iops,lat_mean_us,p99_us,p99_9_us,total_ios,size
\"A, of B\",a.json,randread,4Ki,2,,20000,90,,,10000,1048576
\"A, of B\",b.json,randread,4K,2,1,22000,0.0,120,150,20000,1048576
\"A, of B\",c.json,write,128k,,4,900,4000,9000,,10000,3z
\"A, of B\",d.json,randrw,4k,1,1,1,1,1,1,10000,
C,e.json,read,4k,1,1,1,1,1,1,10000,
\"A, of B\",f.json,read,4k,1,1,1,1,1,1,9999,
";

    #[test]
    fn lines_of_one_job_are_one_point() {
        let set = Set { stand: "a", file: "t.csv", drive: "A, of" };
        let points = set.parse(TABLE.as_bytes());
        let [read, write] = points.as_slice() else { panic!("{points:?}") };
        assert_eq!((write.job.block, write.job.depth, write.job.jobs, write.job.span), (131_072, 1, 4, None));
        assert_eq!(read.job, Job { span: Some(1 << 20), ..Job::random_reads(2) });
        let figures = read.figures;
        assert_eq!((figures.iops, figures.mean), (Some(21_000.0), Some(90.0)));
        assert_eq!((figures.p99, figures.p99_9), (Some(120.0), Some(150.0)));
        assert_eq!(read.place, "t.csv: a.json and 1 more");
    }

    #[test]
    fn block_sizes_are_spelt_as_fio_has_them() {
        assert_eq!(["4k", "4K", "128Ki", "8KiB"].map(kibibytes), [4, 4, 128, 8].map(|k| Some(k * 1024)));
        assert_eq!(["4", "4m", "k", ""].map(kibibytes), [None; 4]);
    }
}
