//! Requests one by one, in a file: as CSV with a header line, or as Parquet.

#[cfg(feature = "parquet")]
mod parquet;

use super::Sink;
use crate::options::at;
use crate::output::Fault;
use config::Diagnostic;
use machine::result::requests::{COLUMNS, Cell, Keep, Keeper, columns, row};
use proto::Account;
use requests::inject::{Observer, Seen};
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use timeline::window;

/// File of requests being written. Warm-up is included; rows are in order of completion.
#[derive(Clone)]
pub(crate) struct RequestFile(Rc<RefCell<State>>);

struct State {
    keeper: Keeper<(Seen, Option<Account>)>,
    file: File,
}

/// Output format, chosen by the extension of the file's name.
enum File {
    Csv(Sink),
    #[cfg(feature = "parquet")]
    Parquet(Box<parquet::Rows>),
}

impl File {
    fn create(path: &Path) -> Result<File, Fault> {
        match path.extension().and_then(|end| end.to_str()) {
            Some("csv") => create_csv(path).map(File::Csv),
            #[cfg(feature = "parquet")]
            Some("parquet") => parquet::Rows::create(path).map(|rows| File::Parquet(Box::new(rows))),
            #[cfg(not(feature = "parquet"))]
            Some("parquet") => Err(Fault::Input(at(
                "--requests",
                &path.display().to_string(),
                Diagnostic::new("this program was built without Parquet")
                    .help("write a .csv file, or build it with `--features parquet`"),
            ))),
            _ => Err(Fault::Input(at(
                "--requests",
                &path.display().to_string(),
                Diagnostic::new(
                    "the extension of the file's name selects the format, and this one is unknown",
                )
                .help("name it .csv or .parquet"),
            ))),
        }
    }

    fn write(&mut self, row: &[Cell; COLUMNS]) {
        match self {
            File::Csv(sink) => write_csv(sink, row),
            #[cfg(feature = "parquet")]
            File::Parquet(rows) => rows.write(row),
        }
    }

    fn finish(&mut self) -> Result<(), Fault> {
        match self {
            File::Csv(sink) => sink.finish(),
            #[cfg(feature = "parquet")]
            File::Parquet(rows) => rows.finish(),
        }
    }
}

/// Parses which requests to keep: `all`, `sample=10000`, `slowest=1000`, `window=1ms..2ms`.
///
/// # Errors
/// The text is anything else.
pub(crate) fn keep(text: &str) -> Result<Keep, Fault> {
    let fault = |what: String| {
        let help = "give `all`, `sample=10000`, `slowest=1000` or `window=1ms..2ms`";
        Fault::Input(at("--requests-keep", text, Diagnostic::new(what).help(help)))
    };
    let (word, value) = text.split_once('=').map_or((text, None), |(word, value)| (word, Some(value)));
    let number = || match value.and_then(|value| value.parse::<usize>().ok()) {
        Some(number) if number > 0 => Ok(number),
        _ => Err(fault(format!("`{word}` takes a whole number, at least 1, as in `{word}=1000`"))),
    };
    match (word, value) {
        ("all", None) => Ok(Keep::All),
        ("sample", _) => number().map(Keep::Sample),
        ("slowest", _) => number().map(Keep::Slowest),
        ("window", Some(value)) => window(value).map(|(from, to)| Keep::Window(from, to)).map_err(fault),
        _ => Err(fault(match config::diag::nearest(word, ["all", "sample", "slowest", "window"]) {
            Some(near) => format!("unknown value `{word}`; did you mean `{near}`?"),
            None => format!("unknown value `{word}`"),
        })),
    }
}

impl RequestFile {
    /// Creates the file.
    ///
    /// # Errors
    /// The file cannot be created.
    pub(crate) fn create(path: &Path, keep: Keep, seed: u64) -> Result<RequestFile, Fault> {
        let state = State { keeper: Keeper::new(keep, seed), file: File::create(path)? };
        Ok(RequestFile(Rc::new(RefCell::new(state))))
    }

    /// Writes all held requests.
    ///
    /// # Errors
    /// The file is incomplete.
    pub(crate) fn finish(&self) -> Result<(), Fault> {
        let State { keeper, file } = &mut *self.0.borrow_mut();
        for (seen, account) in keeper.held() {
            file.write(&row(&seen, account.as_ref()));
        }
        file.finish()
    }
}

impl Observer for RequestFile {
    fn completed(&mut self, seen: &Seen, account: Option<&Account>) {
        let State { keeper, file } = &mut *self.0.borrow_mut();
        if let Some((seen, account)) = keeper.offer(seen.completed, seen.latency(), (*seen, account.copied()))
        {
            file.write(&row(&seen, account.as_ref()));
        }
    }
}

/// Creates the file with its header line.
///
/// # Errors
/// The file cannot be created.
fn create_csv(path: &Path) -> Result<Sink, Fault> {
    let mut sink = Sink::create(path)?;
    let names = columns().map(|(name, _)| name);
    sink.write(format_args!("{}\n", names.join(",")));
    Ok(sink)
}

/// Writes a request.
fn write_csv(sink: &mut Sink, row: &[Cell; COLUMNS]) {
    for (at, cell) in row.iter().enumerate() {
        let end = if at + 1 == COLUMNS { "\n" } else { "," };
        match cell {
            Cell::Whole(number) => sink.write(format_args!("{number}{end}")),
            Cell::Time(time) => sink.write(format_args!("{}.{:03}{end}", time.ps() / 1000, time.ps() % 1000)),
            Cell::Word(word) => sink.write(format_args!("{word}{end}")),
            Cell::Empty => sink.write(format_args!("{end}")),
        }
    }
}
