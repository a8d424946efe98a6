//! Any bytes are a job or a diagnostic; no job makes the generator panic, leave its region or wait for nothing.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| workload::fio::fuzz_one(bytes));
