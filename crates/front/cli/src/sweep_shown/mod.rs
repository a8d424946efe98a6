//! What a person sees of a sweep: the table that grows while it runs, and the one of all runs.

mod human;
mod live;

pub(crate) use human::{found, human};
pub(crate) use live::Shown;
