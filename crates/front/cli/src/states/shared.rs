//! States that runs of one command share: in memory, and in a folder if there is one.

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

/// Bytes of states that are kept at a time; one is kept whatever its size.
const MOST_BYTES: usize = 1 << 30;
/// Runs of which it is looked beforehand which states they want: of more, states are kept as if others still wanted
/// them.
const MOST_LOOKED_AT: usize = 2_000;
/// How often a run that waits for another's state looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(50);

/// What decides which states a run of a sweep asks for: overrides, seed, workloads.
type Asking<'p> = (&'p [String], u64, &'p [String]);

/// How many of these runs want each state, by its digest; `None` for more runs than are looked at.
fn expected<'p>(plans: impl ExactSizeIterator<Item = &'p Plan>) -> Option<BTreeMap<String, usize>> {
    if plans.len() > MOST_LOOKED_AT {
        return None;
    }
    // Of a system without servers, runs of several workloads want the same.
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

/// The digests of the states that a run asks for, and whether its system has servers.
fn digests(plan: &Plan) -> (Vec<String>, bool) {
    // What cannot run is told by its run.
    let Ok(loaded) = machine::load(&plan.system, &plan.set) else { return (Vec::new(), false) };
    let wanted = Wanted::of(plan, &loaded).map(|wanted| wanted.all()).unwrap_or_default();
    let digests = wanted.iter().flatten().map(StateSpec::digest).collect();
    (digests, !loaded.spec.cpu.is_empty())
}

/// What runs of these plans share, if all are known, with the folder of `--state-cache` if it is given; nothing for the
/// word that says none.
///
/// # Errors
/// The folder cannot be made.
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
    /// Runs that have no state yet, by the digest of the one that they want; `None` if nobody has counted.
    left: Option<BTreeMap<String, usize>>,
    turn: u64,
}

enum Held {
    /// Somebody makes it.
    Awaited,
    /// It is there, and was asked for at this turn.
    There(State, u64),
}

impl Shared {
    /// No states yet. `left` are the runs that will ask ([`expected`]).
    fn new(folder: Option<Folder>, left: Option<BTreeMap<String, usize>>) -> Shared {
        let known = Known { states: BTreeMap::new(), left, turn: 0 };
        Shared { folder, known: Mutex::new(known), changed: Condvar::new() }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state as others have left it, or whether to make it for others as well; `None` if a stop came while somebody
    /// made it.
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

    /// What is awaited is there, or will not come.
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
    /// Counts a run that has its state, or makes it; whether others will want the same.
    fn served(&mut self, digest: &str) -> bool {
        self.turn += 1;
        let Some(left) = &mut self.left else { return true };
        let others = left.remove(digest).unwrap_or(1) - 1;
        if others > 0 {
            left.insert(digest.to_owned(), others);
        }
        others > 0
    }

    /// Lets go of the states that nobody has asked for longest, but not of this one.
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
        // It goes away empty if the folder's is damaged: others must not wait.
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
        // What runs of this command have made is sound.
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
    /// Whether others wait for it.
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
