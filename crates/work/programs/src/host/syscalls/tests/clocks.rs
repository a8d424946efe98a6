//! The clocks of strace(1): `-ttt`, `-tt`, `-t`, `-r`, both, with and without a process in front. Expected times are sums.

use super::{Choice, SETTINGS, Settings, of, program, read_all, run};
use engine::Time;
use proto::file::Next;

/// A file is opened, read twice, closed; then the program ends. Calls take 10 us; they begin 1 ms, 2 ms, 4 ms and 5 ms after the first line.
const BODIES: [&str; 5] = [
    r#"open("a", O_RDONLY) = 3 <0.000010>"#,
    r#"read(3, ""..., 4096) = 4096 <0.000010>"#,
    r#"read(3, ""..., 4096) = 4096 <0.000010>"#,
    "close(3) = 0 <0.000010>",
    "+++ exited with 0 +++",
];

fn with(fronts: [&str; 5]) -> String {
    fronts.iter().zip(BODIES).map(|(front, body)| format!("{front}{body}\n")).collect()
}

/// Returns the time computed between its calls, in microseconds.
fn gaps(text: &str, options: &str) -> Vec<u64> {
    let computed = run(text, options).into_iter().filter_map(|did| match did.next {
        Next::Compute(time) => Some(time.ns() / 1_000),
        _ => None,
    });
    computed.collect()
}

/// Times up to the last call: computation before the end is not replayed.
const GAPS: [u64; 3] = [990, 990, 1_990];

/// Formats as written by strace 6.1: `%6ld.%06ld` for `-r`, in `(+...)` after a timestamp, `%-5d ` for a process.
#[test]
fn every_clock_gives_the_same_replay() {
    let logs = [
        // -ttt, -tt across midnight, -r; each of one process.
        with([
            "1700000000.500000 ",
            "1700000000.501000 ",
            "1700000000.502000 ",
            "1700000000.504000 ",
            "1700000000.505000 ",
        ]),
        with([
            "23:59:59.998000 ",
            "23:59:59.999000 ",
            "00:00:00.000000 ",
            "00:00:00.002000 ",
            "00:00:00.003000 ",
        ]),
        with(["     0.000000 ", "     0.001000 ", "     0.001000 ", "     0.002000 ", "     0.001000 "]),
        // The same with -f -o, and with -f to a terminal.
        with([
            "71    23:59:59.998000 ",
            "71    23:59:59.999000 ",
            "71    00:00:00.000000 ",
            "71    00:00:00.002000 ",
            "71    00:00:00.003000 ",
        ]),
        with([
            "71         0.000000 ",
            "71         0.001000 ",
            "71         0.001000 ",
            "71         0.002000 ",
            "71         0.001000 ",
        ]),
        with([
            "[pid    71]      0.000000 ",
            "[pid    71]      0.001000 ",
            "[pid    71]      0.001000 ",
            "[pid    71]      0.002000 ",
            "[pid    71]      0.001000 ",
        ]),
        // The end of a log: its first time is not zero, and its padding identifies it.
        with(["     3.200000 ", "     0.001000 ", "     0.001000 ", "     0.002000 ", "     0.001000 "]),
        // -ttt -r, and -t -r, whose timestamps are coarser.
        with([
            "1700000000.500000 (+     0.000000) ",
            "1700000000.501000 (+     0.001000) ",
            "1700000000.502000 (+     0.001000) ",
            "1700000000.504000 (+     0.002000) ",
            "1700000000.505000 (+     0.001000) ",
        ]),
        with([
            "12:00:00 (+     0.000000) ",
            "12:00:00 (+     0.001000) ",
            "12:00:00 (+     0.001000) ",
            "12:00:00 (+     0.002000) ",
            "12:00:00 (+     0.001000) ",
        ]),
        // --absolute-timestamps=unix,ns and --relative-timestamps=ns.
        with([
            "1700000000.500000000 ",
            "1700000000.501000000 ",
            "1700000000.502000000 ",
            "1700000000.504000000 ",
            "1700000000.505000000 ",
        ]),
        with([
            "     0.000000000 ",
            "     0.001000000 ",
            "     0.001000000 ",
            "     0.002000000 ",
            "     0.001000000 ",
        ]),
    ];
    for text in logs {
        assert_eq!(gaps(&text, ""), GAPS, "{text}");
    }
    // Spaces were lost: the first time determines the kind, or the user does.
    let bare = with(["0.000000 ", "0.001000 ", "0.001000 ", "0.002000 ", "0.001000 "]);
    assert_eq!(gaps(&bare, ""), GAPS);
    let later = with(["3.200000 ", "0.001000 ", "0.001000 ", "0.002000 ", "0.001000 "]);
    assert_eq!(gaps(&later, ",clock=relative"), GAPS);
    let from_zero = with(["0.000000 ", "0.001000 ", "0.002000 ", "0.004000 ", "0.005000 "]);
    assert_eq!(gaps(&from_zero, ",clock=absolute"), GAPS);
}

/// Times since the previous line are global to all processes: `ots` is one variable of strace.
#[test]
fn relative_times_of_several_processes_add_up_over_all_of_them() {
    let text = "71         0.000000 fork() = 72 <0.000100>\n72         0.001000 sync() = 0 <0.000100>\n\
                71         0.002000 sync() = 0 <0.000100>\n72         0.003000 sync() = 0 <0.000100>\n";
    let done = run(text, "");
    let computed = |thread: u32| -> u64 {
        let of = done.iter().filter(|did| did.thread == thread);
        of.map(|did| if let Next::Compute(time) = did.next { time.ns() / 1_000 } else { 0 }).sum()
    };
    // 71 forks for 0.1 ms and calls at 3 ms; 72 has begun by then, and calls at 1 ms, for 0.1 ms, and at 6 ms.
    assert_eq!((computed(0), computed(1)), (100 + 2_900, 900 + 4_900));
}

/// With whole seconds (`-t`), calls of one second follow each other, and none of their times is lost.
#[test]
fn whole_seconds_keep_the_time_that_calls_took() {
    let poll = |front: &str, took: &str| format!("{front} poll([], 0, 400) = 0 <{took}>\n");
    for fronts in [
        ["12:00:00", "12:00:00", "12:00:00", "12:00:02"],
        ["1700000000", "1700000000", "1700000000", "1700000002"],
    ] {
        let text = fronts[..3].iter().map(|front| poll(front, "0.300000")).collect::<String>()
            + &format!("{} +++ exited with 0 +++\n", fronts[3]);
        let done = run(&text, "");
        let slept: u64 = done
            .iter()
            .filter_map(
                |did| if let Next::Until(until) = did.next { Some((until - did.at).ns()) } else { None },
            )
            .sum();
        assert_eq!(Time::from_ns(slept), Time::from_ms(900), "{text}");
        let notes = program(&text, "").notes();
        assert!(notes.iter().any(|note| note.contains("whole seconds")), "{notes:?}");
    }
    // --syscall-times=s.
    assert_eq!(of(&run(&poll("12:00:00", "1"), ""), 0), [Next::End]);
}

#[test]
fn what_a_clock_cannot_say_is_refused() {
    let two =
        |first: &str, second: &str| format!("{first}sync() = 0 <0.000010>\n{second}sync() = 0 <0.000010>\n");
    let cases = [
        (two("1700000001.000000 ", "1700000000.900000 "), "goes back by 0.1 s", 1),
        (two("7 1700000001.000000 ", "8 1700000000.900000 "), "strace-log-merge", 3),
        (two("12:00:00.000000 ", "11:00:00.000000 "), "goes back by 3600 s", 1),
        (two("3.200000 ", "0.001000 "), "clock=relative", 1),
        (two("1700000001.000000 ", "12:00:00.000000 "), "a different kind", 1),
        (two("12:00:00.000000 ", "     0.000010 "), "a different kind", 6),
        (two("12:00:00 ", "12:60:00 "), "time of day", 1),
        (two("1700000001.000000 ", ""), "`strace -ttt` writes times", 1),
        (two("7 1700000001.000000 ", "7 "), "times=none", 1),
        (two("1700000001.000000 (+     0.000000) ", "1700000001.000000 (+ x) "), "in parentheses", 20),
    ];
    for (text, says, column) in cases {
        let refused = read_all(text.as_bytes(), SETTINGS).unwrap_err();
        let shown = refused.to_string();
        assert!(shown.contains(says), "{text}: {shown}");
        let place = refused.place.unwrap();
        assert_eq!((place.line, place.column), (2, column), "{text}: {shown}");
    }
    for (text, says) in [
        // --relative-timestamps=s and =ms.
        (two("     0 ", "     1 "), "too coarse"),
        (two("     0.000 ", "     0.001 "), "too coarse"),
        ("12:00:00.000000 sync() = 0\n".to_owned(), "`strace -T`"),
        ("sync() = 0 <0.000010>\n".to_owned(), "`strace -ttt`"),
    ] {
        let shown = read_all(text.as_bytes(), SETTINGS).unwrap_err().to_string();
        assert!(shown.contains(says), "{text}: {shown}");
    }
    let relative = Settings { clock: Choice::Relative, ..SETTINGS };
    let shown = read_all(two("12:00:00 ", "12:00:01 ").as_bytes(), relative).unwrap_err().to_string();
    assert!(shown.contains("leave out clock=relative"), "{shown}");
}

/// strace keeps one time for all processes: in files of `-ff`, a time of `-r` may be relative to a line of a
/// different file, and cannot be added up.
#[test]
fn relative_times_of_one_process_of_several_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let relative =
        with(["     0.000000 ", "     0.001000 ", "     0.001000 ", "     0.002000 ", "     0.001000 "]);
    let path = |name: &str| folder.path().join(name);
    let survey = |name: &str, settings: Settings| super::super::survey(&path(name), settings).map(|_| ());
    std::fs::write(path("log.71"), &relative).expect("a file");
    std::fs::write(path("other.72"), &relative).expect("a file");
    survey("log.71", SETTINGS).expect("the only one");
    std::fs::write(path("log.73"), "").expect("a file");
    let shown = survey("log.71", SETTINGS).expect_err("one of two").to_string();
    assert!(shown.contains("`strace -ff -ttt`") && shown.contains("strace-log-merge"), "{shown}");
    survey("log.71", Settings { clock: Choice::Relative, ..SETTINGS }).expect("as it was told");
    std::fs::write(path("log.71"), with(["1700000000.500000 "; 5])).expect("a file");
    survey("log.71", SETTINGS).expect("moments");
}

/// Without times, neither timestamps nor durations nor their order are needed.
#[test]
fn without_times_a_log_needs_none() {
    let bare = |text: &str| text.replace(" <0.000010>", "");
    let whole = with(["1700000000.500000 "; 5]);
    let expected = of(&run(&whole, ""), 0);
    assert_eq!(expected.len(), 5);
    for front in
        ["", "71    ", "[pid    71] ", "12:00:00 ", "71    12:00:00.000001 ", "     0.000000 ", "     0 "]
    {
        for text in [with([front; 5]), bare(&with([front; 5]))] {
            assert_eq!(of(&run(&text, ",times=none"), 0), expected, "{text}");
            assert!(gaps(&text, ",times=none").is_empty(), "{text}");
        }
    }
    let back = with(["1700000005.0 ", "1700000004.0 ", "1700000003.0 ", "1700000002.0 ", "1700000001.0 "]);
    assert_eq!(of(&run(&back, ",times=none"), 0), expected);
}

/// A log whose notes say how it was read.
#[test]
fn a_clock_that_is_not_said_by_the_log_is_told() {
    let said = |front: &str, options: &str| program(&with([front; 5]), options).notes().join("; ");
    assert!(said("     0.000000 ", "").contains("strace -r"));
    assert!(said("100.000000 ", "").contains("clock=relative"));
    assert_eq!(said("1700000000.000000 ", ""), "");
    assert_eq!(said("12:00:00.000000 ", ""), "");
    assert_eq!(said("100.000000 ", ",clock=absolute"), "");
}

#[test]
fn a_log_is_known_by_its_first_lines() {
    use super::super::is_strace;
    for front in ["", "71    ", "[pid    71] ", "12:00:00 ", "1700000000.000000 ", "     0.000010 "] {
        assert!(is_strace(with([front; 5]).as_bytes()), "{front}");
    }
    assert!(is_strace(b"strace: Process 7 attached\n7 read(3,  <unfinished ...>\n7 1700000000.1 re"));
    for other in [
        "",
        "hello(1) = 2\n",
        "1 2 3\n",
        "128166372003061629,usr,0,Read,7014609920,24576,41286\n",
        "strace: x\n",
        "7 +++ exited with 0 +++\n",
    ] {
        assert!(!is_strace(other.as_bytes()), "{other}");
    }
}
