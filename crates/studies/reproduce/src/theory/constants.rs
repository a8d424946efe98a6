//! The constants of a spec in picoseconds, read for formulas: none of the simulator's own arithmetic is used.

use spec::Drive;
use ssd::spec::{HostLinkSpec, Interface, PlainSpec};

/// Picoseconds a second.
const SECOND: u128 = 1_000_000_000_000;
/// A completion queue entry (NVM Express base specification 2.0, section 3.3.3.2).
const COMPLETION_BYTES: u64 = 16;

/// Properties of a device that formulas need.
pub(super) struct Constants<'a> {
    drive: Drive<'a>,
    /// Bytes a second of a channel, and of the link in each direction.
    pub(super) channel_rate: u64,
    pub(super) link_rate: u64,
    link_latency: u64,
}

/// A named part of a sum, picoseconds.
pub(super) type Part = (&'static str, u64);

impl Constants<'_> {
    pub(super) fn of(drive: Drive<'_>) -> Constants<'_> {
        let channel = &drive.flash.channel;
        let (link_rate, latency) = match &drive.flash.host.link {
            HostLinkSpec::Plain(PlainSpec { bandwidth, latency }) => (bandwidth.bytes_per_s(), latency),
            HostLinkSpec::Pcie(pcie) => {
                let payload = pcie.max_payload.get();
                // A packet adds 24 bytes of header, framing and check sum to its payload.
                let packets = pcie_lane(pcie.generation) * u64::from(pcie.lanes) * payload / (payload + 24);
                let taken = pcie.flow_control.map_or(0.0, |share| share.get() * packets as f64);
                (packets - taken.round() as u64, &pcie.latency)
            }
            // Frames of 8 KiB, 2,048 Dwords of 2,057, and no ALIGN; what comes before and after is another protocol's.
            HostLinkSpec::Sata(sata) => {
                let wire = 150_000_000u64 << sata.generation.saturating_sub(1).min(2);
                (wire * 254 / 256 * 2048 / 2057, &sata.latency)
            }
        };
        Constants {
            drive,
            channel_rate: channel.rate.per_s() * u64::from(channel.width) / 8,
            link_rate,
            link_latency: latency.time().ps(),
        }
    }

    /// Cell array to page register, page register to cell array, erase. One page type.
    pub(super) fn read(&self) -> u64 {
        self.drive.flash.cell.read[0].time().ps()
    }
    pub(super) fn program(&self) -> u64 {
        self.drive.flash.cell.program[0].time().ps()
    }
    pub(super) fn erase(&self) -> u64 {
        self.drive.flash.cell.erase.time().ps()
    }
    /// Bytes of a page.
    pub(super) fn page(&self) -> u64 {
        self.drive.flash.geometry.page_size.get()
    }

    /// Command and address cycles of a read or a program, set-up of data out, set-up of data in.
    ///
    /// ONFI 4.2, timing tables: tCS, seven cycles of tWC or tCAD (two commands, five addresses), tWB; tRR and the read
    /// preamble; tADL and the write preamble.
    pub(super) fn cycles(&self) -> [u64; 3] {
        let ns = match self.drive.flash.channel.interface {
            Interface::sdr => [15 + 7 * 20 + 100, 20 + 16, 70],
            Interface::nv_ddr2 | Interface::nv_ddr3 | Interface::nv_lpddr4 => {
                [20 + 7 * 25 + 100, 20 + 30, 150]
            }
            Interface::toggle => [20 + 7 * 25 + 100, 20 + 30, 300],
        };
        ns.map(|ns| ns * 1000)
    }

    /// Time of `bytes` on a channel.
    pub(super) fn on_channel(&self, bytes: u64) -> u64 {
        transfer(bytes, self.channel_rate)
    }

    /// From the application to the controller's firmware, done with the command of one map unit.
    fn before(&self) -> Vec<Part> {
        let host = &self.drive.flash.host;
        let (doorbell, fetch) = match &host.nvme {
            // The doorbell crosses the link once, the fetch there and back.
            Some(n) => {
                (self.link_latency + n.doorbell.time().ps(), 2 * self.link_latency + n.fetch.time().ps())
            }
            None => (self.link_latency, 0),
        };
        let firmware = host.controller.command.time().ps() + host.controller.unit.time().ps();
        vec![
            ("host software", self.drive.host.submit.time().ps()),
            ("doorbell", doorbell),
            ("fetch", fetch),
            ("controller", firmware),
        ]
    }

    /// From the controller's firmware back to the application.
    fn after(&self) -> Vec<Part> {
        let nvme = self.drive.flash.host.nvme.as_ref();
        let entry = nvme.map_or(0, |_| transfer(COMPLETION_BYTES, self.link_rate));
        let interrupt = nvme.map_or(0, |n| n.interrupt.time().ps());
        vec![
            ("completion entry", entry + self.link_latency),
            ("interrupt", interrupt),
            ("host software", self.drive.host.complete.time().ps()),
        ]
    }

    /// Parts of the latency of a read of one page on an idle device.
    pub(super) fn read_parts(&self) -> Vec<Part> {
        let [command, data_out, _] = self.cycles();
        let array = [
            ("command", command),
            ("tR", self.read()),
            ("data out", data_out + self.on_channel(self.page())),
            ("link", transfer(self.page(), self.link_rate)),
        ];
        [self.before(), array.to_vec(), self.after()].concat()
    }

    /// Parts of the latency of a write of one page on an idle device that acknowledges from flash.
    pub(super) fn write_parts(&self) -> Vec<Part> {
        let [command, _, data_in] = self.cycles();
        let array = [
            ("link", transfer(self.page(), self.link_rate) + self.link_latency),
            ("command", command),
            ("data in", data_in + self.on_channel(self.page())),
            ("tPROG", self.program()),
        ];
        [self.before(), array.to_vec(), self.after()].concat()
    }

    /// The device as the formulas of [`theory::flash`] want it, in bytes and picoseconds, for operations of `planes`
    /// planes whose set-up takes `set_up` for each plane.
    pub(super) fn device(&self, planes: u32, set_up: u64) -> theory::flash::Device {
        let geometry = &self.drive.flash.geometry;
        let second = SECOND as f64;
        theory::flash::Device {
            channels: geometry.channels,
            dies_per_channel: geometry.ways * geometry.dies,
            planes,
            page: self.page(),
            command: f64::from(planes) * set_up as f64,
            read: self.read() as f64,
            program: self.program() as f64,
            erase: self.erase() as f64,
            channel_rate: self.channel_rate as f64 / second,
            link_rate: self.link_rate as f64 / second,
        }
    }
}

/// Bytes a second of a lane after line coding: PCIe base specification, 8b/10b, 128b/130b, 1b/1b.
fn pcie_lane(generation: u32) -> u64 {
    let mega_transfers = [2_500, 5_000, 8_000, 16_000, 32_000, 64_000][generation as usize - 1];
    let (data, sent) =
        [(8, 10), (8, 10), (128, 130), (128, 130), (128, 130), (1, 1)][generation as usize - 1];
    mega_transfers * 1_000_000 / 8 * data / sent
}

/// Time of `bytes` at a rate, to the next whole picosecond.
fn transfer(bytes: u64, bytes_per_s: u64) -> u64 {
    (u128::from(bytes) * SECOND).div_ceil(u128::from(bytes_per_s)) as u64
}
