//! Pagers: parts that bring missing pages into memory from a drive.

use engine::Time;
use mem::paging::Paging;
use mem::swap::Swap;
use ssd::Check;
use stats::EnergyReport;

/// Pager of missing pages.
pub enum Pager {
    /// The host, for a GPU.
    Paging(Box<Paging>),
    /// The operating system of a server.
    Swap(Box<Swap>),
}

impl Pager {
    /// Name of the pager in reports.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Pager::Paging(_) => "the host",
            Pager::Swap(_) => "the operating system",
        }
    }

    /// Number of faults and pages under way.
    pub(crate) fn outstanding(&self) -> usize {
        match self {
            Pager::Paging(paging) => paging.outstanding(),
            Pager::Swap(swap) => swap.outstanding(),
        }
    }

    /// Checks that the accounts agree.
    pub(crate) fn check(&self) -> Check {
        let (name, found, detail) = match self {
            Pager::Paging(paging) => {
                ("faults and granules of the host's paging agree", paging.check(), String::new())
            }
            Pager::Swap(swap) => (
                "faults, pages and frames of the operating system agree",
                swap.check(),
                format!("{} faults, {} merged", swap.stats.faults, swap.stats.merged),
            ),
        };
        Check { name, ok: found.is_ok(), detail: found.err().unwrap_or(detail) }
    }

    /// Energy of the link since the measured window began, if the spec has constants; `None` without a link.
    pub(crate) fn energy(&self, now: Time) -> Option<Option<EnergyReport>> {
        match self {
            Pager::Paging(paging) => Some(paging.energy(now)),
            Pager::Swap(_) => None,
        }
    }

    /// Starts the measured window.
    pub(crate) fn reset_stats(&mut self, now: Time) {
        match self {
            Pager::Paging(paging) => paging.reset_stats(now),
            Pager::Swap(swap) => swap.reset_stats(now),
        }
    }
}
