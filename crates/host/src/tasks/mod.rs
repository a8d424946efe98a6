//! Threads on cores: run queues, time slices, interrupts.
