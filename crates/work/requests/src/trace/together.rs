//! Traces of several files: the parts of one trace, and traces that are read side by side for one device.

use std::path::{Path, PathBuf};

use config::{Diagnostic, Place};
use proto::IoOp;

use crate::trace::options::{Align, Remap, TraceOptions, Volumes};
use crate::trace::reader::{Clock, TraceReader};
use crate::trace::record::Extent;
use crate::trace::remap::{Places, fits};
use crate::trace::{human, scan::cannot_read};

/// Requests after which the length of a trace is estimated.
const GLANCE: u64 = 65_536;
/// Factor by which a trace may exceed the estimate from its beginning: *chosen*, so that a trace of a week is not
/// read twice.
const MARGIN: f64 = 16.0;
/// One day in picoseconds.
const DAY: u128 = 86_400_000_000_000_000;

/// Opens traces by their names, to be read side by side. `fit` is settled for all of them.
///
/// # Errors
/// As [`TraceReader::open`]; or if the offset between the clocks of the traces is unknown.
pub fn open_together(
    names: &[impl AsRef<Path>],
    options: &TraceOptions,
) -> Result<Vec<TraceReader>, Diagnostic> {
    let open = |name: &Path| TraceReader::of_parts(parts(name)?, options);
    let mut readers: Vec<TraceReader> =
        names.iter().map(|name| open(name.as_ref())).collect::<Result<_, _>>()?;
    for reader in &readers {
        refuse_untimed(reader, options)?;
    }
    let several = readers.len() > 1;
    if several && options.timed && options.align == Align::Clock {
        one_clock(&mut readers)?;
    }
    // Two traces are two volumes: they cannot both keep their recorded addresses.
    let mut all_fit = options.remap == Remap::Fit && (!several || options.volumes == Volumes::One);
    if options.capacity.is_some() {
        for reader in &readers {
            all_fit = look(reader, all_fit)?;
        }
    }
    let remap = match options.remap {
        Remap::Fit if all_fit => Remap::Error,
        Remap::Fit => Remap::Compact,
        said => said,
    };
    let places = Places::default();
    let shared = several && !remap.packs() && options.volumes == Volumes::Apart;
    for (number, reader) in (0..).zip(&mut readers) {
        reader.settle(remap, number, places.clone());
        if shared {
            let what = "shares the addresses of the device with the other traces; --remap compact separates them, --volumes one declares \
                        them one volume";
            reader.scan.notes_mut().remark(what.to_owned());
        }
    }
    Ok(readers)
}

/// Opens one trace.
pub(crate) fn open_one(name: &Path, options: &TraceOptions) -> Result<TraceReader, Diagnostic> {
    let mut readers = open_together(&[name], options)?;
    // One name makes one reader.
    readers.pop().ok_or_else(|| Diagnostic::new("no trace"))
}

/// Refuses to run a trace with an order but no times at its own times.
fn refuse_untimed(reader: &TraceReader, options: &TraceOptions) -> Result<(), Diagnostic> {
    let info = reader.scan.info();
    if !info.untimed || !options.timed || options.capacity.is_none() {
        return Ok(());
    }
    let place = Place { source: reader.scan.source().to_owned(), ..Place::default() };
    let what = format!("a trace of `{}` has an order but no times", info.name);
    Err(Diagnostic::new(what).at(place).help("--queue-depth N runs it in order, with N requests outstanding"))
}

/// Counts the times of all traces from the first request of all.
fn one_clock(readers: &mut [TraceReader]) -> Result<(), Diagnostic> {
    let formats: Vec<&str> = readers.iter().map(|reader| reader.scan.info().name).collect();
    if let Some(other) = formats.iter().position(|format| *format != formats[0]) {
        let (one, two) = (readers[0].scan.source(), readers[other].scan.source());
        let what = format!(
            "no common clock: times of `{}` ({one}) and `{}` ({two}) have different origins",
            formats[0], formats[other]
        );
        return Err(Diagnostic::new(what).help(
            "--align start starts each trace at time zero; `trace convert` writes them in one format; --queue-depth needs no times",
        ));
    }
    let firsts = readers.iter_mut().map(TraceReader::first_time).collect::<Result<Vec<_>, _>>()?;
    let Some(origin) = firsts.iter().flatten().min().copied() else { return Ok(()) };
    for (reader, first) in readers.iter_mut().zip(firsts) {
        reader.origin = Some(origin);
        let late = first.map_or(0, |first| first - origin);
        if late > 0 {
            let what = format!(
                "begins {} after the first request of all traces: traces keep their relative times (--align start starts each at zero)",
                human::span(late)
            );
            reader.scan.notes_mut().remark(what);
        }
    }
    Ok(())
}

/// Scans the files of a reader before it is used, as far as needed: whether all requests are of one volume and fit
/// the device, if `may_fit`; whether all are within the simulator's clock.
///
/// Bad lines are reported when they are read. A pipe cannot be scanned: it does not fit.
fn look(reader: &TraceReader, may_fit: bool) -> Result<bool, Diagnostic> {
    let (Some(files), Some(bytes)) = (&reader.files, reader.file_bytes) else { return Ok(false) };
    let options = TraceOptions { remap: Remap::Error, ..reader.options.clone() };
    let Ok(mut ahead) = TraceReader::of_parts(files.clone(), &options) else { return Ok(may_fit) };
    ahead.origin = reader.origin;
    let one = options.volumes == Volumes::One || ahead.scan.info().one_device;
    let capacity = options.capacity.unwrap_or(u64::MAX);
    let (mut fit, mut may_be_long, mut beyond) = (may_fit, options.timed, None);
    while fit || may_be_long {
        let Ok(Some((request, clock))) = ahead.upcoming() else { break };
        let place = Extent { offset: request.offset, bytes: request.bytes };
        fit &= one || ahead.notes().flows.names().len() <= 1;
        fit &= request.op == IoOp::Flush || fits(place, capacity);
        if let Clock::Beyond(ps) = clock {
            beyond = beyond.max(Some(ps));
        }
        if ahead.notes().delivered == GLANCE && beyond.is_none() {
            let done = ahead.scan.bytes_taken() as f64 / bytes.max(1) as f64;
            may_be_long =
                ahead.scan.span() as f64 / done * MARGIN > options.time_scale.unscaled(u64::MAX) as f64;
        }
    }
    let Some(ps) = beyond else { return Ok(fit) };
    let place = Place { source: reader.scan.source().to_owned(), ..Place::default() };
    let what = format!("the trace lasts {}: {}", human::span(ps), clock_ends());
    Err(Diagnostic::new(what).at(place).help(remedies(ps, &options)))
}

fn clock_ends() -> String {
    format!("the simulator's clock ends at {}", human::span(u128::from(u64::MAX)))
}

/// Returns the diagnostic of a trace that lasts `ps`, if it exceeds the simulator's clock.
pub(crate) fn too_long(ps: u128, options: &TraceOptions) -> Option<String> {
    (ps > options.time_scale.unscaled(u64::MAX))
        .then(|| format!("{}: {}", clock_ends(), remedies(ps, options)))
}

/// Returns ways to make a trace that lasts `ps` fit the clock.
pub(crate) fn remedies(ps: u128, options: &TraceOptions) -> String {
    let reach = options.time_scale.unscaled(u64::MAX);
    let times = u64::try_from(ps / reach.max(1) + 1).unwrap_or(u64::MAX);
    let scale = options.time_scale.shortened(times);
    let scale = scale.map_or(String::new(), |scale| format!("--time-scale {scale} makes it short enough; "));
    let end = options.start.unwrap_or_default().ps().saturating_add(reach);
    let end = match end / DAY {
        0 => format!("{}s", end / 1_000_000_000_000),
        days => format!("{days}d"),
    };
    format!(
        "{scale}--end {end} runs it up to there, --start begins at a later part; --queue-depth needs no times. Is the unit of time right \
         (--time-unit)?"
    )
}

// Files of a trace: one, `-` for standard input, or several parts: `A+B`, or `@LIST`, a text file with one part name
// per line.

/// Path of standard input.
const STDIN: &str = "/dev/stdin";

/// Returns the files of a trace in order: one if the name is that of a file or has no other meaning.
///
/// A file with the whole name takes precedence over parts. Names in a list are relative to its folder.
///
/// # Errors
/// If a part does not exist while others do, or a list cannot be read or is empty.
pub fn parts(name: &Path) -> Result<Vec<PathBuf>, Diagnostic> {
    let whole = || Ok(vec![name.to_owned()]);
    if name == Path::new("-") {
        return Ok(vec![PathBuf::from(STDIN)]);
    }
    let Some(text) = name.to_str().filter(|_| !name.exists()) else { return whole() };
    if let Some(list) = text.strip_prefix('@') {
        return listed_parts(Path::new(list));
    }
    let pieces: Vec<&str> = text.split('+').collect();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < pieces.len() {
        // A name may contain a `+`: take the shortest that exists.
        let ends = at + 1..=pieces.len();
        let there = |end: &usize| Path::new(&pieces[at..*end].join("+")).exists();
        let end = ends.into_iter().find(there);
        found.push((PathBuf::from(pieces[at..end.unwrap_or(at + 1)].join("+")), end.is_some()));
        at = end.unwrap_or(at + 1);
    }
    match found.iter().find(|(_, there)| !there) {
        None => Ok(found.into_iter().map(|(part, _)| part).collect()),
        Some(_) if found.iter().all(|(_, there)| !there) => whole(),
        Some((missing, _)) => {
            let what = format!("part {} of the trace does not exist", missing.display());
            Err(Diagnostic::new(what)
                .help("`A+B` reads A, then B, as one trace; `@LIST` takes the names from a file"))
        }
    }
}

fn listed_parts(list: &Path) -> Result<Vec<PathBuf>, Diagnostic> {
    let source = list.display().to_string();
    let text = std::fs::read_to_string(list).map_err(|error| cannot_read(&source, &error))?;
    let folder = list.parent().unwrap_or(Path::new(""));
    let names = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let parts: Vec<PathBuf> = names.map(|name| folder.join(name)).collect();
    if parts.is_empty() {
        return Err(Diagnostic::new("the list names no trace parts")
            .at(Place { source, ..Place::default() })
            .help("write one file name per line, relative to the list's folder"));
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_by_what_is_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        for name in ["a", "b", "c+d", "e+f", "e"] {
            std::fs::write(at(name), "").expect("a file");
        }
        std::fs::write(at("list"), "# parts\na\n\n b \n").expect("a file");
        let of = |text: &str| {
            let parts = parts(&at(text)).expect("parts");
            parts.iter().map(|part| part.display().to_string()).collect::<Vec<_>>()
        };
        let name = |name: &str| at(name).display().to_string();
        assert_eq!(of("a"), [name("a")]);
        assert_eq!(of("c+d"), [name("c+d")]);
        assert_eq!(of(&format!("a+{}", name("b"))), [name("a"), name("b")]);
        assert_eq!(of(&format!("c+d+{}+{}", name("e"), name("a"))), [name("c+d"), name("e"), name("a")]);
        // A file with the whole name takes precedence.
        assert_eq!(of("e+f"), [name("e+f")]);
        assert_eq!(of("none+nothing"), [name("none+nothing")]);
        let missing = parts(&at("a+nothing")).expect_err("a part is missing").to_string();
        assert!(missing.contains("part nothing"), "{missing}");
        assert_eq!(parts(Path::new("-")).expect("parts"), [PathBuf::from("/dev/stdin")]);
        let list = PathBuf::from(format!("@{}", name("list")));
        assert_eq!(parts(&list).expect("parts"), [at("a"), at("b")]);
        assert!(parts(Path::new("@nowhere/list")).is_err());
    }
}
