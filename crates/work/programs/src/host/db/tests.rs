use super::{DOUBLEWRITE, LOG, PAGE, TABLE};
use crate::host::open;
use crate::host::tests::{Calls, Did, drive};
use engine::Time;
use proto::file::{Call, Fd, Next};

fn calls() -> Calls {
    Calls { time: Time::from_us(10), sync: Time::from_us(990) }
}

fn only_calls(done: &[Did]) -> Vec<(u32, Call)> {
    let calls = done.iter().filter_map(|did| match did.next {
        Next::Call(call) => Some((did.thread, call)),
        _ => None,
    });
    calls.collect()
}

const ONE: &str = "threads=1,rate=1000,cpu=100us,keys=uniform,size=20MiB";

#[test]
fn a_select_reads_what_the_pool_lacks() {
    // A pool for the whole table: each page of the tree is read at most once.
    let mut program = open(&format!("db-s:{ONE},pool=32MiB"), "d", 1).unwrap();
    let files = program.files();
    assert_eq!(files[0].name, "sbtest1.ibd");
    let pages = files[0].bytes.unwrap() / PAGE;
    assert!((1_277..=1_280).contains(&pages));
    let done = drive(program.as_mut(), &calls(), Time::from_s(20));
    let mut read = vec![0; pages as usize];
    for (_, call) in only_calls(&done).into_iter().skip(3) {
        let Call::Read { fd: TABLE, offset, bytes: PAGE } = call else { panic!("{call:?}") };
        assert_eq!(offset % PAGE, 0);
        read[(offset / PAGE) as usize] += 1;
    }
    assert_eq!(read, vec![1; pages as usize]);
    // 1,277 leaves and the inner pages of 1,181 entries above them: three levels.
    let first: Vec<_> = only_calls(&done)[3..6].to_vec();
    let offset = |n: usize| match first[n].1 {
        Call::Read { offset, .. } => offset / PAGE,
        other => panic!("{other:?}"),
    };
    assert_eq!(offset(0), pages - 1);
    assert!((pages - 3..pages - 1).contains(&offset(1)) && offset(2) < pages - 3);

    // A pool of half of the table: half of the selects read their leaf.
    let mut program = open(&format!("db-s:{ONE},pool=10MiB,lru_depth=1"), "d", 1).unwrap();
    drive(program.as_mut(), &calls(), Time::from_s(10));
    program.reset_stats(Time::from_s(10));
    drive(program.as_mut(), &calls(), Time::from_s(30));
    let served = program.measured();
    let share = served.asked().read_bytes as f64 / PAGE as f64 / served.requests() as f64;
    assert!((share - 0.5).abs() < 0.03, "{share}");
}

#[test]
fn an_update_is_answered_when_its_record_is_durable() {
    let mut program = open(&format!("db-u:{ONE},requests=1"), "d", 1).unwrap();
    let done = drive(program.as_mut(), &calls(), Time::from_ms(500));
    let tail = only_calls(&done)[6..].to_vec();
    let write = Call::Write { fd: LOG, offset: 2_048, bytes: 8_192 };
    assert_eq!(tail, [(0, write), (0, Call::Sync { fd: LOG, data_only: false })]);
    // 100 us, three reads and a write of 10 us, a sync of 1 ms.
    assert_eq!(program.measured().kinds()[1].ops.latency.max(), Some(1_140_000_000));

    let mut program = open(&format!("db-u:{ONE},requests=1,commit=write"), "d", 1).unwrap();
    drive(program.as_mut(), &calls(), Time::from_ms(500));
    assert_eq!(program.measured().kinds()[1].ops.latency.max(), Some(140_000_000));
}

/// Sixteen clients whose syncs take a millisecond: one sync covers all that arrived during the previous one.
#[test]
fn commits_are_grouped() {
    let text = "db-u:arrivals=closed,clients=16,threads=16,cpu=100us,size=20MiB,pool=32MiB";
    let mut program = open(text, "d", 1).unwrap();
    let done = drive(program.as_mut(), &calls(), Time::from_s(4));
    let served = program.measured();
    let syncs =
        only_calls(&done).iter().filter(|(_, call)| matches!(call, Call::Sync { fd: LOG, .. })).count();
    let group = served.requests() as f64 / syncs as f64;
    assert!((6.0..=16.0).contains(&group), "{group}");
    // The longest wait is two syncs, their writes, and the path of a single page.
    assert!(served.kinds()[1].ops.latency.max() < Some(Time::from_ms(3).ps()));
    assert!(served.requests() > 4 * 7_000);
}

/// Pages written to the table were first written to the doublewrite file and synced, by the same thread; each batch
/// ends with a sync.
#[test]
fn pages_are_written_twice() {
    for (text, copies) in [("", true), (",doublewrite=no", false), (",flush=O_DIRECT", true)] {
        let text = format!("db-u:rate=3000,threads=16,keys=uniform,size=64MiB,pool=4MiB,log=4MiB{text}");
        let mut program = open(&text, "d", 1).unwrap();
        let done = drive(program.as_mut(), &calls(), Time::from_s(5));
        let (mut safe, mut dirty) = ([0_u64; 17], [0_u64; 17]);
        let (mut copied, mut pages) = (0, 0);
        for (thread, call) in only_calls(&done) {
            let at = thread as usize;
            match call {
                Call::Open { fd, flags, .. } => {
                    assert_eq!(flags.direct, text.contains("O_DIRECT") && fd != LOG);
                }
                Call::Write { fd: DOUBLEWRITE, bytes, .. } => {
                    assert_eq!((safe[at], dirty[at]), (0, 0));
                    copied = bytes / PAGE;
                }
                Call::Sync { fd: DOUBLEWRITE, .. } => safe[at] = copied.max(1),
                Call::Write { fd: TABLE, bytes: PAGE, .. } => {
                    if copies {
                        assert!(safe[at] > 0);
                        safe[at] -= 1;
                    }
                    dirty[at] += 1;
                    pages += 1;
                }
                Call::Sync { fd: TABLE, .. } => dirty[at] = 0,
                Call::Read { fd: TABLE, .. } => assert_eq!((safe[at], dirty[at]), (0, 0)),
                _ => {}
            }
        }
        assert!(pages > 1_000, "{text}: {pages}");
    }
}

/// A log that fills holds updates up until pages are written, and no longer.
#[test]
fn a_full_log_waits_for_the_page_cleaner() {
    let text = "db-u:arrivals=closed,clients=8,threads=8,size=64MiB,pool=128MiB,log=4MiB,record=20kB,io_capacity_max=200,keys=uniform";
    let mut program = open(text, "d", 1).unwrap();
    let done = drive(program.as_mut(), &calls(), Time::from_s(10));
    let wakes = done.iter().filter(|did| did.next == Next::Wake(8)).count();
    assert!(wakes > 100, "{wakes}");
    let served = program.measured();
    assert!(served.requests() > 2_000, "{}", served.requests());
    // The log's records between two checkpoints never exceed its size: its writes are circular.
    let log = only_calls(&done).into_iter().filter_map(|(_, call)| match call {
        Call::Write { fd: Fd(1), offset, bytes } => Some((offset, bytes)),
        _ => None,
    });
    assert!(log.into_iter().all(|(offset, bytes)| offset + bytes <= 4 << 20));
}
