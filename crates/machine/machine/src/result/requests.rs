//! Requests as rows: the columns of request files and tables, and the choice of requests to keep.

use crate::result::op_name;
use engine::{Rng, Time};
use proto::{Account, ByHolder, Holder};
use requests::inject::Seen;
use ssd::device::MILESTONES;
use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
};

/// Type of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A whole number.
    Whole,
    /// A time in nanoseconds, exact to the picosecond.
    Time,
    /// A word from a small set.
    Word,
}

/// Value of a cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cell {
    /// A whole number.
    Whole(u64),
    /// A time.
    Time(Time),
    /// A word.
    Word(&'static str),
    /// Empty: the request has no milestones, or did not wait there.
    Empty,
}

/// Number of columns of every row: the request and its times; each milestone and the time outside the device; the
/// blocker; the location.
pub const COLUMNS: usize = BEFORE.len() + MILESTONES.len() + BEHIND.len();

/// Columns before the milestones.
const BEFORE: [(&str, Kind); 11] = [
    ("id", Kind::Whole),
    ("flow", Kind::Whole),
    ("op", Kind::Word),
    ("at_ns", Kind::Time),
    ("issued_ns", Kind::Time),
    ("submitted_ns", Kind::Time),
    ("answered_ns", Kind::Time),
    ("completed_ns", Kind::Time),
    ("latency_ns", Kind::Time),
    ("offset", Kind::Whole),
    ("bytes", Kind::Whole),
];
/// Columns after the milestones.
const BEHIND: [(&str, Kind); 8] = [
    ("host_ns", Kind::Time),
    ("die_blocker", Kind::Word),
    ("die_blocked_ns", Kind::Time),
    ("channel_blocker", Kind::Word),
    ("channel_blocked_ns", Kind::Time),
    ("drive", Kind::Whole),
    ("die", Kind::Whole),
    ("channel", Kind::Whole),
];

/// Names and kinds of the columns, in order.
pub fn columns() -> [(String, Kind); COLUMNS] {
    let milestones = MILESTONES.into_iter().map(|name| (format!("{name}_ns"), Kind::Time));
    let named = |(name, kind): (&str, Kind)| (name.to_owned(), kind);
    let mut all = BEFORE.into_iter().map(named).chain(milestones).chain(BEHIND.into_iter().map(named));
    // The number of columns is the sum above.
    std::array::from_fn(|_| all.next().unwrap_or((String::new(), Kind::Whole)))
}

/// Converts a request to a row.
pub fn row(seen: &Seen, account: Option<&Account>) -> [Cell; COLUMNS] {
    let request = &seen.request;
    let mut row = [Cell::Empty; COLUMNS];
    row[..BEFORE.len()].copy_from_slice(&[
        Cell::Whole(seen.id),
        Cell::Whole(seen.flow.into()),
        Cell::Word(op_name(request.op)),
        Cell::Time(request.at),
        Cell::Time(seen.issued),
        Cell::Time(seen.submitted),
        Cell::Time(seen.answered),
        Cell::Time(seen.completed),
        Cell::Time(seen.latency()),
        Cell::Whole(request.offset),
        Cell::Whole(request.bytes),
    ]);
    let Some(account) = account else { return row };
    let behind = BEFORE.len() + MILESTONES.len();
    for (cell, wait) in row[BEFORE.len()..behind].iter_mut().zip(account.waits) {
        *cell = Cell::Time(Time::from_ps(wait));
    }
    let inside: u64 = account.waits.iter().sum();
    row[behind] = Cell::Time(Time::from_ps(seen.latency().ps().saturating_sub(inside)));
    row[behind + 1..behind + 3].copy_from_slice(&blocker(&account.die));
    row[behind + 3..behind + 5].copy_from_slice(&blocker(&account.channel));
    if let Some(place) = account.place {
        row[behind + 5..].copy_from_slice(&[
            Cell::Whole(place.drive.into()),
            Cell::Whole(place.die.into()),
            Cell::Whole(place.channel.into()),
        ]);
    }
    row
}

/// Longest blocker, and the duration.
fn blocker(by: &ByHolder) -> [Cell; 2] {
    let longest = Holder::NAMES.into_iter().zip(by).reduce(|a, b| if b.1 > a.1 { b } else { a });
    match longest {
        Some((name, held)) if *held > 0 => [Cell::Word(name), Cell::Time(Time::from_ps(*held))],
        _ => [Cell::Empty; 2],
    }
}

/// Requests to keep of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Keep {
    /// All requests.
    #[default]
    All,
    /// A uniform random sample of this size.
    Sample(usize),
    /// The slowest requests; of equals, those that completed first.
    Slowest(usize),
    /// Requests completed in a span of time, its end excluded.
    Window(Time, Time),
}

/// Row that may be evicted, with its place in the order of completion.
#[derive(Clone, Copy, Debug)]
struct Held<T> {
    rank: u64,
    order: Reverse<u64>,
    what: T,
}

impl<T> Ord for Held<T> {
    fn cmp(&self, other: &Held<T>) -> Ordering {
        (self.rank, self.order).cmp(&(other.rank, other.order))
    }
}

impl<T> PartialOrd for Held<T> {
    fn partial_cmp(&self, other: &Held<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Held<T> {
    fn eq(&self, other: &Held<T>) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for Held<T> {}

/// Keeper of the requests that a [`Keep`] selects.
pub struct Keeper<T> {
    keep: Keep,
    rng: Rng,
    seen: u64,
    sampled: Vec<(u64, T)>,
    slowest: BinaryHeap<Reverse<Held<T>>>,
}

impl<T> Keeper<T> {
    /// Creates an empty keeper. A sample is drawn from its own random stream of the run's seed, so it changes no
    /// result.
    pub fn new(keep: Keep, seed: u64) -> Keeper<T> {
        let rng = Rng::stream(seed, "requests");
        Keeper { keep, rng, seen: 0, sampled: Vec::new(), slowest: BinaryHeap::new() }
    }

    /// Offers a completed request. Returns it if it is certainly kept; otherwise the keeper holds or drops it.
    pub fn offer(&mut self, completed: Time, latency: Time, what: T) -> Option<T> {
        let order = self.seen;
        self.seen += 1;
        match self.keep {
            Keep::All => return Some(what),
            Keep::Window(from, to) => return (completed >= from && completed < to).then_some(what),
            // Algorithm R (Vitter 1985).
            Keep::Sample(size) if self.sampled.len() < size => self.sampled.push((order, what)),
            Keep::Sample(size) => {
                let at = self.rng.below(self.seen);
                if at < size as u64 {
                    self.sampled[at as usize] = (order, what);
                }
            }
            Keep::Slowest(size) => {
                self.slowest.push(Reverse(Held { rank: latency.ps(), order: Reverse(order), what }));
                if self.slowest.len() > size {
                    self.slowest.pop();
                }
            }
        }
        None
    }

    /// Returns held requests in the order of completion.
    pub fn held(&mut self) -> Vec<T> {
        let mut all = std::mem::take(&mut self.sampled);
        all.extend(
            std::mem::take(&mut self.slowest).into_iter().map(|Reverse(held)| (held.order.0, held.what)),
        );
        all.sort_by_key(|(order, _)| *order);
        all.into_iter().map(|(_, what)| what).collect()
    }

    /// Number of requests offered.
    pub const fn seen(&self) -> u64 {
        self.seen
    }
}

#[cfg(test)]
mod tests {
    use super::{COLUMNS, Cell, Keep, Keeper, columns, row};
    use engine::Time;
    use proto::{Account, IoOp, IoRequest, Place};
    use requests::inject::Seen;

    fn seen() -> Seen {
        let at = Time::from_ns(100);
        let request = IoRequest { at, op: IoOp::Read, offset: 4096, bytes: 512, flow: 3, fua: false };
        let later = |ns| at + Time::from_ns(ns);
        Seen {
            id: 9,
            request,
            flow: 3,
            issued: later(1),
            submitted: later(2),
            answered: later(100),
            completed: later(103),
        }
    }

    fn cell(row: &[Cell; COLUMNS], name: &str) -> Cell {
        let at = columns().iter().position(|(column, _)| column == name).expect("a column");
        row[at]
    }

    #[test]
    fn a_row_accounts_for_all_of_its_latency() {
        let mut account = Account {
            place: Some(Place { drive: 1, die: 7, channel: 2, ..Place::default() }),
            ..Account::default()
        };
        account.waits[7] = 60_000;
        account.waits[8] = 38_000;
        account.die[4] = 45_000;
        account.die[0] = 15_000;
        let row = row(&seen(), Some(&account));
        assert_eq!(cell(&row, "latency_ns"), Cell::Time(Time::from_ns(103)));
        assert_eq!(cell(&row, "die_wait_ns"), Cell::Time(Time::from_ns(60)));
        assert_eq!(cell(&row, "array_ns"), Cell::Time(Time::from_ns(38)));
        assert_eq!(cell(&row, "host_ns"), Cell::Time(Time::from_ns(5)));
        assert_eq!(cell(&row, "die_blocker"), Cell::Word("erase"));
        assert_eq!(cell(&row, "die_blocked_ns"), Cell::Time(Time::from_ns(45)));
        assert_eq!(cell(&row, "channel_blocker"), Cell::Empty);
        assert_eq!(
            [cell(&row, "drive"), cell(&row, "die"), cell(&row, "channel")],
            [1, 7, 2].map(Cell::Whole)
        );
    }

    #[test]
    fn without_an_account_only_its_times_are_known() {
        let row = row(&seen(), None);
        assert_eq!(cell(&row, "id"), Cell::Whole(9));
        assert_eq!(cell(&row, "die_wait_ns"), Cell::Empty);
        assert_eq!(cell(&row, "channel"), Cell::Empty);
    }

    fn kept(keep: Keep, latencies: &[u64]) -> Vec<u64> {
        let mut keeper = Keeper::new(keep, 1);
        let mut all = Vec::new();
        for (id, latency) in (0u64..).zip(latencies) {
            all.extend(keeper.offer(Time::from_ns(id), Time::from_ns(*latency), id));
        }
        all.extend(keeper.held());
        all
    }

    #[test]
    fn the_slowest_are_kept_in_the_order_of_completion() {
        assert_eq!(kept(Keep::Slowest(3), &[5, 1, 9, 5, 2, 5, 8]), [0, 2, 6]);
        assert_eq!(kept(Keep::Slowest(3), &[1, 2]), [0, 1]);
    }

    #[test]
    fn a_window_excludes_its_end() {
        assert_eq!(kept(Keep::Window(Time::from_ns(2), Time::from_ns(4)), &[7; 9]), [2, 3]);
    }

    #[test]
    fn every_request_has_the_same_chance_to_be_in_a_sample() {
        // 400 draws of 10 in 40: each is in a quarter of them. Five standard deviations of a binomial count are 43.
        let mut counts = [0u32; 40];
        for seed in 0..400 {
            let mut keeper = Keeper::new(Keep::Sample(10), seed);
            (0..40usize).for_each(|id| assert_eq!(keeper.offer(Time::ZERO, Time::ZERO, id), None));
            let held = keeper.held();
            assert!(held.len() == 10 && held.is_sorted());
            held.into_iter().for_each(|id| counts[id] += 1);
        }
        assert!(counts.iter().all(|count| (57..=143).contains(count)), "{counts:?}");
    }
}
