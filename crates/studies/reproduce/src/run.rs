//! Runs the cases of a target as parallel tasks that can be abandoned at once.

use super::choose::{Chosen, Tasks};
use super::reading::Choice;
use super::study::{Entry, Found, Point};
use super::{Case, Context, Effort, Row};
use machine::run::Plan;
use machine::state::States;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Factory of a state store for runs of these plans; `None` if each run makes its own states.
pub type Sharing<'a> = dyn Fn(&[Plan]) -> Option<Arc<dyn States + Send + Sync>> + 'a;

/// Options of a computation of rows.
pub struct Request<'a> {
    /// Number of parallel cases or runs, at least one. Results do not depend on it.
    pub jobs: usize,
    /// Stop flag: pending work is skipped and running work abandoned, and the report comes at once.
    pub stop: &'static AtomicBool,
    /// Callback with the number of cases, runs or rows done, and the total.
    pub progress: &'a dyn Fn(usize, usize),
    /// Called before runs that may share states. Results do not depend on it.
    pub states: &'a Sharing<'a>,
}

/// Report on a target.
pub struct Report {
    /// Name of the target.
    pub target: &'static str,
    /// Rows, families in the order of the target's list.
    pub rows: Vec<Row>,
    /// Number of checks that its runs have passed beside the rows: Little's law on each queue. A run that fails one
    /// yields no row.
    pub checks: usize,
    /// True if rows are missing because of an interrupt.
    pub partial: bool,
}

impl Report {
    /// Returns whether every row that could be measured is within its tolerance, and none is missing.
    pub fn ok(&self) -> bool {
        !self.partial && self.rows.iter().all(|row| row.within != Some(false))
    }
}

/// Computes the selected rows of a target.
pub fn run(chosen: Chosen, request: &Request<'_>) -> Report {
    let Chosen { target, reading, effort, ids, tasks } = chosen;
    match tasks {
        Tasks::Cases(cases) => run_cases(target, cases, effort, &ids, request),
        Tasks::Study(entries) => run_study(target, &reading.choices, entries, request),
    }
}

fn run_cases(
    target: &'static str,
    cases: Vec<Case>,
    effort: Effort,
    wanted: &BTreeSet<String>,
    request: &Request<'_>,
) -> Report {
    let stop = request.stop;
    let done = run_all(cases, move |case| run_case(case, effort, stop), request);
    let partial = stop.load(Ordering::Relaxed) || done.iter().any(Option::is_none);
    let done: Vec<(Vec<Row>, usize)> = done.into_iter().flatten().collect();
    let checks = done.iter().map(|(_, checks)| checks).sum();
    let rows = done.into_iter().flat_map(|(rows, _)| rows).filter(|row| wanted.contains(&row.id)).collect();
    Report { target, rows: by_family(rows), checks, partial }
}

fn run_study(target: &'static str, choices: &[Choice], entries: Vec<Entry>, request: &Request<'_>) -> Report {
    let points = entries.iter().flat_map(|entry| entry.points.iter().cloned()).collect();
    let mut found = Found::default();
    let mut all = run_points(points, choices, &mut found, request);
    let further: BTreeSet<Point> = entries.iter().flat_map(|entry| entry.further(&found)).collect();
    all &= run_points(further, choices, &mut found, request);
    let (entries, found) = (Arc::new(entries), Arc::new(found));
    // A row that needs no run may still take long.
    let task = {
        let (entries, found) = (Arc::clone(&entries), Arc::clone(&found));
        move |at: &usize| entries[*at].row(&found)
    };
    let rows = run_all((0..entries.len()).collect(), task, request);
    let partial = !all || request.stop.load(Ordering::Relaxed);
    // Reports what was run, at no cost in time.
    let of_runs = |entry: &Entry| entry.was_run(&found).then(|| entry.row(&found));
    let rows = entries.iter().zip(rows).filter_map(|(entry, row)| row.or_else(|| of_runs(entry))).collect();
    Report { target, rows, checks: 0, partial }
}

/// Runs the points that are not done yet, with the overrides of the choices before their own; returns whether all have
/// ended.
fn run_points(
    mut points: BTreeSet<Point>,
    choices: &[Choice],
    found: &mut Found,
    request: &Request<'_>,
) -> bool {
    points.retain(|point| !found.0.contains_key(point));
    let (points, stop) = (Vec::from_iter(points), request.stop);
    let read: Vec<Point> = points.iter().map(|point| point.under(choices)).collect();
    let plans: Vec<Plan> = read.iter().map(Point::plan).collect();
    let states = (request.states)(&plans);
    let run = move |point: &Point| {
        let states = states.as_deref().map(|states| states as &dyn States);
        point.run_with(states, stop).map_err(|why| why.one_line())
    };
    let documents = run_all(read, run, request);
    let all = documents.iter().all(Option::is_some);
    let pairs = points.into_iter().zip(documents);
    found.0.extend(pairs.filter_map(|(point, document)| Some((point, document?))));
    all
}

/// Rows of a case, and the number of checks that its runs have passed.
fn run_case(case: &Case, effort: Effort, stop: &AtomicBool) -> (Vec<Row>, usize) {
    let checks = AtomicUsize::new(0);
    let rows = match (case.run)(&Context { effort, stop, checks: &checks }) {
        Ok(rows) => {
            let promised = rows.iter().map(|row| &row.id).eq(&case.ids);
            assert!(promised, "{:?} were promised, not {rows:?}", case.ids);
            rows
        }
        Err(why) => case.ids.iter().map(|id| Row::failed(id, why.one_line())).collect(),
    };
    (rows, checks.into_inner())
}

/// Groups rows by the first component of their ids, in order of first appearance.
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

/// Poll interval for stop requests.
const LOOK: Duration = Duration::from_millis(50);

/// State shared by threads.
struct Work<T, F> {
    tasks: Vec<T>,
    task: F,
    next: AtomicUsize,
    stop: &'static AtomicBool,
}

impl<T, F> Work<T, F> {
    /// Runs one task after another, and sends each result with its index.
    fn go<R>(&self, sender: &Sender<(usize, R)>)
    where
        F: Fn(&T) -> R,
    {
        while !self.stop.load(Ordering::Relaxed) {
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(one) = self.tasks.get(at) else { break };
            let result = (self.task)(one);
            // The result of an abandoned task is not sent: the receiver is gone.
            if self.stop.load(Ordering::Relaxed) || sender.send((at, result)).is_err() {
                break;
            }
        }
    }
}

/// Runs tasks on up to `jobs` threads and returns their results in order, `None` for a task that did not begin or
/// finish. It returns soon after `stop` is set, whatever a task is doing: building a graph and counting a program do
/// not check for stops. Their threads are abandoned; they share no state with others and begin no new work.
pub(super) fn run_all<T, R>(
    tasks: Vec<T>,
    task: impl Fn(&T) -> R + Send + Sync + 'static,
    request: &Request<'_>,
) -> Vec<Option<R>>
where
    T: Send + Sync + 'static,
    R: Send + 'static,
{
    let count = tasks.len();
    let work = Arc::new(Work { tasks, task, next: AtomicUsize::new(0), stop: request.stop });
    let (sender, receiver) = channel();
    let start = |_| {
        let (work, sender) = (Arc::clone(&work), sender.clone());
        std::thread::spawn(move || work.go(&sender))
    };
    let threads: Vec<_> = (0..request.jobs.clamp(1, count.max(1))).map(start).collect();
    drop(sender);
    let (mut results, mut done) = (Vec::new(), 0);
    results.resize_with(count, || None);
    while !request.stop.load(Ordering::Relaxed) {
        match receiver.recv_timeout(LOOK) {
            Ok((at, result)) => {
                results[at] = Some(result);
                done += 1;
                (request.progress)(done, count);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                threads
                    .into_iter()
                    .for_each(|thread| thread.join().unwrap_or_else(|p| std::panic::resume_unwind(p)));
                return results;
            }
        }
    }
    for (at, result) in receiver.try_iter() {
        results[at] = Some(result);
    }
    results
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choose::of;
    use crate::{Rule, Target, Work};
    use config::Diagnostic;
    use machine::state::{Found as StateFound, Place, State, StateSpec};
    use std::collections::BTreeMap;
    use std::sync::{Mutex, mpsc};

    fn cases() -> Vec<Case> {
        let one = |ids: [&'static str; 2]| {
            Case::new(ids.map(str::to_owned), move |_| {
                Ok(ids.map(|id| Row::new(id, "", 1.0, 1.0, Rule::Exact)).to_vec())
            })
        };
        let failing = Case::new(["c.x".to_owned()], |_| Err(Diagnostic::new("nothing came of it")));
        vec![one(["a.x", "z.a"]), one(["a.xy", "z.b"]), one(["b.x.1", "z.c"]), failing]
    }

    static TARGET: Target = Target { name: "test", about: "", readings: "", work: Work::Cases(cases) };

    static GO_ON: AtomicBool = AtomicBool::new(false);

    fn run_target(
        target: &'static Target,
        only: &[&str],
        jobs: usize,
        stop: &'static AtomicBool,
    ) -> Result<Report, Diagnostic> {
        let only: Vec<String> = only.iter().map(|o| (*o).to_owned()).collect();
        let chosen = of(&[target], &only, Effort::Quick, None)?.remove(0);
        Ok(run(chosen, &Request { jobs, stop, progress: &|_, _| (), states: &|_| None }))
    }

    fn report(only: &[&str], jobs: usize) -> Result<Report, Diagnostic> {
        run_target(&TARGET, only, jobs, &GO_ON)
    }

    fn ids(report: &Report) -> Vec<&str> {
        report.rows.iter().map(|r| r.id.as_str()).collect()
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
        static SKIPPING: Target = Target {
            name: "test",
            about: "",
            readings: "",
            work: Work::Cases(|| {
                vec![Case::new(["d.x".to_owned()], |_| {
                    Ok(vec![Row::new("d.x", "", 1.0, 1.0, Rule::Exact).skipped("a.trace")])
                })]
            }),
        };
        let report = run_target(&SKIPPING, &[], 1, &GO_ON).expect("everything");
        assert!(report.ok() && report.rows[0].within.is_none() && report.rows[0].measured.is_none());
    }

    #[test]
    fn an_unknown_name_is_told_the_nearest() {
        let fault = report(&["b.y"], 1).err().expect("no such row");
        assert_eq!(fault.nearest.as_deref(), Some("b.x"));
        assert_eq!(fault.allowed, ["b.x.1"]);
    }

    #[test]
    fn an_interrupted_run_is_not_ok() {
        static STOP: AtomicBool = AtomicBool::new(true);
        let report = run_target(&TARGET, &[], 1, &STOP).expect("everything");
        assert!(report.partial && !report.ok() && report.rows.is_empty());
    }

    /// States in memory, and how many were taken.
    #[derive(Default)]
    struct Memory(Mutex<(BTreeMap<String, State>, usize)>);

    impl States for Memory {
        fn find<'a>(&'a self, wanted: &StateSpec, _: &AtomicBool) -> Result<StateFound<'a>, Diagnostic> {
            let mut known = self.0.lock().expect("no panic");
            let state = known.0.get(&wanted.digest()).cloned();
            known.1 += usize::from(state.is_some());
            let place = || Box::new(Slot { memory: self, digest: wanted.digest() }) as Box<dyn Place>;
            Ok(state.map_or_else(|| StateFound::Absent(Some(place())), StateFound::There))
        }
    }

    /// Place for a missing state.
    struct Slot<'a> {
        memory: &'a Memory,
        digest: String,
    }

    impl Place for Slot<'_> {
        fn keep(self: Box<Self>, state: &State) {
            self.memory.0.lock().expect("no panic").0.insert(self.digest, state.clone());
        }
    }

    /// Two servers that differ in a time: memory and drive of the second are those of the first, and the rows are what
    /// they were.
    #[test]
    fn rows_are_the_same_with_shared_states() {
        let entries = |_: Effort| {
            let base = ["cpu.cores=4", "fabric.mesh.rows=2", "fabric.mesh.columns=2", "l2.banks=4"]
                .into_iter()
                .chain(["cpu.load.jobs=60", "cpu.warmup.fixed.jobs=0", "memory.dram_cache.sets=32"])
                .map(str::to_owned);
            let point = |clock: &str| Point {
                system: "astriflash".to_owned(),
                set: base.clone().chain([format!("cpu.clock={clock}")]).collect(),
                workloads: vec!["tatp:size=128MiB,work=200".to_owned()],
                seed: 1,
                ..Point::default()
            };
            let row = |id: &str, point: Point| {
                let (name, of) = (id.to_owned(), point.clone());
                Entry::new(id, vec![point], move |found: &Found| {
                    let document = found.get(&of)?;
                    Ok(Row::new(&name, "ns", 1.0, document.simulated_ns, Rule::Exact))
                })
            };
            vec![row("a.slow", point("1GHz")), row("a.fast", point("3GHz"))]
        };
        let report = |states: &Sharing<'_>| {
            let entries = entries(Effort::Quick);
            let request = Request { jobs: 1, stop: &GO_ON, progress: &|_, _| (), states };
            run_study("test", &[], entries, &request).rows
        };
        let memory = Arc::new(Memory::default());
        let apart = report(&|_| None);
        assert!(apart.iter().all(|row| row.measured.is_some()) && apart[0].measured != apart[1].measured);
        let states = Arc::clone(&memory);
        let shared = report(&move |plans| {
            // Nothing is left to be run a second time.
            assert!(plans.len() == 2 || plans.is_empty());
            Some(Arc::clone(&states) as Arc<dyn States + Send + Sync>)
        });
        assert_eq!(shared, apart);
        let known = memory.0.lock().expect("no panic");
        assert_eq!((known.0.len(), known.1), (2, 2), "a memory and a drive, taken once each");
    }

    /// The second task never looks at whether an end is wanted: it waits until the test says that it may go on.
    #[test]
    fn a_task_that_looks_at_nothing_is_left_to_itself() {
        static STOP: AtomicBool = AtomicBool::new(false);
        let (open, gate) = mpsc::channel::<()>();
        let gate = std::sync::Mutex::new(gate);
        let (say, ended) = mpsc::channel();
        let request = Request { jobs: 1, stop: &STOP, progress: &|_, _| (), states: &|_| None };
        let task = move |n: &u32| {
            if *n == 2 {
                STOP.store(true, Ordering::Relaxed);
                // Far beyond what the test takes, so that a failure ends as well.
                let _ = gate.lock().expect("one thread").recv_timeout(Duration::from_secs(60));
                let _ = say.send(());
            }
            10 * n
        };
        let results = run_all(vec![1, 2, 3], task, &request);
        assert_eq!(results, [Some(10), None, None]);
        assert!(ended.try_recv().is_err(), "it waited for the task");
        drop(open);
        ended.recv().expect("the task goes on to its end");
    }

    #[test]
    #[should_panic(expected = "the third")]
    fn a_panic_of_a_task_is_heard() {
        static STOP: AtomicBool = AtomicBool::new(false);
        let request = Request { jobs: 2, stop: &STOP, progress: &|_, _| (), states: &|_| None };
        run_all(vec![1, 2, 3], |n| assert!(*n != 3, "the third"), &request);
    }
}
