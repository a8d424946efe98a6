//! Writers faster than their devices: what the loop of rates, positions and pauses settles at. Writers and devices are fluid, in steps of 100 us.

use super::writeback;
use crate::writeback::{Bound, Dirtier, DirtyBounds, Step, WriteInode, Writeback, Wrote};
use crate::{Inode, PAGE};
use engine::Time;
use std::collections::VecDeque;

/// Pages of 1 and of 16 GiB.
const SMALL: u64 = 262_144;
const LARGE: u64 = 4_194_304;
const STEP_US: u64 = 100;

/// Bytes as they gather, and the whole pages of them.
struct Rate {
    bytes_per_s: u64,
    left: u64,
}

impl Rate {
    fn pages(&mut self) -> u64 {
        self.left += self.bytes_per_s * STEP_US / 1_000_000;
        let pages = self.left / PAGE;
        self.left %= PAGE;
        pages
    }
}

/// It writes its own file on a drive.
struct Writer {
    rate: Rate,
    drive: u16,
    task: Dirtier,
    asleep: Option<Time>,
    pages: u64,
}

/// Pages under way of a device, oldest first.
struct Device {
    rate: Rate,
    queue: VecDeque<(Inode, u64)>,
    queued: u64,
    step: Option<(WriteInode, u64)>,
    pages: u64,
}

/// Requests under way: as much as a drive has tags for, 16 MiB.
const DEPTH: u64 = 4_096;

struct Machine {
    avail: u64,
    writeback: Writeback,
    writers: Vec<Writer>,
    devices: Vec<Device>,
    now: Time,
}

impl Machine {
    /// Writers by the drive of each, all of one speed, and devices by their speeds, in MB/s.
    fn new(avail: u64, writer: u64, drives: &[u16], devices: &[u64]) -> Machine {
        let rate = |mb: u64| Rate { bytes_per_s: mb * 1_000_000, left: 0 };
        let writers = drives.iter().map(|drive| Writer {
            rate: rate(writer),
            drive: *drive,
            task: Dirtier::default(),
            asleep: None,
            pages: 0,
        });
        let devices = devices.iter().map(|mb| Device {
            rate: rate(*mb),
            queue: VecDeque::new(),
            queued: 0,
            step: None,
            pages: 0,
        });
        let devices: Vec<_> = devices.collect();
        Machine {
            avail,
            writeback: writeback(devices.len() as u16, avail),
            writers: writers.collect(),
            devices,
            now: Time::ZERO,
        }
    }

    /// Runs for a time; `look` sees the machine after every step.
    fn run(&mut self, ms: u64, mut look: impl FnMut(&Machine)) {
        let end = self.now + Time::from_ms(ms);
        while self.now < end {
            self.now += Time::from_us(STEP_US);
            for number in 0..self.writers.len() {
                self.write(number);
            }
            for drive in 0..self.devices.len() as u16 {
                self.drain(drive);
                self.flush(drive);
            }
            look(self);
        }
        self.writeback.check().expect("the accounts hold");
    }

    fn write(&mut self, number: usize) {
        let (now, writer) = (self.now, &mut self.writers[number]);
        if let Some(until) = writer.asleep {
            if until > now {
                return;
            }
            writer.asleep = self.writeback.resume(writer.drive, &mut writer.task, self.avail, now).pause;
        }
        let core = (number % 4) as u16;
        for _ in 0..writer.rate.pages() {
            if writer.asleep.is_some() {
                break;
            }
            let _ =
                self.writeback.dirtied(Inode(number as u32), writer.drive, 1, &mut writer.task, core, now);
            writer.asleep =
                self.writeback.balance(writer.drive, &mut writer.task, core, self.avail, now).pause;
            writer.pages += 1;
        }
    }

    fn drain(&mut self, drive: u16) {
        let device = &mut self.devices[usize::from(drive)];
        let mut pages = device.rate.pages();
        while let Some((inode, left)) = device.queue.front_mut() {
            let done = pages.min(*left);
            (pages, *left, device.queued, device.pages) =
                (pages - done, *left - done, device.queued - done, device.pages + done);
            self.writeback.ended(*inode, done, self.now);
            if *left > 0 {
                return;
            }
            device.queue.pop_front();
        }
    }

    /// The flusher goes on until the device's queue is full or nothing is left.
    fn flush(&mut self, drive: u16) {
        let _ = self.writeback.start(drive, self.now);
        while self.writeback.is_running(drive) {
            let device = &mut self.devices[usize::from(drive)];
            let Some((step, done)) = &mut device.step else {
                match self.writeback.next(drive, self.avail, self.now) {
                    Step::Write(step) => device.step = Some((step, 0)),
                    Step::Finished { .. } | Step::Idle { .. } => {}
                }
                continue;
            };
            let dirty = self.writeback.dirty_of(step.inode).min(step.pages - *done);
            let pages = dirty.min(DEPTH - device.queued);
            if pages > 0 {
                self.writeback.started(step.inode, pages);
                device.queue.push_back((step.inode, pages));
                (device.queued, *done) = (device.queued + pages, *done + pages);
            }
            if pages < dirty {
                return;
            }
            let wrote = Wrote { pages: *done, skipped: 0, next: 0 };
            device.step = None;
            self.writeback.wrote(drive, wrote, self.now);
        }
    }
}

/// Pages a second.
fn pages_per_s(pages: u64, ms: u64) -> f64 {
    pages as f64 * 1e3 / ms as f64
}

fn near(found: f64, expected: f64, share: f64, what: &str) {
    assert!((found / expected - 1.0).abs() < share, "{what}: {found} and not {expected}");
}

/// The end of the free run, the set point and the limit with 1 GiB.
const FREERUN: u64 = 39_296;
const SETPOINT: f64 = 45_856.0;
const LIMIT: u64 = 52_416;

#[test]
fn a_writer_of_500_mb_a_second_is_slowed_to_its_device() {
    let mut machine = Machine::new(SMALL, 500, &[0], &[100]);
    machine.run(15_000, |machine| {
        let dirty = machine.writeback.dirty() + machine.writeback.writeback();
        assert!(dirty <= LIMIT + 64, "{dirty} pages at {}", machine.now);
    });
    let (before, mut sum, mut looks) = (machine.writers[0].pages, 0, 0);
    machine.run(20_000, |machine| {
        let dirty = machine.writeback.dirty() + machine.writeback.writeback();
        assert!((FREERUN..=LIMIT).contains(&dirty), "{dirty} pages at {}", machine.now);
        (sum, looks) = (sum + dirty, looks + 1);
    });
    let device = 100e6 / PAGE as f64;
    near(pages_per_s(machine.writers[0].pages - before, 20_000), device, 0.03, "its speed");
    near(sum as f64 / looks as f64, SETPOINT, 0.05, "dirty pages");
    near(machine.writeback.estimates(0).write_bandwidth as f64, device, 0.03, "the estimate");
    near(machine.writeback.estimates(0).dirty_ratelimit as f64, device, 0.15, "the rate of a writer");
    let pauses = &machine.writeback.stats.pauses;
    assert!(pauses.count() > 500 && pauses.max() <= Some(Time::from_ms(204).ps()));
}

#[test]
fn four_writers_share_alike() {
    let mut machine = Machine::new(SMALL, 500, &[0; 4], &[100]);
    machine.run(15_000, |_| {});
    let before: Vec<u64> = machine.writers.iter().map(|writer| writer.pages).collect();
    machine.run(20_000, |_| {});
    let quarter = 100e6 / PAGE as f64 / 4.0;
    for (writer, before) in machine.writers.iter().zip(before) {
        near(pages_per_s(writer.pages - before, 20_000), quarter, 0.1, "a writer");
    }
    near(machine.writeback.estimates(0).dirty_ratelimit as f64, quarter, 0.2, "the rate of a writer");
}

#[test]
fn two_devices_share_by_their_speeds() {
    let mut machine = Machine::new(LARGE, 500, &[0, 1], &[150, 50]);
    // The slow one begins with as much as the fast one, and gives it up as long as there is too much in all.
    machine.run(66_000, |_| {});
    let before: Vec<u64> = machine.devices.iter().map(|device| device.pages).collect();
    let (mut sums, mut looks) = ([0; 2], 0);
    machine.run(14_000, |machine| {
        looks += 1;
        for (sum, wb) in sums.iter_mut().zip(&machine.writeback.wbs) {
            *sum += wb.dirty();
        }
    });
    // 75 and 25 % of the set point, (628736 + 838656) / 2.
    for (drive, mb, share) in [(0, 150e6, 0.75), (1, 50e6, 0.25)] {
        let pages = machine.devices[drive].pages - before[drive];
        near(pages_per_s(pages, 14_000), mb / PAGE as f64, 0.01, "a device has work always");
        near(sums[drive] as f64 / f64::from(looks), 733_696.0 * share, 0.05, "dirty pages");
        let wb = &machine.writeback.wbs[drive];
        let thresh = machine.writeback.domain.wb_thresh(&wb.completions, wb.ratios, 838_656);
        near(thresh as f64, 838_656.0 * share, 0.01, "its part of the limit");
    }
}

#[test]
fn lower_bounds_stop_a_writer_until_less_is_dirty() {
    let mut machine = Machine::new(SMALL, 500, &[0], &[100]);
    machine.run(10_000, |_| {});
    let low = DirtyBounds { background: Bound::Bytes(50 << 20), limit: Bound::Bytes(100 << 20) };
    // What is dirty, about 45856 pages, must go down to 25600 first, at 24414 a second.
    machine.writeback.set_bounds(low, SMALL);
    let before = machine.writers[0].pages;
    machine.run(500, |_| {});
    assert!(machine.writers[0].pages - before < 1_000, "the limit falls at once");
    machine.run(15_000, |_| {});
    let before = machine.writers[0].pages;
    machine.run(10_000, |_| {});
    near(pages_per_s(machine.writers[0].pages - before, 10_000), 100e6 / PAGE as f64, 0.05, "its speed");
}
