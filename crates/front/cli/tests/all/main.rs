//! Tests of `cli` from outside, in one binary: a test is built and linked once.

mod bad_input;
mod capture;
mod capture_syscalls;
mod common;
mod contract;
mod diff;
mod explained;
mod files;
mod fit;
mod gpu_input;
mod imports;
mod init;
mod interrupts;
mod kernels;
mod places;
mod sample;
mod searches;
mod server_jobs;
mod states;
mod sweep;
mod terminal;
mod traces;
mod values;
mod windows;
mod words;
