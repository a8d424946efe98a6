//! Rounds of a sweep, from the first runs to the last.

use super::file::Sweep;
use super::point::{Outcome, Point, point};
use super::search::{Answer, Ended, choice};
use super::store::Store;
use super::worker::{Where, Work, run_all};
use outside::Fault;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Callback for each run that ends: its number in the round, its outcome, and whether it was made, not taken from the
/// store.
pub type RunEnded<'p> = Box<dyn FnMut(usize, &Outcome, bool) + 'p>;

/// Progress of a sweep, told to the caller.
pub trait Progress {
    /// Starts a round of runs, after `before` earlier runs. The function is dropped at the end of the round.
    fn round<'p>(&'p self, points: &'p [Point], before: usize) -> RunEnded<'p>;
}

/// Runs of a sweep with their outcomes.
pub struct Made {
    /// Runs in their order.
    pub points: Vec<Point>,
    /// Outcomes of the runs.
    pub outcomes: Vec<Outcome>,
    /// Answer of a search, if it finished.
    pub answer: Option<Answer>,
    /// Reason why a cluster is gone.
    pub lost: Option<String>,
}

/// Makes the runs of a sweep, round by round. With `resume`, runs in the store are taken from there. `place` gets the
/// runs, if all are known. Runs end early once `stop` is set.
///
/// # Errors
/// `place` fails.
pub fn make(
    sweep: &Sweep,
    store: &Arc<Store>,
    resume: bool,
    place: impl FnOnce(Option<&[Point]>) -> Result<Where, Fault>,
    stop: &'static AtomicBool,
    progress: &dyn Progress,
) -> Result<Made, Fault> {
    let needed = if sweep.is_alike() { sweep.named().len() } else { 0 };
    let by =
        sweep.search.as_ref().and_then(|search| sweep.metrics.iter().position(|name| *name == search.metric));
    let mut choice = choice(sweep);
    let (mut points, mut outcomes, mut ended) = (Vec::new(), Vec::new(), Ended::new());
    let mut round: Vec<Point> = choice.next(&ended).into_iter().map(|cell| point(sweep, cell)).collect();
    let place = Arc::new(place(sweep.search.is_none().then_some(&*round))?);
    while !round.is_empty() {
        let runs = Arc::new(round);
        let mut tell = progress.round(&runs, points.len());
        let work = Work {
            points: Arc::clone(&runs),
            store: Arc::clone(store),
            place: Arc::clone(&place),
            resume,
            words: sweep.words.clone(),
            metrics: sweep.metrics.clone(),
            needed,
            stop,
        };
        let of_round = run_all(work, &mut *tell);
        drop(tell);
        if let Some(by) = by {
            ended.extend(runs.iter().zip(&of_round).map(|(run, came)| (run.cell.clone(), came.number(by))));
        }
        let is_cut = of_round.iter().any(|outcome| matches!(outcome, Outcome::NotRun));
        points.extend(Arc::unwrap_or_clone(runs));
        outcomes.extend(of_round);
        if is_cut {
            return Ok(Made { points, outcomes, answer: None, lost: place.why_lost() });
        }
        round = choice.next(&ended).into_iter().map(|cell| point(sweep, cell)).collect();
    }
    let answer = choice.answer(&ended);
    Ok(Made { points, outcomes, answer, lost: None })
}
