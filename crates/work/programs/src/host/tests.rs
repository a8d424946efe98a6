use super::demand::{Images, Set, SpecWeb};
use super::{entries, open};
use engine::{Rng, Time};
use proto::file::{Call, Fd, FileId, Next, OpenFlags, Program};
use std::{cmp::Reverse, collections::BinaryHeap};

fn calls(us: u64) -> Calls {
    Calls { time: Time::from_us(us), sync: Time::from_us(10 * us) }
}

fn of(done: &[Did], thread: u32) -> Vec<Next> {
    done.iter().filter(|did| did.thread == thread).map(|did| did.next).collect()
}

#[test]
fn classes_have_their_shares_and_sizes() {
    // 45 x (102.4 + 1,024 + 10,240 + 102,400) = 5,119,488 bytes, except for rounding in the smallest class.
    assert!((5_119_480..5_119_496).contains(&SpecWeb::directory_bytes()));
    let set = SpecWeb::new(8_000_000_000, 1.0);
    assert_eq!(set.len(), 1_562 * 36);
    assert_eq!([0, 8, 9, 26, 27, 35].map(|n| set.bytes(n)), [102, 922, 1_024, 92_160, 102_400, 921_600]);
    let (mut rng, n) = (Rng::stream(1, "t"), 200_000);
    let (mut class, mut file, mut first) = ([0.0; 4], [0.0; 9], 0.0);
    for _ in 0..n {
        let object = set.draw(&mut rng);
        class[(object % 36 / 9) as usize] += 1.0;
        file[(object % 9) as usize] += 1.0;
        first += f64::from(u8::from(object < 36));
    }
    let near = |count: f64, share: f64| {
        let mean = share * f64::from(n);
        assert!((count - mean).abs() < 5.0 * (mean * (1.0 - share)).sqrt(), "{count} of {mean}");
    };
    for (count, share) in class.into_iter().zip([0.35, 0.50, 0.14, 0.01]) {
        near(count, share);
    }
    // SPECweb99's table, given to a tenth of a percent.
    for (count, percent) in file.into_iter().zip([3.9, 5.9, 8.8, 17.7, 35.3, 11.8, 7.1, 5.0, 4.4]) {
        let sigma = (percent * (100.0 - percent) / f64::from(n)).sqrt();
        assert!((count / f64::from(n) * 100.0 - percent).abs() < 0.05 + 5.0 * sigma, "{count}: {percent}");
    }
    let harmonic: f64 = (1..=1_562).map(|k| 1.0 / f64::from(k)).sum();
    near(first, 1.0 / harmonic);
}

#[test]
fn images_are_uniform_in_the_logarithm() {
    let set = Images::new(8_000_000_000, (16_000, 256_000), 0.0, 7);
    // The mean is (256,000 - 16,000) / ln 16 = 86,562.
    assert!((92_410..92_430).contains(&set.len()));
    let total: u64 = (0..set.len()).map(|n| set.bytes(n)).sum();
    assert!((total as f64 / 8e9 - 1.0).abs() < 0.01, "{total}");
    // Four octaves, equally likely.
    let mut octaves = [0_u64; 4];
    for n in 0..set.len() {
        octaves[(set.bytes(n) / 16_000).ilog2() as usize] += 1;
    }
    for count in octaves {
        assert!((count as f64 / (set.len() as f64 / 4.0) - 1.0).abs() < 0.03, "{octaves:?}");
    }
}

/// A fetch and an upload of an image of 100,000 bytes, call by call.
#[test]
fn a_request_makes_these_calls() {
    let one = "size=1MiB,smallest=100kB,largest=100kB,theta=0,threads=1,requests=1,cpu=100us,per_kib=1us";
    let flags = OpenFlags::default();
    let (log, fd) = (Fd(0), Fd(1));
    let file = |next: &Next| match next {
        Next::Call(Call::Open { file, .. }) => *file,
        other => panic!("{other:?}"),
    };
    let mut program = open(&format!("img-f:{one}"), "i", 1).unwrap();
    let done = of(&drive(program.as_mut(), &calls(1), Time::from_s(1)), 0);
    let object = file(&done[3]);
    assert!((1..=10).contains(&object.0));
    let read = |offset, bytes| Next::Call(Call::Read { fd, offset, bytes });
    let us = |kib: u64| Next::Compute(Time::from_ps(1_000_000 * kib / 1_024));
    let expected = [
        Next::Call(Call::Open { fd: log, file: FileId(0), flags }),
        done[1],
        Next::Compute(Time::from_us(100)),
        Next::Call(Call::Open { fd, file: object, flags }),
        read(0, 65_536),
        us(65_536),
        read(65_536, 34_464),
        us(34_464),
        Next::Call(Call::Close { fd }),
        Next::Call(Call::Write { fd: log, offset: 0, bytes: 100 }),
        Next::End,
    ];
    assert!(matches!(done[1], Next::Until(_)));
    assert_eq!(done, expected);
    // 100 us, three calls, 97.65625 KiB: the close and the log come after the answer.
    let fetch = &program.measured().kinds()[0].ops;
    assert_eq!((fetch.requests, fetch.bytes), (1, 100_000));
    assert_eq!(fetch.latency.max(), Some(100_000_000 + 3_000_000 + 64_000_000 + 33_656_250));

    let text = format!("img-u:{one},piece=60kB,put=replace,fsync=yes,log=0B");
    let mut program = open(&text, "i", 1).unwrap();
    let done = of(&drive(program.as_mut(), &calls(1), Time::from_s(1)), 0);
    let made = file(&done[2]);
    assert_eq!(made, FileId(11));
    let write = |offset, bytes| Next::Call(Call::Write { fd, offset, bytes });
    let how = proto::file::SyncRange { write: true, ..Default::default() };
    let expected = [
        Next::Compute(Time::from_us(100)),
        Next::Call(Call::Open { fd, file: made, flags }),
        us(60_000),
        write(0, 60_000),
        us(40_000),
        write(60_000, 40_000),
        Next::Call(Call::Sync { fd, data_only: false }),
        Next::Call(Call::SyncRange { fd, offset: 0, bytes: 0, how }),
        Next::Call(Call::Close { fd }),
    ];
    assert_eq!(done[1..10], expected);
    assert!(matches!(done[10], Next::Call(Call::Unlink { file }) if (1..=10).contains(&file.0)));
    assert_eq!(done[11], Next::End);
}

/// An open loop with one worker whose requests take a fixed time is an M/D/1 queue: it waits rho / (2 (1 - rho)) times the service.
#[test]
fn an_open_loop_is_a_queue() {
    // 0 bytes of log, one object: 200 us and nothing else.
    let text = "img-f:size=1MiB,smallest=1MiB,largest=1MiB,threads=1,rate=2500,cpu=400us,per_kib=0us,log=0B,chunk=1MiB";
    let mut program = open(text, "q", 3).unwrap();
    drive(program.as_mut(), &calls(0), Time::from_s(40));
    // rho is half (the close is after the answer and takes no time): 200 us of waiting.
    let text = text.replace("rate=2500", "rate=1250");
    let mut half = open(&text, "q", 3).unwrap();
    drive(half.as_mut(), &calls(0), Time::from_s(200));
    let mean = half.measured().kinds()[0].ops.latency.mean().unwrap() / 1e6;
    assert!((mean - 600.0).abs() < 10.0, "{mean}");
    // A load of one has no steady state, but nothing is lost: all arrivals are served in order.
    let served = program.measured().requests();
    assert!((98_000..=100_000).contains(&served), "{served}");
}

/// Requests depend only on the seed, not on the host.
#[test]
fn requests_do_not_depend_on_the_host() {
    let opened = |us, seed| {
        let mut program = open("apache-f:size=1GiB,requests=200", "a", seed).unwrap();
        let done = drive(program.as_mut(), &calls(us), Time::from_s(60));
        let mut files: Vec<u32> = done
            .iter()
            .filter_map(|did| match did.next {
                Next::Call(Call::Open { file, .. }) => Some(file.0),
                _ => None,
            })
            .collect();
        assert_eq!((files.len(), program.progress()), (201, Some(1.0)));
        files.sort_unstable();
        files
    };
    assert_eq!(opened(1, 1), opened(3_000, 1));
    assert_ne!(opened(1, 1), opened(1, 2));
}

/// A closed loop without think time keeps every worker busy; with it, Little's law gives the rate.
#[test]
fn a_closed_loop_follows_littles_law() {
    let run = |keys: &str| {
        let text = format!(
            "img-f:size=1MiB,smallest=1MiB,largest=1MiB,chunk=1MiB,arrivals=closed,cpu=1ms,per_kib=0us,log=0B,{keys}"
        );
        let mut program = open(&text, "c", 1).unwrap();
        drive(program.as_mut(), &calls(0), Time::from_s(20));
        program.measured().requests() as f64 / 20.0
    };
    assert!((run("clients=12,threads=4") / 4_000.0 - 1.0).abs() < 0.001);
    assert!((run("clients=3,threads=9") / 3_000.0 - 1.0).abs() < 0.001);
    // A worker is always free: 20 clients of 1 ms and 9 ms.
    assert!((run("clients=20,threads=20,think=9ms") / 2_000.0 - 1.0).abs() < 0.02);
    // The same with shared workers: occasionally a queue.
    let shared = run("clients=20,threads=6,think=9ms");
    assert!((1_900.0..2_010.0).contains(&shared), "{shared}");
}

/// An upload takes no file that is being read, and a replaced object is gone.
#[test]
fn no_file_is_taken_while_it_is_open() {
    for put in ["new,keep=1", "replace"] {
        // A fetch takes as long as many uploads, so its file is replaced meanwhile, and replaced again.
        let slow = "chunk=512B,piece=64MiB,per_kib=0us,cpu=10us,theta=4";
        let text = format!(
            "img-f:size=1MiB,uploads=90,put={put},threads=8,arrivals=closed,clients=8,requests=3000,{slow}"
        );
        let mut program = open(&text, "p", 1).unwrap();
        let files = program.files();
        let mut there: Vec<bool> = files.iter().map(|file| file.bytes.is_some()).collect();
        let (mut open_by, mut readers) = (vec![None; 64], vec![0; files.len()]);
        for did in drive(program.as_mut(), &calls(7), Time::from_s(60)) {
            match did.next {
                Next::Call(Call::Open { fd, file, .. }) => {
                    assert!(open_by[usize::from(fd.0)].replace(file).is_none(), "{put}");
                    readers[file.0 as usize] += 1;
                    if !there[file.0 as usize] && file.0 > 0 {
                        assert_eq!(readers[file.0 as usize], 1, "{put}");
                    }
                    there[file.0 as usize] = true;
                }
                Next::Call(Call::Read { fd, .. }) => assert!(open_by[usize::from(fd.0)].is_some()),
                Next::Call(Call::Close { fd }) => {
                    readers[open_by[usize::from(fd.0)].take().unwrap().0 as usize] -= 1;
                }
                Next::Call(Call::Unlink { file }) => {
                    assert!(std::mem::take(&mut there[file.0 as usize]), "{put}");
                }
                _ => {}
            }
        }
        let served = program.measured();
        assert_eq!(served.requests(), 3_000);
        // Five standard errors of 90 %.
        assert!((2_618..=2_782).contains(&served.kinds()[1].ops.requests));
    }
}

#[test]
fn every_program_repeats_itself_and_says_what_it_takes() {
    for entry in entries().filter(|entry| !["strace", "iolog"].contains(&entry.name)) {
        let run = |name: &str, seed| {
            let mut program = open(entry.name, name, seed).unwrap();
            drive(program.as_mut(), &calls(5), Time::from_ms(30))
        };
        let first = run("one", 1);
        assert!(first.len() > 50, "{}", entry.name);
        assert!(first == run("one", 1), "{}", entry.name);
        assert!(first != run("one", 2) && first != run("two", 1), "{}", entry.name);
        for parameter in entry.parameters() {
            assert!(!parameter.source.is_empty() && !parameter.what.is_empty());
            let text = format!("{}:{}=nonsense", entry.name, parameter.name);
            let refused = open(&text, "x", 1).err().unwrap().to_string();
            assert!(refused.contains(parameter.name), "{refused}");
        }
    }
}

#[test]
fn what_cannot_be_is_refused_with_what_can() {
    let refused = |text: &str| open(text, "x", 1).err().unwrap_or_else(|| panic!("{text} is taken"));
    assert_eq!(refused("apache").nearest.as_deref(), Some("apache-f"));
    assert_eq!(refused("ungzip:process=3").nearest.as_deref(), Some("processes"));
    assert_eq!(refused("apache-f:arrivals=opened").nearest.as_deref(), Some("open"));
    assert!(refused("ungzip:rate=100").to_string().contains("1kB/s to 1TiB/s"));
    assert!(refused("apache-f:size=1EiB").to_string().contains("1PiB"));
    assert!(refused("apache-f:size=1PiB").to_string().contains("files"));
    assert!(refused("img-f:smallest=1MiB").to_string().contains("at most `largest`"));
    assert!(refused("ungzip:processes=1024,files=65536").to_string().contains("1048576"));
}

/// The measured part of a run has the requests that were answered in it.
#[test]
fn what_was_measured_is_forgotten_at_a_reset() {
    let mut program = open("apache-f:size=1GiB", "a", 1).unwrap();
    drive(program.as_mut(), &calls(5), Time::from_ms(450));
    let worst = program.measured().worst_bin_ns().unwrap();
    let bins: Vec<_> = program.measured().series().windows().collect();
    assert_eq!(bins.len(), 5);
    assert_eq!(bins.iter().map(|bin| bin.requests).sum::<u64>(), program.measured().requests());
    assert!(bins.iter().all(|bin| bin.latency_ns_mean.unwrap() <= worst));
    program.reset_stats(Time::from_ms(450));
    assert_eq!((program.measured().requests(), program.measured().worst_bin_ns()), (0, None));
    assert_eq!(program.measured().asked(), super::Asked::default());
    assert_eq!(program.measured().since(), Time::from_ms(450));
}

/// Failed calls are counted, by error, in a program's measurements.
#[test]
fn calls_that_fail_are_counted() {
    use super::Failed;
    use proto::file::CallError;
    for text in ["ungzip:processes=1", "apache-u:rate=100", "db-u"] {
        let mut program = open(text, "p", 1).unwrap();
        for error in [CallError::NoSpace, CallError::Io, CallError::Io, CallError::ReadOnly] {
            program.failed(0, error);
        }
        assert_eq!(program.measured().asked().failed, Failed { no_space: 1, io: 2, read_only: 1 });
        program.reset_stats(Time::ZERO);
        assert_eq!(program.measured().asked().failed, Failed::default());
    }
}

// A host for tests: as many cores as threads, and calls of fixed lengths.

/// Durations of calls.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Calls {
    /// Any call.
    pub(crate) time: Time,
    /// Additional time of a sync.
    pub(crate) sync: Time,
}

/// Action of a thread, and its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Did {
    pub(crate) at: Time,
    pub(crate) thread: u32,
    pub(crate) next: Next,
}

/// Runs a program until a time.
pub(crate) fn drive<P: Program + ?Sized>(program: &mut P, calls: &Calls, until: Time) -> Vec<Did> {
    let (mut queue, mut asleep) = (BinaryHeap::new(), vec![None; program.threads() as usize]);
    let (mut order, mut done) = (0_u64, Vec::new());
    let mut wake = |queue: &mut BinaryHeap<_>, at: Time, thread: u32| {
        order += 1;
        queue.push(Reverse((at, order, thread)));
        order
    };
    for thread in 0..program.threads() {
        wake(&mut queue, Time::ZERO, thread);
    }
    while let Some(Reverse((now, ticket, thread))) = queue.pop() {
        if now > until {
            break;
        }
        // A sleeping thread that was woken early.
        if asleep[thread as usize].take().is_some_and(|valid: u64| valid != ticket) {
            continue;
        }
        let next = program.next(thread, now);
        done.push(Did { at: now, thread, next });
        match next {
            Next::Compute(time) => drop(wake(&mut queue, now + time, thread)),
            Next::Call(Call::Sync { .. }) => drop(wake(&mut queue, now + calls.time + calls.sync, thread)),
            Next::Call(_) | Next::Order { .. } => drop(wake(&mut queue, now + calls.time, thread)),
            Next::Until(time) => drop(wake(&mut queue, time.max(now), thread)),
            Next::Wait => asleep[thread as usize] = Some(u64::MAX),
            Next::Wake(other) => {
                if asleep[other as usize].take().is_some() {
                    wake(&mut queue, now, other);
                }
                wake(&mut queue, now, thread);
            }
            Next::End => {}
        }
    }
    done
}
