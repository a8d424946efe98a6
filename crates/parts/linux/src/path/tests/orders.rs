//! Programs that give orders to coprocessors, each of which serves its orders one after another.

use super::*;
use crate::tasks::CoresSpec;
use config::units::Duration;
use proto::offload::Order;

const fn us(us: u64) -> Time {
    Time::from_us(us)
}

engine::events! {
    enum Around {
        /// Of the host.
        Host(Event),
        /// A coprocessor has done an order.
        Done(u32),
    }
}

/// Two coprocessors: a byte takes a nanosecond, a step a millisecond.
#[derive(Default)]
struct Coprocessors {
    queue: EventQueue<Around>,
    free: [Time; 2],
    /// Orders as they came: when, to whom, what.
    seen: Vec<(Time, u16, Order)>,
}

impl Coprocessors {
    fn take(&mut self, out: Out) {
        let Out::Order { tag, device, order } = out else { panic!("there is no drive: {out:?}") };
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

/// Core time that is told apart: a change of threads 1 us, leaving idleness 2, a call 10, a request 20, an interrupt 100, a completion 200.
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

/// One order after another: before the device hears of one, 10 + 20 us of the driver; after it is done, 100 + 200 us of the interrupt, then 1 + 2 us until the
/// thread is back on its core, which was idle.
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
    // Onto its core; then each order's 30 us and onto the core again. The interrupts are nobody's.
    assert_eq!(host.programs[0].program.used[0], [us(3), us(33), us(33), us(33)]);
    assert_eq!(host.stats.orders, 3);
    let time = host.cores.stats.time[0];
    // Four times onto the core; drivers' calls.
    assert_eq!((time.user, time.system), (Time::ZERO, us(4 * 3 + 3 * 30)));
    assert_eq!(time.interrupt, us(3 * 300));
}

/// While one program waits for its order, another has the core; the interrupt stops it for as long as it lasts, and who waited goes next.
#[test]
fn an_interrupt_takes_the_core_that_its_thread_was_on() {
    let compute = Next::Compute(Time::from_ms(4));
    let programs = vec![program(vec![vec![work()]]), program(vec![vec![compute]])];
    let (host, around) = run(&costs(1), programs);
    // The first: 3 us onto the core, 30 us. The second: 1 us for the change of threads, then 4 ms.
    assert_eq!(around.seen, [(us(33), 0, WORK)]);
    let begun = host.programs[1].program.asked[0][0];
    assert_eq!(begun, us(34));
    let [first, second] = [0, 1].map(|at| host.programs[at].program.asked[0][1]);
    // The interrupt comes at 1,033 us and is over at 1,333. Then the first goes next: it has run
    // 1 ms less, and half of that would do (`sched_wakeup_granularity`).
    assert_eq!((first, second), (us(1_334), us(34 + 4_000 + 300 + 1 + 1)));
}

/// Threads of several programs wait for two devices at once; a device's orders wait for each other, not for those of the other one. Each thread has a core, and
/// interrupts come to it.
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

/// Who is woken while its order is under way goes back to sleep until it is done.
#[test]
fn an_order_outlasts_those_who_wake_its_thread() {
    let programs = vec![program(vec![vec![work()], vec![Next::Until(us(500)), Next::Wake(0)]])];
    let (host, around) = run(&costs(2), programs);
    let asked = &host.programs[0].program.asked[0];
    assert_eq!((around.seen.len(), asked[1]), (1, us(1_336)));
}

/// An order that nobody ends is no fault of the host; one that has ended and whose thread sleeps on is.
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
    let (tag, _) = host.orders.live().next().expect("it is under way");
    host.orders[tag].done = true;
    assert!(host.stuck().expect("a thread that waits").ends_with("its order is done"));
}
