//! Static, restricted and full dynamic allocation: how many planes work at once; and when data leaves a buffer for which dies.

mod bench;
mod eviction;
mod full_reads;
mod order;
mod planes;
mod units;
