//! Small drives of all kinds at work, against what must hold of any drive.

mod bad_blocks;
mod budget;
mod energy;
mod long;
mod mutants;
mod parity;
mod power_cut;
mod retry;
mod slc;
mod small;
mod snapshots;
