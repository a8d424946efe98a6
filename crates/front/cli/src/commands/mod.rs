//! Subcommands, one file each: `run` returns whether everything succeeded, or the diagnostic of unusable input.

#[cfg(unix)]
mod capture;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod diff;
mod energy;
pub(crate) mod explain;
pub(crate) mod explain_run;
pub(crate) mod fit;
pub(crate) mod gen_docs;
pub(crate) mod import;
pub(crate) mod init;
mod kernels;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod params;
pub(crate) mod point;
mod program;
pub(crate) mod report;
pub(crate) mod reproduce;
pub(crate) mod run;
pub(crate) mod sample;
pub(crate) mod schema;
pub(crate) mod sensitivity;
mod service;
pub(crate) mod sweep;
pub(crate) mod trace;
