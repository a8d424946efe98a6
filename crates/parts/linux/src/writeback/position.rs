//! How far dirty pages are from where they should be, as a factor for the rate of writers (`mm/page-writeback.c`). The case of
//! `strictlimit`, which is for file systems in user mode, is left out.

/// A factor of one is `1 << RATELIMIT_CALC_SHIFT`.
pub(super) const RATELIMIT_CALC_SHIFT: u32 = 10;

/// What the factor depends on. All in pages; the bandwidth a second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    /// Dirty pages and pages being written.
    pub(super) dirty: u64,
    pub(super) freerun: u64,
    pub(super) thresh: u64,
    /// The limit that falls gradually.
    pub(super) limit: u64,
    /// Of the device: as `dirty`.
    pub(super) wb_dirty: u64,
    pub(super) wb_thresh: u64,
    /// Of the device: `avg_write_bandwidth`.
    pub(super) write_bw: u64,
}

impl Position {
    /// Where dirty pages should be.
    pub(super) fn setpoint(&self) -> u64 {
        (self.freerun + self.limit) / 2
    }

    /// `wb_position_ratio`.
    pub(super) fn ratio(&self) -> u64 {
        if self.dirty >= self.limit {
            return 0;
        }
        let setpoint = self.setpoint();
        let global = polynom(setpoint, self.dirty, self.limit);
        // A device that has been idle has no part of the limit, and gets some of what is left.
        let wb_thresh = self.wb_thresh.min(self.thresh).max((self.limit - self.dirty) / 8);
        self.reserve(self.line(global, setpoint, wb_thresh), wb_thresh)
    }

    /// The device's own control line: one at its set point, a quarter from three quarters of the span on.
    fn line(&self, ratio: u64, setpoint: u64, wb_thresh: u64) -> u64 {
        let part = (wb_thresh << 16) / (self.thresh | 1);
        let wb_setpoint = (setpoint * part) >> 16;
        // The limit itself may lie above the threshold for a while: then the difference wraps in the kernel, and back with the sum.
        let span =
            (self.thresh.wrapping_sub(wb_thresh).wrapping_add(8 * self.write_bw)).wrapping_mul(part) >> 16;
        let x_intercept = wb_setpoint + span;
        if self.wb_dirty < x_intercept - span / 4 {
            ratio * (x_intercept - self.wb_dirty) / ((x_intercept - wb_setpoint) | 1)
        } else {
            ratio / 4
        }
    }

    /// Up to half of the device's part the factor is raised, so that the device does not run out of work.
    fn reserve(&self, ratio: u64, wb_thresh: u64) -> u64 {
        let reserve = wb_thresh / 2;
        if self.wb_dirty >= reserve {
            ratio
        } else if self.wb_dirty > reserve / 8 {
            ratio * reserve / self.wb_dirty
        } else {
            ratio * 8
        }
    }
}

/// `pos_ratio_polynom`: two up to the free run's end, one at the set point, nothing at the limit, a cubic between.
pub(super) fn polynom(setpoint: u64, dirty: u64, limit: u64) -> u64 {
    let x = ((setpoint as i64 - dirty as i64) << RATELIMIT_CALC_SHIFT) / ((limit - setpoint) | 1) as i64;
    let cube = (((x * x) >> RATELIMIT_CALC_SHIFT) * x) >> RATELIMIT_CALC_SHIFT;
    (cube + (1 << RATELIMIT_CALC_SHIFT)).clamp(0, 2 << RATELIMIT_CALC_SHIFT) as u64
}
