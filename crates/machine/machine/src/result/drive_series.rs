//! What a drive looked like over time.

use crate::gauges::Reading;
use crate::machine::Machine;
use engine::Time;
use schemars::JsonSchema;
use serde::Serialize;
use ssd::Device;

/// A drive over a span of time.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DriveWindow {
    /// Its beginning, nanoseconds.
    pub start_ns: f64,
    /// Its length, nanoseconds.
    pub width_ns: f64,
    /// Bytes in the buffer that were not on flash, at its end.
    pub buffer_bytes: u64,
    /// Free reclaim units, at its end.
    pub free_blocks: u64,
    /// Bytes programmed over bytes written by the host in it; null where the host wrote nothing.
    pub write_amplification: Option<f64>,
    /// Share of it in which channels moved commands or data, the mean of all.
    pub channel_utilisation: f64,
    /// Share of it in which dies were occupied, the mean of all.
    pub die_utilisation: f64,
}

/// The spans between the readings of a drive, from the beginning of the measured window to its end.
pub(super) fn collect(machine: &Machine, number: usize, device: &Device) -> Vec<DriveWindow> {
    let shape = &device.ftl.geo.shape;
    let (channels, dies) = (f64::from(shape.channels), f64::from(device.ftl.geo.die_count));
    let now = machine.now();
    let last = (now, Reading::of(device, now));
    let Some((first, others)) = machine.gauges().of(number).split_first() else { return Vec::new() };
    let mut before = first;
    let mut windows = Vec::new();
    for after in others.iter().chain([&last]) {
        let ((from, earlier), (at, reading)) = (before, after);
        let width = at.since(*from);
        if width == Time::ZERO {
            continue;
        }
        let since = |f: fn(&Reading) -> u64| f(reading) - f(earlier);
        let (written, programmed) = (since(|r| r.written), since(|r| r.programmed));
        let share =
            |f: fn(&Reading) -> u128, of: f64| (f(reading) - f(earlier)) as f64 / width.ps() as f64 / of;
        windows.push(DriveWindow {
            start_ns: from.as_ns_f64(),
            width_ns: width.as_ns_f64(),
            buffer_bytes: reading.buffered,
            free_blocks: reading.free,
            write_amplification: (written > 0).then(|| programmed as f64 / written as f64),
            channel_utilisation: share(|r| r.channels, channels),
            die_utilisation: share(|r| r.dies, dies),
        });
        before = after;
    }
    windows
}
