//! Tables of one row per kernel, the kernel CSV and the traces of Nsight Systems: header lines, which identify the
//! format and the columns, and rows.

use super::ncu::Rows;
use super::{UNITS, dims, number, size, unit_ns};
use crate::profile::{Dims, Format, Profile, check};
use config::Diagnostic;
use std::io::BufRead;

/// Parsed header.
pub(super) struct Known {
    pub(super) format: Format,
    pub(super) layout: Header,
}

pub(super) enum Header {
    /// One row per kernel, with its times and sizes.
    Table(Table),
    /// One row per metric of a kernel.
    Metrics(Metrics),
    /// One row per kernel, units in a row of their own.
    Raw(Raw),
}

/// Columns of a table, from zero.
pub(super) struct Table {
    pub(super) start: usize,
    pub(super) duration: usize,
    /// Nanoseconds per unit of the duration.
    pub(super) unit_ns: f64,
    pub(super) sizes: Sizes,
    pub(super) name: usize,
}

/// Columns of grid and block.
pub(super) enum Sizes {
    /// One column each, with three sizes.
    Joined { grid: usize, block: usize },
    /// One column per size: grid x, y, z, block x, y, z.
    Apart([usize; 6]),
}

/// Columns of `ncu --csv`.
pub(super) struct Metrics {
    pub(super) id: usize,
    pub(super) process: Option<usize>,
    pub(super) name: usize,
    pub(super) grid: usize,
    pub(super) block: usize,
    pub(super) metric: usize,
    pub(super) unit: usize,
    pub(super) value: usize,
}

/// Columns of `ncu --csv --page raw`.
pub(super) struct Raw {
    pub(super) id: usize,
    pub(super) name: usize,
    pub(super) grid: usize,
    pub(super) block: usize,
    pub(super) duration: usize,
}

/// Metric with the duration of a kernel.
pub(super) const DURATION: &str = "gpu__time_duration.sum";

const SIDES: [&str; 6] = ["GrdX", "GrdY", "GrdZ", "BlkX", "BlkY", "BlkZ"];

/// Formats of tables.
#[derive(Clone, Copy)]
pub(super) enum Layout {
    KernelCsv,
    GpuTrace,
    KernelTrace,
    Metrics,
    Raw,
}

impl Layout {
    /// Detects the format from a header line, complete or not.
    pub(super) fn recognise(line: &[u8]) -> Option<Layout> {
        let names = names(line)?;
        let has = |name: &str| position(&names, name).is_some();
        let count = |wanted: &[&str]| wanted.iter().filter(|name| has(name)).count();
        if count(&["start_us", "dur_us", "grid", "block", "name"]) >= 3 {
            Some(Layout::KernelCsv)
        } else if count(&SIDES) >= 4 {
            Some(Layout::GpuTrace)
        } else if count(&["Kernel Start", "Kernel Dur", "GridXYZ", "BlockXYZ", "Kernel Name"]) >= 3 {
            Some(Layout::KernelTrace)
        } else if has("Kernel Name") && count(&["Metric Name", "Metric Value"]) >= 1 {
            Some(Layout::Metrics)
        } else if has("Kernel Name") && count(&["ID", "Grid Size", "Block Size", DURATION]) >= 2 {
            Some(Layout::Raw)
        } else {
            None
        }
    }

    /// Parses the columns.
    ///
    /// # Errors
    /// Columns are missing, or a unit is not one of time.
    pub(super) fn header(self, line: &[u8]) -> Result<Known, Diagnostic> {
        let names = names(line).unwrap_or_default();
        let at = |name: &str| position(&names, name).unwrap_or_default();
        let require = |format: Format, wanted: &[&str]| {
            let missing: Vec<&str> =
                wanted.iter().copied().filter(|name| position(&names, name).is_none()).collect();
            if missing.is_empty() { Ok(format) } else { Err(incomplete(format, &missing, wanted)) }
        };
        let joined = |grid, block| Sizes::Joined { grid: at(grid), block: at(block) };
        Ok(match self {
            Layout::KernelCsv => Known {
                format: require(Format::KernelCsv, &["start_us", "dur_us", "grid", "block", "name"])?,
                layout: Header::Table(Table {
                    start: at("start_us"),
                    duration: at("dur_us"),
                    unit_ns: 1e3,
                    sizes: joined("grid", "block"),
                    name: at("name"),
                }),
            },
            Layout::GpuTrace => Known {
                format: require(
                    Format::NsysGpuTrace,
                    &[&["Start", "Duration", "Name"], &SIDES[..]].concat(),
                )?,
                layout: Header::Table(Table {
                    start: at("Start"),
                    duration: at("Duration"),
                    unit_ns: unit(&names[at("Duration")])?,
                    sizes: Sizes::Apart(SIDES.map(at)),
                    name: at("Name"),
                }),
            },
            Layout::KernelTrace => {
                let wanted = ["Kernel Start", "Kernel Dur", "GridXYZ", "BlockXYZ", "Kernel Name"];
                Known {
                    format: require(Format::NsysKernelTrace, &wanted)?,
                    layout: Header::Table(Table {
                        start: at("Kernel Start"),
                        duration: at("Kernel Dur"),
                        unit_ns: unit(&names[at("Kernel Dur")])?,
                        sizes: joined("GridXYZ", "BlockXYZ"),
                        name: at("Kernel Name"),
                    }),
                }
            }
            Layout::Metrics => {
                let wanted = [
                    "ID",
                    "Kernel Name",
                    "Grid Size",
                    "Block Size",
                    "Metric Name",
                    "Metric Unit",
                    "Metric Value",
                ];
                Known {
                    format: require(Format::NcuMetrics, &wanted)?,
                    layout: Header::Metrics(Metrics {
                        id: at("ID"),
                        process: position(&names, "Process ID"),
                        name: at("Kernel Name"),
                        grid: at("Grid Size"),
                        block: at("Block Size"),
                        metric: at("Metric Name"),
                        unit: at("Metric Unit"),
                        value: at("Metric Value"),
                    }),
                }
            }
            Layout::Raw => Known {
                format: require(Format::NcuRaw, &["ID", "Kernel Name", "Grid Size", "Block Size", DURATION])?,
                layout: Header::Raw(Raw {
                    id: at("ID"),
                    name: at("Kernel Name"),
                    grid: at("Grid Size"),
                    block: at("Block Size"),
                    duration: at(DURATION),
                }),
            },
        })
    }
}

/// Names in a line, if it is text with two fields or more.
fn names(line: &[u8]) -> Option<Vec<String>> {
    if !line.contains(&b',') || str::from_utf8(line).is_err() {
        return None;
    }
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(line);
    let record = reader.records().next()?.ok()?;
    Some(record.iter().map(|name| name.trim().to_owned()).collect())
}

/// Column of a name; a name may be followed by its unit in brackets.
fn position(names: &[String], wanted: &str) -> Option<usize> {
    names.iter().position(|name| {
        name == wanted
            || name.strip_prefix(wanted).is_some_and(|rest| rest.starts_with(" (") && rest.ends_with(')'))
    })
}

/// Nanoseconds per unit of a column such as `Duration (us)`.
fn unit(column: &str) -> Result<f64, Diagnostic> {
    let name = column.rsplit_once('(').map_or("", |(_, unit)| unit.trim_end_matches(')'));
    unit_ns(name).ok_or_else(|| {
        Diagnostic::new(format!("the column `{column}` has no unit of time"))
            .allowed(name, UNITS)
            .help("Nsight Systems writes the unit in brackets: `Duration (ns)`")
    })
}

fn incomplete(format: Format, missing: &[&str], wanted: &[&str]) -> Diagnostic {
    let quoted: Vec<String> = missing.iter().map(|name| format!("`{name}`")).collect();
    let plural = if missing.len() > 1 { "columns" } else { "column" };
    let help = match format {
        Format::NcuRaw | Format::NcuMetrics => {
            "`ncu --csv --metrics gpu__time_duration.sum` of Nsight Compute 2022.2 and later has all of them"
        }
        Format::NsysGpuTrace | Format::NsysKernelTrace => "export the whole report, not a filtered one",
        _ => "sampling needs the duration of each kernel",
    };
    let mut diagnostic =
        Diagnostic::new(format!("the header ({format}) has no {plural} {}", quoted.join(", "))).help(help);
    diagnostic.allowed = wanted.iter().map(|name| (*name).to_owned()).collect();
    diagnostic
}

/// Allowed text of a grid or a block.
const THREE: &str = "three whole numbers from 1, such as 564x1x1, or nothing";

pub(super) fn read_table<R: BufRead>(mut rows: Rows<R>, columns: &Table) -> Result<Profile, Diagnostic> {
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
        profile.remark(format!("{others} memory copies and fills are not kernels"));
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

/// Parses a grid or a block in one field.
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
