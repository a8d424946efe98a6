//! Files of a MacSim trace: the list of kernels, the list of warps of each kernel, and the tar archive that may hold them.

use std::{
    collections::BTreeMap,
    io::{self, Read},
};

use config::Diagnostic;
use text::Bad;

/// Layout of records that MacSim's tracer has written since it uses NVBit.
const VERSION: &str = "14";
const OTHER_TYPES: [&str; 5] = ["ptx", "newptx", "x86", "a64", "igpu"];

/// Words of a text, each with its line.
pub(super) struct Words<'a> {
    source: &'a str,
    words: Vec<(u64, &'a str)>,
    at: usize,
    text: &'a str,
}

impl<'a> Words<'a> {
    pub(super) fn new(source: &'a str, text: &'a str) -> Words<'a> {
        let lines = (1..).zip(text.lines());
        let words =
            lines.flat_map(|(line, text)| text.split_whitespace().map(move |word| (line, word))).collect();
        Words { source, words, at: 0, text }
    }

    /// Returns the next word.
    fn next(&mut self, what: &str) -> Result<&'a str, Diagnostic> {
        let Some((_, word)) = self.words.get(self.at) else {
            return Err(Bad::new(format!("the file ends before the {what}")).in_file(self.source));
        };
        self.at += 1;
        Ok(word)
    }

    /// Returns a diagnostic about the word last taken.
    fn bad(&self, bad: Bad) -> Diagnostic {
        let line = self.words.get(self.at.wrapping_sub(1)).map_or(0, |(line, _)| *line);
        let text = self.text.lines().nth((line as usize).wrapping_sub(1)).unwrap_or_default();
        bad.in_line(self.source, line, text.as_bytes())
    }

    fn number(&mut self, what: &str) -> Result<u64, Diagnostic> {
        let word = self.next(what)?;
        word.parse().map_err(|_| self.bad(Bad::new(format!("the {what} is not a number: `{word}`"))))
    }

    fn left(&self) -> usize {
        self.words.len() - self.at
    }
}

/// Returns true if a text is the start of a MacSim configuration, of any type.
pub(in crate::simt_trace) fn is_config(start: &str) -> bool {
    let mut words = start.split_whitespace();
    let known = words.next().is_some_and(|word| word == "nvbit" || OTHER_TYPES.contains(&word));
    known && words.next().is_some_and(|word| word.parse::<f64>().is_ok())
}

/// Content of a configuration file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Config {
    /// Configuration files of the kernels, in order, relative to its folder.
    Application(Vec<String>),
    /// Warps of a kernel, in order.
    Kernel(Vec<WarpId>),
}

/// A warp of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct WarpId {
    pub(super) number: u32,
    pub(super) block: u32,
    pub(super) warp: u32,
}

/// Reads `nvbit`, `14`, then `-1` and paths, or a number and warps.
pub(super) fn read(source: &str, text: &str) -> Result<Config, Diagnostic> {
    let mut words = Words::new(source, text);
    match words.next("type of trace")? {
        "nvbit" => {}
        other if OTHER_TYPES.contains(&other) => {
            let help = "MacSim's tracer for NVBit writes traces of type `nvbit`";
            return Err(words.bad(
                Bad::new(format!("a trace of type `{other}`; only type `nvbit` is supported")).help(help),
            ));
        }
        other => {
            return Err(
                words.bad(Bad::new(format!("unknown type of trace `{other}`")).nearest(other, ["nvbit"]))
            );
        }
    }
    let version = words.next("version")?;
    if version != VERSION {
        let what = format!("version `{version}` of MacSim's traces; only version {VERSION} is supported");
        return Err(words.bad(Bad::new(what)));
    }
    if words.next("number of kernels, or of blocks")? == "-1" {
        let mut paths = Vec::new();
        while words.left() > 0 {
            paths.push(last_two(words.next("kernel")?));
        }
        return Ok(Config::Application(paths));
    }
    let count = words.number("number of warps")?;
    // Two words per warp: a wrong count must not allocate.
    if count.checked_mul(2) != Some(words.left() as u64) {
        let listed = words.left() / 2;
        return Err(words.bad(Bad::new(format!("{count} warps; {listed} are listed"))));
    }
    let mut warps = Vec::with_capacity(listed(count));
    for _ in 0..count {
        let number = words.number("number of a warp")?;
        let number = u32::try_from(number)
            .map_err(|_| words.bad(Bad::new(format!("warp number {number} does not fit in 32 bits"))))?;
        let spawn = words.number("start of a warp")?;
        if spawn != 0 {
            return Err(words.bad(Bad::new(format!(
                "warp {number} starts after {spawn} instructions; only 0 is supported"
            ))));
        }
        warps.push(WarpId { number, block: number >> 16, warp: number & 0xffff });
    }
    Ok(Config::Kernel(warps))
}

fn listed(count: u64) -> usize {
    usize::try_from(count).unwrap_or(0)
}

/// Returns the last two parts of a path, by which MacSim finds a kernel beside the list.
fn last_two(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    parts[parts.len().saturating_sub(2)..].join("/")
}

/// Reads `<warp> <records>` lines of a kernel's `_info.txt`.
pub(super) fn read_counts(source: &str, text: &str) -> Result<Vec<(u32, u64)>, Diagnostic> {
    let mut words = Words::new(source, text);
    let mut counts = Vec::new();
    while words.left() > 0 {
        let number = words.number("number of a warp")?;
        let number = u32::try_from(number)
            .map_err(|_| words.bad(Bad::new(format!("warp number {number} does not fit in 32 bits"))))?;
        counts.push((number, words.number("number of its records")?));
    }
    Ok(counts)
}

/// Content of `kernel_names.txt` for a launch, if the tracer wrote it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Launched {
    pub(super) name: String,
    pub(super) blocks: u32,
    pub(super) threads: u32,
    pub(super) registers: u32,
    pub(super) shared: u32,
}

/// Reads `Kernel<n> name: <function>` and the line of sizes after each, by the names of the kernels' folders.
pub(super) fn read_names(source: &str, text: &str) -> Result<BTreeMap<String, Launched>, Diagnostic> {
    let mut all = BTreeMap::new();
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    while let Some((number, line)) = lines.next() {
        let bad = |number, line: &str, what: &str| Bad::new(what).in_line(source, number, line.as_bytes());
        let Some((folder, name)) = line.split_once(" name: ") else {
            return Err(bad(number, line, "a kernel is `Kernel<n> name: <function>`"));
        };
        let (number, sizes) = lines.next().unwrap_or((number, ""));
        let Some(launched) = launched(name.trim(), sizes) else {
            let what = "a kernel's sizes are `Grid size: (x, y, z), Block size: (x, y, z), ..., # of regs: n, \
                        static shared mem: n, dynamic shared mem: n`";
            return Err(bad(number, sizes, what));
        };
        all.insert(folder.trim().to_owned(), launched);
    }
    Ok(all)
}

fn launched(name: &str, sizes: &str) -> Option<Launched> {
    let behind = |key: &str| sizes.split_once(key).map(|(_, rest)| rest);
    let number = |key: &str| behind(key)?.split(',').next()?.trim().parse::<u32>().ok();
    let volume = |key: &str| {
        let (inside, _) = behind(key)?.trim_start().strip_prefix('(')?.split_once(')')?;
        let mut numbers = inside.split(',').map(|n| n.trim().parse::<u32>().ok());
        let volume = numbers.next()??.checked_mul(numbers.next()??)?.checked_mul(numbers.next()??)?;
        numbers.next().is_none().then_some(volume)
    };
    Some(Launched {
        name: name.to_owned(),
        blocks: volume("Grid size:")?,
        threads: volume("Block size:")?,
        registers: number("# of regs:")?,
        shared: number("static shared mem:")?.checked_add(number("dynamic shared mem:")?)?,
    })
}

// Files of a tar archive (POSIX ustar, with GNU long names), in order.

const TAR_BLOCK: usize = 512;

/// Maximum length of a name.
const MOST_NAME: u64 = 4096;

/// Archive that is read from front to back.
pub(super) struct Tar<R> {
    source: R,
}

/// A file of the archive: its name, and its bytes.
pub(super) struct Member {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

impl<R: Read> Tar<R> {
    pub(super) fn new(source: R) -> Tar<R> {
        Tar { source }
    }

    /// Returns the next file; none at the end of the archive, which a block of zeros marks.
    pub(super) fn next(&mut self) -> io::Result<Option<Member>> {
        let mut long_name = None;
        loop {
            let Some(head) = self.head()? else { return Ok(None) };
            let size = field_number(&head[124..136]).ok_or_else(|| damaged("a size that is not a number"))?;
            match head[156] {
                b'L' => {
                    if size > MOST_NAME {
                        return Err(damaged("a name of more than 4 KiB"));
                    }
                    long_name = Some(field_text(&self.content(size)?));
                }
                0 | b'0' | b'7' => {
                    let name = long_name.take().unwrap_or_else(|| member_name(&head));
                    return Ok(Some(Member { name, bytes: self.content(size)? }));
                }
                // Folders, links and extended headers have no content for us.
                _ => {
                    long_name = None;
                    self.content(size)?;
                }
            }
        }
    }

    fn head(&mut self) -> io::Result<Option<[u8; TAR_BLOCK]>> {
        let mut head = [0; TAR_BLOCK];
        // A file that has been cut ends without the zero block, within a block or between two.
        self.source.read_exact(&mut head)?;
        if head.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        if !is_member_head(&head) {
            return Err(damaged("a header whose checksum is wrong"));
        }
        Ok(Some(head))
    }

    /// Reads a file's bytes; the archive pads them to whole blocks.
    fn content(&mut self, size: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        // Reading through `take` allocates only what exists, whatever the header claims.
        let padded = size
            .checked_next_multiple_of(TAR_BLOCK as u64)
            .ok_or_else(|| damaged("a size of more than 64 bits"))?;
        let read = self.source.by_ref().take(padded).read_to_end(&mut bytes)? as u64;
        if read < size {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.truncate(size as usize);
        Ok(bytes)
    }
}

/// Returns true if bytes are a member's header: its checksum is the sum of all bytes, with its own place taken as
/// blanks.
pub(super) fn is_member_head(head: &[u8]) -> bool {
    let Some(head) = head.get(..TAR_BLOCK) else { return false };
    let sum: u64 = head
        .iter()
        .enumerate()
        .map(|(at, &byte)| if (148..156).contains(&at) { 32 } else { u64::from(byte) })
        .sum();
    field_number(&head[148..156]) == Some(sum)
}

/// Returns the name of the member of a header.
pub(super) fn member_name(head: &[u8]) -> String {
    let plain = field_text(&head[..100]);
    let prefix =
        if head[257..].starts_with(b"ustar\0") { field_text(&head[345..500]) } else { String::new() };
    if prefix.is_empty() { plain } else { format!("{prefix}/{plain}") }
}

fn field_text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Reads octal digits, or, if the first bit is set, a big-endian binary number.
fn field_number(field: &[u8]) -> Option<u64> {
    if field[0] & 0x80 != 0 {
        let first = u64::from(field[0] & 0x7f);
        return field[1..]
            .iter()
            .try_fold(first, |value, &byte| Some(value.checked_mul(256)? | u64::from(byte)));
    }
    let digits: Vec<u8> = field.iter().copied().filter(|byte| !matches!(byte, b' ' | 0)).collect();
    digits.iter().try_fold(0_u64, |value, &digit| {
        let digit = char::from(digit).to_digit(8)?;
        value.checked_mul(8)?.checked_add(u64::from(digit))
    })
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::last_two;

    #[test]
    fn kernels_are_found_beside_the_list() {
        assert_eq!(last_two("./Kernel0/trace.txt"), "Kernel0/trace.txt");
        assert_eq!(last_two("/data/x/Kernel1/Trace.txt"), "Kernel1/Trace.txt");
        assert_eq!(last_two("trace.txt"), "trace.txt");
    }
}
