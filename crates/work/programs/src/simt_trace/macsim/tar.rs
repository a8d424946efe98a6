//! Files of a tar archive (POSIX ustar, with GNU long names), in order.

use std::io::{self, Read};

const BLOCK: usize = 512;
/// A name longer than this is no name.
const MOST_NAME: u64 = 4096;

/// An archive that is read from front to back.
pub(super) struct Tar<R> {
    source: R,
}

/// A file: its name, and its bytes.
pub(super) struct Member {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

impl<R: Read> Tar<R> {
    pub(super) fn new(source: R) -> Tar<R> {
        Tar { source }
    }

    /// The next file; none at the end of the archive, which a block of zeros marks.
    pub(super) fn next(&mut self) -> io::Result<Option<Member>> {
        let mut long_name = None;
        loop {
            let Some(head) = self.head()? else { return Ok(None) };
            let size = number(&head[124..136]).ok_or_else(|| invalid("a size that is no number"))?;
            match head[156] {
                b'L' => {
                    if size > MOST_NAME {
                        return Err(invalid("a name of more than 4 KiB"));
                    }
                    long_name = Some(text(&self.content(size)?));
                }
                0 | b'0' | b'7' => {
                    let name = long_name.take().unwrap_or_else(|| name(&head));
                    return Ok(Some(Member { name, bytes: self.content(size)? }));
                }
                // Folders, links and extended headers have nothing for us.
                _ => {
                    long_name = None;
                    self.content(size)?;
                }
            }
        }
    }

    fn head(&mut self) -> io::Result<Option<[u8; BLOCK]>> {
        let mut head = [0; BLOCK];
        // A file that has been cut ends without the zero block, which may be within a block or between two.
        self.source.read_exact(&mut head)?;
        if head.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        if !is_head(&head) {
            return Err(invalid("a header whose checksum is wrong"));
        }
        Ok(Some(head))
    }

    /// A file's bytes; the archive pads them to whole blocks.
    fn content(&mut self, size: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        // Reading through `take` allocates what there is, whatever the header claims.
        let padded =
            size.checked_next_multiple_of(BLOCK as u64).ok_or_else(|| invalid("a size beyond 64 bits"))?;
        let read = self.source.by_ref().take(padded).read_to_end(&mut bytes)? as u64;
        if read < size {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.truncate(size as usize);
        Ok(bytes)
    }
}

/// Whether bytes are a member's header: its checksum is the sum of all bytes, its own place taken as blanks.
pub(super) fn is_head(head: &[u8]) -> bool {
    let Some(head) = head.get(..BLOCK) else { return false };
    let sum: u64 = head
        .iter()
        .enumerate()
        .map(|(at, &byte)| if (148..156).contains(&at) { 32 } else { u64::from(byte) })
        .sum();
    number(&head[148..156]) == Some(sum)
}

/// The name of the member that a header is of.
pub(super) fn name(head: &[u8]) -> String {
    let plain = text(&head[..100]);
    let prefix = if head[257..].starts_with(b"ustar\0") { text(&head[345..500]) } else { String::new() };
    if prefix.is_empty() { plain } else { format!("{prefix}/{plain}") }
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Octal digits, or, where the first bit is set, a big-endian binary number.
fn number(field: &[u8]) -> Option<u64> {
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

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
