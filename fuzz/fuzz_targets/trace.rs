//! Any bytes are a trace or a diagnostic; no reader panics, hangs or grows without bound.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| workload::trace::fuzz_one(bytes));
