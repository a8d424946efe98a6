//! Write-back of a buffer: when data leaves, for which dies, and the buffer state reported by the drive.

use super::bench::{Bench, PAGE, PROGRAM, Planes, buffer, spec};
use config::units::{Bytes, Duration, Share};
use engine::Time;
use ftl::buffer::destage::{DestagePolicy, two_speed};
use ftl::page_map::pages::{PageOrder, by_type, write_point};
use proto::{BufferState, Command, Completion, IoOp};
use ssd::Event;
use ssd::Out;
use ssd::spec::FlashSpec;

/// A buffer of that many pages, half of which may be on their way, with the watermarks of FastDrain's Table I.
fn drive(planes: Planes, pages: u64, destage: DestagePolicy) -> FlashSpec {
    let mut spec = spec(planes, "CWDP");
    let mut buffer = buffer(pages);
    (buffer.high, buffer.low) = (Share::percent(80), Share::percent(20));
    buffer.destage = Some(destage);
    spec.buffer = Some(buffer);
    spec
}

fn by_two(window: Time, busy: u8) -> DestagePolicy {
    DestagePolicy::two_speed(two_speed::Params {
        at_once: Bytes::new(8 * PAGE),
        window: Duration::new(window),
        busy: Share::percent(busy),
    })
}

/// Tenths of a program.
fn tenths(n: u64) -> Time {
    Time::from_ps(PROGRAM.ps() / 10).times(n)
}

impl Bench {
    fn page(&mut self, op: IoOp, page: u64, announced: u32) {
        let command = Command::new(page as u32, op, page * PAGE, PAGE);
        self.device.submit(Command { announced, ..command }, &mut self.cx);
    }

    /// Lets a time pass; returns the answers meanwhile.
    fn pass(&mut self, time: Time) -> Vec<Completion> {
        // The event is one that finds nothing to do.
        let end = self.cx.queue.now() + time;
        self.cx.queue.after(time, Event::Sampled(0));
        while self.cx.queue.now() < end {
            let event = self.cx.queue.pop().expect("the one above is left");
            self.device.handle(event, &mut self.cx);
        }
        self.cx.sent.drain(..).map(|(_, Out::Complete(completion))| completion).collect()
    }

    /// Runs until no event is left; returns the duration from the beginning in programs, rounded.
    fn rest(&mut self) -> u64 {
        while let Some(event) = self.cx.queue.pop() {
            self.device.handle(event, &mut self.cx);
        }
        self.cx.sent.clear();
        // For its checks.
        self.run([], 1);
        (self.cx.queue.now() + tenths(5)).ps() / PROGRAM.ps()
    }
}

#[test]
fn idle_dies_take_a_page_each_and_another_when_they_have_done() {
    for (dies, pages) in [(1, 4), (2, 10), (4, 10)] {
        let mut bench = Bench::new(&drive([1, dies, 1, 1], 100, by_two(Time::ZERO, 0)));
        (0..pages).for_each(|page| bench.page(IoOp::Write, page, 0));
        assert_eq!(bench.rest(), pages.div_ceil(dies.into()));
        assert_eq!(bench.device.stats.evictions.units, [0, 0, pages]);
    }
}

#[test]
fn a_die_with_work_takes_nothing_in_the_background() {
    let mut bench = Bench::filled(&drive([1, 2, 1, 1], 100, by_two(Time::ZERO, 0)));
    // Pages 0 and 1 lie on different dies.
    bench.page(IoOp::Read, 0, 0);
    bench.page(IoOp::Write, 1, 0);
    bench.rest();
    let busy = bench.device.backend.die_busy(bench.cx.queue.now());
    assert!(busy[0] < tenths(1) && busy[1] > tenths(9), "{busy:?}");
}

#[test]
fn what_is_announced_clears_the_buffer_before_it_comes() {
    let mut bench = Bench::new(&drive([1, 2, 1, 1], 100, by_two(Time::ZERO, 0)));
    (0..30).for_each(|page| bench.page(IoOp::Write, page, 0));
    bench.pass(tenths(1));
    // Two are under way; with 60 to come, of four of the host's pages each, and the first of them here, 2 + 29 + 59 are
    // above 80. 29 - 20 leave at once.
    bench.page(IoOp::Write, 30, 60 * 4);
    assert_eq!(bench.rest(), 31u64.div_ceil(2));
    let counted = &bench.device.stats.evictions;
    assert_eq!((counted.units, counted.programs), ([0, 9, 22], [0, 9, 22]));
    assert_eq!((counted.announcements, counted.announced_pages), (1, 240));
}

#[test]
fn a_drive_is_full_from_above_high_until_low() {
    let mut bench = Bench::filled(&drive([1, 1, 1, 1], 10, by_two(Time::ZERO, 0)));
    let told = |completions: Vec<Completion>| -> Vec<BufferState> {
        completions.iter().map(|completion| completion.buffer).collect()
    };
    use BufferState::{Full, Room};
    (0..9).for_each(|page| bench.page(IoOp::Write, page, 0));
    // Nine of ten pages are above 80 %: eight are not. The answers come when all have been taken.
    assert_eq!(told(bench.pass(tenths(1))), [Full; 9]);
    // One program a second: after six, three pages are left, after seven, two. A read of what is there changes nothing.
    bench.pass(PROGRAM.times(6));
    bench.page(IoOp::Read, 8, 0);
    assert_eq!(told(bench.pass(tenths(5))), [Full]);
    bench.pass(tenths(5));
    bench.page(IoOp::Read, 8, 0);
    assert_eq!(told(bench.pass(tenths(1))), [Room]);
    bench.rest();
    // A drive whose buffer's own rule decides reports nothing.
    let mut silent = Bench::new(&drive([1, 1, 1, 1], 10, DestagePolicy::watermarks));
    (0..9).for_each(|page| silent.page(IoOp::Write, page, 70));
    assert_eq!(told(silent.pass(tenths(1))), [BufferState::Unknown; 9]);
    assert_eq!(silent.device.stats.evictions, ssd::device::EvictionCounters::default());
}

#[test]
fn dies_that_are_idle_on_average_take_data_and_others_are_waited_for() {
    let window = PROGRAM.times(10);
    let ends = |busy| {
        let mut bench = Bench::new(&drive([1, 1, 1, 1], 100, by_two(window, busy)));
        bench.page(IoOp::Write, 0, 0);
        bench.pass(tenths(105));
        // The die has worked for one of ten and a half programs: 9.5 %.
        bench.page(IoOp::Write, 1, 0);
        bench.rest();
        bench.cx.queue.now().ps() * 10 / PROGRAM.ps()
    };
    assert_eq!(ends(10), 115);
    // It is looked at again one window later, at 20.5.
    assert_eq!(ends(5), 215);
}

#[test]
fn when_full_begins_when_there_is_no_room() {
    let mut spec = drive([1, 1, 1, 1], 10, DestagePolicy::when_full);
    spec.buffer.as_mut().expect("a buffer").high = Share::percent(100);
    spec.buffer.as_mut().expect("a buffer").low = Share::percent(80);
    let mut bench = Bench::new(&spec);
    (0..10).for_each(|page| bench.page(IoOp::Write, page, 0));
    assert_eq!(bench.pass(PROGRAM.times(5)).len(), 10);
    assert_eq!(bench.programs(), 0);
    // Two leave for it, so that eight are left; it goes in when the first has arrived.
    bench.page(IoOp::Write, 10, 0);
    assert!(bench.pass(tenths(5)).is_empty());
    assert_eq!(bench.pass(PROGRAM).len(), 1);
    assert_eq!(bench.rest(), 7);
    assert_eq!((bench.programs(), bench.device.left_in_buffer().units), (2, 9));
    assert_eq!(bench.device.stats.evictions.units, [2, 0, 0]);
}

#[test]
fn drives_that_cannot_choose_a_die_are_refused() {
    let refused = |spec: &FlashSpec| {
        let built = ssd::spec::Built { seed: 1, name: "bench".into(), fold: true };
        spec.build(&built).err().map(|error| error.key)
    };
    let good = drive([1, 2, 1, 2], 100, by_two(Time::ZERO, 0));
    assert_eq!(refused(&good), None);
    let mut striped = good.clone();
    striped.ftl.allocation = ftl::page_map::alloc::Allocation::striped;
    let mut spread = good.clone();
    spread.ftl.reclaim_unit = ssd::spec::ReclaimUnit::superblock;
    let mut through = good.clone();
    through.buffer.as_mut().expect("a buffer").writes = false;
    let mut narrow = good.clone();
    narrow.buffer.as_mut().expect("a buffer").in_flight = Bytes::new(PAGE);
    let mut all = good.clone();
    (all.buffer.as_mut().expect("a buffer").high, all.buffer.as_mut().expect("a buffer").low) =
        (Share::percent(100), Share::percent(100));
    let keys = ["ftl.allocation", "ftl.reclaim_unit", "buffer.destage", "buffer.in_flight", "buffer.low"];
    for (spec, key) in [striped, spread, through, narrow, all].iter().zip(keys) {
        assert!(refused(spec).is_some_and(|refused| refused.ends_with(key)), "{key}");
    }
}

/// Cells of three bits, with times of FastDrain's Table I in thousandths of a program of the bench.
const TIMES: [Time; 3] = [Time::from_us(560), Time::from_us(2200), Time::from_us(5000)];

/// One plane of TLC that is programmed page by page. How long everything takes if 30 pages come, and then one that announces 60: a
/// page leaves in the background, then as many in the foreground as leave 20 of 30, then 20 in the background. Map units by purpose and type, and units skipped.
fn by_types(pages: Option<PageOrder>) -> (u64, [[u64; 4]; 4], u64) {
    let mut spec = drive([1, 1, 1, 1], 100, by_two(Time::ZERO, 0));
    spec.geometry.pages = 48;
    spec.cell.bits = 3;
    spec.cell.read = vec![Duration::new(Time::from_us(50)); 3];
    spec.cell.program = TIMES.map(Duration::new).to_vec();
    spec.ftl.pages = pages;
    let mut bench = Bench::new(&spec);
    (0..30).for_each(|page| bench.page(IoOp::Write, page, 0));
    bench.pass(Time::from_us(200));
    bench.page(IoOp::Write, 30, 60 * 4);
    bench.rest();
    assert_eq!(bench.device.stats.evictions.units, [0, 10, 21]);
    let (counters, skipping) = bench.device.window_pages().unwrap_or_default();
    assert_eq!(skipping > 0, counters.skipped > 0);
    (bench.cx.queue.now().ps(), counters.programs, counters.skipped)
}

/// Compares a time with the sum of `programs` of each type, except for time not spent in arrays.
fn is_sum(took: u64, programs: [u64; 3]) -> bool {
    let sum: u64 = TIMES.iter().zip(programs).map(|(time, n)| time.ps() * n).sum();
    (sum..sum + sum / 50).contains(&took)
}

#[test]
fn pages_take_the_time_of_their_type_and_foreground_eviction_the_fast_ones() {
    // In order: 31 pages are ten word lines and a page.
    let (took, _, _) = by_types(None);
    assert!(is_sum(took, [11, 10, 10]), "{took}");
    // The write point: page 0, then every third to 30, two skipped in front of each, then 31 to 47 and three pages of another
    // block: 33, 36, 39, 42, 45 and 0 are of the first type.
    let region = Bytes::new(1 << 40);
    let (took, programs, skipped) = by_types(Some(PageOrder::write_point(write_point::Params { region })));
    assert_eq!((programs, skipped), ([[0; 4], [10, 0, 0, 0], [1 + 6, 7, 7, 0], [0; 4]], 20));
    assert!(is_sum(took, [17, 7, 7]), "{took}");
    // Lists: ten more blocks are opened. In the background the second pages of all eleven, and nine third ones.
    let (took, programs, skipped) = by_types(Some(PageOrder::by_type(by_type::Params { open: 12, region })));
    assert_eq!((programs, skipped), ([[0; 4], [10, 0, 0, 0], [1, 11, 9, 0], [0; 4]], 0));
    assert!(is_sum(took, [11, 11, 9]), "{took}");
}
