//! A depth that is scaled up and down (block/blk-rq-qos.c, `struct rq_depth`).

/// `RWB_DEF_DEPTH`.
const DEFAULT: u32 = 16;

/// How many writes may be under way: a step above zero halves it so often, one below doubles it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Depth {
    /// Requests of the queue.
    queue: u32,
    /// Zero at first.
    pub(super) step: i32,
    /// Whether it can grow no more.
    scaled_max: bool,
    /// Now.
    pub(super) max: u32,
}

impl Depth {
    pub(super) fn new(queue: u32) -> Depth {
        let mut depth = Depth { queue, step: 0, scaled_max: false, max: 0 };
        depth.calculate();
        depth
    }

    /// `rq_depth_calc_max_depth`; whether this is the most there can be.
    fn calculate(&mut self) -> bool {
        if self.queue == 1 {
            self.max = if self.step > 0 { 1 } else { 2 };
            return self.step <= 0;
        }
        let depth = DEFAULT.min(self.queue);
        let most = 3 * self.queue / 4;
        self.max = depth;
        if self.step > 0 {
            self.max = 1 + ((depth - 1) >> self.step.min(31));
        } else if self.step < 0 {
            let wide = 1 + (u64::from(depth - 1) << self.step.unsigned_abs().min(31));
            self.max = wide.min(most.into()) as u32;
            return wide > u64::from(most);
        }
        false
    }

    /// `rq_depth_scale_up`; whether it was possible.
    pub(super) fn scale_up(&mut self) -> bool {
        if self.scaled_max {
            return false;
        }
        self.step -= 1;
        self.scaled_max = self.calculate();
        true
    }

    /// `rq_depth_scale_down`; whether it was possible. `hard`: what has been gained is given up at once.
    pub(super) fn scale_down(&mut self, hard: bool) -> bool {
        if self.max == 1 {
            return false;
        }
        self.step = if self.step < 0 && hard { 0 } else { self.step + 1 };
        self.scaled_max = false;
        self.calculate();
        true
    }
}
