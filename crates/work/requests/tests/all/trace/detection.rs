//! Detection of a file's format, and the remarks about it.

use requests::trace::{TraceOptions, detect};

use super::{format, read_with};

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
    let text = "1000 0 0 8 1\n2000 0 0 8 1\n3000 0 0 8\n4000 0 0 8 1\n";
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

#[test]
fn more_requests_a_second_than_any_storage_answers_are_another_format() {
    // DiskSim's times in whole ms: as ns they are 200 million requests per second.
    let text: String = (0..100_u64).map(|n| format!("{} 0 {} 8 1\n", n * 5, n * 8)).collect();
    let (_, notes) = read_with(&text, &TraceOptions::default()).unwrap();
    assert_eq!((notes.format, notes.also_fits.as_slice()), ("disksim", ["mqsim"].as_slice()));
    let warnings = notes.warnings().join("\n");
    for part in [
        "202 req/s",
        "202,020,202 req/s: more requests per second than any storage serves",
        "set --format to choose",
    ] {
        assert!(warnings.contains(part), "{part} not in {warnings}");
    }
    assert_eq!(read_with(&text, &format("mqsim")).unwrap().1.format, "mqsim");
}

#[test]
fn the_device_decides_between_formats_that_fit() {
    // As MQSim's sectors they lie beyond 1 MiB, as FEMU's bytes within it.
    let text: String = (0..50_u64).map(|n| format!("{} 0 {} 4096 1\n", n * 1_000_000, n * 8192)).collect();
    let plain = read_with(&text, &TraceOptions::default()).unwrap().1;
    assert_eq!(plain.format, "mqsim");
    let device = TraceOptions {
        capacity: Some(1 << 20),
        remap: requests::trace::Remap::Wrap,
        ..TraceOptions::default()
    };
    assert_eq!(read_with(&text, &device).map(|(_, notes)| notes.format), Ok("femu"));
}

#[test]
fn what_another_command_reads_names_that_command() {
    for (content, what, help) in [
        (&b"PK\x03\x04\x14\0"[..], "a zip archive", "unpack it"),
        (b"id,start_us,dur_us,device,stream,grid,block,regs,shmem,est_occ_pct,name\n0,1,2,0,7,1x1x1,32x1x1,16,0,50,k\n", "a profile of a GPU", "nandscape sample"),
        (b"{\"schemaVersion\": 1, \"traceEvents\": [\n", "a profile of a GPU", "nandscape sample"),
        (b"{\n  \"fio version\" : \"fio-3.33\",\n", "a result of fio", "fio-json"),
        (b"[global]\nrw=randread\n", "a job file of fio", "--workload"),
        (b"<?xml version=\"1.0\"?>\n", "an XML file", "import mqsim"),
        (b"PERFILE2\0\0", "binary data of perf", "perf script"),
    ] {
        let error = read_with(content, &TraceOptions::default()).unwrap_err().to_string();
        assert!(error.contains(what) && error.contains(help), "{what}: {error}");
    }
}

#[test]
fn a_rate_that_no_storage_answers_decides_in_a_dirty_trace_and_beside_a_gap_too() {
    // DiskSim's times in whole ms: as ns, 2 billion requests per second.
    for text in [
        "0 0 0 8 1\n1 0 8 8 0\n2 0 16 8\n3 0 24 8 1\n",
        "0 0 0 8 1\n1 0 8 8 0\n2 0 16 8 1\n3 0 24 8 1\n1000000000 0 8 8 0\n",
    ] {
        let seen = detect(text.as_bytes()).unwrap();
        assert_eq!(seen.format, "disksim", "{text}");
    }
}

#[test]
fn the_only_format_that_fits_is_judged_like_others() {
    for (text, odd) in [
        (
            "0,Read,100,8\n1000,Write,200,8\n2000,Read,300,16\n",
            "addresses or sizes that are not whole sectors",
        ),
        (
            "0,Read,512,512\n0,Write,1024,512\n1,Read,512,512\n1,Read,4096,512\n",
            "more requests per second than any storage serves",
        ),
        ("0,Read,4096,512000\n10,Read,8192,1024000\n20,Read,4096,819200\n", "offsets that look like sizes"),
    ] {
        let (_, notes) = read_with(text, &TraceOptions::default()).unwrap();
        let said = notes.warnings().join("\n");
        assert!(
            notes.format == "msr" && said.contains(odd) && said.contains("--columns"),
            "{odd} not in {said}"
        );
    }
}

#[test]
fn negative_times_keep_their_distance_from_the_first() {
    let text = "time_us,op,offset_bytes,size_bytes\n-50,R,0,4096\n-10,W,4096,4096\n5,R,8192,4096\n";
    let (requests, notes) = read_with(text, &TraceOptions::default()).unwrap();
    let at: Vec<u64> = requests.iter().map(|request| request.at.ps() / 1_000_000).collect();
    assert_eq!(at, [0, 40, 55]);
    assert!(notes.warnings().join("\n").contains("2 requests have negative times"), "{:?}", notes.warnings());
}

#[test]
fn a_clock_of_32_bits_is_counted_on_and_said() {
    // Every 800 s for 10,000 s: 32-bit us wrap twice, at 4,295 s and at 8,590 s.
    let lines = |unit: u64, times: &[u64]| -> String {
        times.iter().map(|at| format!("{},h,0,Read,0,4096,0\n", at * unit % (1 << 32))).collect()
    };
    let times: Vec<u64> = (0..13).map(|n| n * 800).collect();
    let us = TraceOptions { time_unit: Some(requests::trace::TimeUnit::Microsecond), ..format("msr") };
    let (requests, notes) = read_with(lines(1_000_000, &times), &us).unwrap();
    let seen: Vec<u64> = requests.iter().map(|request| request.at.ps() / 1_000_000_000_000).collect();
    assert_eq!((seen, notes.wraps), (times.clone(), 2));
    let said = notes.warnings().join("\n");
    assert!(said.contains("2 times the 32-bit clock wraps to zero after 1.19 hours"), "{said}");
    assert!(!said.contains("out of order"), "{said}");
    // 2^32 times 100 ns are 429 s.
    let times: Vec<u64> = (0..13).map(|n| n * 80).collect();
    let (requests, notes) = read_with(lines(10_000_000, &times), &format("msr")).unwrap();
    assert_eq!((requests[12].at.ps(), notes.wraps), (960_000_000_000_000, 2));
}

#[test]
fn what_holds_no_requests_to_storage_says_what_it_is() {
    for (content, what, help) in [
        ("0x401000: R 0x7fff1234\n0x401004: W 0x7fff1238\n", "by a Pin tool", "awk"),
        (
            "{\"timestamp\": 0, \"input_length\": 1024, \"output_length\": 64, \"hash_ids\": [0, 1]}\n",
            "requests to language models",
            "kv-cache",
        ),
        (
            "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.680,374,44\n",
            "requests to language models",
            "kv-cache",
        ),
        (
            "Attaching 4 probes...\nTIME(ms)     DISK    COMM             PID    LAT(ms)\n611          nvme0n1 bash             4179        10\n",
            "biosnoop.bt",
            "block_rq_issue",
        ),
    ] {
        let error = read_with(content, &TraceOptions::default()).unwrap_err().to_string();
        assert!(error.contains(what) && error.contains(help), "{what}: {error}");
    }
}

#[test]
fn an_inspection_says_why_lines_are_bad() {
    let text = "128166385295514663,hm,0,Write,512,512,1\n128166385295514664,hm,0,Wrote,512,512,1\n\
                128166385295514665,hm,0,Write,512,0,1\n128166385295514666,hm,0,Write,512,512,1\n";
    let seen = requests::trace::inspect_read("t", text.as_bytes(), &format("msr")).unwrap();
    let page = seen.to_string();
    for part in
        ["line 2: unknown type: `Wrote` (allowed: Read, Write)", "line 3: a request of length zero (size)"]
    {
        assert!(page.contains(part), "{part} not in {page}");
    }
    let error =
        requests::trace::inspect_read("t", &b"1 0 0 8 1\n"[..], &format("msr")).unwrap_err().to_string();
    assert!(error.contains("line 1: "), "{error}");
}
