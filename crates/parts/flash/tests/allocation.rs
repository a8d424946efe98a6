//! Static, restricted and full dynamic allocation: how many planes work at once; and when data leaves a buffer for which dies.

#[path = "allocation/bench.rs"]
mod bench;
#[path = "allocation/eviction.rs"]
mod eviction;
#[path = "allocation/full_reads.rs"]
mod full_reads;
#[path = "allocation/order.rs"]
mod order;
#[path = "allocation/planes.rs"]
mod planes;
#[path = "allocation/units.rs"]
mod units;
