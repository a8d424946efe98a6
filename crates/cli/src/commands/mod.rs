//! The subcommands, one file each.

pub(crate) mod reproduce;
pub mod run;
