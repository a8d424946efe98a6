//! The block device behind a virtqueue (virtio 1.1, 5.2): it takes requests at once and answers them when the law says.

use super::ring::{Answers, Buffer, Chain, Offers, Places};
use super::{Device, Law, Memory, Store};
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Time before the end of a wait during which the thread spins, as a sleep ends tens of microseconds late.
const SPIN: Duration = Duration::from_micros(80);
const OK: u8 = 0;
const UNSUPPORTED: u8 = 2;

/// Remains of a device after its guest is gone.
pub(super) struct Served {
    /// Contents of the device.
    pub(super) store: Store,
    /// Delay of each answer after the law's time, in microseconds, ascending.
    pub(super) lateness_us: Vec<u64>,
}

/// Device with a thread that takes requests and one that answers them.
pub(super) struct Disk {
    stop: Arc<AtomicBool>,
    kick: File,
    takes: JoinHandle<Result<Store>>,
    answers: JoinHandle<Result<Vec<u64>>>,
}

/// Request in flight, with the due time of its answer.
struct Pending {
    due_ns: u64,
    head: u16,
    status: u8,
    status_address: u64,
    written: u32,
}

impl Disk {
    /// Serves a queue: the driver writes to `kick`, the device to `call`. Without a law every request completes at
    /// once.
    pub(super) fn start(
        memory: &Arc<Memory>,
        places: Places,
        kick: File,
        call: File,
        law: Option<Law>,
        store: Store,
    ) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let begin = Instant::now();
        let (send, receive) = mpsc::channel();
        let offers = Offers::new(memory.clone(), places);
        let given = Answers::new(memory.clone(), places);
        let (own, ends, kicks) = (memory.clone(), stop.clone(), kick.try_clone()?);
        let takes = thread::spawn(move || take(&own, offers, &kicks, &ends, begin, law, store, &send));
        let own = memory.clone();
        let answers = thread::spawn(move || answer(&own, given, &call, begin, receive));
        Ok(Self { stop, kick, takes, answers })
    }

    /// Joins both threads, once no more requests come.
    pub(super) fn finish(mut self) -> Result<Served> {
        self.stop.store(true, Ordering::Relaxed);
        self.kick.write_all(&1u64.to_ne_bytes())?;
        let store =
            self.takes.join().map_err(|_| anyhow::anyhow!("the thread that takes requests died"))??;
        let answers = self.answers.join().map_err(|_| anyhow::anyhow!("the thread that answers died"))?;
        let mut lateness_us = answers?;
        lateness_us.sort_unstable();
        Ok(Served { store, lateness_us })
    }
}

#[expect(clippy::too_many_arguments, reason = "the whole state of a thread")]
fn take(
    memory: &Memory,
    mut offers: Offers,
    mut kick: &File,
    stop: &AtomicBool,
    begin: Instant,
    law: Option<Law>,
    mut store: Store,
    send: &mpsc::Sender<Pending>,
) -> Result<Store> {
    let mut device = law.map(Device::new);
    loop {
        kick.read_exact(&mut [0; 8])?;
        if stop.load(Ordering::Relaxed) {
            return Ok(store);
        }
        while let Some(chain) = offers.pop()? {
            let now = begin.elapsed().as_nanos() as u64;
            let (mut pending, bytes) = perform(memory, &chain, &mut store)?;
            pending.due_ns = device.as_mut().map_or(now, |device| device.complete(now, bytes));
            if send.send(pending).is_err() {
                bail!("the answering thread has ended");
            }
        }
    }
}

/// Moves the data of a request; returns the number of bytes.
fn perform(memory: &Memory, chain: &Chain, store: &mut Store) -> Result<(Pending, u64)> {
    let (Some((head, rest)), Some(status)) = (chain.buffers.split_first(), chain.buffers.last()) else {
        bail!("a request without buffers");
    };
    let data = rest.split_last().context("a request of one buffer")?.1;
    let kind = u32::from_le_bytes(memory.array(head.address)?);
    let mut at = u64::from_le_bytes(memory.array(head.address + 8)?) * 512;
    let bytes: u64 = data.iter().map(|buffer| u64::from(buffer.bytes)).sum();
    let reads = |buffer: &Buffer| buffer.device_writes;
    let valid = match kind {
        0 => data.iter().all(reads),
        1 => !data.iter().any(reads),
        _ => false,
    };
    let mut pending =
        Pending { due_ns: 0, head: chain.head, status: OK, status_address: status.address, written: 1 };
    if !valid {
        pending.status = UNSUPPORTED;
        return Ok((pending, 0));
    }
    let mut bounce = Vec::new();
    for buffer in data {
        bounce.resize(buffer.bytes as usize, 0);
        if kind == 0 {
            store.read(at, &mut bounce);
            memory.write(buffer.address, &bounce)?;
            pending.written += buffer.bytes;
        } else {
            memory.read(buffer.address, &mut bounce)?;
            store.write(at, &bounce);
        }
        at += u64::from(buffer.bytes);
    }
    Ok((pending, bytes))
}

fn answer(
    memory: &Memory,
    mut given: Answers,
    mut call: &File,
    begin: Instant,
    receive: mpsc::Receiver<Pending>,
) -> Result<Vec<u64>> {
    let mut lateness_us = Vec::new();
    for pending in receive {
        wait_until(begin + Duration::from_nanos(pending.due_ns));
        lateness_us.push((begin.elapsed().as_nanos() as u64 - pending.due_ns) / 1000);
        memory.write(pending.status_address, &[pending.status])?;
        if given.push(pending.head, pending.written)? && call.write_all(&1u64.to_ne_bytes()).is_err() {
            // The guest is gone.
            break;
        }
    }
    Ok(lateness_us)
}

fn wait_until(end: Instant) {
    while let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        match left.checked_sub(SPIN) {
            Some(sleep) if !sleep.is_zero() => thread::sleep(sleep),
            _ => std::hint::spin_loop(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Region;
    use super::*;
    use rustix::event::{EventfdFlags, eventfd};

    const BASE: u64 = 0x8000;
    const PLACES: Places = Places { descriptors: BASE, available: BASE + 0x200, used: BASE + 0x300, size: 8 };
    const HEAD: u64 = BASE + 0x400;
    const STATUS: u64 = BASE + 0x410;
    const DATA: u64 = BASE + 0x1000;

    struct Driver {
        memory: Arc<Memory>,
        kick: File,
        call: File,
        asked: u16,
    }

    impl Driver {
        fn start(law: Option<Law>) -> (Self, Disk) {
            let file = tempfile::tempfile().unwrap();
            file.set_len(0x4000).unwrap();
            let memory =
                Arc::new(Memory::new(vec![Region { address: BASE, bytes: 0x4000, offset: 0, file }]));
            let [kick, call] = [(); 2].map(|()| File::from(eventfd(0, EventfdFlags::empty()).unwrap()));
            let own = |file: &File| file.try_clone().unwrap();
            let disk = Disk::start(&memory, PLACES, own(&kick), own(&call), law, Store::default()).unwrap();
            (Self { memory, kick, call, asked: 0 }, disk)
        }

        /// Issues one request with 4096 bytes at `DATA` and waits for it; returns its status.
        fn ask(&mut self, kind: u32, sector: u64) -> u8 {
            let put = |address, bytes: &[u8]| self.memory.write(address, bytes).unwrap();
            put(HEAD, &[&kind.to_le_bytes()[..], &[0; 4], &sector.to_le_bytes()].concat());
            put(STATUS, &[0xff]);
            let device_writes = if kind == 0 { 2 } else { 0 };
            let chain = [(HEAD, 16u32, 1u16), (DATA, 4096, 1 | device_writes), (STATUS, 1, 2)];
            for (at, (address, bytes, flags)) in (0u16..).zip(chain) {
                let entry = [
                    &address.to_le_bytes()[..],
                    &bytes.to_le_bytes(),
                    &flags.to_le_bytes(),
                    &(at + 1).to_le_bytes(),
                ];
                put(BASE + 16 * u64::from(at), &entry.concat());
            }
            put(PLACES.available + 4 + 2 * u64::from(self.asked % 8), &[0, 0]);
            self.asked += 1;
            put(PLACES.available + 2, &self.asked.to_le_bytes());
            self.kick.write_all(&1u64.to_ne_bytes()).unwrap();
            self.call.read_exact(&mut [0; 8]).unwrap();
            self.memory.array::<1>(STATUS).unwrap()[0]
        }
    }

    #[test]
    fn what_a_driver_writes_it_reads_and_the_store_keeps() {
        let (mut driver, disk) = Driver::start(None);
        driver.memory.write(DATA, &[5; 4096]).unwrap();
        assert_eq!(driver.ask(1, 8), OK);
        driver.memory.write(DATA, &[0; 4096]).unwrap();
        assert_eq!(driver.ask(0, 9), OK);
        // One sector further: 3584 bytes of fives, then zeros.
        assert_eq!(driver.memory.array(DATA + 3583).unwrap(), [5, 0]);
        let served = disk.finish().unwrap();
        let mut kept = [0; 2];
        served.store.read(8 * 512 - 1, &mut kept);
        assert_eq!(kept, [0, 5]);
        assert_eq!(served.lateness_us.len(), 2);
    }

    #[test]
    fn what_was_not_offered_is_refused() {
        let (mut driver, disk) = Driver::start(None);
        // A flush, and the device's name.
        assert_eq!([driver.ask(4, 0), driver.ask(8, 0)], [UNSUPPORTED; 2]);
        disk.finish().unwrap();
    }

    #[test]
    fn an_answer_comes_no_earlier_than_the_law_says() {
        let (mut driver, disk) = Driver::start(Some(Law { bytes_per_s: 4_096_000, latency_us: 500 }));
        let begin = Instant::now();
        driver.ask(1, 0);
        driver.ask(0, 0);
        // Twice 0.5 ms and 1 ms.
        assert!(begin.elapsed() >= Duration::from_millis(3));
        disk.finish().unwrap();
    }
}
