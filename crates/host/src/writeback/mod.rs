//! When dirty pages are written, and who waits for it. It knows no time but what it is told.
