//! Costs of orders to coprocessors and of loads and stores of a mapping, worked out by hand. A coprocessor serves its
//! orders one after another.

use super::queued::{Load, plain};
use super::*;
use crate::tasks::CoresSpec;
use config::units::Duration;
use proto::{file::Advice, offload::Order};

const fn us(us: u64) -> Time {
    Time::from_us(us)
}

engine::events! {
    enum Around {
        /// Event of the host.
        Host(Event),
        /// Completion of an order by a coprocessor.
        Done(u32),
    }
}

/// Two coprocessors: a byte takes a nanosecond, a step a millisecond.
#[derive(Default)]
struct Coprocessors {
    queue: EventQueue<Around>,
    free: [Time; 2],
    /// Orders received: time, device, order.
    seen: Vec<(Time, u16, Order)>,
}

impl Coprocessors {
    fn take(&mut self, out: Out) {
        let Out::Order { tag, device, order } = out else { panic!("the host has no drive: {out:?}") };
        let now = self.queue.now();
        let takes = match order {
            Order::Send { bytes } | Order::Receive { bytes } => Time::from_ns(bytes),
            Order::Work { .. } => Time::from_ms(1),
        };
        let free = &mut self.free[usize::from(device)];
        *free = (*free).max(now) + takes;
        self.queue.after(*free - now, Around::Done(tag));
        self.seen.push((now, device, order));
    }
}

engine::context! {
    Coprocessors: Cx<Event, Out>,
    queue: |at| at.queue,
    event: |_at, event| Around::Host(event),
    out: |at, out| at.take(out),
}

/// Distinguishable core times: a context switch 1 us, an idle exit 2, a call 10, a request 20, an interrupt 100, a
/// completion 200.
fn costs(cores: u16) -> PathSpec {
    let time = |time| Duration::new(us(time));
    let mut spec = spec(64 * MIB);
    spec.cores = CoresSpec { count: cores, context_switch: time(1), idle_exit: time(2), ..spec.cores };
    spec.cores.sched_wakeup_granularity = time(500);
    spec.costs.call = time(10);
    spec.costs.request = time(20);
    spec.costs.interrupt = time(100);
    spec.costs.complete = time(200);
    spec
}

fn program(threads: Vec<Vec<Next>>) -> Script {
    Script { files: Vec::new(), ..script(None, threads) }
}

/// Runs programs to their end.
fn run(spec: &PathSpec, programs: Vec<Script>) -> (Host<Script>, Coprocessors) {
    let mut host = Host::new(spec, &[]).expect("a host");
    programs.into_iter().for_each(|program| host.add_program(program).expect("no files"));
    let mut around = Coprocessors::default();
    host.begin(&mut around);
    while let Some(event) = around.queue.pop() {
        match event {
            Around::Host(event) => host.handle(event, &mut around),
            Around::Done(tag) => host.ordered(tag, &mut around),
        }
        assert_eq!(host.stuck(), None);
    }
    assert!(host.is_done() && host.orders.is_empty());
    (host, around)
}

const WORK: Order = Order::Work { program: 3, step: 5 };

fn send(bytes: u64) -> Next {
    Next::Order { device: 0, order: Order::Send { bytes } }
}

fn work() -> Next {
    Next::Order { device: 0, order: WORK }
}

/// One order after another: before the device receives one, 10 + 20 us of the driver; after it is done, 100 + 200 us of
/// the interrupt, then 1 + 2 us until the thread is back on its core, which was idle.
#[test]
fn an_order_costs_a_call_a_request_and_an_interrupt() {
    let receive = Order::Receive { bytes: 70_000 };
    let orders = vec![send(50_000), work(), Next::Order { device: 0, order: receive }];
    let (host, around) = run(&costs(1), vec![program(vec![orders])]);
    let (before, after) = (us(30), us(303));
    let first = us(3) + before;
    let second = first + us(50) + after + before;
    let third = second + us(1_000) + after + before;
    let seen = [(first, Order::Send { bytes: 50_000 }), (second, WORK), (third, receive)];
    assert_eq!(around.seen, seen.map(|(at, order)| (at, 0, order)));
    let asked = &host.programs[0].program.asked[0];
    assert_eq!(asked[3], third + us(70) + after);
    // Onto its core; then each order's 30 us and onto the core again. Interrupts are charged to no thread.
    assert_eq!(host.programs[0].program.used[0], [us(3), us(33), us(33), us(33)]);
    assert_eq!(host.stats.orders, 3);
    let time = host.cores.stats.time[0];
    // Four times onto the core; drivers' calls.
    assert_eq!((time.user, time.system), (Time::ZERO, us(4 * 3 + 3 * 30)));
    assert_eq!(time.interrupt, us(3 * 300));
}

/// While one program waits for its order, another has the core; the interrupt suspends it, and the waiting thread goes
/// next.
#[test]
fn an_interrupt_takes_the_core_that_its_thread_was_on() {
    let compute = Next::Compute(Time::from_ms(4));
    let programs = vec![program(vec![vec![work()]]), program(vec![vec![compute]])];
    let (host, around) = run(&costs(1), programs);
    // The first: 3 us onto the core, 30 us. The second: 1 us for the context switch, then 4 ms.
    assert_eq!(around.seen, [(us(33), 0, WORK)]);
    let begun = host.programs[1].program.asked[0][0];
    assert_eq!(begun, us(34));
    let [first, second] = [0, 1].map(|at| host.programs[at].program.asked[0][1]);
    // The interrupt comes at 1,033 us and is over at 1,333. Then the first goes next: it has run
    // 1 ms less, and half of that would do (`sched_wakeup_granularity`).
    assert_eq!((first, second), (us(1_334), us(34 + 4_000 + 300 + 1 + 1)));
}

/// Threads of several programs wait for two devices at once; the orders of a device are serialized, those of different
/// devices are not. Each thread has a core, which also receives its interrupts.
#[test]
fn programs_order_at_once() {
    let on = |device| Next::Order { device, order: WORK };
    let programs = vec![program(vec![vec![on(0)], vec![on(1)]]), program(vec![vec![on(0)]])];
    let (host, around) = run(&costs(3), programs);
    assert_eq!(around.seen, [(us(33), 0, WORK), (us(33), 1, WORK), (us(33), 0, WORK)]);
    let ended = |program: usize, thread: usize| host.programs[program].program.asked[thread][1];
    assert_eq!([ended(0, 0), ended(0, 1), ended(1, 0)], [us(1_336), us(1_336), us(2_336)]);
    assert!(host.cores.stats.time.iter().all(|time| time.interrupt == us(300)));
}

/// A thread woken while its order is in progress goes back to sleep until it is done.
#[test]
fn an_order_outlasts_those_who_wake_its_thread() {
    let programs = vec![program(vec![vec![work()], vec![Next::Until(us(500)), Next::Wake(0)]])];
    let (host, around) = run(&costs(2), programs);
    let asked = &host.programs[0].program.asked[0];
    assert_eq!((around.seen.len(), asked[1]), (1, us(1_336)));
}

/// An unfinished order is not a fault of the host; a finished one whose thread sleeps on is.
#[test]
fn an_order_that_is_forgotten_is_found() {
    let mut host = Host::new(&costs(1), &[]).expect("a host");
    host.add_program(program(vec![vec![work()]])).expect("no files");
    let mut around = Coprocessors::default();
    host.begin(&mut around);
    while let Some(event) = around.queue.pop() {
        let Around::Host(event) = event else { break };
        host.handle(event, &mut around);
    }
    assert_eq!((host.stuck(), host.is_done()), (None, false));
    let (tag, _) = host.orders.live().next().expect("an order is in progress");
    host.orders[tag].done = true;
    assert!(host.stuck().expect("a thread that waits").ends_with("its order is done"));
}

// Requests as loads and stores of a mapping, on a host before a drive of constant latency: cached pages cost only the
// copy.
//
// Costs in nanoseconds: `call` 150 and `lookup` 300 a fault, `allocate` 190, `insert` 330, `map` 90, `bio` 720,
// `request` 660, `interrupt` 500, `complete` 1040, `end_page` 100, `context_switch` 950, `idle_exit` 2000, `dirty` 330;
// 4 KiB are copied at 19.5 GB/s in 210.

const LATENCY: u64 = 20_000;

const COPY: u64 = 210;

const FAULT: u64 = 150 + 300;

/// A fault that misses a page, reads it alone, sleeps, and finds it: 190 + 330 + 90 + 720 + 660, then 500 + 1040 + 100,
/// then 950 + 2000.
const MAJOR: u64 = FAULT + 1990 + LATENCY + 1640 + 2950 + FAULT;

/// A mapping of this advice.
fn load(advice: Advice) -> Load {
    let mut load = Load::new(&plain(), Time::from_ns(LATENCY), 1);
    load.host.open_flow(0, Way::Mapped, 0, None, advice);
    load
}

/// Serves requests of several pages, each from a first page on, one after another in the same instant.
fn serve(load: &mut Load, op: IoOp, pages: &[(u64, u64)]) -> Vec<u64> {
    let first = load.latencies().len();
    for &(page, count) in pages {
        load.ask(Way::Mapped, Command::new(0, op, page * PAGE, count * PAGE));
        while load.step().expect("a request that is not served").is_empty() {}
    }
    load.latencies().split_off(first)
}

fn near(latencies: &[u64], expected: &[u64]) {
    // Copy times are not whole nanoseconds.
    let close = |(a, b): (&u64, &u64)| a.abs_diff(*b) <= 1 + b / 10_000;
    let equal = latencies.len() == expected.len() && latencies.iter().zip(expected).all(close);
    assert!(equal, "{latencies:?} of {expected:?}");
}

/// `MADV_RANDOM`: a missing page is read alone; a mapped one takes no call.
#[test]
fn a_page_that_is_mapped_costs_its_copy() {
    let mut load = load(Advice::Random);
    serve(&mut load, IoOp::Read, &[(1000, 1)]);
    near(
        &serve(&mut load, IoOp::Read, &[(7, 1), (7, 1), (1000, 1), (7, 1)]),
        &[MAJOR + COPY, COPY, COPY, COPY],
    );
    assert_eq!(load.commands(), [(IoOp::Read, 1000, 1), (IoOp::Read, 7, 1)]);
    // A request of several pages faults for each missing page.
    near(&serve(&mut load, IoOp::Read, &[(6, 3)]), &[2 * MAJOR + 3 * COPY]);
    load.drain();
}

/// Without advice a fault reads `read_ahead_kb` around its page, 128 KiB, and maps the present pages of the 64 KiB
/// around it (`fault_around_bytes`).
#[test]
fn a_fault_reads_and_maps_around_its_page() {
    let mut load = load(Advice::Normal);
    serve(&mut load, IoOp::Read, &[(1000, 1)]);
    serve(&mut load, IoOp::Read, &[(100, 1)]);
    assert_eq!(load.commands()[1], (IoOp::Read, 84, 32));
    // Pages 96 to 111 are mapped with page 100, except the marker of the window; those beyond are not.
    let mapped = serve(&mut load, IoOp::Read, &[(97, 1), (111, 1), (96, 1)]);
    near(&mapped, &[COPY; 3]);
    near(&serve(&mut load, IoOp::Read, &[(95, 1), (94, 1)]), &[FAULT + COPY, COPY]);
    assert_eq!(load.commands().len(), 2);
    load.drain();
}

/// `MADV_SEQUENTIAL` after `POSIX_FADV_SEQUENTIAL`: twice the read-ahead, from the page on.
#[test]
fn a_sequential_mapping_reads_ahead() {
    let mut load = load(Advice::Sequential);
    let pages: Vec<(u64, u64)> = (0..512).map(|page| (page, 1)).collect();
    serve(&mut load, IoOp::Read, &pages);
    let commands = load.commands();
    assert_eq!(commands[0], (IoOp::Read, 0, 64));
    // Each page once, in order, 256 KiB at a time.
    let mut next = 0;
    for (op, page, count) in &commands {
        assert_eq!((*op, *page), (IoOp::Read, next));
        next += count;
    }
    assert!((512..=640).contains(&next) && commands.len() <= 12, "{commands:?}");
    load.drain();
}

/// The first store into a clean page is a fault that makes it dirty; write-back cleans it. A flush is `msync`: dirty
/// pages are written, and the drive's cache is flushed.
#[test]
fn a_store_makes_its_page_dirty_and_a_flush_clean() {
    let mut load = load(Advice::Random);
    serve(&mut load, IoOp::Read, &[(1000, 1)]);
    let stores = serve(&mut load, IoOp::Write, &[(5, 1), (5, 1), (1000, 1), (1000, 1)]);
    near(&stores, &[MAJOR + 330 + COPY, COPY, 330 + COPY, COPY]);
    // Pages covered by a store are read first, as for any mapping.
    assert_eq!(load.commands(), [(IoOp::Read, 1000, 1), (IoOp::Read, 5, 1)]);
    serve(&mut load, IoOp::Flush, &[(0, 0)]);
    let mut written = load.commands().split_off(2);
    assert_eq!(written.pop(), Some((IoOp::Flush, 0, 0)));
    assert_eq!(written, [(IoOp::Write, 5, 1), (IoOp::Write, 1000, 1)]);
    near(&serve(&mut load, IoOp::Read, &[(5, 1)]), &[COPY]);
    near(&serve(&mut load, IoOp::Write, &[(5, 1), (5, 1)]), &[330 + COPY, COPY]);
    serve(&mut load, IoOp::Flush, &[(0, 0)]);
    load.drain();
}
