//! A plain driver: steps jobs in one or several slots, in random order, and checks their operations.

use std::ops::Range;

use proto::cpu::{Op, OpKind};
use requests::synth::{Purpose, Stream};

use crate::service::common::{Common, Placement, Skew};
use crate::service::jobs::{BLOCK, DATA, Emit, FIRST_BLOCK, FRAME, LINE, Program};

/// Settings for tests.
pub(crate) fn small(data: u64) -> Common {
    Common { data, skew: Skew::Zipf(0.9), seed: 3, placement: Placement::Scattered, work: 0 }
}

struct Slot<J> {
    number: u64,
    job: J,
    history: Vec<Op>,
    written: u32,
}

/// Runs jobs in `slots` slots; `ended` sees each right after its last piece, with all its operations.
pub(crate) fn drive<P: Program>(
    program: &mut P,
    mut jobs: Range<u64>,
    slots: u64,
    mut ended: impl FnMut(&mut P, u64, &P::Job, &[Op]),
) {
    let mut stream = Stream::new(slots, Purpose::Arrival);
    let mut running: Vec<Option<Slot<P::Job>>> = (0..slots).map(|_| None).collect();
    loop {
        let at = stream.below(slots) as usize;
        if running[at].is_none() {
            let Some(number) = jobs.next() else {
                match running.iter().position(Option::is_some) {
                    Some(other) => running.swap(at, other),
                    None => return,
                }
                continue;
            };
            let job = program.begin(number);
            running[at] = Some(Slot { number, job, history: Vec::new(), written: 0 });
        }
        let slot = running[at].as_mut().unwrap();
        let before = slot.history.len();
        let mut e = Emit::new(&mut slot.history, &mut slot.written, at as u64 * FRAME);
        let goes_on = program.piece(&mut slot.job, &mut e);
        assert!(slot.history.len() > before);
        check::<P>(program.end(), &slot.history, before);
        if !goes_on {
            ended(program, slot.number, &slot.job, &slot.history);
            running[at] = None;
        }
    }
}

fn check<P: Program>(end: u64, history: &[Op], from: usize) {
    for (n, op) in history.iter().enumerate().skip(from) {
        let memory = matches!(op.kind, OpKind::Load | OpKind::Store | OpKind::Atomic);
        assert_eq!(memory, op.width > 0);
        assert!(op.count > 0 && op.pc < P::BLOCKS * BLOCK);
        assert!(op.pc >= FIRST_BLOCK * BLOCK || op.address < DATA, "work touches no data: {op:?}");
        assert!(op.needs.iter().all(|&away| usize::from(away) <= n), "{op:?}");
        let last = op.address + u64::from(op.width);
        assert!(op.address % LINE + u64::from(op.width) <= LINE && last <= end, "{op:?} of {end}");
    }
}

/// Returns true if operation `n` needs `of`, directly or through others.
pub(crate) fn depends(history: &[Op], n: usize, of: usize) -> bool {
    let needs = history[n].needs.into_iter().filter(|&away| away > 0).map(|away| n - usize::from(away));
    needs.into_iter().any(|before| before == of || before > of && depends(history, before, of))
}

/// Checks that a job's loads of the first bytes of objects in `range` form a chain: each must need that of the
/// previous object. Repeated loads of the same object do not count. Returns the addresses, from the first object's.
pub(crate) fn chased(history: &[Op], range: Range<u64>, object: u64) -> Vec<u64> {
    let mut loads: Vec<usize> = (0..history.len()).collect();
    loads.retain(|&n| {
        let Op { kind, address, .. } = history[n];
        kind == OpKind::Load && range.contains(&address) && (address - range.start).is_multiple_of(object)
    });
    loads.dedup_by_key(|&mut n| history[n].address);
    for pair in loads.windows(2) {
        assert!(depends(history, pair[1], pair[0]), "{:?}", &history[pair[0]..=pair[1]]);
    }
    loads.iter().map(|&n| history[n].address - range.start).collect()
}

/// Counters of pages.
pub(crate) fn pages(n: u64) -> Vec<u64> {
    vec![0; n as usize]
}

/// Hottest pages and their share of the accesses.
pub(crate) struct Hottest {
    pub(crate) hottest: Vec<usize>,
    pub(crate) share: f64,
}

/// From the slot of each rank, slots per page and the skew: returns the hottest `part` of the pages, and the sum of
/// the Zipf probabilities of the objects on them.
pub(crate) fn share(slots: &[u64], to_page: u64, theta: f64, part: f64) -> Hottest {
    let mut weights = vec![0.0; slots.len().div_ceil(to_page as usize)];
    for (rank, slot) in slots.iter().enumerate() {
        weights[(slot / to_page) as usize] += libm::pow((rank + 1) as f64, -theta);
    }
    let total: f64 = weights.iter().sum();
    let mut hottest: Vec<usize> = (0..weights.len()).collect();
    hottest.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]));
    hottest.truncate((weights.len() as f64 * part) as usize);
    let share = hottest.iter().map(|&page| weights[page]).sum::<f64>() / total;
    Hottest { hottest, share }
}
