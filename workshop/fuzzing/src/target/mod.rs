//! What takes bytes.

mod config;
mod foreign;
mod graph;
mod identities;
mod machine;
mod platforms;
mod recorded;
mod state;
mod trace;

/// One reader of input from outside.
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// What it reads.
    pub about: &'static str,
    /// Reads and uses the bytes; panics if a promise is broken.
    pub run: fn(&[u8]),
    /// Good input.
    pub examples: fn() -> Vec<Vec<u8>>,
    /// Whether the bytes are read, not refused.
    pub reads: fn(&[u8]) -> bool,
    /// Cases that run with every change to the code: a few seconds.
    pub cases: u64,
}

/// All of them.
pub const TARGETS: &[Target] = &[
    trace::TARGET,
    config::FIO,
    config::TARGET,
    graph::TARGET,
    recorded::GPU_TRACE,
    recorded::PROFILE,
    recorded::RECORDING,
    state::TARGET,
    state::SIGNED,
    trace::STRACE,
    trace::IOLOG,
    foreign::MQSIM,
    foreign::SIMPLESSD,
    foreign::FIO_JSON,
    foreign::POINT,
    machine::TARGET,
];

/// The target of a name.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// Texts as examples.
fn texts(all: &[&str]) -> Vec<Vec<u8>> {
    all.iter().map(|text| text.as_bytes().to_vec()).collect()
}
