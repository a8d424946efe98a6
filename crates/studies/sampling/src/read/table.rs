//! Tables of one row a kernel: our kernel CSV and the traces of Nsight Systems.

use super::header::{Sizes, Table};
use super::ncu::Rows;
use super::{dims, number, size};
use crate::profile::{Dims, Format, Profile, check};
use config::Diagnostic;
use std::io::BufRead;

/// What a grid and a block look like.
const THREE: &str = "three whole numbers from 1, such as 564x1x1, or nothing";

pub(super) fn read<R: BufRead>(mut rows: Rows<R>, columns: &Table) -> Result<Profile, Diagnostic> {
    let mut profile = super::profile(rows.format);
    let mut starts = Vec::new();
    let mut others = 0_u64;
    while rows.next()? {
        let name = rows.text(columns.name, "name of the kernel")?;
        // Nsight Systems lists copies and fills among the kernels: `[CUDA memcpy Host-to-Device]`.
        if rows.format == Format::NsysGpuTrace && name.starts_with("[CUDA ") {
            others += 1;
            continue;
        }
        let start = real(&rows, columns.start, "start")?;
        if !start.is_finite() {
            return Err(rows.fault("the start is not a number", Some(columns.start), &["a real number"]));
        }
        let duration_ns = real(&rows, columns.duration, "duration")? * columns.unit_ns;
        check(duration_ns).map_err(|fault| rows.placed(fault, Some(columns.duration)))?;
        let (grid, block) = sizes(&rows, &columns.sizes)?;
        profile.push(name, grid, block, duration_ns)?;
        starts.push(start);
    }
    if others > 0 {
        profile.remark(format!("{others} copies and fills of memory are no kernels"));
    }
    if !rows.is_ended() {
        profile.remark("the last line has no line feed: is the file complete?".to_owned());
    }
    profile.sort_by_start(&starts);
    Ok(profile)
}

fn real<R: BufRead>(rows: &Rows<R>, column: usize, what: &str) -> Result<f64, Diagnostic> {
    let field = rows.field(column, what)?;
    if field.is_empty() {
        return Err(rows.fault(&format!("the {what} is missing"), Some(column), &["a real number"]));
    }
    number(field).ok_or_else(|| {
        let what = format!("the {what} is not a number: `{}`", String::from_utf8_lossy(field));
        rows.fault(&what, Some(column), &["a real number"])
    })
}

fn sizes<R: BufRead>(rows: &Rows<R>, columns: &Sizes) -> Result<(Option<Dims>, Option<Dims>), Diagnostic> {
    match columns {
        Sizes::Joined { grid, block } => Ok((joined(rows, *grid, "grid")?, joined(rows, *block, "block")?)),
        Sizes::Apart([grid @ .., bx, by, bz]) => {
            Ok((apart(rows, *grid, "grid")?, apart(rows, [*bx, *by, *bz], "block")?))
        }
    }
}

/// A grid or a block in one field.
pub(super) fn joined<R: BufRead>(
    rows: &Rows<R>,
    column: usize,
    what: &str,
) -> Result<Option<Dims>, Diagnostic> {
    let field = rows.field(column, what)?;
    dims(field).map_err(|()| {
        let what = format!("the {what} cannot be `{}`", String::from_utf8_lossy(field));
        rows.fault(&what, Some(column), &[THREE])
    })
}

fn apart<R: BufRead>(rows: &Rows<R>, columns: [usize; 3], what: &str) -> Result<Option<Dims>, Diagnostic> {
    let mut fields = [&b""[..]; 3];
    for (field, column) in fields.iter_mut().zip(columns) {
        *field = rows.field(column, what)?;
    }
    if fields.iter().all(|field| field.is_empty()) {
        return Ok(None);
    }
    match fields.map(size) {
        [Some(x), Some(y), Some(z)] => Ok(Some(Dims([x, y, z]))),
        sides => {
            let at = sides.iter().position(Option::is_none).unwrap_or_default();
            let what = format!("the {what} cannot have a side of `{}`", String::from_utf8_lossy(fields[at]));
            Err(rows.fault(&what, Some(columns[at]), &["a whole number from 1"]))
        }
    }
}
