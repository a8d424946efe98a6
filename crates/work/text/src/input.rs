//! Where a file's bytes come from: plain or compressed, recognised by content and never by name.

use std::io::{self, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use serde::Serialize;

/// An input of bytes.
pub type Bytes = Box<dyn Read + Send>;

/// How the bytes of a file are packed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// Not at all.
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
    /// Its usual name.
    pub const fn name(self) -> &'static str {
        match self {
            Compression::Plain => "plain",
            Compression::Gzip => "gzip",
            Compression::Xz => "xz",
            Compression::Bzip2 => "bzip2",
            Compression::Zstd => "zstd",
        }
    }
    /// What the first bytes say.
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

/// Counts what is taken from the file, so that an error can say how far it came.
#[derive(Default, Debug)]
pub struct Meter {
    bytes: AtomicU64,
    at_end: AtomicBool,
}

impl Meter {
    /// Bytes of the file taken so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
    /// Whether the file has no more bytes.
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

/// A file's decompressed bytes.
pub struct Input {
    /// The bytes, unpacked.
    pub bytes: Bytes,
    /// How they are packed.
    pub compression: Compression,
    /// How far the file has been read.
    pub meter: Arc<Meter>,
}

impl Input {
    /// Looks at the first bytes and puts the right decoder in front.
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

/// Unpacks anything that a file may be packed as, told by its first bytes; plain bytes are left as they are.
///
/// # Errors
/// The first bytes cannot be read.
pub fn unpack(source: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    Input::new(source).map(|input| input.bytes)
}

/// Zstandard frames one after the other, skippable ones left out, checksums verified.
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
