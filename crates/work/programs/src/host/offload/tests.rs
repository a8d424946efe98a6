//! Execution of a plan by a program, worked out by hand, and its time by phase.

use super::*;
use proto::file::FileId;
use proto::offload::PlannedArray;

const MB: u64 = 1_000_000;

fn array(name: &str, bytes: u64, (is_given, is_shared, is_kept): (bool, bool, bool)) -> PlannedArray {
    PlannedArray { name: name.to_owned(), bytes, is_given, is_shared, is_kept }
}

fn stretch(array: u16, first: u64, bytes: u64) -> Stretch {
    Stretch { array, first, bytes }
}

/// Returns the plan of a kernel that reads 40 MB of a shared array, spills and reloads 10 MB of its own, and leaves
/// 20 MB.
fn plan() -> Plan {
    Plan {
        name: "twice".to_owned(),
        program: 7,
        arrays: vec![
            array("a", 40 * MB, (true, true, false)),
            array("unused", 8 * MB, (false, false, false)),
            array("t", 10 * MB, (false, false, false)),
            array("y", 20 * MB, (false, false, true)),
        ],
        ahead: false,
        actions: vec![
            Action::Load(stretch(0, 0, 40 * MB)),
            Action::Work(0),
            Action::Store(stretch(2, 0, 10 * MB)),
            Action::Load(stretch(2, 0, 10 * MB)),
            Action::Work(1),
            Action::Store(stretch(3, 0, 20 * MB)),
        ],
    }
}

fn costs() -> OffloadCosts {
    OffloadCosts::default()
}

/// Returns all actions of the thread, each of the given duration, half of it on a core.
fn all(program: &mut Offload, takes: Time) -> Vec<Next> {
    let (mut now, mut done) = (Time::from_ms(5), Vec::new());
    loop {
        program.used(0, if done.is_empty() { Time::ZERO } else { Time::from_ps(takes.ps() / 2) });
        match program.next(0, now) {
            Next::End => return done,
            next => done.push(next),
        }
        now += takes;
    }
}

fn call(call: Call) -> Next {
    Next::Call(call)
}

fn order(order: Order) -> Next {
    Next::Order { device: 2, order }
}

fn open(fd: u16, file: u32) -> Next {
    call(Call::Open { fd: Fd(fd), file: FileId(file), flags: OpenFlags::default() })
}

/// Rates of 2 GB/s to reorder, 5 GB/s to the driver: 40 MB take 20 and 8 ms.
#[test]
fn an_instance_reads_sends_works_receives_and_writes() {
    let mut program = Offload::new("p", vec![(plan(), 2)], costs(), (2, 1));
    let ms = |ms| Next::Compute(Time::from_ms(ms));
    let (a, t, y) = (Fd(0), Fd(1), Fd(2));
    let of_instance = |t_file: u32, y_file: u32| {
        vec![
            open(0, 0),
            open(1, t_file),
            open(2, y_file),
            call(Call::Read { fd: a, offset: 0, bytes: 40 * MB }),
            ms(20),
            ms(8),
            order(Order::Send { bytes: 40 * MB }),
            order(Order::Work { program: 7, step: 0 }),
            order(Order::Receive { bytes: 10 * MB }),
            ms(2),
            ms(5),
            call(Call::Write { fd: t, offset: 0, bytes: 10 * MB }),
            call(Call::Read { fd: t, offset: 0, bytes: 10 * MB }),
            ms(5),
            ms(2),
            order(Order::Send { bytes: 10 * MB }),
            order(Order::Work { program: 7, step: 1 }),
            order(Order::Receive { bytes: 20 * MB }),
            ms(4),
            ms(10),
            call(Call::Write { fd: y, offset: 0, bytes: 20 * MB }),
            call(Call::Sync { fd: y, data_only: false }),
            call(Call::Close { fd: a }),
            call(Call::Close { fd: t }),
            call(Call::Close { fd: y }),
            call(Call::Unlink { file: FileId(t_file) }),
        ]
    };
    assert_eq!(all(&mut program, Time::from_us(1)), [of_instance(1, 2), of_instance(3, 4)].concat());
    let file = |name: &str, bytes| FileSpec { name: name.to_owned(), bytes, drive: 1 };
    // The input is one file for both instances; arrays that are only in memory have none.
    let files = [
        file("twice/a", Some(40 * MB)),
        file("twice.0.0/t", None),
        file("twice.0.0/y", None),
        file("twice.0.1/t", None),
        file("twice.0.1/y", None),
    ];
    assert_eq!(program.files(), files);
    assert_eq!(program.progress(), Some(1.0));
}

/// Applications of the same program share its input; those of a different one do not.
#[test]
fn files_are_shared_within_a_program() {
    let other = Plan { program: 8, name: "other".to_owned(), ..plan() };
    let program = Offload::new("p", vec![(plan(), 1), (plan(), 1), (other, 1)], costs(), (0, 0));
    let names: Vec<String> = program.files().into_iter().map(|file| file.name).collect();
    let expected = [
        "twice/a",
        "twice.0.0/t",
        "twice.0.0/y",
        "twice.1.0/t",
        "twice.1.0/y",
        "other/a",
        "other.2.0/t",
        "other.2.0/y",
    ];
    assert_eq!(names, expected);
}

/// Each action lasts 10 us, half of it on a core: 4 + 3 of files, two reads, four reorderings, four copies and so on.
#[test]
fn the_time_of_an_instance_is_that_of_its_phases() {
    let mut program = Offload::new("p", vec![(plan(), 2)], costs(), (0, 0));
    all(&mut program, Time::from_us(10));
    let [first, second] = program.executed() else { panic!("two instances") };
    assert_eq!((first.begun, first.ended), (Time::from_ms(5), Some(Time::from_us(5_260))));
    assert_eq!((second.begun, second.ended), (Time::from_us(5_260), Some(Time::from_us(5_520))));
    let times = Phase::ALL.map(|phase| first.spent(phase).time.ns() / 10_000);
    // Files, read, marshal, copy, send, work, receive, write, sync.
    assert_eq!(times, [7, 2, 4, 4, 2, 2, 2, 2, 1]);
    assert!(Phase::ALL.iter().all(|phase| first.spent(*phase).core.times(2) == first.spent(*phase).time));
    let us = Time::from_us;
    // Half of 12 calls' time and of 6 orders'; all computation and the other halves.
    assert_eq!(first.shares(), Shares { storage: us(60), cpu: us(60 + 80 + 30), accelerator: us(30) });
    assert!(first.is_accounted() && second.is_accounted());
    assert_eq!((first.sent_bytes, first.received_bytes), (50 * MB, 30 * MB));
    let mut lost = first.clone();
    lost.ended = Some(us(5_261));
    assert!(!lost.is_accounted());
    // Response times count from the time when all were offered, input bytes are as given.
    let served = program.measured();
    assert_eq!((served.requests(), served.kinds()[0].ops.bytes), (2, 80 * MB));
    assert_eq!(served.asked().read_bytes, 100 * MB);
    assert_eq!((served.asked().written_bytes, served.asked().syncs), (60 * MB, 2));
}

/// Reports to an observer about two instances: one activity after another, each with its phase.
#[test]
fn all_phases_are_shown_once() {
    use super::{Done, Observer};
    use std::cell::RefCell;
    use std::rc::Rc;

    #[derive(Default)]
    struct Sums {
        spent: [[Spent; Phase::ALL.len()]; 2],
        ends: Vec<(u32, Time, Time)>,
    }

    struct Watch(Rc<RefCell<Sums>>);

    impl Observer for Watch {
        fn done(&mut self, done: &Done<'_>) {
            let mut sums = self.0.borrow_mut();
            assert_eq!((done.program, done.application), ("twice", 0));
            let spent = &mut sums.spent[done.instance as usize][done.phase as usize];
            spent.time += done.to - done.from;
            spent.core += done.core;
            sums.ends.push((done.instance, done.from, done.to));
        }
    }

    let sums = Rc::new(RefCell::new(Sums::default()));
    let mut program = Offload::new("p", vec![(plan(), 2)], costs(), (0, 0));
    program.observer = Some(Box::new(Watch(Rc::clone(&sums))));
    all(&mut program, Time::from_us(10));
    let sums = sums.borrow();
    for (executed, shown) in program.executed().iter().zip(&sums.spent) {
        assert_eq!(Phase::ALL.map(|phase| executed.spent(phase)), *shown);
    }
    assert!(sums.ends.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].2 == pair[1].1));
    assert_eq!((sums.ends.len(), sums.ends[0].1), (52, Time::from_ms(5)));
}

#[test]
fn a_window_counts_what_ends_in_it() {
    let mut program = Offload::new("p", vec![(plan(), 2)], costs(), (0, 0));
    let mut now = Time::ZERO;
    while program.executed().len() < 2 {
        assert_ne!(program.next(0, now), Next::End);
        now += Time::from_us(10);
    }
    assert!((program.progress().expect("it has an end") - 0.5).abs() < 1e-9);
    program.reset_stats(now);
    assert_eq!(program.executed().len(), 1);
    while program.next(0, now) != Next::End {
        now += Time::from_us(10);
    }
    let [second] = program.executed() else { panic!("one instance") };
    assert!(second.instance == 1 && second.is_accounted());
    assert_eq!(program.measured().requests(), 1);
}

/// Without passes data are not reordered; without `sync` nothing is made durable. A copy of 40 MB at 1 GB/s takes 40
/// ms.
#[test]
fn costs_are_what_a_user_says() {
    use config::units::Bandwidth;
    let cheap = OffloadCosts { passes: 0, copy: Bandwidth::new(1_000 * MB), sync: false, ..costs() };
    let done = all(&mut Offload::new("p", vec![(plan(), 1)], cheap, (0, 0)), Time::from_us(1));
    let computed = |next: &Next| match next {
        Next::Compute(time) => Some(time.ns() / 1_000_000),
        _ => None,
    };
    assert_eq!(done.iter().filter_map(computed).collect::<Vec<_>>(), [40, 10, 10, 20]);
    assert!(!done.iter().any(|next| matches!(next, Next::Call(Call::Sync { .. }))));
    let thrice = OffloadCosts { passes: 3, marshal: Bandwidth::new(1_000 * MB), ..costs() };
    let done = all(&mut Offload::new("p", vec![(plan(), 1)], thrice, (0, 0)), Time::from_us(1));
    assert_eq!(done.iter().filter_map(computed).collect::<Vec<_>>(), [120, 8, 2, 30, 30, 2, 4, 60]);
}

/// A call moves at most 2 GiB minus a page: 5 GB are read by three calls, and sent at once.
#[test]
fn a_long_stretch_takes_several_calls() {
    let bytes = 5_000 * MB;
    let plan = Plan {
        arrays: vec![array("a", bytes + 64, (true, true, false))],
        actions: vec![Action::Load(stretch(0, 64, bytes))],
        ..plan()
    };
    let done = all(&mut Offload::new("p", vec![(plan, 1)], costs(), (0, 0)), Time::from_us(1));
    let reads = done.iter().filter_map(|next| match next {
        Next::Call(Call::Read { offset, bytes, .. }) => Some((*offset, *bytes)),
        _ => None,
    });
    let most = (2 << 30) - 4096;
    let expected = [(64, most), (64 + most, most), (64 + 2 * most, bytes - 2 * most)];
    assert_eq!(reads.collect::<Vec<_>>(), expected);
    let sends = done.iter().filter(|next| matches!(next, Next::Order { .. })).count();
    assert_eq!(sends, 1);
}

#[test]
fn a_program_without_instances_ends_at_once() {
    let mut program = Offload::new("p", vec![(plan(), 0)], costs(), (0, 0));
    assert_eq!(program.next(0, Time::ZERO), Next::End);
    assert_eq!((program.progress(), program.executed().len()), (Some(1.0), 0));
}

/// All actions take 10 ms: 10 MB are copied at 1 GB/s. The second load may begin when the first step is done, and
/// runs during the second step; the third step waits for it; the store waits for that.
#[test]
fn a_second_thread_moves_data_beside_steps() {
    use crate::host::tests::{Calls, drive};
    use config::units::Bandwidth;

    let plan = Plan {
        arrays: vec![array("a", 20 * MB, (true, true, false)), array("y", 10 * MB, (false, false, true))],
        ahead: true,
        actions: vec![
            Action::Load(stretch(0, 0, 10 * MB)),
            Action::Work(0),
            Action::Work(1),
            Action::Load(stretch(0, 10 * MB, 10 * MB)),
            Action::Work(2),
            Action::Store(stretch(1, 0, 10 * MB)),
        ],
        ..plan()
    };
    let costs = OffloadCosts { passes: 0, copy: Bandwidth::new(1_000 * MB), ..costs() };
    let mut program = Offload::new("p", vec![(plan, 2)], costs, (2, 1));
    assert_eq!(program.threads(), 2);
    let calls = Calls { time: Time::from_ms(10), sync: Time::ZERO };
    let done = drive(&mut program, &calls, Time::from_ms(10_000));
    let began = |is: fn(&Next) -> bool| {
        let of = done.iter().filter(|did| is(&did.next));
        of.map(|did| (did.thread, did.at.ns() / 10_000_000)).collect::<Vec<_>>()
    };
    // The second instance does the same when the first is over.
    let of = |thread: u32, first: &[u64]| -> Vec<(u32, u64)> {
        [0, 16].into_iter().flat_map(|over| first.iter().map(move |at| (thread, over + at))).collect()
    };
    assert_eq!(
        began(|next| matches!(next, Next::Order { order: Order::Work { .. }, .. })),
        of(0, &[5, 6, 9])
    );
    assert_eq!(began(|next| matches!(next, Next::Call(Call::Read { .. }))), of(1, &[2, 6]));
    assert_eq!(began(|next| matches!(next, Next::Order { order: Order::Receive { .. }, .. })), of(1, &[10]));
    assert_eq!(began(|next| matches!(next, Next::Call(Call::Sync { .. }))), of(0, &[13]));
    assert_eq!(began(|next| *next == Next::End), [(1, 32), (0, 32)]);
    for (executed, at) in program.executed().iter().zip([0, 160]) {
        assert_eq!((executed.begun, executed.ended), (Time::from_ms(at), Some(Time::from_ms(at + 160))));
        assert_eq!(executed.waited, Time::from_ms(80));
        let times = Phase::ALL.map(|phase| executed.spent(phase).time.ns() / 10_000_000);
        // Files, read, marshal, copy, send, work, receive, write, sync.
        assert_eq!(times, [4, 2, 0, 3, 2, 3, 1, 1, 1]);
        assert!(executed.is_accounted());
        let mut lost = executed.clone();
        lost.waited = Time::from_ms(70);
        assert!(!lost.is_accounted());
    }
}

/// All actions take 10 ms: an instance opens two files, reads, copies, sends, has a step executed, receives, copies,
/// writes, syncs and closes two files: 120 ms. Two threads run the first two instances side by side; the third begins
/// when one is over. Each thread has separate descriptors; files belong to the instances.
#[test]
fn threads_have_an_instance_each() {
    use crate::host::tests::{Calls, drive};
    use config::units::Bandwidth;

    let plan = Plan {
        arrays: vec![array("a", 10 * MB, (true, true, false)), array("y", 10 * MB, (false, false, true))],
        actions: vec![
            Action::Load(stretch(0, 0, 10 * MB)),
            Action::Work(0),
            Action::Store(stretch(1, 0, 10 * MB)),
        ],
        ..plan()
    };
    let costs = OffloadCosts { passes: 0, copy: Bandwidth::new(1_000 * MB), threads: 2, ..costs() };
    let calls = Calls { time: Time::from_ms(10), sync: Time::ZERO };
    let mut program = Offload::new("p", vec![(plan.clone(), 2), (plan, 1)], costs, (2, 1));
    assert_eq!(program.threads(), 2);
    let done = drive(&mut program, &calls, Time::from_ms(10_000));
    let opened = |thread: u32| {
        let of = done.iter().filter(|did| did.thread == thread);
        let opened = of.filter_map(|did| match did.next {
            Next::Call(Call::Open { fd, file, .. }) => Some((fd.0, file.0)),
            _ => None,
        });
        opened.collect::<Vec<_>>()
    };
    assert_eq!(opened(0), [(0, 0), (1, 1), (0, 0), (1, 3)]);
    assert_eq!(opened(1), [(2, 0), (3, 2)]);
    let ms = |time: Time| time.ns() / 1_000_000;
    let times: Vec<_> = program.executed().iter().map(|one| (ms(one.begun), one.ended.map(ms))).collect();
    assert_eq!(times, [(0, Some(120)), (0, Some(120)), (120, Some(240))]);
    assert!(program.executed().iter().all(|one| one.is_accounted() && one.waited == Time::ZERO));
    assert_eq!(program.progress(), Some(1.0));
}

/// A window that begins while two instances are in progress counts both, and their later activities.
#[test]
fn a_window_keeps_all_instances_that_are_under_way() {
    let costs = OffloadCosts { threads: 2, ..costs() };
    let mut program = Offload::new("p", vec![(plan(), 3)], costs, (0, 0));
    // The second thread begins the first instance; the first thread executes the second one and begins the third.
    assert_ne!(program.next(1, Time::ZERO), Next::End);
    let mut now = Time::ZERO;
    while program.executed().len() < 3 {
        assert_ne!(program.next(0, now), Next::End);
        now += Time::from_us(10);
    }
    program.reset_stats(now);
    let of = |program: &Offload| program.executed().iter().map(|one| one.instance).collect::<Vec<_>>();
    assert_eq!(of(&program), [0, 2]);
    while program.next(1, now) != Next::End {
        now += Time::from_us(10);
    }
    let [first, third] = program.executed() else { panic!("two instances") };
    assert_eq!(first.ended, Some(now));
    assert!(first.is_accounted() && third.ended.is_none());
    assert_eq!(first.sent_bytes, 50 * MB);
}
