//! Static, restricted and full dynamic allocation: how many planes work at once.

#[path = "allocation/bench.rs"]
mod bench;
#[path = "allocation/order.rs"]
mod order;
#[path = "allocation/planes.rs"]
mod planes;
#[path = "allocation/units.rs"]
mod units;
