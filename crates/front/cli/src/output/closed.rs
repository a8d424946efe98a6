//! Detects whether standard output was closed when the process began. Rust's runtime opens `/dev/null` in its place
//! before `main`, and writes to it are lost without an error. So the check runs before the runtime starts.

use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Returns whether standard output was closed; false where that cannot be detected.
pub(crate) fn is_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

// SAFETY: functions in `.init_array` have the C ABI and run once before `main`, on the only thread. This one makes a
// system call that changes nothing and stores a flag, and needs nothing of the runtime.
#[cfg(target_os = "linux")]
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

#[cfg(target_os = "linux")]
extern "C" fn look() {
    let is_open = rustix::io::fcntl_getfd(rustix::stdio::stdout()).is_ok();
    CLOSED.store(!is_open, Ordering::Relaxed);
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn an_open_one_is_not_closed() {
        look();
        assert!(!is_closed());
    }
}
