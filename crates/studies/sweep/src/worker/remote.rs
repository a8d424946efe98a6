//! Points on a cluster: given out as many at a time as it has work for, kept here as they come back.

use super::{Ended, Kind, Work, kept, taken};
use crate::on::{Answer, Order, Said};
use crate::outcome::Outcome;
use config::Diagnostic;
use outside::Fault;
use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;

/// Runs that are given out for each thread of the cluster: enough that none waits for the next.
const AHEAD: usize = 4;
/// Runs that are given out to a cluster whose workers have not come yet.
const FIRST: usize = 64;

/// Gives points out until none is left, or the cluster is gone.
pub(super) fn run(work: &Work, next: &AtomicUsize, tell: &Sender<Ended>) {
    let Kind::Cluster { cluster, jobs, lost } = &work.place.0 else { return };
    let most = |threads: usize| jobs.unwrap_or((threads * AHEAD).max(FIRST));
    let (mut room, mut out) = (most(0), BTreeMap::<usize, String>::new());
    let told = |ended: Ended| {
        // Whoever has given up waiting has the store.
        let _ = tell.send(ended);
    };
    loop {
        while out.len() < room && !work.stop.load(Ordering::Relaxed) {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(point) = work.points.get(at) else { break };
            let key = match work.store.key(&point.plan) {
                Ok(key) => key,
                Err(fault) => {
                    told((at, Outcome::Failed(fault), true));
                    continue;
                }
            };
            if let Some(taken) = taken(&key, work) {
                told((at, taken, false));
                continue;
            }
            let order = Order::of(&work.words, &point.plan, &key, cluster.state_cache());
            if !cluster.give(at, &order) {
                break;
            }
            out.insert(at, key);
        }
        if out.is_empty() || work.stop.load(Ordering::Relaxed) {
            return;
        }
        let (at, came) = match cluster.hear() {
            Said::Ready { ready } => {
                room = most(ready);
                continue;
            }
            Said::Answered { run, answer } => (run, Answer::read(&answer)),
            Said::Failed { run, fault } => (run, Err(Fault::from(Diagnostic::new(fault)))),
            Said::Lost { lost: why } | Said::Refused { refused: why, .. } => {
                *lost.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
                return;
            }
        };
        // A run has one answer.
        let Some(key) = out.remove(&at) else { continue };
        let outcome = came.and_then(|answer| match answer {
            Answer::Document(text) => kept(key, &text, work),
            Answer::Failure(diagnostic) => Ok(Outcome::Failed(diagnostic)),
        });
        told((at, outcome.unwrap_or_else(|fault| Outcome::Failed(fault.diagnostic())), true));
    }
}
