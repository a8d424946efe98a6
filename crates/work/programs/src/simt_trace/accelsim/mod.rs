//! Accel-Sim's traces: a list of kernels (`kernelslist.g`) and a file of instruction lines for each.

mod inst;
mod kernel;

use std::fs::File;
use std::path::Path;

use config::Diagnostic;
use rustc_hash::FxHashMap;
use text::fault::{self, Bad};
use text::{Base, Input, Line, Lines, unsigned};

use super::Builder;

/// Functions of a trace: kernels of the same name are the same code.
#[derive(Default)]
struct Functions {
    known: FxHashMap<String, (u32, &'static str)>,
}

impl Functions {
    fn get(&mut self, name: &str) -> (u32, &'static str) {
        if let Some(known) = self.known.get(name) {
            return *known;
        }
        // Names of kernels live as long as the process, as those of the programs that are built in.
        let entry = (self.known.len() as u32, &*String::leak(name.to_owned()));
        self.known.insert(name.to_owned(), entry);
        entry
    }
}

/// Whether a text is the start of a list of kernels.
pub(super) fn is_list(start: &str) -> bool {
    let Some(line) = start.lines().map(str::trim).find(|line| !line.is_empty()) else { return false };
    line.starts_with("Memcpy") && line.contains(",0x")
        || line.starts_with("kernel") && line.contains(".trace")
}

/// Whether a text is the start of a kernel file.
pub(super) fn is_kernel(start: &str) -> bool {
    start
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .is_some_and(|line| line.starts_with("-kernel name"))
}

/// Reads one kernel file.
pub(super) fn read_kernel(path: &Path, builder: &mut Builder) -> Result<(), Diagnostic> {
    let mut functions = Functions::default();
    kernel::read(path, builder, &mut |name| functions.get(name))
}

/// Reads a list of kernels, and the kernels, which lie beside it.
pub(super) fn read_list(path: &Path, builder: &mut Builder) -> Result<(), Diagnostic> {
    let source = fault::name(path);
    let io = |error: std::io::Error| {
        Bad::new(format!("cannot read the list of kernels: {error}")).in_file(&source)
    };
    let mut lines = Lines::new(File::open(path).and_then(Input::new).map_err(io)?.bytes);
    let mut functions = Functions::default();
    loop {
        let number = lines.number() + 1;
        let line = match lines.next().map_err(io)? {
            Line::End => return Ok(()),
            Line::TooLong(text) => {
                return Err(Bad::new("a line longer than 64 KiB").in_line(&source, number, text));
            }
            Line::Text(text) => text.trim_ascii(),
        };
        let place = |bad: Bad| bad.in_line(&source, number, line);
        if line.is_empty() {
            continue;
        }
        if line.starts_with(b"Memcpy") {
            copy(line, builder).map_err(place)?;
            continue;
        }
        let Some(name) = std::str::from_utf8(line).ok().filter(|name| name.starts_with("kernel")) else {
            let help =
                "a line is `MemcpyHtoD,0x<address>,<bytes>` or the name of a kernel file, `kernel-1.traceg`";
            return Err(place(Bad::new("neither a copy nor a kernel").help(help)));
        };
        let file = path.with_file_name(name);
        if !file.is_file() {
            return Err(place(absent(path, name)));
        }
        kernel::read(&file, builder, &mut |name| functions.get(name))?;
    }
}

/// `MemcpyHtoD,0x<address>,<bytes>`. Copies to the host touch nothing that a kernel has not.
fn copy(line: &[u8], builder: &mut Builder) -> Result<(), Bad> {
    let mut fields = line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    let operation = fields.next().unwrap_or_default();
    let address = fields.next().and_then(|text| unsigned(text, Base::Hex));
    let bytes = fields.next().and_then(|text| unsigned(text, Base::Decimal));
    let (Some(address), Some(bytes), None) = (address, bytes, fields.next()) else {
        return Err(Bad::new("a copy is `MemcpyHtoD,0x<address>,<bytes>`"));
    };
    match operation {
        b"MemcpyHtoD" => builder.touched.buffer(address, bytes),
        b"MemcpyDtoH" => Ok(()),
        _ => {
            let given = String::from_utf8_lossy(operation).into_owned();
            Err(Bad::new(format!("unknown copy `{given}`")).nearest(&given, ["MemcpyHtoD", "MemcpyDtoH"]))
        }
    }
}

/// A kernel file of the list that is not there.
fn absent(list: &Path, name: &str) -> Bad {
    let beside = list.parent().and_then(|folder| std::fs::read_dir(folder).ok());
    let mut others: Vec<String> = beside
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    others.sort_unstable();
    Bad::new(format!("no kernel file `{name}` beside the list"))
        .nearest(name, others.iter().map(String::as_str))
}
