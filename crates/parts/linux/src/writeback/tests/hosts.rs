//! Write-back as used by hosts: work in any order keeps the accounts consistent; writers faster than their devices
//! settle.

use super::writeback;
use crate::writeback::{
    Bound, Dirtier, DirtyBounds, DirtyFlags, Reason, Step, SyncMode, WriteInode, Writeback, Wrote,
};
use crate::{Inode, PAGE};
use engine::Time;
use proptest::prelude::*;
use std::collections::VecDeque;

/// Pages of 1 and of 16 GiB.
const SMALL: u64 = 262_144;
const LARGE: u64 = 4_194_304;
const STEP_US: u64 = 100;

/// Byte counter that yields whole pages.
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

/// Writer of its own file on a drive.
struct Writer {
    rate: Rate,
    drive: u16,
    task: Dirtier,
    asleep: Option<Time>,
    pages: u64,
}

/// Pages in flight of a device, oldest first.
struct Device {
    rate: Rate,
    queue: VecDeque<(Inode, u64)>,
    queued: u64,
    step: Option<(WriteInode, u64)>,
    pages: u64,
}

/// Requests in flight: one drive's tags, 16 MiB.
const DEPTH: u64 = 4_096;

struct Machine {
    avail: u64,
    writeback: Writeback,
    writers: Vec<Writer>,
    devices: Vec<Device>,
    now: Time,
}

impl Machine {
    /// Creates writers of equal speed, given by the drive of each, and devices, given by their speeds in MB/s.
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

    /// Runs for a time; `look` is called after every step.
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

    /// Runs the flusher until the device's queue is full or nothing is left.
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

/// Rate in pages a second.
fn pages_per_s(pages: u64, ms: u64) -> f64 {
    pages as f64 * 1e3 / ms as f64
}

fn near(found: f64, expected: f64, share: f64, what: &str) {
    assert!((found / expected - 1.0).abs() < share, "{what}: {found} and not {expected}");
}

/// End of the free run, set point and limit with 1 GiB.
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
    // The slow drive begins with as much as the fast one, and gives it up while the total is too large.
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
    // Dirty pages, about 45856, must first fall to 25600, at 24414 a second.
    machine.writeback.set_bounds(low, SMALL);
    let before = machine.writers[0].pages;
    machine.run(500, |_| {});
    assert!(machine.writers[0].pages - before < 1_000, "the limit falls at once");
    machine.run(15_000, |_| {});
    let before = machine.writers[0].pages;
    machine.run(10_000, |_| {});
    near(pages_per_s(machine.writers[0].pages - before, 10_000), 100e6 / PAGE as f64, 0.05, "its speed");
}

// Any actions of a host, in any order: the accounts stay consistent, and at the end no page is dirty.

const AVAIL: u64 = 20_000;

const INODES: u32 = 6;

#[derive(Clone, Debug)]
enum Act {
    Dirty { inode: u32, pages: u64 },
    Mark { inode: u32 },
    Cut { inode: u32, pages: u64 },
    Remove { inode: u32 },
    Fsync { inode: u32 },
    End { inode: u32, pages: u64 },
    Reclaim { drive: u16 },
    Sync { drive: u16 },
    Flush { drive: u16, share: u64, skipped: u64 },
    Wait { ms: u64 },
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let (inode, pages, drive) = (0..INODES, 1..3_000_u64, 0..2_u16);
    let act = prop_oneof![
        6 => (inode.clone(), pages.clone()).prop_map(|(inode, pages)| Act::Dirty { inode, pages }),
        1 => inode.clone().prop_map(|inode| Act::Mark { inode }),
        1 => (inode.clone(), pages.clone()).prop_map(|(inode, pages)| Act::Cut { inode, pages }),
        1 => inode.clone().prop_map(|inode| Act::Remove { inode }),
        1 => inode.clone().prop_map(|inode| Act::Fsync { inode }),
        6 => (inode, pages).prop_map(|(inode, pages)| Act::End { inode, pages }),
        1 => drive.clone().prop_map(|drive| Act::Reclaim { drive }),
        1 => drive.clone().prop_map(|drive| Act::Sync { drive }),
        8 => (drive, 0..=4_u64, 0..=9_u64).prop_map(|(drive, share, s)| Act::Flush { drive, share, skipped: s / 9 }),
        3 => (1..3_000_u64).prop_map(|ms| Act::Wait { ms }),
    ];
    prop::collection::vec(act, 0..200)
}

struct Host {
    writeback: Writeback,
    task: Dirtier,
    now: Time,
    /// Current step of each drive.
    steps: [Option<WriteInode>; 2],
    writing: [u64; INODES as usize],
}

/// Drive of an inode: drives in turn.
fn drive_of(inode: u32) -> u16 {
    (inode % 2) as u16
}

impl Host {
    fn act(&mut self, act: &Act) {
        let dirty_of = |host: &Host, inode| host.writeback.dirty_of(Inode(inode));
        match *act {
            Act::Dirty { inode, pages } => {
                let drive = drive_of(inode);
                let _ = self.writeback.dirtied(Inode(inode), drive, pages, &mut self.task, 0, self.now);
                let _ = self.writeback.balance(drive, &mut self.task, 0, AVAIL, self.now);
            }
            Act::Mark { inode } => {
                let _ = self.writeback.mark_dirty(Inode(inode), drive_of(inode), DirtyFlags::INODE, self.now);
            }
            Act::Cut { inode, pages } => {
                let pages = pages.min(dirty_of(self, inode));
                if pages > 0 {
                    self.writeback.cleaned(Inode(inode), pages);
                }
            }
            Act::Remove { inode } => {
                // A reused number is a different file: not while the old one is in use.
                let used = self.steps.iter().flatten().any(|step| step.inode == Inode(inode));
                if !used && self.writing[inode as usize] == 0 {
                    let dirty = dirty_of(self, inode);
                    if dirty > 0 {
                        self.writeback.cleaned(Inode(inode), dirty);
                    }
                    self.writeback.evict(Inode(inode));
                }
            }
            Act::Fsync { inode } => {
                self.writeback.begin_writepages(drive_of(inode), self.now);
                self.submit(inode, u64::MAX);
                self.writeback.end_writepages(drive_of(inode), self.now);
                let _ = self.writeback.sync_inode(Inode(inode), false, self.now);
            }
            Act::End { inode, pages } => {
                let pages = pages.min(self.writing[inode as usize]);
                if pages > 0 {
                    self.writing[inode as usize] -= pages;
                    self.writeback.ended(Inode(inode), pages, self.now);
                }
            }
            Act::Reclaim { drive } => {
                let _ = self.writeback.start_all(drive, Reason::Vmscan);
            }
            Act::Sync { drive } => {
                let _ = self.writeback.sync(drive);
            }
            Act::Flush { drive, share, skipped } => self.flush(drive, share, skipped),
            Act::Wait { ms } => self.now += Time::from_ms(ms),
        }
        self.writeback.check().expect("the accounts hold");
    }

    fn submit(&mut self, inode: u32, most: u64) -> u64 {
        let pages = most.min(self.writeback.dirty_of(Inode(inode)));
        if pages > 0 {
            self.writeback.started(Inode(inode), pages);
            self.writing[inode as usize] += pages;
        }
        pages
    }

    /// Begins a step of the flusher, or does `share` quarters of the current one.
    fn flush(&mut self, drive: u16, share: u64, skipped: u64) {
        let Some(step) = self.steps[usize::from(drive)].take() else {
            let runs = self.writeback.is_running(drive) || self.writeback.start(drive, self.now);
            if runs && let Step::Write(step) = self.writeback.next(drive, AVAIL, self.now) {
                assert_eq!(drive_of(step.inode.0), drive);
                self.steps[usize::from(drive)] = Some(step);
            }
            return;
        };
        let dirty = self.writeback.dirty_of(step.inode);
        let all = step.mode == SyncMode::All;
        let most = if all { dirty } else { dirty.min(step.pages) * share / 4 };
        let pages = self.submit(step.inode.0, most);
        let skipped = if pages < dirty { skipped } else { 0 };
        self.writeback.wrote(drive, Wrote { pages: pages + skipped, skipped, next: 0 }, self.now);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn whatever_a_host_does(acts in acts()) {
        let mut host = Host {
            writeback: writeback(2, AVAIL),
            task: Dirtier::default(),
            now: Time::ZERO,
            steps: [None; 2],
            writing: [0; INODES as usize],
        };
        for act in &acts {
            host.act(act);
        }
        for drive in 0..2 {
            let _ = host.writeback.sync(drive);
            // Old data is written soon after, and a flusher without work sleeps.
            for _ in 0..2_000 {
                host.flush(drive, 4, 0);
                host.now += Time::from_ms(1);
            }
            prop_assert!(!host.writeback.is_running(drive), "it ends: drive {drive}");
        }
        prop_assert_eq!(host.writeback.dirty(), 0);
        let writing: u64 = host.writing.iter().sum();
        prop_assert_eq!(host.writeback.writeback(), writing);
        for inode in 0..INODES {
            prop_assert_eq!(host.writeback.flags_of(Inode(inode)), DirtyFlags::CLEAN);
        }
    }
}
