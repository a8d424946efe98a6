//! Tables whose header says what the columns are.

use config::Diagnostic;
use engine::Time;
use proto::IoOp::{Read, Trim, Write};
use proto::IoRequest;
use requests::trace::{TimeUnit, TraceNotes, TraceOptions};

use super::{format, read_with, request};

const US: u64 = 1_000_000;
const MS: u64 = 1_000_000_000;

fn read(text: &str) -> (Vec<IoRequest>, TraceNotes) {
    read_with(text, &TraceOptions::default()).unwrap_or_else(|e| panic!("{text}\n{e}"))
}

fn refused(text: &str) -> Diagnostic {
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
        let (requests, notes) = read(text);
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
    // As MSR these were 3 requests in 2.5 us, of volumes that are processes.
    let fair = "timestamp,process_id,type,address,size\n0,1,READ,4096,4096\n10,2,WRITE,8192,8192\n25,1,READ,0,4096\n";
    let (requests, notes) = read(fair);
    let expected = [
        request(0, Read, 4096, 4096, 0),
        request(10 * US, Write, 8192, 8192, 0),
        request(25 * US, Read, 0, 4096, 0),
    ];
    assert_eq!((requests.as_slice(), notes.format), (expected.as_slice(), "csv"));
    let said = notes.warnings().join("\n");
    for part in
        ["does not say the unit of `timestamp`: us", "25 us", "--time-unit decides", "ignored: process_id"]
    {
        assert!(said.contains(part), "{part} not in {said}");
    }
    let ms = TraceOptions { time_unit: Some(TimeUnit::Millisecond), ..TraceOptions::default() };
    let (requests, notes) = read_with(fair, &ms).unwrap();
    assert_eq!(requests[2].at, Time::from_ms(25));
    assert!(!notes.warnings().join("\n").contains("time-unit"));
    // A unit that the header says is not the user's to say.
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
        read("timestamp,op,lba,nblocks\n0,read,100,8\n1000,write,200,8\n2000,read,300,16\n");
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
            read(&format!("time,op,offset,size\n{},R,0,512\n{},R,512,512\n", times[0], times[1]));
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
        let (requests, notes) = read(text);
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
        ("timestamp,op,size\n0,R,4096\n", ["no column is the address", "--columns", "time_us,op,size"]),
        (
            "timestamp;op;offset;lba;size\n0;R;512;1;4096\n",
            ["`offset` and `lba` say the same", "--columns", "-"],
        ),
        (
            "process,type,address,size\n1,Read,0,4096\n",
            ["no column is the time", "--columns", "-,op,offset,size"],
        ),
    ] {
        let error = refused(text).to_string();
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
    let (requests, notes) = read(&format!("{header}{rows}"));
    assert_eq!((requests.as_slice(), notes.format), (expected.as_slice(), "csv"));
    assert!(!notes.warnings().join("\n").contains("whole sectors"), "{:?}", notes.warnings());
    let columns = TraceOptions { columns: Some("time_ms,op,key,size".to_owned()), ..TraceOptions::default() };
    assert_eq!(read_with(format!("{header}{rows}"), &columns).unwrap().0, expected);
    let words = "0;get;A;8371\n103;put;B;31\n529;GET;B;31\n";
    assert_eq!(read_with(words, &columns).unwrap().0, expected);
    let cos = "0 REST.GET.OBJECT a 8371\n103 REST.PUT.OBJECT b 31\n200 REST.HEAD.OBJECT a 8371\n300 REST.DELETE.OBJECT c\n\
               529 REST.GET.OBJECT b 31 0 30\n600 REST.GET.OBJECT a 8371 100 199\n700 REST.DELETE.OBJECT b 31\n";
    let more = [request(600 * MS, Read, 100, 100, 0), request(700 * MS, Trim, 12_288, 31, 0)];
    let (requests, notes) = read(cos);
    assert_eq!((requests, notes.format), ([&expected[..], &more].concat(), "ibm-cos"));
}

#[test]
fn quoted_fields_and_decimal_commas_are_read_by_every_table() {
    let quoted = "\"Timestamp\",\"Hostname\",\"DiskNumber\",\"Type\",\"Offset\",\"Size\",\"ResponseTime\"\n\
                  \"128166372003061629\",\"hostB\",\"0\",\"Read\",\"7014609920\",\"24576\",\"41286\"\n\
                  \"128166372003061639\",\"hostB\",\"0\",\"Write\",\"1317441536\",\"8192\",\"1963\"\n";
    let (requests, notes) = read(quoted);
    let expected = [request(0, Read, 7_014_609_920, 24_576, 0), request(US, Write, 1_317_441_536, 8192, 0)];
    assert_eq!((requests.as_slice(), notes.format), (expected.as_slice(), "msr"));
    assert_eq!(notes.warnings(), ["the fields stand in quotation marks"]);
    assert_eq!(notes.flows.names(), ["hostB,0"]);
    let semicolons = "0;20941264;8192;W;0,551706\n0;20939840;8192;r;0,554041\n";
    let (requests, notes) = read(semicolons);
    assert_eq!((requests[1].at.ps(), notes.format), (2_335 * US, "spc"));
}
