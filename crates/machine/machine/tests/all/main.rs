//! Tests of `machine` from outside, in one binary: a test is built and linked once.

mod accelerator;
mod agree;
mod ends;
mod energy;
mod explained;
mod fio;
mod fragments;
mod full_victims;
mod gpu;
mod keys;
mod laws;
mod limits;
mod matrix;
mod mqsim_switches;
mod parts;
mod precondition;
mod reads;
mod shadow;
mod states;
mod systems;
mod tails;
