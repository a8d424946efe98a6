//! The header lines of tables: which format, and which column is what.

use super::{UNITS, unit_ns};
use crate::profile::Format;
use config::Diagnostic;

/// A header that was understood.
pub(super) struct Known {
    pub(super) format: Format,
    pub(super) layout: Header,
}

pub(super) enum Header {
    /// One row a kernel, its times and sizes in the row.
    Table(Table),
    /// One row a metric of a kernel.
    Metrics(Metrics),
    /// One row a kernel, units in a row of their own.
    Raw(Raw),
}

/// Columns of a table, from zero.
pub(super) struct Table {
    pub(super) start: usize,
    pub(super) duration: usize,
    /// Nanoseconds in a unit of the duration.
    pub(super) unit_ns: f64,
    pub(super) sizes: Sizes,
    pub(super) name: usize,
}

/// Where grid and block stand.
pub(super) enum Sizes {
    /// Three sizes in a column each.
    Joined { grid: usize, block: usize },
    /// A column a size: grid x, y, z, block x, y, z.
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

/// The metric that has the duration of a kernel.
pub(super) const DURATION: &str = "gpu__time_duration.sum";

const SIDES: [&str; 6] = ["GrdX", "GrdY", "GrdZ", "BlkX", "BlkY", "BlkZ"];

/// The formats of tables.
#[derive(Clone, Copy)]
pub(super) enum Layout {
    KernelCsv,
    GpuTrace,
    KernelTrace,
    Metrics,
    Raw,
}

impl Layout {
    /// The format that a line is the header of, whole or not.
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

    /// The columns.
    ///
    /// # Errors
    /// Columns that are not there, a unit that is none of time.
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

/// The names in a line, as far as it is text with two fields or more.
fn names(line: &[u8]) -> Option<Vec<String>> {
    if !line.contains(&b',') || str::from_utf8(line).is_err() {
        return None;
    }
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(line);
    let record = reader.records().next()?.ok()?;
    Some(record.iter().map(|name| name.trim().to_owned()).collect())
}

/// The column of a name; a name may be followed by its unit in brackets.
fn position(names: &[String], wanted: &str) -> Option<usize> {
    names.iter().position(|name| {
        name == wanted
            || name.strip_prefix(wanted).is_some_and(|rest| rest.starts_with(" (") && rest.ends_with(')'))
    })
}

/// Nanoseconds in the unit of a column: `Duration (us)`.
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
        Format::NsysGpuTrace | Format::NsysKernelTrace => {
            "a filtered export is not enough: export the whole report"
        }
        _ => "without durations there is nothing to sample by",
    };
    let mut diagnostic =
        Diagnostic::new(format!("the header ({format}) has no {plural} {}", quoted.join(", "))).help(help);
    diagnostic.allowed = wanted.iter().map(|name| (*name).to_owned()).collect();
    diagnostic
}
