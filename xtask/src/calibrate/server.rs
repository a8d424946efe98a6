//! The device as a server of the NBD protocol (newstyle-fixed, simple replies) for one client over a Unix socket.
//!
//! Source: <https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md>.

use super::law::{Device, Law};
use super::store::Store;
use anyhow::{Context, Result, bail};
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

const OPTION_MAGIC: u64 = u64::from_be_bytes(*b"IHAVEOPT");
const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
const REQUEST_MAGIC: u32 = 0x2560_9513;
const REPLY_MAGIC: u32 = 0x6744_6698;
// An export has flags, and that is all that is said of it: no flush, no trim, no writing of zeros.
const EXPORT_FLAGS: u16 = 1;
/// The longest request; the client has none of more than 1 MiB.
const REQUEST_MAX: u32 = 32 << 20;
/// Before the end of a wait the thread spins, as a sleep ends tens of microseconds late.
const SPIN: Duration = Duration::from_micros(80);

/// What is left of a server when its client is gone.
pub(super) struct Served {
    /// What the device holds.
    pub(super) store: Store,
    /// How late each answer was after the law's time, in microseconds, ascending.
    pub(super) lateness_us: Vec<u64>,
}

/// Serves the first client that comes before `patience` is over until it goes. Without a law every request is done at once.
pub(super) fn serve(
    listener: &UnixListener,
    patience: Duration,
    bytes: u64,
    law: Option<Law>,
    mut store: Store,
) -> Result<Served> {
    let mut stream = accept(listener, patience)?;
    greet(&mut stream, bytes)?;
    let mut answers = stream.try_clone()?;
    let begin = Instant::now();
    let (send, receive) = mpsc::channel::<(u64, Vec<u8>)>();
    let writer = thread::spawn(move || {
        let mut lateness_us = Vec::new();
        for (done_ns, answer) in receive {
            wait_until(begin + Duration::from_nanos(done_ns));
            lateness_us.push((begin.elapsed().as_nanos() as u64 - done_ns) / 1000);
            if answers.write_all(&answer).is_err() {
                break;
            }
        }
        lateness_us
    });
    let mut device = law.map(Device::new);
    while let Some(request) = Request::read(&mut stream)? {
        let now = begin.elapsed().as_nanos() as u64;
        let answer = request.answer(&mut store);
        let done = device.as_mut().map_or(now, |device| device.complete(now, u64::from(request.length)));
        if send.send((done, answer)).is_err() {
            break;
        }
    }
    drop(send);
    let mut lateness_us = writer.join().map_err(|_| anyhow::anyhow!("the thread that answers died"))?;
    lateness_us.sort_unstable();
    Ok(Served { store, lateness_us })
}

fn accept(listener: &UnixListener, patience: Duration) -> Result<UnixStream> {
    listener.set_nonblocking(true)?;
    let begin = Instant::now();
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
        if begin.elapsed() > patience {
            bail!("no client came to the block device");
        }
        thread::sleep(Duration::from_millis(10));
    }
}

fn wait_until(end: Instant) {
    while let Some(left) = end.checked_duration_since(Instant::now()) {
        match left.checked_sub(SPIN) {
            Some(sleep) if !sleep.is_zero() => thread::sleep(sleep),
            _ => std::hint::spin_loop(),
        }
    }
}

/// The options before the transmission.
fn greet(stream: &mut UnixStream, bytes: u64) -> Result<()> {
    // Newstyle-fixed, and no padding with zeros.
    stream.write_all(b"NBDMAGICIHAVEOPT\0\x03")?;
    u32(stream)?;
    loop {
        if u64(stream)? != OPTION_MAGIC {
            bail!("the client of the block device speaks no NBD");
        }
        let (option, length) = (u32(stream)?, u32(stream)?);
        if length > 4096 {
            bail!("an option of {length} bytes");
        }
        let mut data = vec![0; length as usize];
        stream.read_exact(&mut data)?;
        match option {
            // EXPORT_NAME: no reply of the usual form.
            1 => {
                stream.write_all(&[&bytes.to_be_bytes()[..], &EXPORT_FLAGS.to_be_bytes()].concat())?;
                return Ok(());
            }
            // ABORT.
            2 => bail!("the client of the block device went away"),
            // INFO, GO: what the export is; its sizes of blocks; acknowledged.
            6 | 7 => {
                let export = [&[0, 0][..], &bytes.to_be_bytes(), &EXPORT_FLAGS.to_be_bytes()].concat();
                reply(stream, option, 3, &export)?;
                let [least, preferred, most] = [512, 4096, REQUEST_MAX].map(u32::to_be_bytes);
                reply(stream, option, 3, &[&[0, 3][..], &least, &preferred, &most].concat())?;
                reply(stream, option, 1, &[])?;
                if option == 7 {
                    return Ok(());
                }
            }
            // Unsupported.
            _ => reply(stream, option, (1 << 31) + 1, &[])?,
        }
    }
}

fn reply(stream: &mut UnixStream, option: u32, kind: u32, data: &[u8]) -> Result<()> {
    let length = u32::try_from(data.len())?;
    let head = [option, kind, length].map(u32::to_be_bytes).concat();
    Ok(stream.write_all(&[&OPTION_REPLY_MAGIC.to_be_bytes()[..], &head, data].concat())?)
}

struct Request {
    command: u16,
    cookie: u64,
    offset: u64,
    length: u32,
    data: Vec<u8>,
}

impl Request {
    /// The next one; none when the client is gone.
    fn read(stream: &mut UnixStream) -> Result<Option<Self>> {
        let mut head = [0; 28];
        if stream.read_exact(&mut head).is_err() {
            return Ok(None);
        }
        let mut head = &head[..];
        if u32(&mut head)? != REQUEST_MAGIC {
            bail!("a request without its magic number");
        }
        u16(&mut head)?;
        let command = u16(&mut head)?;
        let (cookie, offset, length) = (u64(&mut head)?, u64(&mut head)?, u32(&mut head)?);
        if length > REQUEST_MAX {
            bail!("a request of {length} bytes");
        }
        let mut data = Vec::new();
        match command {
            1 => {
                data.resize(length as usize, 0);
                stream.read_exact(&mut data).context("a write without its data")?;
            }
            2 => return Ok(None),
            _ => {}
        }
        Ok(Some(Self { command, cookie, offset, length, data }))
    }

    /// Does it, and says what to answer.
    fn answer(&self, store: &mut Store) -> Vec<u8> {
        // EINVAL for what was not offered.
        let error: u32 = if self.command > 1 { 22 } else { 0 };
        let mut answer = [REPLY_MAGIC, error].map(u32::to_be_bytes).concat();
        answer.extend(self.cookie.to_be_bytes());
        match self.command {
            0 => {
                let head = answer.len();
                answer.resize(head + self.length as usize, 0);
                store.read(self.offset, &mut answer[head..]);
            }
            1 => store.write(self.offset, &self.data),
            _ => {}
        }
        answer
    }
}

fn u16(from: &mut impl Read) -> Result<u16> {
    let mut bytes = [0; 2];
    from.read_exact(&mut bytes)?;
    Ok(u16::from_be_bytes(bytes))
}

fn u32(from: &mut impl Read) -> Result<u32> {
    let mut bytes = [0; 4];
    from.read_exact(&mut bytes)?;
    Ok(u32::from_be_bytes(bytes))
}

fn u64(from: &mut impl Read) -> Result<u64> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes)?;
    Ok(u64::from_be_bytes(bytes))
}
