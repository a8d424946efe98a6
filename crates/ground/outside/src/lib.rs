//! Clocks and memory of the process, which a simulation must not see, and files written atomically.
//!
//! * Knows CPU seconds, wall-clock seconds, peak resident memory; writing of files, and write errors.
//! * Does not know simulated time or the content of files.
//! * Read first: this file; then `write.rs`.

mod write;

pub use write::{
    Beside, Fault, cannot_write, filled, make_folder, remedy, remove_unfinished, write_durable, write_whole,
    write_whole_with,
};

use cpu_time::ThreadTime;
use std::time::Instant;

/// CPU and wall-clock seconds from a common origin.
pub struct Clocks {
    cpu: ThreadTime,
    wall: Instant,
}

impl Clocks {
    /// Starts both clocks.
    pub fn start() -> Clocks {
        Clocks { cpu: ThreadTime::now(), wall: Instant::now() }
    }
    /// Returns CPU seconds of this thread.
    pub fn cpu_s(&self) -> f64 {
        self.cpu.elapsed().as_secs_f64()
    }
    /// Returns wall-clock seconds.
    pub fn wall_s(&self) -> f64 {
        self.wall.elapsed().as_secs_f64()
    }
}

/// Returns the peak resident set in bytes; zero if the operating system does not report it.
pub fn peak_rss() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().trim_end_matches("kB").trim().parse::<u64>().ok()).map_or(0, |kib| kib << 10)
}
