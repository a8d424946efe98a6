//! Traces of Accel-Sim: a list of kernels (`kernelslist.g`), and a file for each of them with one line per
//! instruction.

mod kernel;

use std::fs::File;
use std::path::Path;

use config::Diagnostic;
use rustc_hash::FxHashMap;
use text::{Base, Input, Line, Lines, unsigned};
use text::{
    Fields,
    fault::{self, Bad},
};

use super::{Builder, Windows};
use crate::simt_trace::{
    code::{Static, WarpWriter, register, sources},
    opcode::{self, Class},
};

/// Functions of a trace: kernels with equal names have the same code.
#[derive(Default)]
struct Functions {
    known: FxHashMap<String, (u32, &'static str)>,
}

impl Functions {
    fn get(&mut self, name: &str) -> (u32, &'static str) {
        if let Some(known) = self.known.get(name) {
            return *known;
        }
        // Kernel names live as long as the process, like those of built-in programs.
        let entry = (self.known.len() as u32, &*String::leak(name.to_owned()));
        self.known.insert(name.to_owned(), entry);
        entry
    }
}

/// Returns true if a text is the start of a list of kernels.
pub(super) fn is_list(start: &str) -> bool {
    let Some(line) = start.lines().map(str::trim).find(|line| !line.is_empty()) else { return false };
    line.starts_with("Memcpy") && line.contains(",0x")
        || line.starts_with("kernel") && line.contains(".trace")
}

/// Returns true if a text is the start of a kernel file.
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

/// Reads a list of kernels, and the kernels beside it.
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

/// Reads `MemcpyHtoD,0x<address>,<bytes>`. Copies to the host touch only memory that a kernel has touched.
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

/// Returns the diagnostic of a missing kernel file of the list.
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

// Instruction lines: `[line] PC mask ndst [Rn] opcode nsrc [Rn …] width [mode addresses] [immediate]`.

/// Maximum registers on a line, as in the tracer (`MAX_SRC` is 5 since version 4).
const MOST_SOURCES: u64 = 5;

/// Reader of a kernel's instruction lines, with those known so far.
struct InstLines {
    function: u32,
    windows: Windows,
    line_numbers: bool,
    /// Registers and opcode of the instruction at each address, as text, and their meaning.
    known: FxHashMap<u32, (Box<[u8]>, Static)>,
    addresses: Vec<u64>,
}

impl InstLines {
    /// Creates a reader of the lines of a kernel whose function has this number.
    fn new(function: u32, windows: Windows, line_numbers: bool) -> InstLines {
        InstLines { function, windows, line_numbers, known: FxHashMap::default(), addresses: Vec::new() }
    }

    /// Reads a line from its fields and appends it to the warp.
    fn read(&mut self, fields: &mut Fields, builder: &mut Builder, warp: &mut WarpWriter) -> Result<(), Bad> {
        if self.line_numbers {
            fields.number("source line", Base::Decimal)?;
        }
        let at = fields.at();
        let pc = fields.number("PC", Base::Hex)?;
        let pc = u32::try_from(pc).map_err(|_| Bad::new("the PC has more than 32 bits").at(at))?;
        let at = fields.at();
        let mask = fields.number("mask", Base::Hex)?;
        let mask = u32::try_from(mask).map_err(|_| Bad::new("a mask of more than 32 lanes").at(at))?;
        let start = fields.at();
        let inst = self.inst(pc, fields, builder)?;
        let width = fields.number("memory width", Base::Decimal)?;
        self.addresses.clear();
        if width > 0 {
            self.read_addresses(mask, fields)?;
        }
        // Versions 3 and 4 write no immediate.
        if !fields.rest().is_empty() {
            // Of 64 bits, signed or not.
            fields.signed::<i128>("immediate")?;
        }
        fields.end()?;
        let Some(window) = inst.class.window().filter(|_| mask != 0) else {
            builder.push(warp, inst, mask, None);
            return Ok(());
        };
        if width == 0 {
            return Err(Bad::new("an access without addresses").at(start));
        }
        let place = builder
            .place(window, self.windows, inst.width, &mut self.addresses)
            .map_err(|bad| bad.at(start))?;
        builder.push(warp, inst, mask, Some((place, &self.addresses)));
        Ok(())
    }

    /// Returns the instruction given by registers and opcode. Most lines repeat a known one.
    fn inst(&mut self, pc: u32, fields: &mut Fields, builder: &mut Builder) -> Result<Static, Bad> {
        let rest = fields.rest();
        if let Some((text, inst)) = self.known.get(&pc)
            && rest.starts_with(text)
            && rest.get(text.len()).is_some_and(u8::is_ascii_whitespace)
        {
            fields.skip(text.len());
            return Ok(*inst);
        }
        let start = fields.at();
        let mut to = 0;
        for _ in 0..fields.count("number of destinations", 1)? {
            to = read_register(fields)?;
        }
        let at = fields.at();
        let opcode = String::from_utf8_lossy(fields.next("opcode")?);
        let class = class(&opcode).map_err(|bad| bad.at(at))?;
        let mut from = [0; MOST_SOURCES as usize];
        for register in from.iter_mut().take(fields.count("number of sources", MOST_SOURCES)?) {
            *register = read_register(fields)?;
        }
        let address = builder.code.address(self.function, u64::from(pc))?;
        let width = if class.is_access() { opcode::width(&opcode) } else { 0 };
        let inst = Static { class, width, to, from: sources(from), pc: address };
        let length = fields.at() - start;
        let text = rest[..length.min(rest.len())].trim_ascii_end();
        self.known.insert(pc, (text.into(), inst));
        Ok(inst)
    }

    /// Reads one address for each lane of the mask, in any of the notations.
    fn read_addresses(&mut self, mask: u32, fields: &mut Fields) -> Result<(), Bad> {
        let lanes = mask.count_ones() as usize;
        let at = fields.at();
        match fields.number("address mode", Base::Decimal)? {
            0 => {
                for _ in 0..lanes {
                    self.addresses.push(fields.number("address", Base::Hex)?);
                }
            }
            1 => {
                let base = fields.number("base address", Base::Hex)?;
                let stride: i64 = fields.signed("stride")?;
                // The tracer writes a stride only if the active lanes are consecutive.
                let shifted = u64::from(mask >> mask.trailing_zeros().min(31));
                if shifted & (shifted + 1) != 0 {
                    return Err(Bad::new(format!(
                        "a stride over the lanes of mask {mask:08x}, which has gaps"
                    ))
                    .at(at));
                }
                let address = |n: usize| base.wrapping_add_signed(stride.wrapping_mul(n as i64));
                self.addresses.extend((0..lanes).map(address));
            }
            2 => {
                let mut address = fields.number("base address", Base::Hex)?;
                for lane in 0..lanes {
                    if lane > 0 {
                        address = address.wrapping_add_signed(fields.signed("address difference")?);
                    }
                    self.addresses.push(address);
                }
            }
            mode => {
                let modes = "0 is a list, 1 a base and a stride, 2 a base and differences";
                return Err(Bad::new(format!("unknown address mode {mode}")).at(at).help(modes));
            }
        }
        Ok(())
    }
}

/// Reads `R0` to `R255`; the last is the zero register.
fn read_register(fields: &mut Fields) -> Result<u8, Bad> {
    let at = fields.at();
    let text = fields.next("register")?;
    std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.strip_prefix('R')?.parse().ok())
        .and_then(register)
        .ok_or_else(|| Bad::new(format!("`{}` is not a register R0 to R255", text.escape_ascii())).at(at))
}

/// Returns the class of an opcode, if it can be executed from a trace.
fn class(opcode: &str) -> Result<Class, Bad> {
    let stem = opcode.split('.').next().unwrap_or_default();
    match opcode::class(opcode) {
        None => Err(Bad::new(format!("unknown opcode `{opcode}`")).nearest(stem, opcode::names())),
        Some(Class::Unreadable(why)) => Err(Bad::new(format!("`{opcode}` {why}"))),
        Some(class) => Ok(class),
    }
}
