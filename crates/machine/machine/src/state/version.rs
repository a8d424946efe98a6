//! Which programs can read which states.

/// The number of the form of states, and of what preconditioning does: it grows with every change that moves a byte of one.
pub const LAYOUT: u32 = 4;

/// The versions that a state depends on.
pub(super) fn version() -> String {
    format!("{} (states {LAYOUT})", env!("CARGO_PKG_VERSION"))
}

/// Bytes as a checksum is written.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
