//! Whether standard output was closed when the process began. Rust's runtime opens `/dev/null` in the place of a closed
//! one before `main`, and what is written there is lost without a fault; so the look comes before the runtime's.

use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether it was closed; where that cannot be seen, it was not.
pub(crate) fn is_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

// SAFETY: what stands in `.init_array` are functions of the C ABI that run once before `main`, on the only thread; this
// one makes a system call that changes nothing and stores a flag, and needs nothing of the runtime.
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
