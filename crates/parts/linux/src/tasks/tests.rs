use super::*;
use config::StatePower;
use config::units::{Duration, Power};
use engine::{EventQueue, Ticket};

const MS: Time = Time::from_ms(1);

/// Debian's kernel, without context switch costs.
fn spec(count: u16) -> CoresSpec {
    CoresSpec {
        count,
        sched_latency: Duration::new(Time::from_ms(6)),
        sched_min_granularity: Duration::new(Time::from_us(750)),
        sched_wakeup_granularity: Duration::new(MS),
        context_switch: Duration::new(Time::ZERO),
        idle_exit: Duration::new(Time::ZERO),
        energy: None,
    }
}

#[derive(Default)]
struct Clock(EventQueue<Event>);

impl Cx<Event, Infallible> for Clock {
    fn now(&self) -> Time {
        self.0.now()
    }
    fn after(&mut self, delay: Time, event: Event) -> Ticket {
        self.0.after(delay, event)
    }
    fn late(&mut self, delay: Time, event: Event) -> Ticket {
        self.0.late(delay, event)
    }
    fn reserve(&mut self) -> Ticket {
        self.0.reserve()
    }
    fn reserve_late(&mut self) -> Ticket {
        self.0.reserve_late()
    }
    fn at_place(&mut self, place: Ticket, delay: Time, event: Event) {
        self.0.at_place(place, delay, event);
    }
    fn cancel(&mut self, ticket: Ticket) {
        self.0.cancel(ticket);
    }
    fn emit(&mut self, out: Infallible) {
        match out {}
    }
}

struct Bench {
    cores: Cores,
    clock: Clock,
}

impl Bench {
    fn new(spec: &CoresSpec) -> Bench {
        Bench { cores: Cores::new(spec, 250), clock: Clock::default() }
    }

    /// Starts a thread that computes for a time.
    fn start(&mut self, need: Time) -> Task {
        let task = self.cores.spawn();
        self.cores.wake(task, need, Mode::User, &mut self.clock);
        task
    }

    /// Returns the next thread at the end of its burst, and the time; the thread then sleeps.
    fn next(&mut self) -> Option<(Task, Time)> {
        while let Some(event) = self.clock.0.pop() {
            if let Some(task) = self.cores.handle(event, &mut self.clock) {
                self.cores.sleep(task, &mut self.clock);
                return Some((task, self.clock.now()));
            }
        }
        None
    }

    /// Runs events up to a time, and stops there.
    fn until(&mut self, time: Time) {
        // A marker: a burst on a core that does not exist.
        self.clock.after(time.since(self.clock.now()), Event::Due(u16::MAX));
        while let Some(event) = self.clock.0.pop() {
            if event == Event::Due(u16::MAX) {
                return;
            }
            assert_eq!(self.cores.handle(event, &mut self.clock), None);
        }
    }
}

#[test]
fn one_thread_has_its_core_to_itself() {
    let mut bench = Bench::new(&spec(1));
    let task = bench.start(MS.times(50));
    assert_eq!(bench.next(), Some((task, MS.times(50))));
    assert_eq!(bench.cores.stats.time[0].user, MS.times(50));
}

/// One core: the latency is 6 ms, so that each of two threads has 3 ms, which end with the tick at 4 ms
/// (`check_preempt_tick` looks at ticks only).
#[test]
fn two_threads_take_turns_at_ticks() {
    let mut bench = Bench::new(&spec(1));
    let (first, second) = (bench.start(MS.times(6)), bench.start(MS.times(6)));
    // 0 to 4 the first, 4 to 8 the second, 8 to 10 the first, 10 to 12 the second.
    assert_eq!(bench.next(), Some((first, MS.times(10))));
    assert_eq!(bench.next(), Some((second, MS.times(12))));
    assert_eq!(bench.cores.stats.preemptions, 2);
}

/// A thread that has slept preempts one that has run for more than a granularity longer; it is credited at most half a
/// latency.
#[test]
fn a_sleeper_goes_before_a_thread_that_computes() {
    let mut bench = Bench::new(&spec(1));
    let sleeper = bench.cores.spawn();
    let busy = bench.start(MS.times(20));
    bench.until(Time::from_us(10_500));
    bench.cores.wake(sleeper, MS, Mode::System, &mut bench.clock);
    // 3 ms behind: more than the granularity of 1 ms.
    assert_eq!(bench.next(), Some((sleeper, Time::from_us(11_500))));
    assert_eq!(bench.next(), Some((busy, MS.times(21))));
}

#[test]
fn one_that_has_just_run_does_not_go_before() {
    let mut bench = Bench::new(&spec(1));
    let sleeper = bench.start(MS.times(5));
    bench.next();
    let busy = bench.start(MS.times(20));
    bench.until(Time::from_us(5_500));
    bench.cores.wake(sleeper, MS, Mode::System, &mut bench.clock);
    // 0.5 ms ahead at most: its turn comes with the end of the slice of 3 ms from 5 ms on, at the tick at 8 ms.
    assert_eq!(bench.next(), Some((sleeper, MS.times(9))));
    assert_eq!(bench.next(), Some((busy, MS.times(26))));
}

#[test]
fn an_interrupt_delays_what_runs() {
    let mut bench = Bench::new(&spec(1));
    let task = bench.start(MS.times(3));
    bench.until(MS);
    assert_eq!(bench.cores.interrupt(0, MS, &mut bench.clock), MS);
    // An interrupt that arrives during another one waits for it.
    assert_eq!(bench.cores.interrupt(0, MS, &mut bench.clock), MS.times(2));
    assert_eq!(bench.next(), Some((task, MS.times(5))));
    let time = bench.cores.stats.time[0];
    assert_eq!((time.user, time.interrupt), (MS.times(3), MS.times(2)));
}

#[test]
fn a_thread_wakes_on_an_idle_core_and_idle_cores_pull() {
    let mut bench = Bench::new(&spec(2));
    let long = bench.start(MS.times(9));
    let short = bench.start(MS);
    let third = bench.start(MS.times(2));
    assert_eq!((bench.cores.core_of(long), bench.cores.core_of(short)), (0, 1));
    // The thread waits in the queue of its own core, the first, until the other one is idle.
    assert_eq!(bench.cores.core_of(third), 0);
    assert_eq!(bench.next(), Some((short, MS)));
    assert_eq!(bench.next(), Some((third, MS.times(3))));
    assert_eq!(bench.cores.core_of(third), 1);
    assert_eq!(bench.next(), Some((long, MS.times(9))));
    assert_eq!(bench.next(), None);
}

#[test]
fn switches_and_idle_cores_cost() {
    let mut spec = spec(1);
    spec.context_switch = Duration::new(Time::from_us(2));
    spec.idle_exit = Duration::new(Time::from_us(5));
    let mut bench = Bench::new(&spec);
    let (first, second) = (bench.start(MS), bench.start(MS));
    assert_eq!(bench.next(), Some((first, MS + Time::from_us(7))));
    assert_eq!(bench.next(), Some((second, MS.times(2) + Time::from_us(9))));
}

/// All time is accounted for: 9 threads on 4 cores, whatever the order, take 9 shares of work and no core is idle while
/// a thread waits.
#[test]
fn no_time_is_lost() {
    let mut bench = Bench::new(&spec(4));
    for _ in 0..9 {
        bench.start(MS.times(40));
    }
    let mut last = Time::ZERO;
    while let Some((_, now)) = bench.next() {
        last = now;
    }
    let busy: u64 = bench.cores.stats.time.iter().map(|time| time.user.ps()).sum();
    assert_eq!(Time::from_ps(busy), MS.times(360));
    // 360 ms of work on four cores need at least 90 ms; one slice of at most 8 threads' latency may remain at the end.
    assert!(last >= MS.times(90) && last <= MS.times(90 + 24), "{last}");
}

/// Two cores of 1 W, 8 W busy, for 20 ms: a thread of 12 ms, an interrupt of 2 ms on the other core. A window begins in
/// the middle of the thread's burst.
#[test]
fn cores_cost_what_they_do() {
    let watts = |watts: u64| Power::new(watts * 1_000_000);
    let energy = HostEnergySpec {
        core: StatePower { idle: watts(1), busy: watts(8) },
        package_on: watts(20),
        memory_on: watts(3),
    };
    let mut bench = Bench::new(&CoresSpec { energy: Some(energy), ..spec(2) });
    bench.start(MS.times(12));
    bench.cores.interrupt(1, MS.times(2), &mut bench.clock);
    bench.until(MS.times(5));
    let millijoules = |bench: &Bench, at: u64| {
        let energy = bench.cores.energy(MS.times(at)).expect("it has a meter");
        assert!(energy.conserves());
        energy.activities.iter().map(|spent| spent.energy / 1_000_000_000_000_000).collect::<Vec<_>>()
    };
    // Cores on, in user mode, in system mode, in interrupts, package on, memory on.
    assert_eq!(millijoules(&bench, 5), [10, 35, 0, 14, 100, 15]);
    bench.cores.reset_stats(MS.times(5));
    assert!(bench.next().is_some());
    assert_eq!(millijoules(&bench, 20), [30, 49, 0, 0, 300, 45]);
}
