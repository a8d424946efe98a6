//! Times as the controllers use them.

use super::DramSpec;
use engine::Time;

/// Refresh of one controller.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refresh {
    pub(super) interval: Time,
    pub(super) duration: Time,
}

/// Times between commands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    pub(super) rcd: Time,
    pub(super) cl: Time,
    pub(super) cwl: Time,
    pub(super) rp: Time,
    pub(super) ras: Time,
    pub(super) rrd: Time,
    pub(super) faw: Time,
    pub(super) wr: Time,
    pub(super) wtr: Time,
    pub(super) rtp: Time,
    pub(super) turnaround: Time,
    /// A line on the data bus.
    pub(super) transfer: Time,
    /// From the first column access of a line to that of the next.
    pub(super) line: Time,
    /// From one column access to the next.
    pub(super) column: Time,
    pub(super) refresh: Option<Refresh>,
}

impl Timing {
    /// The times of a memory that passes its check, for lines of `line` bytes.
    pub(super) fn new(spec: &DramSpec, line: u64) -> Timing {
        let timing = &spec.timing;
        let bursts = line / spec.bus.burst_bytes();
        let transfer = Time::transfer(line, spec.bus.bandwidth());
        let column = transfer.max(timing.ccd.time().times(bursts));
        Timing {
            rcd: timing.rcd.time(),
            cl: timing.cl.time(),
            cwl: timing.cwl.time(),
            rp: timing.rp.time(),
            ras: timing.ras.time(),
            rrd: timing.rrd.time(),
            faw: timing.faw.time(),
            wr: timing.wr.time(),
            wtr: timing.wtr.time(),
            rtp: timing.rtp.time(),
            turnaround: timing.turnaround.time(),
            transfer,
            line: column,
            column: Time::from_ps(column.ps() / bursts),
            refresh: spec.refresh.as_ref().map(|refresh| Refresh {
                interval: refresh.interval.time(),
                duration: refresh.duration.time(),
            }),
        }
    }
}
