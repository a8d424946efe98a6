//! Tests of `requests` from outside, in one binary: a test is built and linked once.

mod fio_batches;
mod fio_common;
mod fio_diagnostics;
mod fio_files;
mod fio_generator;
mod fio_options;
mod fio_oracle;
mod inject_targets;
mod trace;
