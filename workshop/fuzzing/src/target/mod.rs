//! What takes bytes.

mod config;
mod filled;
mod fio;
mod foreign;
mod gpu_trace;
mod graph;
mod host_log;
mod identities;
mod machine;
mod platforms;
mod profile;
mod recording;
mod signed_state;
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
    fio::TARGET,
    config::TARGET,
    graph::TARGET,
    gpu_trace::TARGET,
    profile::TARGET,
    recording::TARGET,
    state::TARGET,
    signed_state::TARGET,
    host_log::STRACE,
    host_log::IOLOG,
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
