//! Latency of a single operation and throughput bounds of a flash device, by its slowest resource.
//!
//! Derived, not cited: each value is an operation count times a service time. All times are in one unit, all sizes in
//! bytes, all rates in bytes per that unit.

/// Device of equal channels with equal dies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Device {
    /// Channels, each with its own bus.
    pub channels: u32,
    /// Dies on each channel.
    pub dies_per_channel: u32,
    /// Planes that one operation uses together; 1 for single-plane operations.
    pub planes: u32,
    /// Bytes moved over the channel for each plane of an operation.
    pub page: u64,
    /// Command and address cycles of an operation on the channel.
    pub command: f64,
    /// Time from cell array to page register.
    pub read: f64,
    /// Time from page register to cell array.
    pub program: f64,
    /// Time to erase one block per plane.
    pub erase: f64,
    /// Rate of one channel, bytes per unit of time.
    pub channel_rate: f64,
    /// Rate of the host link, bytes per unit of time; infinite without a link.
    pub link_rate: f64,
}

/// Maximum rate that each resource allows, in host bytes per unit of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Rate with all dies always busy.
    pub die: f64,
    /// Rate with all channels always busy.
    pub channel: f64,
    /// Rate with the link always busy.
    pub link: f64,
}

impl Limits {
    /// Returns the rate of the slowest resource.
    pub fn throughput(&self) -> f64 {
        self.die.min(self.channel).min(self.link)
    }
}

impl Device {
    /// Returns the bytes of one operation.
    pub fn operation_bytes(&self) -> f64 {
        (u64::from(self.planes) * self.page) as f64
    }

    fn transfer(&self) -> f64 {
        self.operation_bytes() / self.channel_rate
    }

    fn dies(&self) -> f64 {
        f64::from(self.channels) * f64::from(self.dies_per_channel)
    }

    /// Returns the latency of one read on an idle device: command, array, channel, link.
    pub fn read_latency(&self) -> f64 {
        self.command + self.read + self.transfer() + self.operation_bytes() / self.link_rate
    }

    /// Returns the latency of one program on an idle device, complete when the cells are: link, command, channel,
    /// array.
    pub fn program_latency(&self) -> f64 {
        self.operation_bytes() / self.link_rate + self.command + self.transfer() + self.program
    }

    fn limits(&self, die: f64, channel: f64) -> Limits {
        let bytes = self.operation_bytes();
        Limits {
            die: self.dies() * bytes / die,
            channel: f64::from(self.channels) * bytes / channel,
            link: self.link_rate,
        }
    }

    /// Returns the limits of reads without cache registers: a die serves its next read only after the previous
    /// transfer.
    pub fn read_limits(&self) -> Limits {
        let bus = self.command + self.transfer();
        self.limits(bus + self.read, bus)
    }

    /// Returns the limits of reads with cache registers: the array reads the next page during the previous transfer.
    pub fn cached_read_limits(&self) -> Limits {
        let bus = self.command + self.transfer();
        self.limits(bus.max(self.read), bus)
    }

    /// Returns the limits of programs into erased blocks without garbage collection.
    pub fn program_limits(&self) -> Limits {
        let bus = self.command + self.transfer();
        self.limits(bus + self.program, bus)
    }

    /// Returns the limits of overwrites in the steady state of write amplification `amplification`, with
    /// `pages_per_block` operations per block. Each host operation costs `amplification` programs, one read fewer, and
    /// its share of an erase. With `copy_back` relocated pages stay in their die.
    pub fn overwrite_limits(&self, amplification: f64, pages_per_block: u32, copy_back: bool) -> Limits {
        let (moved, bus) = (amplification - 1.0, self.command + self.transfer());
        let erases = amplification / f64::from(pages_per_block);
        // A copy-back is two commands and two array operations without transfer; an erase is one command.
        let moved_bus = if copy_back { 2.0 * self.command } else { 2.0 * bus };
        let channel = bus + moved * moved_bus + erases * self.command;
        let die = channel + self.program + moved * (self.read + self.program) + erases * self.erase;
        self.limits(die, channel)
    }
}

#[cfg(test)]
mod tests {
    use super::Device;

    /// Times in us, rates in bytes per us (MB/s).
    const DEVICE: Device = Device {
        channels: 8,
        dies_per_channel: 4,
        planes: 1,
        page: 4096,
        command: 0.5,
        read: 50.0,
        program: 600.0,
        erase: 3000.0,
        channel_rate: 800.0,
        link_rate: 3200.0,
    };

    #[test]
    fn latency_is_the_sum_of_its_parts() {
        // 0.5 + 50 + 4096/800 + 4096/3200 = 0.5 + 50 + 5.12 + 1.28
        assert!((DEVICE.read_latency() - 56.9).abs() < 1e-12);
        assert!((DEVICE.program_latency() - 606.9).abs() < 1e-12);
    }

    #[test]
    fn the_slowest_resource_binds() {
        let reads = DEVICE.read_limits();
        assert!((reads.die - 32.0 * 4096.0 / 55.62).abs() < 1e-9);
        assert!((reads.channel - 8.0 * 4096.0 / 5.62).abs() < 1e-9);
        assert_eq!(reads.throughput(), reads.die);
        let many = Device { dies_per_channel: 64, ..DEVICE };
        assert_eq!(many.read_limits().throughput(), 3200.0, "the link binds");
        let wide = Device { link_rate: f64::INFINITY, ..many };
        assert_eq!(wide.read_limits().throughput(), wide.read_limits().channel);
        assert!((DEVICE.cached_read_limits().die - 32.0 * 4096.0 / 50.0).abs() < 1e-9);
    }

    #[test]
    fn overwriting_without_amplification_adds_the_erase_only() {
        let plain = DEVICE.program_limits().die;
        let over = DEVICE.overwrite_limits(1.0, 256, false).die;
        let per_operation = 605.62 + (3000.0 + 0.5) / 256.0;
        assert!((plain - 32.0 * 4096.0 / 605.62).abs() < 1e-9);
        assert!((over - 32.0 * 4096.0 / per_operation).abs() < 1e-9);
    }

    #[test]
    fn amplification_of_three_moves_two_pages_for_each() {
        let over = DEVICE.overwrite_limits(3.0, 256, true);
        let channel = 5.62 + 2.0 * 1.0 + 3.0 / 256.0 * 0.5;
        let die = channel + 600.0 + 2.0 * 650.0 + 3.0 / 256.0 * 3000.0;
        assert!((over.channel - 8.0 * 4096.0 / channel).abs() < 1e-9);
        assert!((over.die - 32.0 * 4096.0 / die).abs() < 1e-9);
    }
}
