//! The control side of the block device: the vhost-user protocol for one guest with one queue.
//!
//! Source: <https://qemu.readthedocs.io/en/latest/interop/vhost-user.html>, and what the guest's driver asks for.

use super::disk::{Disk, Served};
use super::ring::Places;
use super::{Law, Memory, Region, Store};
use anyhow::{Context, Result, bail};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::fs::File;
use std::io::{IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// VIRTIO_F_VERSION_1, VHOST_USER_F_PROTOCOL_FEATURES, VIRTIO_F_INDIRECT_DESC, VIRTIO_BLK_F_SEG_MAX. No flush: what is
/// answered is durable.
const FEATURES: u64 = 1 << 32 | 1 << 30 | 1 << 28 | 1 << 2;
/// VHOST_USER_PROTOCOL_F_CONFIG, and VHOST_USER_PROTOCOL_F_BACKEND_REQ: without a way back Linux 6.1 asks for no
/// interrupt of its own (`vhost_user_init_slave_req`, arch/um/drivers/virtio_uml.c).
const PROTOCOL_FEATURES: u64 = 1 << 9 | 1 << 5;
/// Version, and the flag of a reply.
const REPLY: u32 = 1 | 1 << 2;
/// Maximum number of segments of a request.
const SEGMENTS: u32 = 126;
const PAYLOAD_MAX: u32 = 4096;

/// Serves the first guest that connects before `patience` is over, until it disconnects.
pub(super) fn serve(
    listener: &UnixListener,
    patience: Duration,
    bytes: u64,
    law: Option<Law>,
    store: Store,
) -> Result<Served> {
    let stream = accept(listener, patience)?;
    let mut session = Session { bytes, law, store: Some(store), ..Session::default() };
    while let Some(message) = Message::receive(&stream)? {
        if let Some(reply) = session.handle(&message)? {
            let head = [message.request, REPLY, u32::try_from(reply.len())?].map(u32::to_le_bytes).concat();
            if (&stream).write_all(&[head, reply].concat()).is_err() {
                break;
            }
        }
    }
    session.disk.context("the guest set up no queue")?.finish()
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
            bail!("no guest connected to the block device");
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Message of the guest: its number, its bytes, and the files that came with it.
struct Message {
    request: u32,
    payload: Vec<u8>,
    files: Vec<File>,
}

impl Message {
    /// Receives the next message; `None` when the guest is gone.
    fn receive(stream: &UnixStream) -> Result<Option<Self>> {
        let mut head = [0; 12];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received =
            recvmsg(stream, &mut [IoSliceMut::new(&mut head)], &mut control, RecvFlags::CMSG_CLOEXEC);
        match received.map(|message| message.bytes) {
            Ok(12) => {}
            Ok(0) | Err(rustix::io::Errno::CONNRESET) => return Ok(None),
            Ok(length) => bail!("invalid message of {length} bytes"),
            Err(error) => return Err(error.into()),
        }
        let files = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(files) => Some(files.map(|file: OwnedFd| File::from(file))),
            _ => None,
        });
        let files = files.flatten().collect();
        let length = word(&head, 8)?;
        if length > PAYLOAD_MAX {
            bail!("invalid message of {length} bytes");
        }
        let mut payload = vec![0; length as usize];
        let mut stream = stream;
        stream.read_exact(&mut payload)?;
        Ok(Some(Self { request: word(&head, 0)?, payload, files }))
    }
}

#[derive(Default)]
struct Session {
    bytes: u64,
    law: Option<Law>,
    store: Option<Store>,
    memory: Option<Arc<Memory>>,
    places: Places,
    kick: Option<File>,
    call: Option<File>,
    /// Back channel, which is never used for sending.
    back: Option<File>,
    disk: Option<Disk>,
}

impl Session {
    /// Handles a message; some have a reply.
    fn handle(&mut self, message: &Message) -> Result<Option<Vec<u8>>> {
        let payload = &message.payload;
        let file =
            || message.files.first().context("a message without its file")?.try_clone().context("no file");
        match message.request {
            // GET_FEATURES, GET_PROTOCOL_FEATURES.
            1 => return Ok(Some(FEATURES.to_le_bytes().to_vec())),
            15 => return Ok(Some(PROTOCOL_FEATURES.to_le_bytes().to_vec())),
            // SET_FEATURES, SET_OWNER, SET_VRING_BASE, SET_PROTOCOL_FEATURES: nothing to choose from.
            2 | 3 | 10 | 16 => {}
            // SET_MEM_TABLE.
            5 => self.memory = Some(Arc::new(Memory::new(regions(message)?))),
            // SET_VRING_NUM, SET_VRING_ADDR.
            8 => self.places.size = u16::try_from(word(payload, 4)?)?,
            9 => {
                self.places.descriptors = long(payload, 8)?;
                self.places.used = long(payload, 16)?;
                self.places.available = long(payload, 24)?;
            }
            // SET_VRING_KICK, SET_VRING_CALL.
            12 => self.kick = Some(file()?),
            13 => self.call = Some(file()?),
            // SET_BACKEND_REQ_FD.
            21 => self.back = Some(file()?),
            // SET_VRING_ENABLE.
            18 if word(payload, 4)? == 1 => self.start()?,
            18 => {}
            // GET_CONFIG: the same with the bytes that were asked for.
            24 => {
                let config = self.config();
                let (from, length) = (word(payload, 0)? as usize, word(payload, 4)? as usize);
                let mut reply = payload.get(..12).context("a short message")?.to_vec();
                reply.extend(config.iter().copied().chain(std::iter::repeat(0)).skip(from).take(length));
                return Ok(Some(reply));
            }
            other => bail!("the guest asks for {other}, which was not offered"),
        }
        Ok(None)
    }

    /// virtio_blk_config: capacity in sectors, size_max, seg_max.
    fn config(&self) -> Vec<u8> {
        [&(self.bytes / 512).to_le_bytes()[..], &[0; 4], &SEGMENTS.to_le_bytes()].concat()
    }

    fn start(&mut self) -> Result<()> {
        let memory = self.memory.as_ref().context("a queue without memory")?;
        let kick = self.kick.take().context("a queue without a kick")?;
        let call = self.call.take().context("a queue without a call")?;
        let store = self.store.take().context("a second queue")?;
        self.disk = Some(Disk::start(memory, self.places, kick, call, self.law, store)?);
        Ok(())
    }
}

/// Parses a memory table: count, padding, and for each region its address, length, address of the sender, offset in its
/// file.
fn regions(message: &Message) -> Result<Vec<Region>> {
    let count = word(&message.payload, 0)? as usize;
    if count != message.files.len() {
        bail!("{count} regions of memory in {} files", message.files.len());
    }
    let files = message.files.iter().enumerate();
    files
        .map(|(number, file)| {
            let at = 8 + 32 * number;
            let field = |offset| long(&message.payload, at + offset);
            Ok(Region { address: field(0)?, bytes: field(8)?, offset: field(24)?, file: file.try_clone()? })
        })
        .collect()
}

fn word(bytes: &[u8], at: usize) -> Result<u32> {
    let bytes = bytes.get(at..at + 4).context("a short message")?;
    Ok(u32::from_le_bytes(bytes.try_into()?))
}

fn long(bytes: &[u8], at: usize) -> Result<u64> {
    let bytes = bytes.get(at..at + 8).context("a short message")?;
    Ok(u64::from_le_bytes(bytes.try_into()?))
}
