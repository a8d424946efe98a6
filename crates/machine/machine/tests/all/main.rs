//! Tests of `machine` from outside, in one binary: a test is built and linked once.

mod accelerator;
mod agree;
mod depth;
mod energy;
mod explained;
mod fio;
mod fio_kernel;
mod fragments;
mod full_victims;
mod gpu;
mod interrupted;
mod keys;
mod limits;
mod matrix;
mod mqsim_switches;
mod parts;
mod plane_reads;
mod precondition;
mod sata;
mod sequential_reads;
mod shadow;
mod spread;
mod states;
mod stuck;
mod systems;
mod tails;
