//! Requests one by one, as rows: what a file of them and a table in memory have for columns, and which requests to keep.

mod keep;

pub use keep::{Keep, Keeper};

use crate::result::op_name;
use engine::Time;
use proto::{Account, ByHolder, Holder};
use requests::inject::Seen;
use ssd::device::MILESTONES;

/// What a column holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A whole number.
    Whole,
    /// A time in nanoseconds, exact to the picosecond.
    Time,
    /// One of a few words.
    Word,
}

/// A value of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cell {
    /// A whole number.
    Whole(u64),
    /// A time.
    Time(Time),
    /// A word.
    Word(&'static str),
    /// Nothing: the request has no account, or did not wait there.
    Empty,
}

/// Columns of every row: the request and its times; each milestone and the time outside the device; who was in the way; where.
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
/// Columns behind them.
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
    // As many as there are columns, by their sum above.
    std::array::from_fn(|_| all.next().unwrap_or((String::new(), Kind::Whole)))
}

/// A request as a row.
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

/// Who was in the way the longest, and for how long.
fn blocker(by: &ByHolder) -> [Cell; 2] {
    let longest = Holder::NAMES.into_iter().zip(by).reduce(|a, b| if b.1 > a.1 { b } else { a });
    match longest {
        Some((name, held)) if *held > 0 => [Cell::Word(name), Cell::Time(Time::from_ps(*held))],
        _ => [Cell::Empty; 2],
    }
}

#[cfg(test)]
mod tests {
    use super::{COLUMNS, Cell, columns, row};
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
}
