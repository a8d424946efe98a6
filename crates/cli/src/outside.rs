//! What the simulation must not see: clocks, memory figures, signals.

use config::Diagnostic;
use cpu_time::ThreadTime;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Set by the first interrupt. The second ends the process.
pub(crate) static STOP: AtomicBool = AtomicBool::new(false);

/// Makes the first interrupt end the run cleanly.
///
/// # Errors
/// If the operating system refuses.
pub(crate) fn catch_interrupts() -> Result<(), Diagnostic> {
    let handler = || {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        eprintln!("\ninterrupted: ending the run; once more to quit at once");
    };
    ctrlc::set_handler(handler).map_err(|e| Diagnostic::new(format!("cannot catch interrupts: {e}")))
}

/// CPU and wall-clock seconds from a common origin.
pub(crate) struct Clocks {
    cpu: ThreadTime,
    wall: Instant,
}

impl Clocks {
    /// Starts both.
    pub(crate) fn start() -> Clocks {
        Clocks { cpu: ThreadTime::now(), wall: Instant::now() }
    }
    /// CPU seconds of this thread.
    pub(crate) fn cpu_s(&self) -> f64 {
        self.cpu.elapsed().as_secs_f64()
    }
    /// Wall-clock seconds.
    pub(crate) fn wall_s(&self) -> f64 {
        self.wall.elapsed().as_secs_f64()
    }
}

/// Peak resident set in bytes; zero where the operating system does not tell.
pub(crate) fn peak_rss() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().trim_end_matches("kB").trim().parse::<u64>().ok()).map_or(0, |kib| kib << 10)
}
