//! AHCI and native command queuing over Serial ATA: one queue of at most 32 commands, whose frames and data share one wire.
//!
//! Sources: AHCI 1.3.1, chapter 5 (how the host adapter issues commands); Serial ATA specification, revision 3.x,
//! native command queuing (FPDMA). A command is a Register FIS, which the drive answers at once, so that the next may
//! come. Each transfer begins with a DMA Setup, which activates the first Data FIS of a write; before each further one
//! the drive sends a DMA Activate. Set Device Bits reports that a command is done.
//!
//! Simplifications: commands that cannot be queued (FLUSH CACHE, TRIM without queuing) are queued like others, and each
//! page that has been read is a transfer of its own, at its offset in the command's data.

use super::interface::{Entry, LinkBusy, Protocol};
use engine::{Ticket, Time};
use net::sata::{DATA_PAYLOAD, Fis, Link};
use stats::EnergyReport;
use std::collections::VecDeque;

/// Maximum command slots of a host adapter's port, and tags of a drive (AHCI 1.3.1, section 1.1; FPDMA's tag of five
/// bits).
pub const SLOTS_MAX: u32 = 32;

/// Slots and times.
#[derive(Clone, Copy, Debug)]
pub struct AhciParams {
    /// Maximum outstanding commands.
    pub slots: u32,
    /// Time from the driver's register writes until the adapter sends the command.
    pub command: Time,
    /// Time from Set Device Bits in the adapter until host software runs.
    pub interrupt: Time,
}

/// Port of a host adapter with the drive's end of the link.
#[derive(Clone, Debug)]
pub struct AhciPort {
    link: Link,
    params: AhciParams,
    /// Commands at the driver, each with its place in the order of events, oldest first.
    waiting: VecDeque<(u32, Ticket)>,
    /// Number of these that the adapter knows.
    issued: usize,
    /// Slots in use.
    taken: u32,
}

impl AhciPort {
    /// Creates an idle port.
    pub fn new(link: Link, params: AhciParams) -> AhciPort {
        AhciPort { link, params, waiting: VecDeque::new(), issued: 0, taken: 0 }
    }
}

/// Bytes of each Data FIS of a transfer.
fn parts(bytes: u64) -> impl Iterator<Item = u64> {
    (0..bytes).step_by(DATA_PAYLOAD as usize).map(move |done| DATA_PAYLOAD.min(bytes - done))
}

impl Protocol for AhciPort {
    fn enters(&mut self, _queue: u16, id: u32, reserve: impl FnOnce() -> Ticket) -> Entry {
        self.waiting.push_back((id, reserve()));
        Entry::Rings(self.params.command)
    }

    fn doorbell(&mut self, _queue: u16) {
        self.issued += 1;
    }

    fn fetch(&mut self, now: Time) -> Option<(u32, Ticket, Time)> {
        if self.issued == 0 || self.taken == self.params.slots {
            return None;
        }
        let (id, place) = self.waiting.pop_front()?;
        self.issued -= 1;
        self.taken += 1;
        let there = self.link.send(now, Fis::RegisterToDevice);
        self.link.send(now, Fis::RegisterToHost);
        Some((id, place, there - now))
    }

    fn data_in(&mut self, now: Time, bytes: u64) -> Time {
        let mut there = self.link.send(now, Fis::DmaSetup);
        for (n, part) in parts(bytes).enumerate() {
            if n > 0 {
                self.link.send(now, Fis::DmaActivate);
            }
            there = self.link.send(now, Fis::Data(part));
        }
        there
    }

    fn data_out(&mut self, now: Time, bytes: u64) {
        self.link.send(now, Fis::DmaSetup);
        for part in parts(bytes) {
            self.link.send(now, Fis::Data(part));
        }
    }

    fn completes(&mut self, now: Time) -> Time {
        self.link.send(now, Fis::SetDeviceBits) + self.params.interrupt
    }

    fn leaves(&mut self, _queue: u16) -> bool {
        self.taken -= 1;
        true
    }

    fn busy(&self, now: Time) -> LinkBusy {
        LinkBusy::Either(self.link.busy(now))
    }

    fn energy(&self, now: Time) -> Option<EnergyReport> {
        self.link.energy(now)
    }

    fn carried(&self) -> Option<[u64; 2]> {
        Some(self.link.carried())
    }

    fn reset_energy(&mut self, now: Time) {
        self.link.reset_energy(now);
    }

    /// Appends the state; nothing is outstanding, so no command waits and all slots are free.
    fn save(&self, out: &mut Vec<u8>) {
        let AhciPort { link, params: _, waiting: _, issued: _, taken: _ } = self;
        link.save(out);
    }

    fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.link.load(input)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::EventQueue;

    /// Bytes per second of 6 Gb/s without ALIGN primitives: 600 MB/s x 254 / 256.
    const RATE: u64 = 595_312_500;
    /// Dwords around each frame: X_RDY, R_RDY, SOF, CRC, EOF, WTRM, R_OK, SYNC.
    const AROUND: u64 = 8;

    fn port(slots: u32) -> AhciPort {
        let params = AhciParams { slots, command: Time::from_ns(500), interrupt: Time::from_us(2) };
        AhciPort::new(Link::new(600_000_000, Time::ZERO), params)
    }

    /// Time of frames of the given lengths in Dwords, each rounded separately.
    fn frames(dwords: &[u64]) -> Time {
        dwords.iter().fold(Time::ZERO, |sum, n| sum + Time::transfer((n + AROUND) * 4, RATE))
    }

    fn enter(port: &mut AhciPort, places: &mut EventQueue<u32>, id: u32) {
        assert_eq!(port.enters(0, id, || places.reserve()), Entry::Rings(Time::from_ns(500)));
        port.doorbell(0);
    }

    #[test]
    fn the_33rd_command_waits_for_a_slot() {
        let (mut port, mut places) = (port(SLOTS_MAX), EventQueue::<u32>::new());
        for id in 0..34 {
            enter(&mut port, &mut places, id);
        }
        let inside: Vec<u32> = std::iter::from_fn(|| port.fetch(Time::ZERO)).map(|(id, _, _)| id).collect();
        assert_eq!(inside, (0..32).collect::<Vec<_>>());
        assert!(port.leaves(0));
        assert_eq!(port.fetch(Time::ZERO).map(|(id, _, _)| id), Some(32));
        assert!(port.fetch(Time::ZERO).is_none());
    }

    /// The adapter does not know a command before its registers have been written.
    #[test]
    fn a_command_is_fetched_when_it_has_been_issued() {
        let (mut port, mut places) = (port(32), EventQueue::<u32>::new());
        port.enters(0, 7, || places.reserve());
        assert!(port.fetch(Time::ZERO).is_none());
        port.doorbell(0);
        assert!(port.fetch(Time::ZERO).is_some());
    }

    /// Five Dwords sent and five back, the first sent before R_OK and SYNC.
    #[test]
    fn a_command_is_a_frame_and_its_answer() {
        let (mut port, mut places) = (port(32), EventQueue::<u32>::new());
        enter(&mut port, &mut places, 0);
        let (_, _, after) = port.fetch(Time::ZERO).expect("a slot is free");
        assert_eq!(after, frames(&[5]) - Time::transfer(8, RATE));
        assert_eq!(port.busy(Time::from_us(1)), LinkBusy::Either(frames(&[5, 5])));
    }

    /// 20,000 B: DMA Setup, Data of 2,048, 2,048 and 904 Dwords with a header each, and for a write a DMA Activate before the second
    /// and the third.
    #[test]
    fn data_goes_in_frames_of_eight_kilobytes() {
        let mut reads = port(32);
        reads.data_out(Time::ZERO, 20_000);
        let end = Time::from_us(100);
        assert_eq!(reads.busy(end), LinkBusy::Either(frames(&[7, 2049, 2049, 905])));
        let mut writes = port(32);
        let there = writes.data_in(Time::ZERO, 20_000);
        let all = frames(&[7, 2049, 1, 2049, 1, 905]);
        assert_eq!(there, all - Time::transfer(8, RATE));
        assert_eq!(writes.busy(end), LinkBusy::Either(all));
    }

    /// Reads and writes of 128 KiB together move no more than either alone: they share one wire. DMA Setup and 16 Data
    /// FIS are 32,927 Dwords including framing: 592 MB/s.
    #[test]
    fn reads_and_writes_share_the_rate() {
        let (mut port, bytes) = (port(32), 128 << 10);
        let mut there = Time::ZERO;
        for _ in 0..50 {
            port.data_out(Time::ZERO, bytes);
            there = port.data_in(Time::ZERO, bytes);
        }
        let rate = 100 * bytes * 1_000_000 / there.ps();
        assert_eq!(rate, 591);
        let mut alone = self::port(32);
        (0..100).for_each(|_| alone.data_out(Time::ZERO, bytes));
        let LinkBusy::Either(busy) = alone.busy(Time::from_ms(100)) else { panic!("one way at a time") };
        assert_eq!(100 * bytes * 1_000_000 / busy.ps(), 592);
    }

    /// Two Dwords, and the interrupt.
    #[test]
    fn a_completion_is_set_device_bits() {
        let seen = port(32).completes(Time::ZERO);
        assert_eq!(seen, frames(&[2]) - Time::transfer(8, RATE) + Time::from_us(2));
    }

    #[test]
    fn an_idle_port_goes_on_from_what_it_saved() {
        let mut before = port(32);
        before.data_out(Time::ZERO, 4096);
        let (mut saved, mut after) = (Vec::new(), port(32));
        before.save(&mut saved);
        assert_eq!(after.load(&mut saved.as_slice()), Some(()));
        assert_eq!(after.completes(Time::ZERO), before.completes(Time::ZERO));
    }
}
