//! What a reader of traces of requests says of the files that programs read.

use programs::FILES;
use requests::trace::{TraceOptions, inspect_read};

#[test]
fn what_a_program_reads_is_told_apart_from_a_trace_of_requests() {
    let options = TraceOptions { others: FILES, ..TraceOptions::default() };
    for (content, what, help) in [
        (&b"-kernel name = _Z6vecAdd\n-kernel id = 1\n"[..], "a trace of a GPU", "--workload"),
        (b"l 0x1fffff50 1\ns 0x1fffff58 0\n", "a recorded program of a CPU", "--workload"),
        (b"7 read(3, \"\", 4096) = 0\n", "a log of strace", "--workload strace:file=t"),
        (b"\x08\x0a\x3a\x04\x0a\x02\x0a\x00", "an ONNX model", "--workload onnx:file=t"),
    ] {
        let error = inspect_read("t", content, &options).unwrap_err().to_string();
        assert!(error.contains(what) && error.contains(help), "{what}: {error}");
    }
}
