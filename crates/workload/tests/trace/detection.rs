//! Which format a file is read as, and what is said about it.

use workload::trace::{TraceOptions, detect};

use crate::support::{format, read_with};

#[test]
fn five_integers_are_mqsim_and_the_other_readings_are_named_with_span_and_rate() {
    // 10 requests, 1 ms apart as ns; as DiskSim's ms that is 11.6 days apart each.
    let text: String = (0..11_u64).map(|n| format!("{} 0 {} 8 1\n", n * 1_000_000, n * 8)).collect();
    let seen = detect(text.as_bytes()).unwrap();
    assert_eq!(seen.format, "mqsim");
    let (_, notes) = read_with(&text, &TraceOptions::default()).unwrap();
    assert_eq!(notes.format, "mqsim");
    assert_eq!(notes.also_fits, ["disksim"]);
    let warnings = notes.warnings().join("\n");
    // 10 ms as ns: 1,100 req/s. 10^7 ms: 10,000 s = 2.78 hours, and 0.0011 req/s.
    for part in [
        "`mqsim` (first 11 requests: 10 ms, 1,100 req/s)",
        "`disksim` (first 11 requests: 2.78 hours",
        "--format",
    ] {
        assert!(warnings.contains(part), "{part} not in {warnings}");
    }
}

#[test]
fn a_named_format_is_taken_without_a_word() {
    let text = "0 0 0 8 1\n1000 0 8 8 0\n";
    let (_, notes) = read_with(text, &format("disksim")).unwrap();
    assert_eq!(notes.format, "disksim");
    assert_eq!(notes.warnings(), Vec::<String>::new());
}

#[test]
fn a_decimal_time_is_not_mqsim_and_odd_sizes_are_not_femu() {
    let seen = detect(b"13.191135 30 0 5 1\n17.829285 20 576560 6 1\n").unwrap();
    let names: Vec<&str> = seen.candidates.iter().map(|c| c.format).collect();
    assert_eq!(names, ["disksim"]);
}

#[test]
fn formats_of_other_shapes_do_not_mix() {
    for (text, name) in [
        ("128166385295514663,hm,0,Write,9056014336,2048,2833\n", "msr"),
        ("1538323200,4247200,128,1,1058\n", "tencent"),
        ("419,W,8792731648,16384,1577808144360767\n", "alibaba"),
        ("0,20941264,8192,W,0.551706\n", "spc"),
        ("1,5633898,28,512,42932745\n", "cloudphysics"),
        ("1456095145.133076000,0.000806000,R,0,899056122368,131072\n", "systor17"),
        ("fio version 3 iolog\n5 f read 0 512\n", "iolog3"),
        ("fio version 2 iolog\nf read 0 512\n", "iolog2"),
        ("  8,16 1 1 1.427376394 5529 Q WS 274432 + 8\n", "blkparse"),
    ] {
        let seen = detect(text.as_bytes()).unwrap();
        let names: Vec<&str> = seen.candidates.iter().map(|c| c.format).collect();
        assert_eq!(names, [name]);
    }
}

#[test]
fn a_dirty_trace_is_recognised_and_its_bad_line_is_the_error() {
    let text = "1 0 0 8 1\n2 0 0 8 1\n3 0 0 8\n4 0 0 8 1\n";
    let error = read_with(text, &TraceOptions::default()).unwrap_err();
    assert_eq!(error.place.as_ref().map(|p| p.line), Some(3), "{error}");
    assert!(error.to_string().contains("the line ends before the type"), "{error}");
}

#[test]
fn comments_and_blank_lines_are_not_what_a_format_is_told_by() {
    let text = "\u{feff}# taken on Monday\n\n   \n1538323200,4247200,128,1,1058\n";
    let (requests, notes) = read_with(text, &TraceOptions::default()).unwrap();
    assert_eq!((requests.len(), notes.format, notes.other_lines), (1, "tencent", 3));
}

#[test]
fn an_unknown_name_gets_the_nearest() {
    let error = read_with("1 0 0 8 1\n", &format("disksm")).unwrap_err();
    assert_eq!(error.nearest.as_deref(), Some("disksim"));
    assert!(error.allowed.iter().any(|name| name == "cloudphysics"));
}
