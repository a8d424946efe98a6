//! Programs on a host with a drive that serves one command after another, each with a latency and a transfer rate.

mod costs;
mod queued;
mod races;

use super::*;
use crate::PAGE;
use crate::block::{BlockSpec, SchedulerPolicy};
use crate::writeback::Bound;
use config::units::{Bytes, Share};
use engine::EventQueue;
use proto::file::{Call, CallError, Fd, FileId, FileSpec, Next, OpenFlags, SyncRange, Way};
use proto::{BufferState, IoOp, Port, Status};
use std::collections::VecDeque;

const MIB: u64 = 1 << 20;

/// Scripted program that records the time of each action.
struct Script {
    files: Vec<FileSpec>,
    threads: Vec<VecDeque<Next>>,
    /// Times at which each thread was asked.
    asked: Vec<Vec<Time>>,
    /// Core time reported to each thread before it was asked.
    used: Vec<Vec<Time>>,
    /// Failed calls: the thread, the number of earlier questions, and the reason.
    failed: Vec<(u32, usize, CallError)>,
}

impl Program for Script {
    fn name(&self) -> &str {
        "script"
    }
    fn files(&self) -> Vec<FileSpec> {
        self.files.clone()
    }
    fn threads(&self) -> u32 {
        self.threads.len() as u32
    }
    fn next(&mut self, thread: u32, now: Time) -> Next {
        self.asked[thread as usize].push(now);
        self.threads[thread as usize].pop_front().unwrap_or(Next::End)
    }
    fn used(&mut self, thread: u32, core: Time) {
        self.used[thread as usize].push(core);
    }
    fn failed(&mut self, thread: u32, error: CallError) {
        self.failed.push((thread, self.asked[thread as usize].len() - 1, error));
    }
}

fn script(bytes: Option<u64>, threads: Vec<Vec<Next>>) -> Script {
    let files = vec![FileSpec { name: "file".to_owned(), bytes, drive: 0 }];
    let asked = vec![Vec::new(); threads.len()];
    let (used, failed) = (asked.clone(), Vec::new());
    Script { files, threads: threads.into_iter().map(VecDeque::from).collect(), asked, used, failed }
}

fn open() -> Next {
    Next::Call(Call::Open { fd: Fd(0), file: FileId(0), flags: OpenFlags::default() })
}

fn read(offset: u64, bytes: u64) -> Next {
    Next::Call(Call::Read { fd: Fd(0), offset, bytes })
}

fn write(offset: u64, bytes: u64) -> Next {
    Next::Call(Call::Write { fd: Fd(0), offset, bytes })
}

fn sync() -> Next {
    Next::Call(Call::Sync { fd: Fd(0), data_only: false })
}

engine::events! {
    enum World {
        /// Event of the host.
        Host(Event),
        /// Completion of a command by the drive.
        Done(u32),
    }
}

/// Selects commands that a drive fails.
type Fails = fn(&Command) -> bool;

/// Time, and the drive: commands are serialized, and each has a latency.
#[derive(Default)]
struct Outside {
    queue: EventQueue<World>,
    free: Time,
    /// Commands received.
    seen: Vec<Command>,
    /// Times of arrival.
    times: Vec<Time>,
    /// Times of completion.
    ends: Vec<Time>,
    /// Reported buffer state.
    says: BufferState,
    /// Commands to fail, and how many of them; commands in progress.
    fails: Option<(Fails, u32)>,
    failing: Vec<u32>,
}

const LATENCY: Time = Time::from_us(100);
const RATE: u64 = 100 * MIB;

impl Outside {
    fn take(&mut self, out: Out) {
        let Out::Submit { command, .. } = out else { return };
        let now = self.queue.now();
        self.free = self.free.max(now) + Time::transfer(command.bytes, RATE);
        self.queue.after(self.free + LATENCY - now, World::Done(command.tag));
        self.seen.push(command);
        self.times.push(now);
        self.ends.push(self.free + LATENCY);
        if let Some((fails, left)) = &mut self.fails
            && *left > 0
            && fails(&command)
        {
            *left -= 1;
            self.failing.push(command.tag);
        }
    }

    /// Status of a command.
    fn status(&mut self, tag: u32) -> Status {
        let failing = self.failing.iter().position(|other| *other == tag);
        failing.map_or(Status::Success, |at| {
            self.failing.remove(at);
            Status::UnrecoveredRead
        })
    }
}

engine::context! {
    Outside: Cx<Event, Out>,
    queue: |at| at.queue,
    event: |_at, event| World::Host(event),
    out: |at, out| at.take(out),
}

/// Host with a drive of 1 GiB.
struct Bench {
    host: Host<Script>,
    outside: Outside,
    /// Increasing counts of pages whose write-back has ended.
    written: Vec<u64>,
    /// Maximum number of pages dirty or under write-back.
    most: u64,
}

impl Bench {
    fn new(spec: &PathSpec, script: Script) -> Bench {
        let device =
            Device { max_transfer: 0, block: 512, queues: 8, queue_depth: 63, write_cache: true, fua: true };
        let mut host =
            Host::new(spec, &[DiskSpec { bytes: 1 << 30, device, scheduler: None }]).expect("a host");
        host.add_program(script).expect("files that fit");
        Bench { host, outside: Outside::default(), written: vec![0], most: 0 }
    }

    /// Runs until all programs have ended, then until no event is left; returns the time at which the programs ended.
    fn run(&mut self) -> Time {
        self.host.begin(&mut self.outside);
        let mut ended = None;
        while let Some(event) = self.outside.queue.pop() {
            match event {
                World::Host(event) => self.host.handle(event, &mut self.outside),
                World::Done(tag) => {
                    let completion = Completion {
                        tag,
                        to: Port::default(),
                        status: self.outside.status(tag),
                        errors: 0,
                        buffer: self.outside.says,
                    };
                    self.host.completed(completion, &mut self.outside);
                }
            }
            assert_eq!(self.host.stuck(), None);
            if self.host.is_done() {
                ended.get_or_insert(self.outside.queue.now());
            }
            self.most = self.most.max(self.host.writeback.dirty() + self.host.writeback.writeback());
            let written = self.host.cache.stats().written;
            if self.written.last() != Some(&written) {
                self.written.push(written);
            }
        }
        self.host.check_idle();
        ended.expect("programs that end")
    }

    fn asked(&self, thread: usize) -> &[Time] {
        &self.host.programs[0].program.asked[thread]
    }

    fn bytes(&self, op: IoOp) -> u64 {
        self.outside.seen.iter().filter(|command| command.op == op).map(|command| command.bytes).sum()
    }
}

/// Spec of a host whose memory is single pages: a bio has 256 of them.
fn spec(memory: u64) -> PathSpec {
    let block = BlockSpec { contiguous: Bytes::from_kib(4), ..BlockSpec::default() };
    PathSpec { memory: Bytes::new(memory), block, ..PathSpec::default() }
}

fn raw(memory: u64) -> PathSpec {
    PathSpec { fs: OnDrives::Raw, ..spec(memory) }
}

impl Host<Script> {
    /// Checks that nothing is in flight, and that all threads of programs are idle.
    fn check_idle(&self) {
        assert!(self.disks.iter().all(|disk| disk.queue.is_idle()));
        assert_eq!((self.sent.len(), self.ios.len(), self.waits.counters.len()), (0, 0, 0));
        assert_eq!(self.io_ends.len(), 0);
        assert_eq!((self.cache.nr_dirty(), self.cache.nr_writeback()), (0, 0));
        assert_eq!((self.writeback.dirty(), self.writeback.writeback()), (0, 0));
        for thread in &self.threads {
            assert!(thread.bios.is_empty() && thread.frames.len() <= 1, "{:?}", thread.frames);
        }
    }
}

/// A file of 1 MiB, read twice in pieces of 4 KiB: the drive reads it once, in windows of 16 KiB, 32, 64 and then 128
/// KiB (`get_init_ra_size`, `get_next_ra_size`).
#[test]
fn a_file_is_read_once_in_windows() {
    let pieces = (0..512).map(|n| read(n % 256 * 4096, 4096));
    let program = script(Some(MIB), vec![std::iter::once(open()).chain(pieces).collect()]);
    let mut bench = Bench::new(&spec(256 * MIB), program);
    bench.run();
    assert_eq!(bench.bytes(IoOp::Read), MIB);
    let sizes: Vec<u64> = bench.outside.seen.iter().map(|command| command.bytes >> 10).collect();
    assert_eq!(sizes[..4], [16, 32, 64, 128]);
    let stats = bench.host.cache.stats();
    // Only the first page misses: all others have been read ahead.
    assert_eq!((stats.misses, stats.hits), (1, 512));
    // The second pass takes no drive time: calls, look-ups, copies.
    let asked = bench.asked(0);
    let second = asked[513] - asked[257];
    assert!(second < Time::from_us(256), "{second}");
}

/// `page_cache_ra_unbounded` marks a page only if it reads it. A reader of pages marked for another reader would plan
/// the same again for ever.
#[test]
fn readers_of_one_file_come_to_its_end() {
    for pages in 1..=48 {
        let reader = |fd: u16, first: u64| {
            let open = Call::Open { fd: Fd(fd), file: FileId(0), flags: OpenFlags::default() };
            let chunk = |at: u64| Call::Read { fd: Fd(fd), offset: at * 16 * PAGE, bytes: 16 * PAGE };
            [open].into_iter().chain((first..4).map(chunk)).map(Next::Call).collect::<Vec<_>>()
        };
        let threads = vec![reader(0, 0), reader(1, 1), reader(2, 0), reader(3, 2)];
        let mut bench = Bench::new(&spec(64 * MIB), script(Some(pages * PAGE), threads));
        bench.run();
        assert_eq!(bench.bytes(IoOp::Read), pages * PAGE, "{pages} pages, each read once");
    }
}

/// Written data stays in memory until the flusher's first run, after 5 s plus the timer wheel's delay. A drive never
/// written to has a zero share of the limits, so the data is written then, whatever its age (`wb_over_bg_thresh`).
#[test]
fn dirty_pages_are_written_when_the_flusher_looks() {
    let program = script(None, vec![vec![open(), write(0, MIB)]]);
    let mut bench = Bench::new(&spec(256 * MIB), program);
    let ended = bench.run();
    assert!(ended < Time::from_ms(1), "{ended}");
    // 256 pages, in requests of 127 segments of a page.
    let seen = bench.outside.seen.iter().zip(&bench.outside.times);
    let data: Vec<Time> = seen.filter(|(command, _)| command.bytes >> 12 == 127).map(|(_, at)| *at).collect();
    assert_eq!(data.len(), 2, "{data:?}");
    assert!(data.iter().all(|at| *at >= Time::from_s(5) && *at < Time::from_us(5_300_000)), "{data:?}");
}

/// A write and `fsync`: the data, then the journal's blocks, then the commit block after a flush.
#[test]
fn fsync_writes_data_then_the_journal_then_commits() {
    let program = script(None, vec![vec![open(), write(0, 64 << 10), sync()]]);
    let mut bench = Bench::new(&spec(256 * MIB), program);
    let ended = bench.run();
    let seen: Vec<(IoOp, u64, bool)> =
        bench.outside.seen.iter().map(|command| (command.op, command.bytes, command.fua)).collect();
    let at = |wanted: (IoOp, u64, bool)| seen.iter().position(|one| *one == wanted);
    let data = at((IoOp::Write, 64 << 10, false)).expect("the data");
    let flush = seen.iter().position(|(op, ..)| *op == IoOp::Flush).expect("a flush");
    let commit = at((IoOp::Write, 4096, true)).expect("a commit block");
    assert!(data < flush && flush < commit, "{seen:?}");
    // At least three round trips: data, log with flush, commit.
    assert!(ended > LATENCY.times(3), "{ended}");
}

/// A write and `fsync` on a drive without a file system: the data and a flush.
#[test]
fn fsync_of_a_drive_writes_and_flushes() {
    let command = |tag, op, offset, bytes| Command { flow: 3, ..Command::new(tag, op, offset, bytes) };
    let program = script(None, vec![]);
    let mut spec = raw(256 * MIB);
    spec.block.scheduler = SchedulerPolicy::default();
    let mut host: Host<Script> = Host::new(
        &spec,
        &[DiskSpec {
            bytes: 1 << 30,
            device: Device {
                max_transfer: 0,
                block: 512,
                queues: 8,
                queue_depth: 63,
                write_cache: true,
                fua: true,
            },
            scheduler: None,
        }],
    )
    .unwrap();
    drop(program);
    let mut outside = Outside::default();
    host.submit_request(0, Way::Buffered, command(0, IoOp::Write, 8192, 8192), &mut outside);
    host.submit_request(0, Way::Buffered, command(1, IoOp::Flush, 0, 0), &mut outside);
    while let Some(event) = outside.queue.pop() {
        match event {
            World::Host(event) => host.handle(event, &mut outside),
            World::Done(tag) => host.completed(
                Completion {
                    tag,
                    to: Port::default(),
                    status: Status::Success,
                    errors: 0,
                    buffer: BufferState::Unknown,
                },
                &mut outside,
            ),
        }
    }
    let seen: Vec<_> =
        outside.seen.iter().map(|command| (command.op, command.offset, command.bytes)).collect();
    assert_eq!(seen, [(IoOp::Write, 8192, 8192), (IoOp::Flush, 0, 0)]);
    // Each page is a bio (`__block_write_full_page`), and joins the one before it in the plug.
    let stats = host.queue(0).stats();
    assert_eq!((stats.bios[1], stats.plug_merges, stats.requests[1]), (2, 1, 1));
    assert!(host.is_done());
    host.check_idle();
}

/// A file larger than memory is written: writers pause at the drive's speed, and no data is lost.
#[test]
fn a_writer_is_held_to_the_speed_of_the_drive() {
    let pieces = (0..((256 * MIB) >> 17)).map(|n| write(n << 17, 1 << 17));
    let program = script(None, vec![std::iter::once(open()).chain(pieces).collect()]);
    let mut bench = Bench::new(&spec(64 * MIB), program);
    let ended = bench.run();
    assert_eq!(bench.host.stats.lost, 0);
    // 256 MiB at 100 MiB/s, less the dirty data at the end: at most 20 % of 64 MiB.
    assert!(ended > Time::from_ms(2_400) && ended < Time::from_ms(2_900), "{ended}");
    assert!(bench.bytes(IoOp::Write) >= 256 * MIB);
    assert!(bench.host.writeback.stats.pauses.count() > 0);
}

/// Pages in new blocks stay under write-back until the last bio of their extent has ended (`ext4_end_bio`,
/// `ext4_put_io_end_defer`): of 3,000, extents of 2,048 (`MAX_WRITEPAGES_EXTENT_LEN`) and 952. In blocks the file
/// already has, each bio of 256 pages ends separately.
#[test]
fn pages_of_a_new_extent_are_written_together() {
    let new = script(None, vec![vec![open(), write(0, 3000 * PAGE), sync()]]);
    let mut bench = Bench::new(&spec(256 * MIB), new);
    bench.run();
    assert_eq!(bench.written, [0, 2048, 3000]);
    let there = script(Some(4 * MIB), vec![vec![open(), write(0, 600 * PAGE), sync()]]);
    let mut bench = Bench::new(&spec(256 * MIB), there);
    bench.run();
    assert_eq!(bench.written, [0, 256, 512, 600]);
}

/// The limit on writers starts from the memory at boot (`writeback_set_ratelimit`, `hard_dirty_limit`): they go on
/// above a fifth of the current memory, and come down to it later.
#[test]
fn the_limit_begins_with_the_memory_at_boot() {
    let most = |at_boot: u64| {
        let pieces = (0..((96 * MIB) >> 17)).map(|n| write(n << 17, 1 << 17));
        let program = script(None, vec![std::iter::once(open()).chain(pieces).collect()]);
        let spec = PathSpec { memory_at_boot: Some(Bytes::new(at_boot)), ..spec(64 * MIB) };
        let mut bench = Bench::new(&spec, program);
        bench.run();
        bench.most
    };
    let limit = 64 * MIB / PAGE / 5;
    assert!(most(64 * MIB) <= limit + 32, "{}", most(64 * MIB));
    assert!(most(96 * MIB) > limit * 6 / 5, "{}", most(96 * MIB));
}

/// Two threads wake each other; one sleeps until a time.
#[test]
fn threads_wake_each_other() {
    let compute = Next::Compute(Time::from_us(50));
    let program =
        script(None, vec![vec![Next::Wait, compute], vec![Next::Until(Time::from_ms(2)), Next::Wake(0)]]);
    let mut bench = Bench::new(&spec(64 * MIB), program);
    bench.run();
    let (first, second) = (bench.asked(0).to_vec(), bench.asked(1).to_vec());
    assert!(second[1] >= Time::from_ms(2) && second[1] < Time::from_us(2_010), "{second:?}");
    assert!(first[1] >= second[1] && first[2] >= first[1] + Time::from_us(50), "{first:?} {second:?}");
}

/// `blk_mq_get_tag` checks again on every wake-up: a bio that waits for a tag is not forgotten when its thread is woken
/// for a different reason.
#[test]
fn a_bio_that_waits_for_a_tag_is_not_lost_when_its_thread_is_woken() {
    let writer = vec![open(), write(0, 64 * PAGE), sync()];
    let waker: Vec<Next> =
        (1..200).flat_map(|n| [Next::Until(Time::from_us(20 * n)), Next::Wake(0)]).collect();
    for scheduler in SchedulerPolicy::all_defaults() {
        let mut spec = spec(64 * MIB);
        spec.block.scheduler = scheduler;
        spec.block.nr_requests = Some(4);
        spec.block.max_sectors = Bytes::new(PAGE);
        let mut bench = Bench::new(&spec, script(Some(64 * PAGE), vec![writer.clone(), waker.clone()]));
        bench.run();
        assert!(bench.bytes(IoOp::Write) >= 64 * PAGE);
    }
}

/// Spec with announcements, and different ratios while a drive is full.
fn talking() -> PathSpec {
    let full = RatiosSpec { dirty_background_ratio: Share::percent(5), dirty_ratio: Share::percent(30) };
    PathSpec { victimization: Some(VictimizationSpec { announce: true, full: Some(full) }), ..spec(64 * MIB) }
}

/// Announced pages match the written ones: for `fsync` the dirty pages of its file, with the first command; for the
/// flusher those of its lists.
#[test]
fn victimizations_are_announced_with_their_first_command() {
    let synced = script(None, vec![vec![open(), write(0, MIB), sync()]]);
    let mut bench = Bench::new(&talking(), synced);
    bench.run();
    let data: Vec<u32> =
        bench.outside.seen.iter().map(|command| command.announced).filter(|n| *n > 0).collect();
    // The flusher writes the five metadata blocks later.
    assert_eq!(data, [256, 5]);
    let pieces = (0..((64 * MIB) >> 17)).map(|n| write(n << 17, 1 << 17));
    let written = script(None, vec![std::iter::once(open()).chain(pieces).collect()]);
    let mut bench = Bench::new(&talking(), written);
    bench.run();
    let announced: u64 = bench.outside.seen.iter().map(|command| u64::from(command.announced)).sum();
    let flushed: u64 = bench.host.writeback.flushers[0].pages.iter().sum();
    assert!(flushed >= 64 * MIB / PAGE);
    // A page that becomes dirty while its file is being written may be announced and then counted again.
    assert!(announced >= flushed && announced <= flushed + flushed / 10, "{announced} of {flushed}");
    assert_eq!(announced, bench.host.stats.announced);
}

/// The ratios change with the first completion that reports a full buffer, and back with one that reports room.
#[test]
fn a_full_drive_changes_the_ratios() {
    let program = || script(None, vec![vec![open(), write(0, MIB), sync()]]);
    let mut bench = Bench::new(&talking(), program());
    let room = bench.host.writeback.bounds();
    bench.outside.says = BufferState::Full;
    bench.run();
    let full = bench.host.writeback.bounds();
    assert_eq!((full.background, full.limit), (Bound::Percent(5), Bound::Percent(30)));
    assert_eq!(bench.host.stats.ratio_changes, 1);
    bench.outside.says = BufferState::Room;
    bench.host.add_program(program()).expect("files that fit");
    bench.run();
    assert_eq!((bench.host.writeback.bounds(), bench.host.stats.ratio_changes), (room, 2));
    // A drive that reports no state changes nothing.
    let mut bench = Bench::new(&talking(), program());
    bench.run();
    assert_eq!((bench.host.writeback.bounds(), bench.host.stats.ratio_changes), (room, 0));
}

/// `fsync` writes the pages that were dirty when it began (`tag_pages_for_writeback`), and does not follow a writer
/// ahead of it.
#[test]
fn fsync_does_not_follow_a_writer() {
    let writer = |n: u64| write(n << 20, MIB);
    // The second thread continues to write for 320 ms, the time of the first one's data, and much longer.
    let pieces = (32..160).flat_map(|n| [Next::Compute(Time::from_ms(9)), writer(n)]);
    let threads = vec![
        std::iter::once(open()).chain((0..32).map(writer)).chain([sync()]).collect(),
        std::iter::once(Next::Until(Time::from_ms(60))).chain(pieces).collect(),
    ];
    let mut bench = Bench::new(&spec(1024 * MIB), script(None, threads));
    bench.run();
    let done = *bench.asked(0).last().expect("it ends");
    let last = *bench.asked(1).last().expect("it ends");
    assert!(last > Time::from_ms(640), "{last}");
    assert!(done > Time::from_ms(320) && done < Time::from_ms(480), "{done}");
}

/// `sync` waits for pages that another thread is writing (`sync_inodes_sb`): the journal commits when the data are on
/// the drive.
#[test]
fn sync_waits_for_pages_that_are_being_written() {
    let how = SyncRange { write: true, ..SyncRange::default() };
    let range = Next::Call(Call::SyncRange { fd: Fd(0), offset: 0, bytes: 0, how });
    let program = script(None, vec![vec![open(), write(0, 64 << 10), range, Next::Call(Call::SyncAll)]]);
    let mut bench = Bench::new(&spec(256 * MIB), program);
    bench.run();
    assert_eq!(bench.outside.seen[0].bytes, 64 << 10);
    let times = &bench.outside.times;
    assert!(times[1] >= times[0] + LATENCY, "{times:?}");
}

/// A direct write makes cached copies of its pages stale, mapped or not (`invalidate_inode_pages2_range`): later reads
/// go to the drive.
#[test]
fn a_direct_write_leaves_no_old_page() {
    let direct = OpenFlags { direct: true, ..OpenFlags::default() };
    let calls = [
        Call::Open { fd: Fd(1), file: FileId(0), flags: direct },
        Call::Touch { fd: Fd(0), offset: 0, write: false },
        Call::Write { fd: Fd(1), offset: 0, bytes: 4096 },
        Call::Read { fd: Fd(0), offset: 0, bytes: 4096 },
    ];
    let program = script(Some(MIB), vec![std::iter::once(open()).chain(calls.map(Next::Call)).collect()]);
    let mut bench = Bench::new(&spec(256 * MIB), program);
    bench.run();
    let ops = bench.outside.seen.iter().filter(|command| command.offset == bench.outside.seen[0].offset);
    let ops: Vec<IoOp> = ops.map(|command| command.op).collect();
    assert_eq!(ops, [IoOp::Read, IoOp::Write, IoOp::Read]);
}

/// A thread woken by another while it waits for a lock waits once more, and is in the list twice; the next waiter gets
/// the lock all the same.
#[test]
fn who_is_woken_in_between_keeps_nobody_from_a_lock() {
    let us = |us| Next::Compute(Time::from_us(us));
    let threads = vec![
        vec![open(), write(0, 8 * MIB)],
        vec![us(10), write(0, MIB)],
        vec![us(30), write(0, MIB)],
        vec![us(20), Next::Wake(1)],
    ];
    let mut bench = Bench::new(&spec(256 * MIB), script(None, threads));
    bench.run();
    assert_eq!(bench.host.programs[0].left, 0);
}

/// A command whose answer the driver has lost: its threads wait for ever, while timers go on.
#[test]
fn a_thread_that_waits_in_vain_is_found() {
    let threads = vec![vec![open(), write(0, MIB), sync()], vec![Next::Compute(Time::from_us(10)), sync()]];
    let mut bench = Bench::new(&spec(256 * MIB), script(None, threads));
    bench.host.begin(&mut bench.outside);
    let mut lost = false;
    let why = loop {
        match bench.outside.queue.pop().expect("timers go on") {
            World::Host(event) => bench.host.handle(event, &mut bench.outside),
            // As if the drive had answered, but the driver had ignored it.
            World::Done(tag) => {
                bench.host.sent.remove(tag);
                lost = true;
            }
        }
        match bench.host.stuck() {
            Some(why) => break why,
            None => assert!(bench.outside.queue.now() < Time::from_s(60), "the lost command was not found"),
        }
    };
    assert!(lost, "{why}");
    assert_eq!(why, "drive 0: its queue has bios, but none is in flight");
}

/// The inode is on its way to the log, which takes 8 KiB / 100 MiB/s + 100 us = 178.125 us. A write that changes it in
/// the next tick goes on then, before the commit block (`do_get_write_access`). Ticks are 4 ms; the data of the other
/// thread and the superblock come before the log.
#[test]
fn a_write_waits_until_its_inode_is_in_the_log() {
    let begin = Time::from_us(3_900);
    let late = Call::Open { fd: Fd(1), file: FileId(0), flags: OpenFlags::default() };
    let other = Next::Call(Call::Write { fd: Fd(1), offset: 4096, bytes: 4096 });
    let threads = vec![
        vec![open(), Next::Until(begin), write(0, 4096), sync()],
        vec![Next::Call(late), Next::Until(begin + Time::from_us(350)), other],
    ];
    let mut bench = Bench::new(&spec(256 * MIB), script(Some(8192), threads));
    bench.run();
    let seen = || bench.outside.seen.iter().zip(&bench.outside.times);
    let (_, logged) = seen().find(|(command, _)| command.bytes == 8192).expect("a log block and the inode");
    let (_, committed) = seen().find(|(command, _)| command.fua).expect("a commit block");
    let there = *logged + Time::transfer(8192, RATE) + LATENCY;
    let [asked, returned] = bench.asked(1)[2..4] else { panic!("two calls and the end") };
    assert!(*logged < asked && asked < there, "{logged} {asked} {there}");
    assert!(there < returned && returned < there + Time::from_us(20), "{there} {returned}");
    assert!(returned < *committed, "{returned} {committed}");
}
