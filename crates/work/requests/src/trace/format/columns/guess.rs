//! Units that a header does not say, by the rows behind it.

use crate::trace::field::{Field, Fields};
use crate::trace::human;
use crate::trace::options::TimeUnit;

/// More requests in a second than any storage answers, and fewer than a trace is recorded for: *chosen*.
const RATES: std::ops::RangeInclusive<f64> = 10.0..=2e7;
/// Seconds since 1970 of 2001 and of 2038.
const EPOCH: std::ops::Range<f64> = 1e9..2.15e9;
/// Requests in a second of a trace with times since 1970, at least: *chosen*, so that a counter of microseconds is none.
const SLOWEST: f64 = 0.01;
/// A FILETIME of 1970 and one of 2038, in units of 100 ns since 1601.
const FILETIMES: std::ops::Range<f64> = 1.164_447_36e17..1.379e17;

/// Times without a unit: the unit that is likely, and a sentence about it.
pub(super) fn time_unit(rows: &[Vec<u8>], column: usize, name: &str) -> (TimeUnit, String) {
    let mut times = Vec::with_capacity(rows.len());
    let mut decimal = false;
    for row in rows {
        let Some(field) = nth(row, column) else { continue };
        // As if they were seconds.
        if let Ok(ps) = field.moment(12) {
            decimal |= field.text.contains(&b'.');
            times.push(ps as f64 / 1e12);
        }
    }
    let first = times.iter().copied().fold(f64::INFINITY, f64::min);
    let last = times.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let within =
        |range: &std::ops::Range<f64>, per_s: f64| first / per_s >= range.start && last / per_s < range.end;
    let epochs = [
        (TimeUnit::Second, 1.0),
        (TimeUnit::Millisecond, 1e3),
        (TimeUnit::Microsecond, 1e6),
        (TimeUnit::Filetime, 1e7),
        (TimeUnit::Nanosecond, 1e9),
    ];
    let span = (last - first).max(0.0);
    let rate = |per_s: f64| times.len() as f64 / (span / per_s);
    let since_1970 = |per_s: f64| within(&EPOCH, per_s) && rate(per_s) >= SLOWEST;
    if let Some((unit, _)) = epochs.iter().find(|(_, per_s)| since_1970(*per_s)) {
        let what = format!("`{name}` has no unit: {} since 1970, by its values (--time-unit)", unit.name());
        return (*unit, what);
    }
    if within(&FILETIMES, 1.0) {
        let what = format!("`{name}` has no unit: 100 ns since 1601 (FILETIME), by its values (--time-unit)");
        return (TimeUnit::Filetime, what);
    }
    let order: &[(TimeUnit, f64)] = if decimal {
        &[(TimeUnit::Second, 1.0), (TimeUnit::Millisecond, 1e3), (TimeUnit::Microsecond, 1e6)]
    } else {
        &[
            (TimeUnit::Microsecond, 1e6),
            (TimeUnit::Nanosecond, 1e9),
            (TimeUnit::Millisecond, 1e3),
            (TimeUnit::Second, 1.0),
        ]
    };
    let (unit, per_s) = *order.iter().find(|(_, per_s)| RATES.contains(&rate(*per_s))).unwrap_or(&order[0]);
    let meaning = |unit: TimeUnit, per_s: f64| {
        let span = human::span((span / per_s * 1e12) as u128);
        format!("{} ({span}, {})", unit.name(), human::rate(rate(per_s)))
    };
    let others: Vec<String> = order
        .iter()
        .filter(|(other, _)| *other != unit)
        .map(|(unit, per_s)| meaning(*unit, *per_s))
        .collect();
    let what = if span > 0.0 {
        format!(
            "the header does not say the unit of `{name}`: {} is taken; it could be {}; --time-unit decides",
            meaning(unit, per_s),
            others.join(", or ")
        )
    } else {
        format!("the header does not say the unit of `{name}`: {} is taken; --time-unit decides", unit.name())
    };
    (unit, what)
}

/// Whether sizes without a unit are sectors, beside addresses that are: most of them are not multiples of a sector.
pub(super) fn in_sectors(rows: &[Vec<u8>], column: usize, sector: u64) -> bool {
    let sizes = rows.iter().filter_map(|row| nth(row, column)?.integer().ok());
    let (mut whole, mut other) = (0, 0);
    for size in sizes {
        *(if size.is_multiple_of(sector) { &mut whole } else { &mut other }) += 1;
    }
    other > whole
}

/// Whether all values of a column are codes: digits alone.
pub(super) fn has_codes(rows: &[Vec<u8>], column: usize) -> bool {
    let mut values = rows.iter().filter_map(|row| nth(row, column)).peekable();
    values.peek().is_some()
        && values.all(|value| !value.text.is_empty() && value.text.iter().all(u8::is_ascii_digit))
}

/// A column of a row.
fn nth(row: &[u8], column: usize) -> Option<Field<'_>> {
    let mut fields = Fields::commas(row);
    for _ in 0..column {
        fields.optional("column")?;
    }
    fields.optional("column")
}
