//! Serial ATA link: frames in one direction at a time, each behind a handshake.
//!
//! The two pairs carry primitives in both directions at once, but frames in one direction only: while one side sends a
//! frame, the other answers it. So all frames share one resource. Sources are sections of the Serial ATA specification,
//! revision 3.x.

use crate::energy::{LinkEnergySpec, LinkMeter};
use engine::{Mutant, Snapshot, Time, planted, resource::Serial};
use stats::EnergyReport;

/// Bytes of a Dword, four characters of 8b/10b on the wire ("Link layer", encoding).
const DWORD: u64 = 4;
/// Dwords left for frames: two of 256 are ALIGN primitives ("Link layer", ALIGN: at least two per 254 Dwords).
const ALIGNED: (u64, u64) = (254, 256);
/// Dwords around a frame's content: X_RDY and R_RDY before it, SOF, CRC and EOF, WTRM and R_OK behind it, SYNC until
/// the next ("Link layer", transmission of a frame: each primitive once, as if it were understood at once).
const AROUND: u64 = 8;
/// Dwords of these that follow once the receiver has checked the frame: R_OK and SYNC.
const BEHIND: u64 = 2;
/// One-way latencies for which a frame holds the wire: X_RDY there, R_RDY back, the frame there, R_OK back.
const CROSSINGS: u64 = 4;

/// Maximum bytes of a Data FIS ("Transport layer", Data: 2,048 Dwords and their header).
pub const DATA_PAYLOAD: u64 = 8192;

/// Bytes per second after 8b/10b, by generation: 1.5, 3 and 6 Gb/s ("Physical layer", general requirements).
pub fn bytes_per_s(generation: u32) -> Option<u64> {
    match generation {
        1 => Some(150_000_000),
        2 => Some(300_000_000),
        3 => Some(600_000_000),
        _ => None,
    }
}

/// Frame information structure: the content of a frame ("Transport layer", FIS types).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fis {
    /// Register - Host to Device: a command.
    RegisterToDevice,
    /// Register - Device to Host: a command is in the drive's queue, and the next may follow.
    RegisterToHost,
    /// Set Device Bits: commands of the queue are done.
    SetDeviceBits,
    /// DMA Activate: the host may send a Data FIS.
    DmaActivate,
    /// DMA Setup: names the command whose data follow.
    DmaSetup,
    /// Data: the number of bytes, at most [`DATA_PAYLOAD`].
    Data(u64),
}

impl Fis {
    /// Returns the number of Dwords, headers included.
    fn dwords(self) -> u64 {
        match self {
            Fis::RegisterToDevice | Fis::RegisterToHost => 5,
            Fis::SetDeviceBits => 2,
            Fis::DmaActivate => 1,
            Fis::DmaSetup => 7,
            Fis::Data(bytes) => 1 + bytes.div_ceil(DWORD),
        }
    }
}

/// Serial ATA link.
#[derive(Clone, Debug)]
pub struct Link {
    /// Bytes per second without ALIGN primitives.
    bytes_per_s: u64,
    latency: Time,
    wire: Serial,
    meter: Option<Box<LinkMeter>>,
    /// Time and frames booked before the measured window.
    before: (Time, u64),
}

impl Link {
    /// Creates a link of `bytes_per_s` after line coding, one direction at a time. `latency` is one-way: from a Dword
    /// at the sender to the same Dword at the receiver.
    pub fn new(bytes_per_s: u64, latency: Time) -> Link {
        let (rest, all) = ALIGNED;
        Link {
            bytes_per_s: bytes_per_s / all * rest,
            latency,
            wire: Serial::default(),
            meter: None,
            before: (Time::ZERO, 0),
        }
    }

    fn time(&self, dwords: u64) -> Time {
        Time::transfer(dwords * DWORD, self.bytes_per_s)
    }

    /// Sends a frame in either direction; returns the time at which it has been received and checked.
    pub fn send(&mut self, now: Time, fis: Fis) -> Time {
        let crossings = if planted(Mutant::FreeHandshake) { 0 } else { CROSSINGS };
        let service = self.time(AROUND + fis.dwords()) + self.latency.times(crossings);
        let end = self.wire.grant(now, service);
        if let Some(meter) = &mut self.meter {
            meter.transfer(fis.dwords() * DWORD, end - service, end);
        }
        end - self.time(BEHIND) - self.latency
    }

    /// Adds an energy meter to the link.
    #[must_use]
    pub fn with_energy(self, spec: &LinkEnergySpec) -> Link {
        Link { meter: Some(Box::new(LinkMeter::new(spec))), ..self }
    }

    /// Returns the energy since the measured window began; `None` without a meter.
    pub fn energy(&self, now: Time) -> Option<EnergyReport> {
        self.meter.as_ref().map(|meter| meter.report(now))
    }

    /// Starts the measured window.
    pub fn reset_energy(&mut self, now: Time) {
        self.before = (self.wire.busy(Time::MAX), self.wire.grants());
        if let Some(meter) = &mut self.meter {
            meter.reset(now);
        }
    }

    /// Returns the busy time up to `now`, both directions together.
    pub fn busy(&self, now: Time) -> Time {
        self.wire.busy(now)
    }

    /// Returns the minimum and maximum bytes of frames since the measured window began, derived from the booked time.
    pub fn carried(&self) -> [u64; 2] {
        let (time, frames) = (self.wire.busy(Time::MAX) - self.before.0, self.wire.grants() - self.before.1);
        let apart = self.latency.times(CROSSINGS * frames);
        let of = |ps: u64| (u128::from(self.bytes_per_s) * u128::from(ps) / 1_000_000_000_000) as u64;
        let around = AROUND * DWORD * frames;
        // Each frame's time may have been rounded up by less than a picosecond.
        let ends = [(time - apart).ps().saturating_sub(frames), (time - apart).ps()];
        ends.map(|ps| of(ps).saturating_sub(around))
    }

    /// Appends the booked time and frames, without rate, latency and energy.
    pub fn save(&self, out: &mut Vec<u8>) {
        let Link { bytes_per_s: _, latency: _, wire, meter: _, before: _ } = self;
        wire.save(out);
    }

    /// Restores the state that a link saved; `None` if it is truncated or malformed.
    pub fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.wire = Serial::load(input)?;
        self.before = (self.wire.busy(Time::MAX), self.wire.grants());
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::units::{Energy, Power};

    fn link(generation: u32, latency: Time) -> Link {
        Link::new(bytes_per_s(generation).expect("a generation"), latency)
    }

    /// Returns megabytes of payload per second in back-to-back frames of the largest size.
    fn payload_mb_per_s(generation: u32, latency: Time) -> u64 {
        let mut link = link(generation, latency);
        for _ in 0..1000 {
            link.send(Time::ZERO, Fis::Data(DATA_PAYLOAD));
        }
        DATA_PAYLOAD * 1000 * 1_000_000 / link.wire.free_at().ps()
    }

    /// 2,048 Dwords of 2,057, and 254 of 256: 0.98786 of 150, 300 and 600 MB/s.
    #[test]
    fn largest_frames_leave_nearly_all_of_the_rate() {
        let rates: Vec<u64> = (1..=3).map(|generation| payload_mb_per_s(generation, Time::ZERO)).collect();
        assert_eq!(rates, [148, 296, 592]);
        assert_eq!(bytes_per_s(4), None);
    }

    /// 8,228 B at 595.3125 MB/s are 13,821.3 ns; with four times 100 ns 14,221.3 ns, 576.0 MB/s. With 250 ns, 552.8 MB/s.
    #[test]
    fn each_frame_waits_for_two_answers() {
        assert_eq!(payload_mb_per_s(3, Time::from_ns(100)), 576);
        assert_eq!(payload_mb_per_s(3, Time::from_ns(250)), 552);
    }

    /// 13 Dwords, 640 bits at 8 bits per character: 52 B at 595.3125 MB/s are 87.349 ns, two Dwords 13.438 ns. The
    /// frame arrives before R_OK, SYNC, and the latency of R_OK.
    #[test]
    fn a_frame_is_there_before_the_wire_is_free() {
        let latency = Time::from_ns(100);
        let mut link = link(3, latency);
        let there = link.send(Time::ZERO, Fis::RegisterToDevice);
        let [all, behind] = [52, 8].map(|bytes| Time::transfer(bytes, 595_312_500));
        assert_eq!(there, all + latency.times(3) - behind);
        assert_eq!(all.ps() / 1000, 87);
        assert_eq!(link.busy(Time::from_us(1)), all + latency.times(4));
    }

    /// A sender in the other direction waits: both together take as long as two in the same direction.
    #[test]
    fn both_ways_share_the_wire() {
        let mut link = link(3, Time::ZERO);
        let alone = link.send(Time::ZERO, Fis::Data(4096));
        let behind = link.send(Time::ZERO, Fis::Data(4096)) - alone;
        assert_eq!(behind, link.time(1 + 1024 + AROUND));
        assert_eq!(link.busy(alone), alone);
    }

    #[test]
    fn a_link_goes_on_from_what_it_saved() {
        let mut link = link(2, Time::from_ns(50));
        link.send(Time::ZERO, Fis::Data(512));
        let mut saved = Vec::new();
        link.save(&mut saved);
        let mut other = Link::new(300_000_000, Time::from_ns(50));
        assert_eq!(other.load(&mut saved.as_slice()), Some(()));
        assert_eq!(other.send(Time::ZERO, Fis::DmaSetup), link.send(Time::ZERO, Fis::DmaSetup));
        assert_eq!(other.load(&mut &saved[1..]), None);
    }

    /// A header and 512 B at 40 pJ a byte, and 2 us at half a watt.
    #[test]
    fn frames_cost_energy() {
        let energy = LinkEnergySpec { transfer: Energy::new(40_000_000), on: Power::new(500_000) };
        let mut link = link(3, Time::ZERO).with_energy(&energy);
        link.send(Time::ZERO, Fis::Data(512));
        let report = link.energy(Time::from_us(2)).expect("it has a meter");
        assert_eq!(report.of("link transfer"), 516 * 40_000_000);
        let [least, most] = link.carried();
        assert!((least..=most).contains(&516) && most - least <= 1, "{least}, {most}");
        assert_eq!(report.of("link on"), 500_000 * 2_000_000);
    }
}
