//! What Nsight Compute prints as CSV.

use super::field::{UNITS, grouped, unit_ns};
use super::header::{DURATION, Metrics, Raw};
use super::rows::Rows;
use super::table::joined;
use crate::profile::{Dims, Profile, check};
use config::Diagnostic;
use std::io::BufRead;

/// The name of the duration in the section `GPU Speed Of Light Throughput`.
const IN_SECTION: &str = "Duration";

/// A kernel of which not all rows are read.
struct Open {
    id: Vec<u8>,
    process: Vec<u8>,
    name: String,
    grid: Option<Dims>,
    block: Option<Dims>,
    duration_ns: Option<f64>,
}

/// One row a metric; the rows of a kernel follow each other.
pub(super) fn metrics<R: BufRead>(mut rows: Rows<R>, columns: &Metrics) -> Result<Profile, Diagnostic> {
    let mut profile = super::profile(rows.format);
    let mut open: Option<Open> = None;
    while rows.next()? {
        let id = rows.text(columns.id, "ID")?.as_bytes();
        let process = columns.process.map_or(Ok(&b""[..]), |column| rows.field(column, "process"))?;
        if !open.as_ref().is_some_and(|open| open.id == id && open.process == process) {
            let next = Open {
                id: id.to_vec(),
                process: process.to_vec(),
                name: rows.text(columns.name, "name of the kernel")?.to_owned(),
                grid: joined(&rows, columns.grid, "grid")?,
                block: joined(&rows, columns.block, "block")?,
                duration_ns: None,
            };
            if let Some(done) = open.replace(next) {
                close(&mut profile, done).map_err(|fault| rows.placed(fault, None))?;
            }
        }
        let metric = rows.field(columns.metric, "name of the metric")?;
        if metric != DURATION.as_bytes() && metric != IN_SECTION.as_bytes() {
            continue;
        }
        let unit = rows.text(columns.unit, "unit of the duration")?;
        let unit_ns = unit_ns(unit).ok_or_else(|| no_unit(&rows, unit, columns.unit))?;
        let duration_ns = duration(&rows, columns.value, unit_ns)?;
        if let Some(open) = &mut open {
            open.duration_ns.get_or_insert(duration_ns);
        }
    }
    if let Some(done) = open {
        close(&mut profile, done).map_err(|fault| rows.placed(fault, None))?;
    }
    Ok(profile)
}

fn close(profile: &mut Profile, done: Open) -> Result<(), Diagnostic> {
    let Some(duration_ns) = done.duration_ns else {
        let what = format!(
            "the kernel of ID {} (`{}`) has no duration: no row `{DURATION}` or `{IN_SECTION}` ends before the next kernel",
            String::from_utf8_lossy(&done.id),
            done.name
        );
        return Err(Diagnostic::new(what));
    };
    profile.push(&done.name, done.grid, done.block, duration_ns)
}

/// One row a kernel, after a row of units.
pub(super) fn raw<R: BufRead>(mut rows: Rows<R>, columns: &Raw) -> Result<Profile, Diagnostic> {
    let mut profile = super::profile(rows.format);
    if !rows.next()? {
        return Ok(profile);
    }
    let unit = rows.field(columns.duration, "unit of the duration")?;
    let unit = String::from_utf8_lossy(unit).into_owned();
    let Some(unit_ns) = unit_ns(&unit).filter(|_| rows.field(columns.id, "ID").is_ok_and(<[u8]>::is_empty))
    else {
        return Err(no_unit(&rows, &unit, columns.duration));
    };
    while rows.next()? {
        let name = rows.text(columns.name, "name of the kernel")?;
        let (grid, block) = (joined(&rows, columns.grid, "grid")?, joined(&rows, columns.block, "block")?);
        let duration_ns = duration(&rows, columns.duration, unit_ns)?;
        profile.push(name, grid, block, duration_ns)?;
    }
    Ok(profile)
}

fn duration<R: BufRead>(rows: &Rows<R>, column: usize, unit_ns: f64) -> Result<f64, Diagnostic> {
    let field = rows.field(column, "duration")?;
    if field.is_empty() {
        return Err(rows.fault("the duration is missing", Some(column), &["a real number"]));
    }
    let value = grouped(field).ok_or_else(|| {
        let what = format!("the duration is not a number: `{}`", String::from_utf8_lossy(field));
        rows.fault(
            &what,
            Some(column),
            &["a real number such as 1234.5 or 1,234.5: LC_ALL=C makes ncu print these"],
        )
    })?;
    let duration_ns = value * unit_ns;
    check(duration_ns).map_err(|fault| rows.placed(fault, Some(column)))?;
    Ok(duration_ns)
}

fn no_unit<R: BufRead>(rows: &Rows<R>, unit: &str, column: usize) -> Diagnostic {
    let fault =
        Diagnostic::new(format!("the duration has no unit of time, but `{unit}`")).allowed(unit, UNITS);
    rows.placed(fault, Some(column))
}
