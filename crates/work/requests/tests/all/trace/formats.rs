//! Worked example of each format: the record of its definition, by hand; and tables whose header names the columns.

use proto::{
    IoOp::{Flush, Read, Trim, Write, WriteZeroes},
    IoRequest,
};
use requests::trace::{Action, TimeUnit, TraceNotes, TraceOptions, formats};

use super::{format, read, read_with, request};
use config::Diagnostic;
use engine::Time;

const US: u64 = 1_000_000;
const MS: u64 = 1_000 * US;
const S: u64 = 1_000 * MS;

#[test]
fn every_format_reads_its_own_example_and_is_recognised_by_it() {
    let mut names = Vec::new();
    for info in formats() {
        let (requests, notes) =
            read_with(info.content(), &format(info.name)).unwrap_or_else(|e| panic!("{}: {e}", info.name));
        assert!(requests.len() >= 2 || info.name == "blkparse", "{}", info.name);
        assert_eq!(notes.format, info.name);
        let seen = requests::trace::detect(&info.content()).unwrap_or_else(|e| panic!("{}: {e}", info.name));
        // Lines of FEMU also fit DiskSim.
        assert!(seen.format == info.name || info.name == "femu", "{}: {}", info.name, seen.format);
        assert!(seen.candidates.iter().any(|c| c.format == info.name), "{}", info.name);
        assert!(!info.record.is_empty() && !info.units.is_empty() && !info.source.is_empty());
        names.push(info.name);
    }
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all, "two formats of one name");
}

#[test]
fn mqsim_counts_ns_and_sectors_and_one_is_a_read() {
    let text = "938513000 4 264719034 16 0\n938828000 3 197570570 8 1\n";
    let expected = [
        request(0, Write, 264_719_034 * 512, 8192, 0),
        request(315_000_000, Read, 197_570_570 * 512, 4096, 1),
    ];
    assert_eq!(read("mqsim", text), expected);
}

#[test]
fn disksim_counts_ms_and_bit_0_of_the_hex_flags_is_a_read() {
    let text = "13.191135 30 0 5 1\n25.911729 18 28601 12 0\n26 18 1 1 1d\n26.5 18 1 1 1c\n";
    let expected = [
        request(0, Read, 0, 2560, 0),
        request(12_720_594_000, Write, 28_601 * 512, 6144, 1),
        request(12_808_865_000, Read, 512, 512, 1),
        request(13_308_865_000, Write, 512, 512, 1),
    ];
    assert_eq!(read("disksim", text), expected);
}

#[test]
fn femu_counts_ms_and_bytes() {
    let text = "10 0 409600 4096 1\n10.5 0 0 512 0\n";
    assert_eq!(read("femu", text), [request(0, Read, 409_600, 4096, 0), request(MS / 2, Write, 0, 512, 0)]);
}

#[test]
fn msr_keeps_every_tick_of_a_filetime() {
    // One tick of 100 ns apart: an f64 has steps of 16 ticks there.
    let text =
        "128166385295514663,hm,0,Write,9056014336,2048,2833\n128166385295514664,hm,1,Read,512,4096,2617\n";
    let (requests, notes) = read_with(text, &format("msr")).unwrap();
    assert_eq!(requests, [request(0, Write, 9_056_014_336, 2048, 0), request(100_000, Read, 512, 4096, 1)]);
    assert_eq!(notes.flows.names(), ["hm,0", "hm,1"]);
}

#[test]
fn headers_of_spreadsheets_are_no_requests() {
    let text =
        "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\r\n100000,hm,0,Read,1024,2048,10\r\n";
    assert_eq!(read("msr", text), [request(0, Read, 1024, 2048, 0)]);
}

#[test]
fn blkparse_takes_issues_and_every_letter_of_rwbs() {
    let text = "\
Input file sda.blktrace.0 added
  8,0    1        1     0.000000000   697  Q   W 223490 + 8 [kjournald]
  8,0    1        2     0.000001829   697  G   W 223490 + 8 [kjournald]
  8,0    1        3     0.000002197   697  P   N [kjournald]
  8,0    1        4     0.000003000   697  D   W 223490 + 8 [kjournald]
202,16   7    50007   675.722691803   661  D   R 95839968 + 80 [kswapd0]
  8,0    1        5   675.800000000   697  D WFS 8 + 1 [jbd2/sda]
  8,0    1        6   675.900000000   697  D  FN [jbd2/sda]
  8,0    1        7   676.000000000   697  D FWFS 16 + 8 [jbd2/sda]
  8,0    1        8   676.100000000   697  D  DS 1000 + 2000 [fstrim]
  8,0    1        9   676.200000000   697  D   R 36 (12 00 00 00 24 00 ..) [udevd]
  8,0    1       10   676.300000000     0  C   W 223490 + 8 [0]
  8,0    1        0   676.400000000     0  m   N cfq697S / alloced
CPU0 (8,0):
 Reads Queued:           0,        0KiB\t Writes Queued:          77,      380KiB
 Read depth:             2\t\t Write depth:            65
 IO unplugs:             7        \t Timer unplugs:          39
Throughput (R/W): 0KiB/s / 508KiB/s
Events (8,0): 1038 entries
Skips: 0 forward (0 -   0.0%)
";
    let (requests, notes) = read_with(text, &TraceOptions::default()).unwrap();
    let after = |seconds_ns: u64| (seconds_ns - 3_000) * 1000;
    let mut fua = request(after(675_800_000_000), Write, 8 * 512, 512, 0);
    fua.fua = true;
    let mut preflushed = request(after(676_000_000_000), Write, 16 * 512, 4096, 0);
    preflushed.fua = true;
    let expected = [
        request(0, Write, 223_490 * 512, 4096, 0),
        request(after(675_722_691_803), Read, 95_839_968 * 512, 80 * 512, 1),
        fua,
        request(after(675_900_000_000), Flush, 0, 0, 0),
        request(after(676_000_000_000), Flush, 0, 0, 0),
        preflushed,
        request(after(676_100_000_000), Trim, 1000 * 512, 2000 * 512, 0),
    ];
    assert_eq!(requests, expected);
    assert_eq!(notes.format, "blkparse");
    assert_eq!(notes.flows.names(), ["8,0", "202,16"]);
    assert_eq!(notes.passthrough, 1);
}

#[test]
fn blkparse_takes_queueing_if_nothing_is_issued_and_any_action_on_demand() {
    let queued = "  8,0 1 1 0.5 697 Q W 8 + 8 [x]\n  8,0 1 2 0.75 0 C W 8 + 8 [0]\n";
    assert_eq!(read_with(queued, &TraceOptions::default()).unwrap().0.len(), 1);
    let options = TraceOptions { action: Some(Action::Complete), ..TraceOptions::default() };
    let all = format!("{queued}  8,0 1 3 1.25 0 C R 16 + 8 [0]\n");
    let expected = [request(0, Write, 4096, 4096, 0), request(S / 2, Read, 8192, 4096, 0)];
    assert_eq!(read_with(all, &options).unwrap().0, expected);
}

#[test]
fn a_fio_log_of_version_2_adds_up_its_waits() {
    let text = "fio version 2 iolog\n/dev/sda add\n/dev/sda open\n/dev/sda read 61440 4096\n/dev/sda wait 250 0\n\
                /dev/sda write 774144 8192\n/dev/sda wait 50\n/dev/sda datasync 0 0\n/dev/sdb trim 512 1024\n\
                /dev/sda sync\n/dev/sda close\n";
    let expected = [
        request(0, Read, 61_440, 4096, 0),
        request(250 * US, Write, 774_144, 8192, 0),
        request(300 * US, Flush, 0, 0, 0),
        request(300 * US, Trim, 512, 1024, 1),
        request(300 * US, Flush, 0, 0, 0),
    ];
    assert_eq!(read_with(text, &TraceOptions::default()).unwrap().0, expected);
}

/// Written by fio 3.33 with `--rw=randrw --bs=4k --number_ios=6 --write_iolog`.
#[test]
fn a_fio_log_of_version_3_has_times_in_us() {
    let text = "fio version 3 iolog\n12 /srv/f add\n68 /srv/f open\n72 /srv/f read 61440 4096\n\
                227 /srv/f read 774144 4096\n306 /srv/f read 880640 4096\n363 /srv/f write 491520 4096\n\
                372 /srv/f read 417792 4096\n426 /srv/f read 884736 4096\n488 /srv/f close\n";
    let (requests, notes) = read_with(text, &TraceOptions::default()).unwrap();
    assert_eq!(requests.len(), 6);
    assert_eq!(requests[3], request((363 - 72) * US, Write, 491_520, 4096, 0));
    assert_eq!((notes.format, notes.other_lines), ("iolog3", 4));
}

#[test]
fn systor_counts_s_with_nine_decimals() {
    let text = "Timestamp,Response,IOType,LUN,Offset,Size\n\
                1456095145.133076000,0.000806000,R,0,899056122368,131072\n1456095145.133076001,,W,1,512,512\n";
    assert_eq!(
        read("systor17", text),
        [request(0, Read, 899_056_122_368, 131_072, 0), request(1000, Write, 512, 512, 1)]
    );
}

#[test]
fn tencent_counts_s_and_sectors_and_zero_is_a_read() {
    let text = "1538323200,4247200,128,1,1058\n1538323201,13896880,8,0,1063\n";
    let expected =
        [request(0, Write, 4_247_200 * 512, 65_536, 0), request(S, Read, 13_896_880 * 512, 4096, 1)];
    assert_eq!(read("tencent", text), expected);
}

#[test]
fn cloudphysics_names_operations_by_scsi_opcode() {
    let text = "version,time,op,size,lbn\n1,5633898,2a,512,42932745\n1,5633899,28,4096,1\n1,5633899,88,512,2\n\
                1,5633899,8A,512,3\n1,5633900,42,1048576,4\n1,5633900,35,0,0\n1,5633900,93,4096,5\n";
    let expected = [
        request(0, Write, 42_932_745 * 512, 512, 0),
        request(S, Read, 512, 4096, 0),
        request(S, Read, 1024, 512, 0),
        request(S, Write, 1536, 512, 0),
        request(2 * S, Trim, 2048, 1 << 20, 0),
        request(2 * S, Flush, 0, 0, 0),
        request(2 * S, WriteZeroes, 2560, 4096, 0),
    ];
    assert_eq!(read_with(text, &TraceOptions::default()).unwrap().0, expected);
}

#[test]
fn alibaba_spc_and_fiu_by_their_definitions() {
    let alibaba = "419,W,8792731648,16384,1577808144360767\n725,R,59110326272,360448,1577808144360813\n";
    let expected =
        [request(0, Write, 8_792_731_648, 16_384, 0), request(46 * US, Read, 59_110_326_272, 360_448, 1)];
    assert_eq!(read_with(alibaba, &TraceOptions::default()).unwrap().0, expected);

    let spc = "0,20941264,8192,W,0.551706,Alpha/NT\n1, 20939840, 512, r, 0.554041\n";
    let expected =
        [request(0, Write, 20_941_264 * 512, 8192, 0), request(2_335 * US, Read, 20_939_840 * 512, 512, 1)];
    assert_eq!(read_with(spc, &TraceOptions::default()).unwrap().0, expected);

    let fiu = "1000 4892 syslogd 904265560 8 W 6 0 531e779f\n1500 2522 kjournald 8 1 R 6 1 4fd0e9e4\n";
    let expected = [request(0, Write, 904_265_560 * 512, 4096, 0), request(500_000, Read, 4096, 512, 1)];
    assert_eq!(read_with(fiu, &TraceOptions::default()).unwrap().0, expected);
}

#[test]
fn csv_takes_its_columns_and_units_from_its_header() {
    let text =
        "op,size_512,lba_4096,time_ms,fua,disk,note\nR,8,3,1.5,0,a,x\nwrite,1,0,2,1,b,\nflush,0,0,2.25,,b,\n";
    let mut fua = request(MS / 2, Write, 0, 512, 1);
    fua.fua = true;
    let expected = [request(0, Read, 3 * 4096, 4096, 0), fua, request(750 * US, Flush, 0, 0, 1)];
    let (requests, notes) = read_with(text, &TraceOptions::default()).unwrap();
    assert_eq!(requests, expected);
    assert!(notes.warnings().iter().any(|w| w.contains("ignored: note")));
}

#[test]
fn units_can_be_overridden_and_not_where_that_means_nothing() {
    let text = "1000 0 10 1 1\n3000 0 20 1 0\n";
    let options =
        TraceOptions { time_unit: Some(TimeUnit::Microsecond), sector: Some(4096), ..format("mqsim") };
    let expected = [request(0, Read, 40_960, 4096, 0), request(2 * MS, Write, 81_920, 4096, 0)];
    assert_eq!(read_with(text, &options).unwrap().0, expected);

    let msr = "100000,hm,0,Read,1024,2048,10\n";
    let refused = |options: TraceOptions, option: &str| {
        let error = read_with(msr, &options).unwrap_err().to_string();
        assert!(error.contains(option) && error.contains("does not apply"), "{error}");
    };
    refused(TraceOptions { sector: Some(512), ..TraceOptions::default() }, "--sector");
    refused(TraceOptions { action: Some(Action::Queue), ..TraceOptions::default() }, "--action");
}

// Tables whose header names the columns.

fn read_table(text: &str) -> (Vec<IoRequest>, TraceNotes) {
    read_with(text, &TraceOptions::default()).unwrap_or_else(|e| panic!("{text}\n{e}"))
}

fn refused_table(text: &str) -> Diagnostic {
    read_with(text, &TraceOptions::default()).map(|(_, notes)| notes.format).unwrap_err()
}

#[test]
fn names_decide_columns_and_units() {
    let expected = [request(0, Read, 51_200, 4096, 0), request(MS, Write, 102_400, 8192, 0)];
    for text in [
        "ts_us,op,lba,nblocks\n0,read,100,8\n1000,write,200,16\n",
        "time_ms,rw,sector,sectors\n0,R,100,8\n1,W,200,16\n",
        "time_ms\top\toffset\tlength_bytes\n0\tREAD\t51200\t4096\n1\tWRITE\t102400\t8192\n",
        "\"time_us\";\"op\";\"offset\";\"size_kb\"\n\"0\";\"R\";\"51200\";\"4\"\n\"1000\";\"W\";\"102400\";\"8\"\n",
        "time_ms;op;offset;size\n0,0;R;51200;4096\n1,0;W;102400;8192\n",
        "Arrival Time (ns),IOType,Start LBA,Sector Count\n0,Read,100,8\n1000000,Write,200,16\n",
        "size,address,is_write,time [usec]\n4096,51200,0,0\n8192,102400,1,1000\n",
        "# time_us,op [R:0, W:1],lba_4096,size\n0,0,12,4096\n",
        "#time_us type lba size\n0 R 100 8\n1000 W 200 16\n",
    ] {
        let (requests, notes) = read_table(text);
        if text.contains("lba_4096") {
            assert_eq!(requests, [request(0, Read, 49_152, 4096, 0)]);
        } else {
            assert_eq!(requests, expected, "{text}");
        }
        assert_eq!(notes.format, "csv", "{text}");
    }
}

#[test]
fn a_header_is_not_another_formats_for_its_first_name() {
    // As MSR these would be 3 requests in 2.5 us, of volumes that are processes.
    let fair = "timestamp,process_id,type,address,size\n0,1,READ,4096,4096\n10,2,WRITE,8192,8192\n25,1,READ,0,4096\n";
    let (requests, notes) = read_table(fair);
    let expected = [
        request(0, Read, 4096, 4096, 0),
        request(10 * US, Write, 8192, 8192, 0),
        request(25 * US, Read, 0, 4096, 0),
    ];
    assert_eq!((requests.as_slice(), notes.format), (expected.as_slice(), "csv"));
    let said = notes.warnings().join("\n");
    for part in [
        "does not name the unit of `timestamp`: assuming us",
        "25 us",
        "set --time-unit",
        "ignored: process_id",
    ] {
        assert!(said.contains(part), "{part} not in {said}");
    }
    let ms = TraceOptions { time_unit: Some(TimeUnit::Millisecond), ..TraceOptions::default() };
    let (requests, notes) = read_with(fair, &ms).unwrap();
    assert_eq!(requests[2].at, Time::from_ms(25));
    assert!(!notes.warnings().join("\n").contains("time-unit"));
    // The user cannot set a unit that the header gives.
    let error = read_with(
        fair.replace("timestamp", "time_us"),
        &TraceOptions { format: Some("csv".to_owned()), ..ms },
    );
    assert!(error.unwrap_err().to_string().contains("its header names the unit"));
    let error = read_with(fair, &format("msr")).unwrap_err().to_string();
    assert!(error.contains("csv") || error.contains("--format"), "{error}");
}

#[test]
fn blocks_are_no_bytes() {
    let (requests, notes) =
        read_table("timestamp,op,lba,nblocks\n0,read,100,8\n1000,write,200,8\n2000,read,300,16\n");
    assert_eq!(requests[2], request(2 * MS, Read, 153_600, 8192, 0));
    assert!(notes.warnings().join("\n").contains("`lba` and `nblocks` count sectors of 512 B; --sector"));
    let sector = TraceOptions { sector: Some(4096), ..TraceOptions::default() };
    let (requests, _) = read_with("time_us,op,lba,nblocks\n0,read,100,8\n", &sector).unwrap();
    assert_eq!(requests, [request(0, Read, 409_600, 32_768, 0)]);
}

#[test]
fn values_tell_a_unit_that_no_name_says() {
    for (times, unit, ps) in [
        (["1538323200.5", "1538323201.5"], "s", 1_000 * MS),
        (["1538323200000", "1538323200001"], "ms", MS),
        (["1577808144360767", "1577808144360768"], "us", US),
        (["128166385295514663", "128166385295514673"], "100 ns", US),
        (["1577808144360767000", "1577808144360768000"], "ns", US),
        (["0", "1000000"], "ns", MS),
    ] {
        let (requests, notes) =
            read_table(&format!("time,op,offset,size\n{},R,0,512\n{},R,512,512\n", times[0], times[1]));
        assert_eq!(requests[1].at.ps(), ps, "{times:?}");
        assert!(notes.warnings().join("\n").contains(unit), "{times:?}");
    }
}

#[test]
fn a_formats_own_header_is_its_own() {
    for (text, name) in [
        (
            "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n128166385295514663,hm,0,Write,512,2048,2833\n",
            "msr",
        ),
        (
            "timestamp,hostname,disk_number,type,offset,size,response_time\n128166385295514663,hm,0,Write,512,2048,2833\n",
            "msr",
        ),
        (
            "# Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n128166385295514663,hm,0,Write,512,2048,2833\n",
            "msr",
        ),
        (
            "Timestamp,Response,IOType,LUN,Offset,Size\n1456095145.133,0.000806,R,0,899056122368,131072\n",
            "systor17",
        ),
        ("version,time,op,size,lbn\n1,5633898,2a,512,42932745\n", "cloudphysics"),
        ("device_id,opcode,offset,length,timestamp\n419,W,8792731648,16384,1577808144360767\n", "alibaba"),
    ] {
        let (requests, notes) = read_table(text);
        assert_eq!((notes.format, requests.len()), (name, 1), "{text}");
    }
}

#[test]
fn a_header_that_names_no_requests_is_told_what_it_lacks() {
    for (text, parts) in [
        (
            "time_us,rw,offset,size\n0,0,0,4096\n5,1,4096,4096\n",
            ["`rw` has codes", "--columns", "time_us,op_0r,offset,size"],
        ),
        ("timestamp,op,size\n0,R,4096\n", ["no column gives the address", "--columns", "time_us,op,size"]),
        (
            "timestamp;op;offset;lba;size\n0;R;512;1;4096\n",
            ["`offset` and `lba` have the same meaning", "--columns", "-"],
        ),
        (
            "process,type,address,size\n1,Read,0,4096\n",
            ["no column gives the time", "--columns", "-,op,offset,size"],
        ),
    ] {
        let error = refused_table(text).to_string();
        for part in parts {
            assert!(error.contains(part), "{part} not in {error}");
        }
    }
}

#[test]
fn objects_lie_in_the_order_of_their_first_access() {
    // The third has no size, the fourth moves no data.
    let rows = "0,1,A,8371\n103,0,B,31\n315,2,D,\n400,3,A,8371\n529,1,B,31\n";
    let expected = [
        request(0, Read, 0, 8371, 0),
        request(103 * MS, Write, 12_288, 31, 0),
        request(529 * MS, Read, 12_288, 31, 0),
    ];
    let header = "# timestamp (ms), op type [Put:0, Get:1, Delete:2, Head: 3, Copy: 4], object id, object size (byte)\n";
    let (requests, notes) = read_table(&format!("{header}{rows}"));
    assert_eq!((requests.as_slice(), notes.format), (expected.as_slice(), "csv"));
    assert!(!notes.warnings().join("\n").contains("whole sectors"), "{:?}", notes.warnings());
    let columns = TraceOptions { columns: Some("time_ms,op,key,size".to_owned()), ..TraceOptions::default() };
    assert_eq!(read_with(format!("{header}{rows}"), &columns).unwrap().0, expected);
    let words = "0;get;A;8371\n103;put;B;31\n529;GET;B;31\n";
    assert_eq!(read_with(words, &columns).unwrap().0, expected);
    let cos = "0 REST.GET.OBJECT a 8371\n103 REST.PUT.OBJECT b 31\n200 REST.HEAD.OBJECT a 8371\n300 REST.DELETE.OBJECT c\n\
               529 REST.GET.OBJECT b 31 0 30\n600 REST.GET.OBJECT a 8371 100 199\n700 REST.DELETE.OBJECT b 31\n";
    let more = [request(600 * MS, Read, 100, 100, 0), request(700 * MS, Trim, 12_288, 31, 0)];
    let (requests, notes) = read_table(cos);
    assert_eq!((requests, notes.format), ([&expected[..], &more].concat(), "ibm-cos"));
}

#[test]
fn quoted_fields_and_decimal_commas_are_read_by_every_table() {
    let quoted = "\"Timestamp\",\"Hostname\",\"DiskNumber\",\"Type\",\"Offset\",\"Size\",\"ResponseTime\"\n\
                  \"128166372003061629\",\"hostB\",\"0\",\"Read\",\"7014609920\",\"24576\",\"41286\"\n\
                  \"128166372003061639\",\"hostB\",\"0\",\"Write\",\"1317441536\",\"8192\",\"1963\"\n";
    let (requests, notes) = read_table(quoted);
    let expected = [request(0, Read, 7_014_609_920, 24_576, 0), request(US, Write, 1_317_441_536, 8192, 0)];
    assert_eq!((requests.as_slice(), notes.format), (expected.as_slice(), "msr"));
    assert_eq!(notes.warnings(), ["the fields are in quotation marks"]);
    assert_eq!(notes.flows.names(), ["hostB,0"]);
    let semicolons = "0;20941264;8192;W;0,551706\n0;20939840;8192;r;0,554041\n";
    let (requests, notes) = read_table(semicolons);
    assert_eq!((requests[1].at.ps(), notes.format), (2_335 * US, "spc"));
}
