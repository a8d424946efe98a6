//! PCI Express link: two first-in-first-out directions, packets with headers.

use crate::Rate;
use crate::energy::{LinkEnergySpec, LinkMeter};
use config::units::Share;
use engine::{Mutant, Snapshot, Time, planted, planted_nth, resource::Serial};
use stats::EnergyReport;

/// Bytes that framing, sequence number, header and link CRC add to a packet (PCIe base specification: 3 DW + 1 DW
/// header, 4 B sequence and framing, 4 B LCRC).
const PACKET_OVERHEAD: u64 = 24;

/// Bytes per second of one lane after line coding, by generation.
///
/// Source: PCIe base specification: 2.5 and 5 GT/s with 8b/10b, 8 to 32 GT/s with 128b/130b, 64 GT/s with 1b/1b flits.
pub fn lane_bytes_per_s(generation: u32) -> Option<u64> {
    match generation {
        1 => Some(250_000_000),
        2 => Some(500_000_000),
        3 => Some(8_000_000_000 / 8 * 128 / 130),
        4 => Some(16_000_000_000 / 8 * 128 / 130),
        5 => Some(32_000_000_000 / 8 * 128 / 130),
        6 => Some(64_000_000_000 / 8),
        _ => None,
    }
}

/// PCI Express link.
#[derive(Clone, Debug)]
pub struct Link {
    payload: Rate,
    latency: Time,
    to_host: Serial,
    to_device: Serial,
    meter: Option<Box<LinkMeter>>,
    /// Time and transfers booked before the measured window.
    before: (Time, u64),
}

impl Link {
    /// Creates a link of `bytes_per_s` each way after line coding, whose packets carry at most `max_payload` bytes,
    /// with a one-way `latency`. A `max_payload` of zero ignores packet headers.
    pub fn new(bytes_per_s: u64, max_payload: u64, latency: Time) -> Link {
        let effective = match max_payload {
            0 => bytes_per_s,
            p => (u128::from(bytes_per_s) * u128::from(p) / u128::from(p + PACKET_OVERHEAD)) as u64,
        };
        Link {
            payload: Rate::new(effective),
            latency,
            to_host: Serial::default(),
            to_device: Serial::default(),
            meter: None,
            before: (Time::ZERO, 0),
        }
    }

    /// Reserves a share of each direction's bandwidth for acknowledgements and flow-control updates.
    #[must_use]
    pub fn with_flow_control(self, share: Share) -> Link {
        let rate = self.payload.bytes_per_s();
        Link { payload: Rate::new(rate - share.of(rate)), ..self }
    }

    /// Returns the one-way latency.
    #[inline]
    pub fn latency(&self) -> Time {
        self.latency
    }

    /// Sends `bytes` to the host; returns the time at which the last byte leaves the sender.
    #[inline]
    pub fn to_host(&mut self, now: Time, bytes: u64) -> Time {
        let service = self.payload.time(bytes);
        if planted_nth(Mutant::Overtaking, 16) {
            self.meter(bytes, now, now + service);
            return now + service;
        }
        let end = self.to_host.grant(now, service);
        self.meter(bytes, end - service, end);
        end
    }

    /// Sends `bytes` to the device; returns the time at which the last byte leaves the sender.
    #[inline]
    pub fn to_device(&mut self, now: Time, bytes: u64) -> Time {
        let bytes = if planted(Mutant::FreeBytes) { 0 } else { bytes };
        let service = self.payload.time(bytes);
        let end = self.to_device.grant(now, service);
        self.meter(bytes, end - service, end);
        end
    }

    #[inline]
    fn meter(&mut self, bytes: u64, from: Time, to: Time) {
        if let Some(meter) = &mut self.meter {
            let bytes = if planted_nth(Mutant::UnpaidPacket, 16) { 0 } else { bytes };
            meter.transfer(bytes, from, to);
        }
    }

    /// Adds an energy meter to the link.
    #[must_use]
    pub fn with_energy(self, spec: &LinkEnergySpec) -> Link {
        Link { meter: Some(Box::new(LinkMeter::new(spec))), ..self }
    }

    /// Returns the energy since the measured window began, for the payload of both directions; `None` without a meter.
    pub fn energy(&self, now: Time) -> Option<EnergyReport> {
        self.meter.as_ref().map(|meter| meter.report(now))
    }

    /// Starts the measured window.
    pub fn reset_energy(&mut self, now: Time) {
        self.before = self.booked();
        if let Some(meter) = &mut self.meter {
            meter.reset(now);
        }
    }

    /// Returns the time and transfers booked so far, both directions together.
    fn booked(&self) -> (Time, u64) {
        let [one, other] = [&self.to_host, &self.to_device];
        (one.busy(Time::MAX) + other.busy(Time::MAX), one.grants() + other.grants())
    }

    /// Returns the minimum and maximum payload bytes since the measured window began, derived from the booked time.
    /// `None` if bytes take no time.
    pub fn carried(&self) -> Option<[u64; 2]> {
        let ((time, transfers), (before, earlier)) = (self.booked(), self.before);
        self.payload.bytes_in(time - before, transfers - earlier)
    }

    /// Appends the booked time and transfers of each direction, without rate, latency and energy.
    pub fn save(&self, out: &mut Vec<u8>) {
        let Link { payload: _, latency: _, to_host, to_device, meter: _, before: _ } = self;
        to_host.save(out);
        to_device.save(out);
    }

    /// Restores the state that a link saved; `None` if it is truncated or malformed.
    pub fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.to_host = Serial::load(input)?;
        self.to_device = Serial::load(input)?;
        self.before = self.booked();
        Some(())
    }

    /// Returns payload bytes per second, each way.
    pub fn bytes_per_s(&self) -> u64 {
        self.payload.bytes_per_s()
    }

    /// Returns the busy time of the direction to the host, and of the one to the device, up to `now`.
    pub fn busy(&self, now: Time) -> (Time, Time) {
        (self.to_host.busy(now), self.to_device.busy(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::units::{Energy, Power};

    #[test]
    fn generations_double() {
        // Published per-lane rates: 0.25, 0.5, 0.985, 1.969, 3.938 GB/s.
        let mb: Vec<u64> = (1..=5).filter_map(lane_bytes_per_s).map(|b| b / 1_000_000).collect();
        assert_eq!(mb, [250, 500, 984, 1969, 3938]);
        assert_eq!(lane_bytes_per_s(7), None);
    }

    #[test]
    fn directions_do_not_disturb_each_other() {
        let mut link = Link::new(4_000_000_000, 0, Time::from_ns(100));
        let t = link.to_host(Time::ZERO, 4096);
        assert_eq!(t, Time::from_ns(1024));
        assert_eq!(link.to_device(Time::ZERO, 4096), t);
        assert_eq!(link.to_host(Time::ZERO, 4096), Time::from_ns(2048));
    }

    #[test]
    fn headers_cost() {
        let link = Link::new(1_000_000_000, 256, Time::ZERO);
        assert_eq!(link.bytes_per_s(), 1_000_000_000u64 * 256 / 280);
    }

    /// Neugebauer et al., SIGCOMM 2018: 57.88 of the 62.96 Gb/s of a Gen 3 x8 link are left for packets.
    #[test]
    fn acknowledgements_and_flow_control_cost() {
        let eight_lanes = 8 * lane_bytes_per_s(3).expect("a generation");
        let share = "8.07%".parse().expect("a share");
        let link = Link::new(eight_lanes, 0, Time::ZERO);
        let left = link.clone().with_flow_control(share);
        let gb = |link: &Link| (link.bytes_per_s() * 8) as f64 / 1e9;
        assert!((gb(&link) - 63.02).abs() < 0.1 && (gb(&left) / gb(&link) - 57.88 / 62.96).abs() < 1e-4);
        assert_eq!(link.clone().with_flow_control(Share::ZERO).bytes_per_s(), link.bytes_per_s());
    }

    /// 4 KiB at 40 pJ a byte, and 2 us at half a watt.
    #[test]
    fn bytes_and_being_on_cost_energy() {
        let energy = LinkEnergySpec { transfer: Energy::new(40_000_000), on: Power::new(500_000) };
        let mut link = Link::new(4_000_000_000, 256, Time::ZERO).with_energy(&energy);
        link.to_host(Time::ZERO, 4_000);
        link.to_device(Time::ZERO, 96);
        let report = link.energy(Time::from_us(2)).expect("it has a meter");
        assert_eq!(report.of("link transfer"), 4_096 * 40_000_000);
        assert_eq!(report.of("link on"), 500_000 * 2_000_000);
        assert!(report.conserves());
        let [least, most] = link.carried().expect("bytes take time");
        assert!((least..=most).contains(&4_096) && most - least <= 1, "{least}, {most}");
        link.reset_energy(Time::from_us(2));
        assert_eq!(link.energy(Time::from_us(2)).map(|report| report.total()), Some(0));
        assert_eq!(link.carried(), Some([0, 0]));
        assert_eq!(Link::new(1, 0, Time::ZERO).energy(Time::ZERO), None);
    }
}
