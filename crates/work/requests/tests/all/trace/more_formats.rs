//! Formats of caches, kernels and other systems: bytes written by their definitions.

use proto::IoOp::{Flush, Read, Trim, Write, WriteZeroes};
use requests::trace::{TraceOptions, detect};

use super::{read, read_with, request};

const US: u64 = 1_000_000;
const MS: u64 = 1_000 * US;
const S: u64 = 1_000 * MS;

/// Packs `struct { u32 time; u64 object; u32 size; i64 next; }` without padding.
fn oracle(rows: &[(u32, u64, u32, i64)]) -> Vec<u8> {
    let record = |(time, object, size, next): &(u32, u64, u32, i64)| {
        let mut bytes = time.to_le_bytes().to_vec();
        bytes.extend(object.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        bytes.extend(next.to_le_bytes());
        bytes
    };
    rows.iter().flat_map(record).collect()
}

#[test]
fn oracle_general_lays_objects_in_the_order_of_their_first_access() {
    let rows = [
        (5, 1 << 40, 4096, 2),
        (5, 9, 100, -1),
        (7, 1 << 40, 4096, -1),
        (8, 3, 0, -1),
        (9, 9, 100, i64::MAX),
    ];
    let (requests, notes) = read_with(oracle(&rows), &TraceOptions::default()).unwrap();
    let expected = [
        request(0, Read, 0, 4096, 0),
        request(0, Read, 4096, 100, 0),
        request(2 * S, Read, 0, 4096, 0),
        request(4 * S, Read, 4096, 100, 0),
    ];
    assert_eq!((requests.as_slice(), notes.format), (expected.as_slice(), "oracle-general"));
    assert!(notes.warnings().iter().any(|warning| warning.contains("size zero")));
}

#[test]
fn a_record_that_is_cut_off_is_an_error_and_lenient_counts_it() {
    let mut bytes = oracle(&[(5, 1, 4096, -1), (5, 2, 4096, -1)]);
    bytes.truncate(40);
    let error = read_with(&bytes, &TraceOptions::default()).unwrap_err();
    assert!(error.to_string().contains("the file ends inside a record"), "{error}");
    assert_eq!(error.place.as_ref().map(|place| place.line), Some(2));
    let lenient = TraceOptions { lenient: true, ..TraceOptions::default() };
    let (requests, notes) = read_with(&bytes, &lenient).unwrap();
    assert_eq!((requests.len(), notes.skipped.values().map(|s| s.count).sum::<u64>()), (1, 1));
}

#[test]
fn vscsi_of_both_versions_by_the_structures_of_the_recorder() {
    let mut one = Vec::new();
    for (command, block, time) in [(0x28_u16, 8_u64, 1_000_000_u64), (0x8a, 1 << 33, 1_000_250)] {
        one.extend([1_u32, 4096, 1].iter().flat_map(|n| n.to_le_bytes()));
        one.extend([command, 1 << 8].iter().flat_map(|n| n.to_le_bytes()));
        one.extend([block, time].iter().flat_map(|n| n.to_le_bytes()));
    }
    let expected = [request(0, Read, 4096, 4096, 0), request(250 * US, Write, 512 << 33, 4096, 0)];
    let (requests, notes) = read_with(&one, &TraceOptions::default()).unwrap();
    assert_eq!((requests.as_slice(), notes.format), (expected.as_slice(), "vscsi1"));

    let mut two = Vec::new();
    for (command, block, time, took) in [(0x28_u16, 8_u64, 1_000_000_u64, 500_u64), (0x35, 0, 1_000_250, 0)] {
        two.extend([command, 2 << 8].iter().flat_map(|n| n.to_le_bytes()));
        two.extend([1_u32, 4096, 1].iter().flat_map(|n| n.to_le_bytes()));
        two.extend([block, time, took].iter().flat_map(|n| n.to_le_bytes()));
    }
    let expected = [request(0, Read, 4096, 4096, 0), request(250 * US, Flush, 0, 0, 0)];
    let (requests, notes) = read_with(&two, &TraceOptions::default()).unwrap();
    assert_eq!((requests.as_slice(), notes.format), (expected.as_slice(), "vscsi2"));
}

/// Returns a record of HP Labs in the byte order of the machine that wrote it.
fn srt(big: bool, words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|n| if big { n.to_be_bytes() } else { n.to_le_bytes() }).collect()
}

#[test]
fn srt_has_a_header_records_of_three_lengths_and_either_byte_order() {
    for big in [true, false] {
        let mut bytes = b"tracedate\t= \"Sat Apr 18 00:00:00 1992\";\n\x0c".to_vec();
        bytes.extend(srt(big, &[52, 3 << 16 | 1, 10, 500, 100, 600, 8192, 16, 5 << 8, 0, 0, 1, 0]));
        bytes.extend(srt(big, &[56, 4 << 16 | 1, 11, 0, 0, 100, 1024, 64, 6 << 8, 0, 0, 0x100, 0, 2]));
        bytes.extend(srt(big, &[60, 4 << 16 | 4, 12, 0, 0, 100, 1024, 64, 6 << 8, 0, 0, 0x100, 0, 2, 1]));
        let (requests, notes) = read_with(&bytes, &TraceOptions::default()).unwrap();
        let expected = [request(0, Read, 8192, 8192, 0), request(S - 500 * US, Write, 64 * 512, 1024, 1)];
        assert_eq!((requests.as_slice(), notes.format), (expected.as_slice(), "srt"));
        assert_eq!(notes.flows.names(), ["5", "6"]);
        assert!(notes.warnings().iter().any(|warning| warning.contains("suspect")));
    }
}

#[test]
fn ftrace_and_perf_script_print_the_same_event() {
    let ftrace = "# tracer: nop\n#\n           fio-1234    [003] d..1.  1234.567890: block_rq_issue: 259,0 RA 4096 () 2048 + 8 [fio]\r\n\
                  \x20          fio-1234    [003] d..1.  1234.567891: block_rq_complete: 259,0 RA () 2048 + 8 [0]\n\
                  \x20     kworker/0:1H-99 [000] d..1.  1234.568890: block_rq_issue: 259,0 FWFS 8192 () 4096 + 16 none,0,0 [kworker/0:1H]\n\
                  \x20       <idle>-0     [000] d..1.  1234.569890: block_rq_issue: 8,0 N 36 (12 00 00 00 24 00) 0 + 0 [udevd]\n";
    let mut forced = request(MS, Write, 4096 * 512, 8192, 0);
    forced.fua = true;
    let expected = [request(0, Read, 2048 * 512, 4096, 0), request(MS, Flush, 0, 0, 0), forced];
    let (requests, notes) = read_with(ftrace, &TraceOptions::default()).unwrap();
    assert_eq!((requests.as_slice(), notes.format), (expected.as_slice(), "ftrace"));
    assert_eq!((notes.passthrough, notes.flows.names()[0].as_str()), (1, "259,0"));

    let perf = "fio  1234 [003]  1234.567890: block:block_rq_issue: 259,0 D 1048576 () 2048 + 2048 [fio]\n\
                fio  1234 [003]  1234.567990: block:block_rq_issue: 259,0 W 512 () 8 + 1 [fio]\n";
    let expected = [request(0, Trim, 2048 * 512, 1 << 20, 0), request(100 * US, Write, 4096, 512, 0)];
    assert_eq!(read_with(perf, &TraceOptions::default()).unwrap().0, expected);
}

#[test]
fn nvme_commands_count_their_blocks_from_zero() {
    let head = "  fio-77 [001] ..... 5.000100: nvme_setup_cmd: nvme0: disk=nvme0n1, qid=2, cmdid=1, nsid=1, flags=0x0, meta=0x0, cmd=";
    let text = format!(
        "{head}(nvme_cmd_read slba=16, len=7, ctrl=0x0, dsmgmt=0, reftag=0)\n{head}(nvme_cmd_write slba=0, len=0, ctrl=0x4000, dsmgmt=0, reftag=0)\n\
         {head}(nvme_cmd_write_zeroes slba=8, len=1, ctrl=0x0)\n{head}(nvme_cmd_flush)\n{head}(nvme_cmd_dsm nr=0, attributes=4)\n"
    );
    let mut forced = request(0, Write, 0, 512, 0);
    forced.fua = true;
    let expected = [
        request(0, Read, 16 * 512, 4096, 0),
        forced,
        request(0, WriteZeroes, 8 * 512, 1024, 0),
        request(0, Flush, 0, 0, 0),
    ];
    let (requests, notes) = read_with(&text, &TraceOptions::default()).unwrap();
    assert_eq!((requests.as_slice(), notes.passthrough), (expected.as_slice(), 1));
    assert_eq!(notes.flows.names(), ["nvme0n1"]);
    let large = TraceOptions { sector: Some(4096), ..TraceOptions::default() };
    assert_eq!(read_with(&text, &large).unwrap().0[0].bytes, 8 * 4096);
}

#[test]
fn biosnoop_takes_the_latency_back_and_names_may_have_blanks() {
    let text = "TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  QUE(ms) LAT(ms)\n\
                0.001000    supervise      1950   xvda1   W 13092560   4096      0.25    0.25\n\
                0.001100    DOM Worker 1   304    xvda1   RA 8   512      0.00    1.10\n\
                0.002000    jbd2           304    xvda1   FF -1   0      0.00    1.00\n";
    let (requests, notes) = read_with(text, &TraceOptions::default()).unwrap();
    let expected = [
        request(0, Read, 4096, 512, 0),
        request(500 * US, Write, 13_092_560 * 512, 4096, 0),
        request(MS, Flush, 0, 0, 0),
    ];
    assert_eq!((requests.as_slice(), notes.format), (expected.as_slice(), "biosnoop"));
}

#[test]
fn windows_events_are_taken_back_by_their_time() {
    let text = "BeginHeader\n    DiskRead,  TimeStamp,     Process Name ( PID),   ThreadID, CPU,             IrpPtr,   ByteOffset,     IOSize, ElapsedTime,  DiskNum\nEndHeader\n\
                OS Version: 6.1.7600, Trace Size: 2560KB\n\
                FirstReliableEventTimeStamp, 5\n\
                DiskReadInit,  8329,        xperf.exe (3984),      11844, 0xffffe288b23f1b20\n\
                DiskRead,       8612,        xperf.exe (3984),      11844,   1, 0xffffe288b23f1b20, 0x018f0b8000, 0x00001000,         283,        0, 0x060043,         283,       3, Original, 0xffffe288272d0d20, \"C:\\$Mft\"\n\
                DiskWrite,      9000,        a, b (   4),          0, 0xffffe288b23f1b20, 0x0000001000, 0x00000200,         100,        1, 0x060043,         100,       3, Original, 0xf, \"C:\\a\"\n\
                DiskFlush,      9900,        System (   4),          0, 0xffffe288b23f1b20,         500,        0, 0x060043,         500,       3\n";
    let (requests, notes) = read_with(text, &TraceOptions::default()).unwrap();
    let expected = [
        request(0, Read, 0x0001_8f0b_8000, 4096, 0),
        request((8900 - 8329) * US, Write, 4096, 512, 1),
        request((9400 - 8329) * US, Flush, 0, 0, 0),
    ];
    assert_eq!((requests.as_slice(), notes.format), (expected.as_slice(), "etw"));
}

#[test]
fn a_kv_cache_reaches_the_drive_on_its_third_tier_alone() {
    let text = "Timestamp,Operation,Object_Size_Bytes,Tier,Key,Phase\r\n100.5,Write,131072,Tier-0,a,Prefill\r\n\
                100.500001,Write,131072,Tier-2,a,Prefill\r\n100.6,Write,3000000000,Tier-2,b,Prefill\r\n101.500001,Read,131072,Tier-2,a,Decode\r\n";
    let (requests, notes) = read_with(text, &TraceOptions::default()).unwrap();
    let expected = [
        request(0, Write, 0, 131_072, 0),
        request(99_999 * US, Write, 131_072, 3_000_000_000, 0),
        request(S, Read, 0, 131_072, 0),
    ];
    assert_eq!((requests.as_slice(), notes.format), (expected.as_slice(), "kv-cache"));
    assert!(notes.warnings().iter().any(|warning| warning.contains("Tier-0")));
}

#[test]
fn cachelib_repeats_a_line_as_often_as_it_counts() {
    let block = "op_time,block_id,block_id_size,io_size,io_offset,user_name,user_namespace,op_name,op_count,host_name,rs_shard_id\n\
                 7,b1,40,4096,8192,1,2,getChunkData.Permanent,2,3,4\n8,b2,40,512,0,1,2,putChunk.NotInitialized,1,3,4\n";
    let expected = [
        request(0, Read, 8192, 4096, 0),
        request(0, Read, 8192, 4096, 0),
        request(S, Write, 8 << 20, 512, 0),
    ];
    assert_eq!(read_with(block, &TraceOptions::default()).unwrap().0, expected);
    let kv = "key,op,size,op_count,key_size\nk1,GET,0,1,4\nk1,SET,100,1,4\nk1,GET_LEASE,100,1,4\nk1,DELETE,100,1,4\n";
    let (requests, notes) = read_with(kv, &TraceOptions::default()).unwrap();
    let ops: Vec<_> = requests.iter().map(|request| request.op).collect();
    assert_eq!((ops.as_slice(), notes.format), ([Write, Read, Trim].as_slice(), "cachelib"));
}

#[test]
fn baleen_has_blocks_of_8_mib_and_six_operations() {
    let text = "# block_id io_offset io_size op_time op_name user_namespace user_name rs_shard_id op_count host_name\n\
                77 0 131072 1000.5 1 2 7 9 1 3\n78 4194304 1048576 1001.75 4 2 7 9 1 3\n77 131072 512 1001.75 6 2 7 9 1 3\n";
    let expected = [
        request(0, Read, 0, 131_072, 0),
        request(1250 * MS, Write, (8 << 20) + 4_194_304, 1 << 20, 0),
        request(1250 * MS, Write, 131_072, 512, 0),
    ];
    let (requests, notes) = read_with(text, &TraceOptions::default()).unwrap();
    assert_eq!((requests.as_slice(), notes.format), (expected.as_slice(), "baleen"));
}

#[test]
fn orders_without_times_need_a_queue_depth() {
    for (name, text, expected) in [
        (
            "arc",
            "46402 7 0 0\n46410 8 0 1\n",
            [request(0, Read, 46_402 * 512, 7 * 512, 0), request(0, Read, 46_410 * 512, 4096, 0)],
        ),
        (
            "blocks",
            "3\n*\n0x10\n",
            [request(0, Read, 3 * 4096, 4096, 0), request(0, Read, 16 * 4096, 4096, 0)],
        ),
        (
            "iolog1",
            "0,61440,4096\n1,512,512\n",
            [request(0, Read, 61_440, 4096, 0), request(0, Write, 512, 512, 0)],
        ),
    ] {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        assert_eq!(detect(text.as_bytes()).unwrap().format, name);
        assert_eq!(read(name, text), expected);
        let device = TraceOptions { capacity: Some(1 << 30), ..TraceOptions::default() };
        let error = requests::trace::TraceReader::open(file.path(), &device).map(drop).unwrap_err();
        assert!(error.to_string().contains("--queue-depth"), "{error}");
        let order = TraceOptions { timed: false, ..device };
        assert!(requests::trace::TraceReader::open(file.path(), &order).is_ok());
    }
}

#[test]
fn columns_of_a_table_are_what_the_user_says() {
    let columns = |names: &str| TraceOptions { columns: Some(names.to_owned()), ..TraceOptions::default() };
    let expected = [request(0, Read, 4096, 512, 0), request(1500 * MS, Write, 0, 1024, 0)];
    for (names, text) in [
        ("time,op,offset,size", "0.5,R,4096,512\n2,WS,0,1024\n"),
        ("time_ms;op;lba;size_512", "when;what;where;long\n500;read;8;1\n2000;write;0;2\n"),
        ("op_1r,time,-,size,offset", "1\t0.5\tx\t512\t0x1000\n0\t2\ty\t1024\t0\n"),
        ("size offset op_0r time_us", "512  4096 0 500000\n1024 0    1 2000000\n"),
    ] {
        let (requests, notes) = read_with(text, &columns(names)).unwrap_or_else(|e| panic!("{names}: {e}"));
        assert_eq!((requests.as_slice(), notes.format), (expected.as_slice(), "csv"), "{names}");
    }
    for (names, part) in [
        ("time,op,offset", "no column gives the size"),
        ("time,op,ofset,size", "no column `ofset`"),
        ("time,time_us,op,offset,size", "duplicates another one"),
    ] {
        let error = read_with("0,R,0,512\n", &columns(names)).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    let other = TraceOptions { format: Some("msr".to_owned()), ..columns("time,op,offset,size") };
    assert!(read_with("0,R,0,512\n", &other).unwrap_err().to_string().contains("--columns"));
}

#[test]
fn msr_has_four_to_seven_columns_and_any_separator() {
    let expected = [request(0, Read, 1024, 2048, 0), request(100_000, Write, 0, 512, 0)];
    for text in [
        "100000,hm,0,Read,1024,2048,10\n100001,hm,0,Write,0,512,10\n",
        "100000,hm,0,Read,1024,2048\n100001,hm,0,Write,0,512\n",
        "100000,Read,1024,2048\n100001,Write,0,512\n",
        "100000;hm;0;Read;1024;2048;10\r\n100001;hm;0;Write;0;512;10\r\n",
        "100000\thm\t0\tRead\t1024\t2048\t10\n100001\thm\t0\tWrite\t0\t512\t10\n",
        "100000 hm 0 Read  1024 2048 10\n100001 hm 0 Write    0  512 10\n",
    ] {
        let (requests, notes) = read_with(text, &TraceOptions::default()).unwrap();
        assert_eq!((requests.as_slice(), notes.format), (expected.as_slice(), "msr"), "{text}");
        assert_eq!(read("msr", text), expected);
    }
}

#[test]
fn iosnoop_has_the_columns_that_its_header_names() {
    let both = "Tracing block I/O. Ctrl-C to end.\n\
                STARTs         ENDs           COMM         PID    TYPE DEV      BLOCK        BYTES     LATms\n\
                5982800.302061 5982800.302679 my proc      1809   W    202,1    8    4096       0.62\n\
                5982800.304962 5982800.305446 procA        1801   RM   202,1    16   8192       0.48\n^C\nEnding tracing...\n";
    let expected = [request(0, Write, 4096, 4096, 0), request(2901 * US, Read, 8192, 8192, 0)];
    let (requests, notes) = read_with(both, &TraceOptions::default()).unwrap();
    assert_eq!((requests.as_slice(), notes.format), (expected.as_slice(), "iosnoop"));
    let starts = "STARTs         COMM         PID    TYPE DEV      BLOCK        BYTES     LATms\n\
                  5982800.302061 procA        1809   W    202,1    8    4096       0.62\n\
                  5982800.304962 procA        1801   R    202,1    16   8192       0.48\n";
    assert_eq!(read_with(starts, &TraceOptions::default()).unwrap().0, expected);
    // Completions 3.0 ms apart that took 1.0 and 0.5 ms were issued 3.5 ms apart.
    let ends = "ENDs           COMM         PID    TYPE DEV      BLOCK        BYTES     LATms\n\
                10.001000 procA        1809   W    202,1    8    4096       1.00\n\
                10.004000 procA        1801   R    202,1    16   8192       0.50\n";
    let (requests, _) = read_with(ends, &TraceOptions::default()).unwrap();
    assert_eq!(requests[1], request(3500 * US, Read, 8192, 8192, 0));
    let dtrace = "STIME TIME UID PID D BLOCK SIZE COMM PATHNAME\n100 350 0 12 R 8 4096 a b /x y\n1100 1400 0 12 W 16 512 c /z\n";
    let (requests, notes) = read_with(dtrace, &TraceOptions::default()).unwrap();
    let expected = [request(0, Read, 4096, 4096, 0), request(MS, Write, 8192, 512, 0)];
    assert_eq!((requests.as_slice(), notes.format), (expected.as_slice(), "iosnoop"));
    let order = "COMM             PID    TYPE DEV      BLOCK        BYTES     LATms\n\
                 tar              14794  RM   202,1    8    4096       7.53\n";
    let (requests, notes) = read_with(order, &TraceOptions::default()).unwrap();
    assert_eq!((requests.as_slice(), notes.format), (&expected[..1], "iosnoop-order"));
}

#[test]
fn events_of_bios_stand_for_requests_where_there_are_no_others() {
    let bios = "fio-12 [003] d..1. 1234.500000: block_bio_queue: 259,0 WFS 8 + 16 [fio]\n\
                fio-12 [003] d..1. 1234.500100: block_bio_complete: 259,0 WFS 8 + 16 [0]\n\
                fio   12 [003] 1234.501000: block:block_bio_queue: 259,0 R 0 + 8 [fio]\n";
    let (requests, notes) = read_with(bios, &TraceOptions::default()).unwrap();
    assert_eq!(notes.format, "ftrace");
    assert_eq!(
        (requests.len(), requests[0].fua, requests[0].offset, requests[0].bytes),
        (2, true, 4096, 8192)
    );
    assert_eq!(requests[1], request(MS, Read, 0, 4096, 0));
    let both = format!("{bios}fio-12 [003] d..1. 1234.502000: block_rq_issue: 259,0 R 4096 () 0 + 8 [fio]\n");
    assert_eq!(read_with(&both, &TraceOptions::default()).unwrap().0.len(), 1);
}
