//! Tests of `cli` from outside, in one binary: a test is built and linked once.

mod bad_input;
mod capture;
mod common;
mod contract;
mod diagnostics;
mod explained;
mod files;
mod gpu_input;
mod imports;
mod init;
mod interrupts;
mod jobs_of_processors;
mod kernels;
mod outputs;
mod report;
mod searches;
mod sensitivity;
mod states;
mod studies;
mod sweep;
mod traces;
mod windows;
mod words;
