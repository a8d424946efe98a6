//! Bytes of a file, plain or compressed, recognised by content and never by name, and lines of bounded length from
//! them.

use std::io::{self, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use serde::Serialize;

/// An input of bytes.
pub type Bytes = Box<dyn Read + Send>;

/// Compression of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// No compression.
    Plain,
    /// gzip (RFC 1952), one or more members.
    Gzip,
    /// xz, one or more streams.
    Xz,
    /// bzip2, one or more streams.
    Bzip2,
    /// Zstandard (RFC 8878), one or more frames.
    Zstd,
}

impl Compression {
    /// Returns the usual name.
    pub const fn name(self) -> &'static str {
        match self {
            Compression::Plain => "plain",
            Compression::Gzip => "gzip",
            Compression::Xz => "xz",
            Compression::Bzip2 => "bzip2",
            Compression::Zstd => "zstd",
        }
    }
    /// Detects the compression from the first bytes.
    fn of(start: &[u8]) -> Compression {
        const BZIP2_BLOCK: &[u8] = b"1AY&SY";
        const BZIP2_END: &[u8] = b"\x17\x72\x45\x38\x50\x90";
        let bzip2 = start.starts_with(b"BZh")
            && start.get(3).is_some_and(u8::is_ascii_digit)
            && start.get(4..10).is_some_and(|magic| magic == BZIP2_BLOCK || magic == BZIP2_END);
        if start.starts_with(b"\x1f\x8b") {
            Compression::Gzip
        } else if start.starts_with(b"\xfd7zXZ\0") {
            Compression::Xz
        } else if bzip2 {
            Compression::Bzip2
        } else if start.starts_with(b"\x28\xb5\x2f\xfd")
            || start.len() >= 4 && (0x50..=0x5f).contains(&start[0]) && start[1..4] == *b"\x2a\x4d\x18"
        {
            Compression::Zstd
        } else {
            Compression::Plain
        }
    }
}

/// Counts the bytes taken from the file, so that an error can say how far reading got.
#[derive(Default, Debug)]
pub struct Meter {
    bytes: AtomicU64,
    at_end: AtomicBool,
}

impl Meter {
    /// Returns the bytes of the file taken so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
    /// Returns true if the file has no more bytes.
    pub fn at_end(&self) -> bool {
        self.at_end.load(Ordering::Relaxed)
    }
}

struct Metered<R> {
    inner: R,
    meter: Arc<Meter>,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.meter.bytes.fetch_add(n as u64, Ordering::Relaxed);
        if n == 0 && !buf.is_empty() {
            self.meter.at_end.store(true, Ordering::Relaxed);
        }
        Ok(n)
    }
}

/// Decompressed bytes of a file.
pub struct Input {
    /// Unpacked bytes.
    pub bytes: Bytes,
    /// Compression of the file.
    pub compression: Compression,
    /// Progress of reading the file.
    pub meter: Arc<Meter>,
}

impl Input {
    /// Selects the decoder from the first bytes.
    pub fn new(source: impl Read + Send + 'static) -> io::Result<Input> {
        const MAGIC: u64 = 16;
        // More than any `xz -9` needs (65 MiB): a crafted header must not allocate gigabytes.
        const XZ_MEMORY: u64 = 256 << 20;
        let meter = Arc::new(Meter::default());
        let mut metered = Metered { inner: source, meter: Arc::clone(&meter) };
        let mut start = Vec::new();
        metered.by_ref().take(MAGIC).read_to_end(&mut start)?;
        let compression = Compression::of(&start);
        let whole = Cursor::new(start).chain(metered);
        let bytes: Bytes = match compression {
            Compression::Plain => Box::new(whole),
            Compression::Gzip => Box::new(flate2::read::MultiGzDecoder::new(whole)),
            Compression::Bzip2 => Box::new(bzip2::read::MultiBzDecoder::new(whole)),
            Compression::Zstd => Box::new(ZstdFrames::new(whole)),
            Compression::Xz => {
                let stream =
                    liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY, liblzma::stream::CONCATENATED)?;
                Box::new(liblzma::read::XzDecoder::new_stream(whole, stream))
            }
        };
        Ok(Input { bytes, compression, meter })
    }
}

/// Unpacks a file of any supported compression, detected from its first bytes; plain bytes are left unchanged.
///
/// # Errors
/// If the first bytes cannot be read.
pub fn unpack(source: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    Input::new(source).map(|input| input.bytes)
}

/// Zstandard frames in succession, skippable ones left out, checksums verified.
struct ZstdFrames<R> {
    source: R,
    decoder: FrameDecoder,
    state: Frame,
}

#[derive(PartialEq, Eq)]
enum Frame {
    Between,
    Inside,
    Done,
}

impl<R: Read> ZstdFrames<R> {
    fn new(source: R) -> ZstdFrames<R> {
        ZstdFrames { source, decoder: FrameDecoder::new(), state: Frame::Between }
    }

    fn open_frame(&mut self) -> io::Result<()> {
        let mut first = [0_u8; 1];
        loop {
            match self.source.read(&mut first) {
                Ok(0) => {
                    self.state = Frame::Done;
                    return Ok(());
                }
                Ok(_) => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        match self.decoder.init(&mut first.as_slice().chain(&mut self.source)) {
            Ok(()) => self.state = Frame::Inside,
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length, ..
            })) => {
                let skipped = io::copy(&mut self.source.by_ref().take(u64::from(length)), &mut io::sink())?;
                if skipped < u64::from(length) {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            Err(e) => return Err(io::Error::other(e)),
        }
        Ok(())
    }

    fn close_frame(&mut self) -> io::Result<()> {
        if let Some(stored) = self.decoder.get_checksum_from_data()
            && self.decoder.get_calculated_checksum() != Some(stored)
        {
            return Err(io::Error::other("the checksum of a frame does not match its content"));
        }
        self.state = Frame::Between;
        Ok(())
    }
}

impl<R: Read> Read for ZstdFrames<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        loop {
            match self.state {
                Frame::Done => return Ok(0),
                Frame::Between => self.open_frame()?,
                Frame::Inside => {
                    if self.decoder.can_collect() > 0 {
                        return self.decoder.read(buf);
                    }
                    if self.decoder.is_finished() {
                        self.close_frame()?;
                    } else {
                        let one = BlockDecodingStrategy::UptoBlocks(1);
                        self.decoder.decode_blocks(&mut self.source, one).map_err(io::Error::other)?;
                    }
                }
            }
        }
    }
}

// Lines of bounded length from a stream of unbounded length.

/// Maximum length of a line in bytes: no format comes near, and a file without line breaks must not be held in
/// memory.
pub const MAX_LINE: usize = 64 << 10;

/// Number of bytes that format detection sees of a file.
pub const PREFIX: usize = 64 << 10;

const BUFFER: usize = 256 << 10;

/// Result of [`Lines::next`].
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A line without its end (`\n` or `\r\n`).
    Text(&'a [u8]),
    /// Start of a line longer than [`MAX_LINE`]; the rest is skipped.
    TooLong(&'a [u8]),
    /// No more lines.
    End,
}

/// Splits a stream into lines in a fixed buffer.
pub struct Lines {
    source: Bytes,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    at_end: bool,
    failed: Option<io::Error>,
    number: u64,
}

impl Lines {
    /// Creates the lines of an input.
    pub fn new(source: Bytes) -> Lines {
        let buffer = vec![0; BUFFER].into_boxed_slice();
        Lines { source, buffer, start: 0, end: 0, at_end: false, failed: None, number: 0 }
    }

    /// Returns the number of the line last returned, counted from one.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the first [`PREFIX`] bytes, or all if there are fewer; consumes nothing.
    ///
    /// A read error waits until the lines before it are taken, unless there are none.
    pub fn prefix(&mut self) -> io::Result<&[u8]> {
        const BOM: &[u8] = b"\xef\xbb\xbf";
        while self.end - self.start < PREFIX && self.fill() {}
        // In binary data the same bytes may begin a number.
        let there = &self.buffer[self.start..self.end];
        if self.number == 0 && there.starts_with(BOM) && !there[..there.len().min(64)].contains(&0) {
            self.start += BOM.len();
        }
        if self.start == self.end
            && let Some(error) = self.failed.take()
        {
            return Err(error);
        }
        Ok(&self.buffer[self.start..self.end.min(self.start + PREFIX)])
    }

    /// Returns true if [`Lines::prefix`] is the whole input.
    pub fn prefix_is_all(&self) -> bool {
        self.at_end && self.failed.is_none() && self.end - self.start <= PREFIX
    }

    /// Returns the next line.
    #[allow(clippy::should_implement_trait, reason = "a line lends the buffer")]
    pub fn next(&mut self) -> io::Result<Line<'_>> {
        let mut searched = 0;
        loop {
            if let Some(n) = memchr::memchr(b'\n', &self.buffer[self.start + searched..self.end]) {
                let from = self.start;
                let to = from + searched + n;
                self.start = to + 1;
                self.number += 1;
                return Ok(self.whole(from, to));
            }
            searched = self.end - self.start;
            if searched > MAX_LINE {
                return self.pass_over();
            }
            if !self.fill() {
                if let Some(error) = self.failed.take() {
                    return Err(error);
                }
                if searched == 0 {
                    return Ok(Line::End);
                }
                let (from, to) = (self.start, self.end);
                self.start = to;
                self.number += 1;
                return Ok(self.whole(from, to));
            }
        }
    }

    /// Returns the next binary record and whether it is complete, `None` at the end; `length` returns the length of
    /// the record at the start of its input.
    pub fn next_record(&mut self, length: fn(&[u8]) -> usize) -> io::Result<Option<(&[u8], bool)>> {
        while self.end - self.start < MAX_LINE && self.fill() {}
        if self.start == self.end {
            return self.failed.take().map_or(Ok(None), Err);
        }
        let there = &self.buffer[self.start..self.end];
        let length = length(there).max(1);
        if length > there.len()
            && let Some(error) = self.failed.take()
        {
            return Err(error);
        }
        self.number += 1;
        let from = self.start;
        self.start = (from + length).min(self.end);
        let record = &self.buffer[from..self.start];
        Ok(Some((record, length == record.len())))
    }

    fn whole(&self, from: usize, to: usize) -> Line<'_> {
        let text = &self.buffer[from..to];
        if text.len() > MAX_LINE {
            return Line::TooLong(&text[..MAX_LINE]);
        }
        Line::Text(text.strip_suffix(b"\r").unwrap_or(text))
    }

    /// Skips the rest of a line that does not fit, and keeps its start.
    fn pass_over(&mut self) -> io::Result<Line<'_>> {
        self.number += 1;
        self.buffer.copy_within(self.start..self.start + MAX_LINE, 0);
        loop {
            self.start = MAX_LINE;
            self.end = MAX_LINE;
            if !self.fill_tail() {
                break;
            }
            if let Some(n) = memchr::memchr(b'\n', &self.buffer[self.start..self.end]) {
                self.start += n + 1;
                break;
            }
        }
        Ok(Line::TooLong(&self.buffer[..MAX_LINE]))
    }

    /// Reads more bytes after the buffered ones; false at the end of the input or after an error.
    fn fill(&mut self) -> bool {
        if self.end == self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        self.fill_tail()
    }

    fn fill_tail(&mut self) -> bool {
        while !self.at_end && self.end < self.buffer.len() {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.at_end = true,
                Ok(n) => {
                    self.end += n;
                    return true;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => {
                    self.at_end = true;
                    self.failed = Some(e);
                }
            }
        }
        false
    }
}
