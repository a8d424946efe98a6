//! Selecting and running the cases of a target.

use super::study::{Entry, Found, Point};
use super::{Case, Context, Effort, Row, Target, Work};
use config::Diagnostic;
use config::diag::nearest;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// How a target is run.
pub struct Request<'a> {
    /// Ids of rows, or beginnings of ids; everything if empty.
    pub only: &'a [String],
    /// Cases or runs that go on at once, at least one. Results do not depend on it.
    pub jobs: usize,
    /// How long runs are.
    pub effort: Effort,
    /// Set to leave out what has not begun and to end what has.
    pub stop: &'a AtomicBool,
    /// Told how many cases or runs are done, of how many.
    pub progress: &'a (dyn Fn(usize, usize) + Sync),
}

/// What a target has come to.
pub struct Report {
    /// The target's name.
    pub target: &'static str,
    /// Its rows, families in the order of the target's list.
    pub rows: Vec<Row>,
    /// Checks that its runs have passed beside the rows: Little's law on each queue. A run that fails one yields no row.
    pub checks: usize,
    /// Whether rows are missing because the run was ended early.
    pub partial: bool,
}

impl Report {
    /// Whether every row that could be measured is within its tolerance, and none is missing.
    pub fn ok(&self) -> bool {
        !self.partial && self.rows.iter().all(|row| row.within != Some(false))
    }
}

/// Runs what a request selects of a target.
///
/// # Errors
/// A name that selects nothing, with the nearest that would.
pub fn run(target: &Target, request: &Request<'_>) -> Result<Report, Diagnostic> {
    match target.work {
        Work::Cases(cases) => run_cases(target, &cases(), request),
        Work::Study(entries) => run_study(target, &entries(request.effort), request),
    }
}

fn run_cases(target: &Target, cases: &[Case], request: &Request<'_>) -> Result<Report, Diagnostic> {
    let wanted = select(cases.iter().flat_map(|case| &case.ids), request.only)?;
    let selected: Vec<&Case> = cases.iter().filter(|c| c.ids.iter().any(|id| wanted.contains(id))).collect();
    let checks = AtomicUsize::new(0);
    let context = Context { effort: request.effort, stop: request.stop, checks: &checks };
    let rows = run_all(&selected, |case| run_case(case, &context), request);
    let partial = request.stop.load(Ordering::Relaxed) || rows.iter().any(Option::is_none);
    let rows = rows.into_iter().flatten().flatten().filter(|row| wanted.contains(&row.id)).collect();
    Ok(Report { target: target.name, rows: by_family(rows), checks: checks.into_inner(), partial })
}

fn run_study(target: &Target, entries: &[Entry], request: &Request<'_>) -> Result<Report, Diagnostic> {
    let wanted = select(entries.iter().map(|entry| &entry.id), request.only)?;
    let selected: Vec<&Entry> = entries.iter().filter(|entry| wanted.contains(&entry.id)).collect();
    let points = selected.iter().flat_map(|entry| entry.points.iter().cloned()).collect();
    let mut found = Found::default();
    let mut all = run_points(points, &mut found, request);
    let further: BTreeSet<Point> = selected.iter().flat_map(|entry| entry.further(&found)).collect();
    all &= run_points(further, &mut found, request);
    let partial = !all || request.stop.load(Ordering::Relaxed);
    // A row that needs no run may still take long.
    let kept = |entry: &&&Entry| !partial || entry.was_run(&found);
    let rows = selected.iter().filter(kept).map(|entry| entry.row(&found)).collect();
    Ok(Report { target: target.name, rows, checks: 0, partial })
}

/// Runs those points that are not found yet; whether all have come to something.
fn run_points(mut points: BTreeSet<Point>, found: &mut Found, request: &Request<'_>) -> bool {
    points.retain(|point| !found.0.contains_key(point));
    let points: Vec<&Point> = points.iter().collect();
    let documents = run_all(&points, |point| point.run(request.stop).map_err(|why| why.one_line()), request);
    let all = documents.iter().all(Option::is_some);
    let pairs = points.into_iter().cloned().zip(documents);
    found.0.extend(pairs.filter_map(|(point, document)| Some((point, document?))));
    all
}

/// Does tasks on as many threads as asked for; what came of them in their order, `None` where one was not begun or not
/// brought to its end.
fn run_all<T: Sync, R: Send>(
    tasks: &[&T],
    task: impl Fn(&T) -> R + Sync,
    request: &Request<'_>,
) -> Vec<Option<R>> {
    let results: Vec<Mutex<Option<R>>> = tasks.iter().map(|_| Mutex::new(None)).collect();
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        while !request.stop.load(Ordering::Relaxed) {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(one) = tasks.get(at) else { break };
            let result = task(one);
            if !request.stop.load(Ordering::Relaxed) {
                *results[at].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
            }
            (request.progress)(done.fetch_add(1, Ordering::Relaxed) + 1, tasks.len());
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..request.jobs.clamp(1, tasks.len().max(1)) {
            scope.spawn(work);
        }
        work();
    });
    results.into_iter().map(|r| r.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}

fn run_case(case: &Case, context: &Context<'_>) -> Vec<Row> {
    match (case.run)(context) {
        Ok(rows) => {
            let promised = rows.iter().map(|row| &row.id).eq(&case.ids);
            assert!(promised, "{:?} were promised, not {rows:?}", case.ids);
            rows
        }
        Err(why) => case.ids.iter().map(|id| Row::failed(id, why.one_line())).collect(),
    }
}

/// Ids that the names select.
fn select<'a>(
    ids: impl Iterator<Item = &'a String>,
    only: &[String],
) -> Result<BTreeSet<String>, Diagnostic> {
    let ids: Vec<&String> = ids.collect();
    if only.is_empty() {
        return Ok(ids.into_iter().cloned().collect());
    }
    let mut wanted = BTreeSet::new();
    for name in only {
        let selected: Vec<&String> = ids.iter().copied().filter(|id| begins(id, name)).collect();
        if selected.is_empty() {
            return Err(unknown(name, &ids));
        }
        wanted.extend(selected.into_iter().cloned());
    }
    Ok(wanted)
}

/// Whether `name` is the id, or its beginning up to one of its points.
fn begins(id: &str, name: &str) -> bool {
    id.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn unknown(name: &str, ids: &[&String]) -> Diagnostic {
    let beginnings = |id: &str| -> Vec<String> {
        id.match_indices('.').map(|(at, _)| id[..at].to_owned()).chain([id.to_owned()]).collect()
    };
    let all: BTreeSet<String> = ids.iter().flat_map(|id| beginnings(id)).collect();
    let mut fault = Diagnostic::new(format!("no row's id is `{name}` or begins with it"))
        .allowed(name, all.iter().filter(|n| !n.contains('.')).cloned())
        .help("--only takes the id of a row, or its beginning up to a point");
    fault.nearest = nearest(name, all.iter().map(String::as_str)).map(str::to_owned);
    fault
}

/// Rows with the same first part of their id together, in the order in which the first of each came.
fn by_family(rows: Vec<Row>) -> Vec<Row> {
    let family = |row: &Row| row.id.split('.').next().unwrap_or_default().to_owned();
    let mut families: Vec<(String, Vec<Row>)> = Vec::new();
    for row in rows {
        let name = family(&row);
        match families.iter_mut().find(|(known, _)| *known == name) {
            Some((_, rows)) => rows.push(row),
            None => families.push((name, vec![row])),
        }
    }
    families.into_iter().flat_map(|(_, rows)| rows).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::Rule;

    fn cases() -> Vec<Case> {
        let one = |ids: [&'static str; 2]| {
            Case::new(ids.map(str::to_owned), move |_| {
                Ok(ids.map(|id| Row::new(id, "", 1.0, 1.0, Rule::Exact)).to_vec())
            })
        };
        let failing = Case::new(["c.x".to_owned()], |_| Err(Diagnostic::new("nothing came of it")));
        vec![one(["a.x", "z.a"]), one(["a.xy", "z.b"]), one(["b.x.1", "z.c"]), failing]
    }

    const TARGET: Target = Target { name: "test", about: "", work: Work::Cases(cases) };

    fn report(only: &[&str], jobs: usize) -> Result<Report, Diagnostic> {
        let only: Vec<String> = only.iter().map(|o| (*o).to_owned()).collect();
        let stop = AtomicBool::new(false);
        let request = Request { only: &only, jobs, effort: Effort::Quick, stop: &stop, progress: &|_, _| () };
        run(&TARGET, &request)
    }

    fn ids(report: &Report) -> Vec<&str> {
        report.rows.iter().map(|r| r.id.as_str()).collect()
    }

    #[test]
    fn every_row_has_a_name_of_its_own() {
        for target in crate::reproduce::TARGETS {
            let mut ids: Vec<String> = match target.work {
                Work::Cases(cases) => cases().into_iter().flat_map(|case| case.ids).collect(),
                Work::Study(entries) => entries(Effort::Whole).into_iter().map(|entry| entry.id).collect(),
            };
            let count = ids.len();
            ids.sort_unstable();
            ids.dedup();
            assert!(count > 0 && ids.len() == count, "{}: {count} ids, {} names", target.name, ids.len());
        }
    }

    #[test]
    fn names_select_ids_and_beginnings_up_to_a_point() {
        let of = |only: &[&str]| ids(&report(only, 1).expect("known names")).join(" ");
        assert_eq!(of(&["a.x"]), "a.x");
        assert_eq!(of(&["b"]), "b.x.1");
        assert_eq!(of(&["z"]), "z.a z.b z.c");
        assert_eq!(of(&["b.x", "a"]), "a.x a.xy b.x.1");
    }

    #[test]
    fn families_stand_together_whatever_the_number_of_threads() {
        let expected = ["a.x", "a.xy", "z.a", "z.b", "z.c", "b.x.1", "c.x"];
        let alone = report(&[], 1).expect("everything");
        assert_eq!(ids(&alone), expected);
        for jobs in [0, 2, 3, 8] {
            assert_eq!(report(&[], jobs).expect("everything").rows, alone.rows);
        }
    }

    #[test]
    fn a_failed_run_is_a_row_that_is_not_within() {
        let report = report(&["c"], 1).expect("known");
        assert!(!report.ok() && report.rows[0].measured.is_none() && !report.rows[0].is_skipped());
        assert!(report.rows[0].note.contains("nothing came of it"));
    }

    #[test]
    fn a_skipped_row_contradicts_nothing_and_holds_nothing() {
        const SKIPPING: Target = Target {
            name: "test",
            about: "",
            work: Work::Cases(|| {
                vec![Case::new(["d.x".to_owned()], |_| {
                    Ok(vec![Row::new("d.x", "", 1.0, 1.0, Rule::Exact).skipped("a.trace")])
                })]
            }),
        };
        let stop = AtomicBool::new(false);
        let request =
            Request { only: &[], jobs: 1, effort: Effort::Quick, stop: &stop, progress: &|_, _| () };
        let report = run(&SKIPPING, &request).expect("everything");
        assert!(report.ok() && report.rows[0].within.is_none() && report.rows[0].measured.is_none());
    }

    #[test]
    fn an_unknown_name_is_told_the_nearest() {
        let fault = report(&["b.y"], 1).err().expect("no such row");
        assert_eq!(fault.nearest.as_deref(), Some("b.x"));
        assert_eq!(fault.allowed, ["a", "b", "c", "z"]);
    }

    #[test]
    fn an_interrupted_run_is_not_ok() {
        let stop = AtomicBool::new(true);
        let request =
            Request { only: &[], jobs: 1, effort: Effort::Quick, stop: &stop, progress: &|_, _| () };
        let report = run(&TARGET, &request).expect("everything");
        assert!(report.partial && !report.ok() && report.rows.is_empty());
    }
}
