//! Tests of `workload` from outside, in one binary: a test is built and linked once.

mod fio_batches;
mod fio_common;
mod fio_diagnostics;
mod fio_files;
mod fio_generator;
mod fio_options;
mod fio_oracle;
mod gpu_trace;
mod graphs;
mod inject_targets;
mod kernel_sizes;
mod program_list;
mod program_slots;
mod trace;
