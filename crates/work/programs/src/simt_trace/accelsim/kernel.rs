//! A kernel file: its head, then thread blocks of warps of instruction lines (`.traceg`), or lines that name their
//! block and warp (`.trace`, as the tracer writes them before `post-traces-processing`).

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use config::Diagnostic;
use proto::simt::LANES;
use text::{Base, Fields, Input, Line, Lines};
use text::{
    fault::{self, Bad},
    unsigned,
};

use super::super::{Builder, Grid, Recorded, Windows, blocks, threads};
use super::InstLines;
use crate::program::Kernel;
use crate::simt_trace::code::WarpWriter;

/// Reads a kernel file into the trace. `function` returns a function's number by its name.
pub(super) fn read(
    path: &Path,
    builder: &mut Builder,
    function: &mut impl FnMut(&str) -> (u32, &'static str),
) -> Result<(), Diagnostic> {
    let source = fault::name(path);
    let io = |error: std::io::Error, line: u64| {
        Bad::new(format!("cannot read the kernel file: {error}")).in_line(&source, line, b"")
    };
    let input = File::open(path).and_then(Input::new).map_err(|error| io(error, 0))?;
    let mut lines = Lines::new(input.bytes);
    let mut head = HeaderReader::default();
    let mut body: Option<Body> = None;
    loop {
        let number = lines.number() + 1;
        let line = match lines.next().map_err(|error| io(error, number))? {
            Line::End => break,
            Line::TooLong(text) => {
                return Err(Bad::new("a line longer than 64 KiB").in_line(&source, number, text));
            }
            Line::Text(text) => text.trim_ascii(),
        };
        let taken = match &mut body {
            _ if line.is_empty() => Ok(()),
            None if line[0] == b'-' => head.line(line),
            None => head.finish().and_then(|header| {
                let mut begun = Body::new(header, function);
                begun.line(line, builder)?;
                body = Some(begun);
                Ok(())
            }),
            Some(body) => body.line(line, builder),
        };
        taken.map_err(|bad| bad.in_line(&source, number, line))?;
    }
    let body = match body {
        Some(body) => body,
        None => return Err(Bad::new("not a kernel: the file ends within its head").in_file(&source)),
    };
    let kernel = body.finish(builder).map_err(|bad| bad.in_file(&source))?;
    builder.kernel(kernel);
    Ok(())
}

/// Position of the reader in a grouped file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Between thread blocks.
    Outside,
    /// After `#BEGIN_TB`.
    Begun,
    /// In a block, before a warp or between two.
    Block(u32),
    /// After `warp = `.
    Warp(u32, u32),
    /// In a warp, with this many of its instructions left.
    Insts(u32, u32, u64),
}

struct Body {
    header: Header,
    name: &'static str,
    warps: u32,
    lines: InstLines,
    state: State,
    /// Number of warps of the current block that have been read.
    read: u64,
    writer: WarpWriter,
    grid: Grid,
    /// Warps of a file that is not grouped.
    loose: BTreeMap<(u32, u32), WarpWriter>,
}

impl Body {
    fn new(header: Header, function: &mut impl FnMut(&str) -> (u32, &'static str)) -> Body {
        let (number, name) = function(&header.name);
        Body {
            name,
            warps: header.threads.div_ceil(LANES as u32),
            lines: InstLines::new(number, header.windows, header.line_numbers),
            header,
            state: State::Outside,
            read: 0,
            writer: WarpWriter::default(),
            grid: Grid::default(),
            loose: BTreeMap::new(),
        }
    }

    fn line(&mut self, line: &[u8], builder: &mut Builder) -> Result<(), Bad> {
        match line {
            b"#BEGIN_TB" => return self.begin(),
            b"#END_TB" => return self.end(builder),
            [b'#', ..] => return Ok(()),
            _ => {}
        }
        if let Some(value) = assigned(line, b"thread block") {
            return self.block(value);
        }
        if let Some(value) = assigned(line, b"warp") {
            return self.warp(value, builder);
        }
        if let Some(value) = assigned(line, b"insts") {
            return self.insts(value);
        }
        match self.state {
            State::Insts(block, warp, left @ 1..) => {
                self.lines.read(&mut Fields::new(line), builder, &mut self.writer)?;
                self.state = State::Insts(block, warp, left - 1);
                Ok(())
            }
            State::Insts(_, warp, 0) => {
                Err(Bad::new(format!("warp {warp} has more instructions than `insts = `")))
            }
            State::Outside if self.read == 0 => self.loose_line(line, builder),
            _ => Err(Bad::new("an instruction outside a warp")),
        }
    }

    fn begin(&mut self) -> Result<(), Bad> {
        if !self.loose.is_empty() {
            return Err(Bad::new("a thread block after instructions that name their own block and warp"));
        }
        if self.state != State::Outside {
            return Err(Bad::new("a thread block begins before the previous one ends"));
        }
        self.state = State::Begun;
        Ok(())
    }

    /// Reads `x,y,z` of a block.
    fn block(&mut self, value: &str) -> Result<(), Bad> {
        if self.state != State::Begun {
            return Err(Bad::new("`thread block = ` must be the first line of its block"));
        }
        let block =
            triple(value).ok_or_else(|| Bad::new(format!("`{value}` is not a thread block x,y,z")))?;
        self.state = State::Block(self.number(block)?);
        self.read = 0;
        Ok(())
    }

    /// Returns the number of a block in the grid, x fastest.
    fn number(&self, [x, y, z]: [u64; 3]) -> Result<u32, Bad> {
        let [width, height, depth] = self.header.grid;
        if x >= width || y >= height || z >= depth {
            let what = format!("thread block {x},{y},{z} outside the grid of {width} x {height} x {depth}");
            return Err(Bad::new(what));
        }
        Ok(((z * height + y) * width + x) as u32)
    }

    fn warp(&mut self, value: &str, builder: &mut Builder) -> Result<(), Bad> {
        let block = self.close_warp(builder)?;
        let warp = value.parse().ok().filter(|warp| *warp < self.warps);
        let Some(warp) = warp else {
            let (threads, last) = (self.header.threads, self.warps - 1);
            let what =
                format!("`{value}` is not a warp of a block of {threads} threads: expected 0 to {last}");
            return Err(Bad::new(what));
        };
        self.state = State::Warp(block, warp);
        Ok(())
    }

    fn insts(&mut self, value: &str) -> Result<(), Bad> {
        let State::Warp(block, warp) = self.state else {
            return Err(Bad::new("`insts = ` must be the line after `warp = `"));
        };
        let count =
            value.parse().map_err(|_| Bad::new(format!("`{value}` is not a number of instructions")))?;
        self.state = State::Insts(block, warp, count);
        Ok(())
    }

    /// Ends the warp being read, if any; returns the current block.
    fn close_warp(&mut self, builder: &mut Builder) -> Result<u32, Bad> {
        match self.state {
            State::Block(block) => Ok(block),
            State::Insts(block, warp, 0) => {
                self.grid.add(block, warp, builder.paths.take(&mut self.writer));
                self.read += 1;
                Ok(block)
            }
            State::Insts(_, warp, left) => {
                Err(Bad::new(format!("warp {warp} has {left} instructions fewer than `insts = ` says")))
            }
            State::Warp(_, warp) => Err(Bad::new(format!("warp {warp} has no `insts = `"))),
            State::Outside | State::Begun => Err(Bad::new("a warp outside a thread block")),
        }
    }

    fn end(&mut self, builder: &mut Builder) -> Result<(), Bad> {
        self.close_warp(builder)?;
        if self.read != u64::from(self.warps) {
            let what = format!("the thread block has {} warps of {}", self.read, self.warps);
            return Err(Bad::new(what));
        }
        self.state = State::Outside;
        Ok(())
    }

    /// Reads `x y z warp` before the instruction.
    fn loose_line(&mut self, line: &[u8], builder: &mut Builder) -> Result<(), Bad> {
        let mut fields = Fields::new(line);
        let mut block = [0; 3];
        for (n, axis) in block.iter_mut().zip(["block's x", "block's y", "block's z"]) {
            *n = fields.number(axis, Base::Decimal)?;
        }
        let block = self.number(block)?;
        let warp = fields.count("warp", u64::from(self.warps) - 1)? as u32;
        let writer = self.loose.entry((block, warp)).or_default();
        self.lines.read(&mut fields, builder, writer)
    }

    fn finish(mut self, builder: &mut Builder) -> Result<Recorded, Bad> {
        if self.state != State::Outside {
            return Err(Bad::new("the file ends within a thread block: it is truncated"));
        }
        for ((block, warp), mut writer) in std::mem::take(&mut self.loose) {
            self.grid.add(block, warp, builder.paths.take(&mut writer));
        }
        let Header { blocks, threads, registers, shared, .. } = self.header;
        let warps = self.grid.finish(blocks, self.warps)?;
        Ok(Recorded { kernel: Kernel { name: self.name, blocks, threads, registers, shared }, warps })
    }
}

/// Returns the value of a `key = value` line.
fn assigned<'a>(line: &'a [u8], key: &[u8]) -> Option<&'a str> {
    let rest = line.strip_prefix(key)?.trim_ascii_start().strip_prefix(b"=")?;
    std::str::from_utf8(rest.trim_ascii()).ok()
}

// Head of a kernel file: `-key = value` lines.

/// Content of the head of a kernel file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Header {
    pub(super) name: String,
    pub(super) grid: [u64; 3],
    pub(super) blocks: u32,
    pub(super) threads: u32,
    pub(super) shared: u32,
    pub(super) registers: u32,
    pub(super) windows: Windows,
    /// True if each instruction line begins with the number of a source line.
    pub(super) line_numbers: bool,
}

/// Keys that a tracer writes, and whether each is required.
const KEYS: &[(&str, bool)] = &[
    ("kernel name", true),
    ("kernel id", false),
    ("grid dim", true),
    ("block dim", true),
    ("shmem", true),
    ("nregs", true),
    ("binary version", false),
    ("cuda stream id", false),
    ("shmem base_addr", false),
    ("local mem base_addr", false),
    ("nvbit version", false),
    ("accelsim tracer version", true),
    ("enable lineinfo", false),
];

/// Tracer versions whose files have this layout.
const VERSIONS: std::ops::RangeInclusive<u64> = 3..=5;

/// Head of a kernel file being read.
#[derive(Default)]
pub(super) struct HeaderReader {
    values: [Option<String>; KEYS.len()],
}

impl HeaderReader {
    /// Reads a line that begins with `-`.
    pub(super) fn line(&mut self, line: &[u8]) -> Result<(), Bad> {
        let text = std::str::from_utf8(line).map_err(|_| Bad::new("not text"))?;
        let Some((key, value)) = text[1..].split_once('=') else {
            return Err(Bad::new("a line of a kernel's head is `-key = value`"));
        };
        let (key, value) = (key.trim(), value.trim());
        let Some(n) = KEYS.iter().position(|(known, _)| *known == key) else {
            let unknown = Bad::new(format!("unknown key `{key}`")).at(1);
            return Err(unknown.nearest(key, KEYS.iter().map(|(known, _)| *known)));
        };
        if self.values[n].is_some() {
            return Err(Bad::new(format!("`{key}` is given twice")).at(1));
        }
        // Checked here, so that the diagnostic shows the line.
        match key {
            "grid dim" => drop(blocks(dimensions(value)?)?),
            "block dim" => drop(threads(dimensions(value)?)?),
            "shmem" | "nregs" => drop(small(value)?),
            "shmem base_addr" | "local mem base_addr" => drop(hex(value)?),
            "enable lineinfo" => drop(flag(value)?),
            "accelsim tracer version" => version(value)?,
            _ => {}
        }
        self.values[n] = Some(value.to_owned());
        Ok(())
    }

    /// Returns the complete head.
    pub(super) fn finish(&self) -> Result<Header, Bad> {
        let lacking = KEYS.iter().zip(&self.values).find(|((_, must), value)| *must && value.is_none());
        if let Some(((key, _), _)) = lacking {
            return Err(Bad::new(format!("the kernel's head has no `-{key} = `")));
        }
        let grid = dimensions(self.value("grid dim"))?;
        let address = |key| if self.value(key).is_empty() { Ok(0) } else { hex(self.value(key)) };
        Ok(Header {
            name: self.value("kernel name").to_owned(),
            grid,
            blocks: blocks(grid)?,
            threads: threads(dimensions(self.value("block dim"))?)?,
            shared: small(self.value("shmem"))?,
            registers: small(self.value("nregs"))?,
            windows: Windows { shared: address("shmem base_addr")?, local: address("local mem base_addr")? },
            line_numbers: !self.value("enable lineinfo").is_empty() && flag(self.value("enable lineinfo"))?,
        })
    }

    fn value(&self, key: &str) -> &str {
        let n = KEYS.iter().position(|(known, _)| *known == key);
        n.and_then(|n| self.values[n].as_deref()).unwrap_or_default()
    }
}

/// Reads `(x,y,z)`.
fn dimensions(text: &str) -> Result<[u64; 3], Bad> {
    triple(text.strip_prefix('(').and_then(|text| text.strip_suffix(')')).unwrap_or("")).ok_or_else(|| {
        Bad::new(format!("`{text}` is not a list of dimensions")).help("they are written `(x,y,z)`")
    })
}

/// Reads `x,y,z`.
pub(super) fn triple(text: &str) -> Option<[u64; 3]> {
    let mut numbers = text.split(',').map(|n| unsigned(n.trim().as_bytes(), Base::Decimal));
    let all = [numbers.next()??, numbers.next()??, numbers.next()??];
    numbers.next().is_none().then_some(all)
}

fn small(text: &str) -> Result<u32, Bad> {
    text.parse().map_err(|_| Bad::new(format!("`{text}` is not a number of 32 bits")))
}

fn hex(text: &str) -> Result<u64, Bad> {
    unsigned(text.as_bytes(), Base::Hex).ok_or_else(|| Bad::new(format!("`{text}` is not an address")))
}

fn flag(text: &str) -> Result<bool, Bad> {
    match text {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err(Bad::new(format!("`{text}` is neither 0 nor 1"))),
    }
}

fn version(text: &str) -> Result<(), Bad> {
    if unsigned(text.as_bytes(), Base::Decimal).is_some_and(|version| VERSIONS.contains(&version)) {
        return Ok(());
    }
    let (first, last) = (VERSIONS.start(), VERSIONS.end());
    Err(Bad::new(format!("Accel-Sim tracer version `{text}`; versions {first} to {last} are read"))
        .help("trace again with a tracer of one of these versions: earlier ones write different lines"))
}
