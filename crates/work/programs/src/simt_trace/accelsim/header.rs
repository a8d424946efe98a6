//! The head of a kernel file: `-key = value` lines.

use text::{Bad, Base, unsigned};

use crate::simt_trace::builder::{Windows, blocks, threads};

/// What the head of a kernel file says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Header {
    pub(super) name: String,
    pub(super) grid: [u64; 3],
    pub(super) blocks: u32,
    pub(super) threads: u32,
    pub(super) shared: u32,
    pub(super) registers: u32,
    pub(super) windows: Windows,
    /// Whether each instruction line begins with the number of a source line.
    pub(super) line_numbers: bool,
}

/// The keys that a tracer writes, and whether each must be there.
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

/// The tracer versions whose files have this layout.
const VERSIONS: std::ops::RangeInclusive<u64> = 3..=5;

/// The head of a kernel file while it is read.
#[derive(Default)]
pub(super) struct HeaderReader {
    values: [Option<String>; KEYS.len()],
}

impl HeaderReader {
    /// Takes a line that begins with `-`.
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
            return Err(Bad::new(format!("`{key}` stands twice")).at(1));
        }
        // Checked where it stands, so that the diagnostic shows the line.
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

    /// The head, whole.
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

/// `(x,y,z)`.
fn dimensions(text: &str) -> Result<[u64; 3], Bad> {
    triple(text.strip_prefix('(').and_then(|text| text.strip_suffix(')')).unwrap_or(""))
        .ok_or_else(|| Bad::new(format!("`{text}` are no dimensions")).help("they are written `(x,y,z)`"))
}

/// `x,y,z`.
pub(super) fn triple(text: &str) -> Option<[u64; 3]> {
    let mut numbers = text.split(',').map(|n| unsigned(n.trim().as_bytes(), Base::Decimal));
    let all = [numbers.next()??, numbers.next()??, numbers.next()??];
    numbers.next().is_none().then_some(all)
}

fn small(text: &str) -> Result<u32, Bad> {
    text.parse().map_err(|_| Bad::new(format!("`{text}` is no number of 32 bits")))
}

fn hex(text: &str) -> Result<u64, Bad> {
    unsigned(text.as_bytes(), Base::Hex).ok_or_else(|| Bad::new(format!("`{text}` is no address")))
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
        .help("trace again with a tracer of one of these versions: earlier ones write other lines"))
}
