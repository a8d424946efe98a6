//! States shared by the runs of one command: in memory, and in a folder if given.

use super::{Folder, folder_of};
use crate::output::Fault;
use config::Diagnostic;
use machine::run::Plan;
use machine::state::{Found, Place, State, StateSpec, States, Wanted};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes of states kept at a time; one state is kept whatever its size.
const MOST_BYTES: usize = 1 << 30;
/// Number of runs whose states are counted beforehand. Above it, every state is kept as if others still wanted it.
const MOST_LOOKED_AT: usize = 2_000;
/// Poll interval for stop requests while waiting for a state.
const LOOK: Duration = Duration::from_millis(50);

/// Inputs that decide which states a run of a sweep asks for: overrides, seed, workloads.
type Asking<'p> = (&'p [String], u64, &'p [String]);

/// Number of runs that want each state, by its digest; `None` above [`MOST_LOOKED_AT`] runs.
fn expected<'p>(plans: impl ExactSizeIterator<Item = &'p Plan>) -> Option<BTreeMap<String, usize>> {
    if plans.len() > MOST_LOOKED_AT {
        return None;
    }
    // Without servers, runs of different workloads want the same states.
    let mut known: BTreeMap<Asking<'_>, Option<Vec<String>>> = BTreeMap::new();
    let mut wanted = BTreeMap::new();
    for plan in plans {
        let by_work = (plan.set.as_slice(), plan.seed, plan.workloads.as_slice());
        let any_work = (plan.set.as_slice(), plan.seed, &[][..]);
        let at = if matches!(known.get(&any_work), Some(Some(_))) { any_work } else { by_work };
        if !known.contains_key(&at) {
            let (digests, has_servers) = digests(plan);
            known.insert(any_work, (!has_servers).then(|| digests.clone()));
            known.insert(by_work, Some(digests));
        }
        for digest in known.get(&at).into_iter().flatten().flatten() {
            *wanted.entry(digest.clone()).or_default() += 1;
        }
    }
    Some(wanted)
}

/// Digests of the states that a run asks for, and whether its system has servers.
fn digests(plan: &Plan) -> (Vec<String>, bool) {
    // A plan that cannot run is reported by its run.
    let Ok(loaded) = machine::load(&plan.system, &plan.set) else { return (Vec::new(), false) };
    let wanted = Wanted::of(plan, &loaded).map(|wanted| wanted.all()).unwrap_or_default();
    let digests = wanted.iter().flatten().map(StateSpec::digest).collect();
    (digests, !loaded.spec.cpu.is_empty())
}

/// States shared by the runs of these plans, if all are known, with the folder of `--state-cache` if given; `None` if
/// sharing is disabled.
///
/// # Errors
/// The folder cannot be created.
pub(crate) fn shared<'p>(
    cache: Option<&Path>,
    plans: Option<impl ExactSizeIterator<Item = &'p Plan>>,
) -> Result<Option<Arc<Shared>>, Fault> {
    let folder = match cache.map(folder_of) {
        Some(None) => return Ok(None),
        Some(Some(folder)) => Some(Folder::open(folder)?),
        None => None,
    };
    Ok(Some(Arc::new(Shared::new(folder, plans.and_then(expected)))))
}

/// States in memory.
pub(crate) struct Shared {
    folder: Option<Folder>,
    known: Mutex<Known>,
    changed: Condvar,
}

struct Known {
    states: BTreeMap<String, Held>,
    /// Runs without a state so far, by the digest of the state that they want; `None` if not counted.
    left: Option<BTreeMap<String, usize>>,
    turn: u64,
}

enum Held {
    /// A run is making the state.
    Awaited,
    /// The state is available; the turn of its last use.
    There(State, u64),
}

impl Shared {
    /// Starts without states. `left` counts the runs that will ask ([`expected`]).
    fn new(folder: Option<Folder>, left: Option<BTreeMap<String, usize>>) -> Shared {
        let known = Known { states: BTreeMap::new(), left, turn: 0 };
        Shared { folder, known: Mutex::new(known), changed: Condvar::new() }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// State left by a different run, or whether to make it for others as well; `None` if stopped while another run
    /// makes it.
    fn ask(&self, digest: &str, stop: &AtomicBool) -> Option<Result<State, bool>> {
        let mut known = self.known();
        loop {
            match known.states.get(digest) {
                Some(Held::Awaited) if stop.load(Ordering::Relaxed) => return None,
                Some(Held::Awaited) => {
                    let waited = self.changed.wait_timeout(known, LOOK);
                    known = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                Some(Held::There(state, _)) => {
                    let state = state.clone();
                    if known.served(digest) {
                        let turn = known.turn;
                        known.states.insert(digest.to_owned(), Held::There(state.clone(), turn));
                    } else {
                        known.states.remove(digest);
                    }
                    return Some(Ok(state));
                }
                None => {
                    let others = known.served(digest);
                    if others {
                        known.states.insert(digest.to_owned(), Held::Awaited);
                    }
                    return Some(Err(others));
                }
            }
        }
    }

    /// Resolves an awaited state: it is available, or will not come.
    fn settle(&self, digest: &str, state: Option<&State>) {
        let mut known = self.known();
        known.states.remove(digest);
        if let Some(state) = state {
            let turn = known.turn;
            known.states.insert(digest.to_owned(), Held::There(state.clone(), turn));
            known.make_room(digest);
        }
        self.changed.notify_all();
    }
}

impl Known {
    /// Counts a run that has its state or makes it; returns whether others will want the same.
    fn served(&mut self, digest: &str) -> bool {
        self.turn += 1;
        let Some(left) = &mut self.left else { return true };
        let others = left.remove(digest).unwrap_or(1) - 1;
        if others > 0 {
            left.insert(digest.to_owned(), others);
        }
        others > 0
    }

    /// Evicts the least recently used states, except this one.
    fn make_room(&mut self, digest: &str) {
        loop {
            let there = self.states.iter().filter_map(|(digest, held)| match held {
                Held::There(state, turn) => Some((*turn, state.bytes().len(), digest)),
                Held::Awaited => None,
            });
            let bytes: usize = there.clone().map(|(_, bytes, _)| bytes).sum();
            let oldest = there.filter(|(.., other)| *other != digest).min();
            match oldest.map(|(.., digest)| digest.clone()) {
                Some(oldest) if bytes > MOST_BYTES => self.states.remove(&oldest),
                _ => return,
            };
        }
    }
}

impl States for Shared {
    fn find<'a>(&'a self, wanted: &StateSpec, stop: &AtomicBool) -> Result<Found<'a>, Diagnostic> {
        let digest = wanted.digest();
        let awaited = match self.ask(&digest, stop) {
            None => return Ok(Found::Stopped),
            Some(Ok(state)) => return Ok(Found::There(state)),
            Some(Err(awaited)) => awaited,
        };
        // If the folder's copy is damaged, the place is dropped empty: others must not wait.
        let mut place = Awaited { shared: self, wanted: wanted.clone(), digest, awaited };
        let kept = self.folder.as_ref().map(|folder| folder.get(wanted)).transpose()?.flatten();
        if let Some(state) = kept {
            place.give(&state);
            return Ok(Found::There(state));
        }
        let useful = awaited || self.folder.is_some();
        Ok(Found::Absent(useful.then(|| Box::new(place) as Box<dyn Place>)))
    }

    fn refuse<'a>(
        &'a self,
        wanted: &StateSpec,
        fault: Diagnostic,
    ) -> Result<Option<Box<dyn Place + 'a>>, Diagnostic> {
        // States made by runs of this command are sound.
        let Some(folder) = &self.folder else { return Err(fault) };
        folder.refuse(wanted, &fault);
        let digest = wanted.digest();
        let held = self.known().states.get_mut(&digest).map(|held| *held = Held::Awaited);
        Ok(Some(Box::new(Awaited { shared: self, wanted: wanted.clone(), digest, awaited: held.is_some() })))
    }
}

struct Awaited<'a> {
    shared: &'a Shared,
    wanted: StateSpec,
    digest: String,
    /// True if other runs wait for the state.
    awaited: bool,
}

impl Awaited<'_> {
    fn give(&mut self, state: &State) {
        if std::mem::take(&mut self.awaited) {
            self.shared.settle(&self.digest, Some(state));
        }
    }
}

impl Place for Awaited<'_> {
    fn keep(mut self: Box<Self>, state: &State) {
        self.give(state);
        if let Some(folder) = &self.shared.folder {
            folder.put(&self.wanted, state);
        }
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        if self.awaited {
            self.shared.settle(&self.digest, None);
        }
    }
}
