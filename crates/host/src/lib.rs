//! Host software.
