//! Write-back throttling (block/blk-wbt.c): limits buffered writes in flight while reads are slow.
//!
//! Left out: `WBT_RWQ_KSWAPD`, since reclaim of this host writes no pages.

#[cfg(test)]
mod tests;

use super::bio::Bio;
use super::request::Request;
use engine::Time;
use proto::IoOp;
use std::collections::VecDeque;

/// `RWB_WINDOW_NSEC`.
const WINDOW: Time = Time::from_ms(100);
/// `RWB_MIN_WRITE_SAMPLES`.
const WRITE_SAMPLES: u64 = 3;
/// `RWB_UNKNOWN_BUMP`.
const UNKNOWN_BUMP: u32 = 5;
/// Time after a pause of a writer in which the drive should be fast (`wb_recent_wait`).
const RECENT: Time = Time::from_s(1);
/// Distance in time within which other I/O is close (`close_io`).
const CLOSE: Time = Time::from_ms(100);

/// Account of a request (`enum wbt_flags`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Account {
    /// Not counted.
    None,
    /// Read, whose latency matters.
    Read,
    /// Write that is throttled.
    Write,
    /// Discard, throttled separately.
    Discard,
}

/// Counters of the throttling decisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WbtStats {
    /// Windows after which the depth grew.
    pub scaled_up: u64,
    /// Windows after which the depth shrank.
    pub scaled_down: u64,
    /// Windows in which reads were too slow.
    pub exceeded: u64,
}

/// Latency samples of a window (`struct blk_rq_stat`).
#[derive(Clone, Copy, Debug, Default)]
struct Samples {
    count: u64,
    least: Time,
}

impl Samples {
    fn add(&mut self, latency: Time) {
        self.least = if self.count == 0 { latency } else { self.least.min(latency) };
        self.count += 1;
    }
}

/// Writes of one account, and the tasks that wait for permission (`struct rq_wait`).
#[derive(Debug, Default)]
struct Wait {
    in_flight: u32,
    /// Waiting tasks with their bios.
    waiting: VecDeque<(u32, Bio)>,
}

/// Outcome of a window (`latency_exceeded`).
enum Verdict {
    Fine,
    Exceeded,
    Unknown,
    UnknownWrites,
}

/// Throttling state of one queue (`struct rq_wb`).
#[derive(Debug)]
pub(super) struct Wbt {
    target: Time,
    write_cache: bool,
    depth: Depth,
    normal: u32,
    background: u32,
    writes: Wait,
    discards: Wait,
    /// Time of the last read submission, and of the last read completion.
    last_issue: Option<Time>,
    last_done: Option<Time>,
    /// Time at which a writer was last paused.
    paused: Option<Time>,
    /// Read at the drive, with its start: a hint that one takes long.
    sync: Option<(u32, Time)>,
    unknown: u32,
    window: Time,
    timer: Option<Time>,
    reads_seen: Samples,
    writes_seen: Samples,
    stats: WbtStats,
}

impl Wbt {
    /// Creates the throttling for reads of at most `target`, on a queue of `requests` requests.
    pub(super) fn new(target: Time, requests: u32, write_cache: bool) -> Wbt {
        let mut wbt = Wbt {
            target,
            write_cache,
            depth: Depth::new(requests),
            normal: 0,
            background: 0,
            writes: Wait::default(),
            discards: Wait::default(),
            last_issue: None,
            last_done: None,
            paused: None,
            sync: None,
            unknown: 0,
            window: WINDOW,
            timer: None,
            reads_seen: Samples::default(),
            writes_seen: Samples::default(),
            stats: WbtStats::default(),
        };
        wbt.set_limits();
        wbt
    }

    /// `calc_wb_limits`.
    fn set_limits(&mut self) {
        let max = self.depth.max;
        (self.normal, self.background) = if max <= 2 { (max, 1) } else { (max.div_ceil(2), max.div_ceil(4)) };
    }

    /// Account of a bio (`bio_to_wbt_flags`, `wbt_should_throttle`); writes that bypass the page cache are not
    /// throttled.
    pub(super) fn account(bio: &Bio) -> Account {
        match bio.op {
            IoOp::Read => Account::Read,
            IoOp::Write if !(bio.flags.sync && bio.flags.idle) => Account::Write,
            IoOp::Trim => Account::Discard,
            IoOp::Write | IoOp::WriteZeroes | IoOp::Flush => Account::None,
        }
    }

    fn recent_wait(&self, now: Time) -> bool {
        self.paused.is_some_and(|at| now < at + RECENT)
    }

    fn close_io(&self, now: Time) -> bool {
        let close = |at: Option<Time>| at.is_some_and(|at| now < at + CLOSE);
        close(self.last_issue) || close(self.last_done)
    }

    /// Limit of writes in flight when this bio joins (`get_limit`).
    fn limit(&self, bio: &Bio, now: Time) -> u32 {
        let flags = bio.flags;
        if bio.op == IoOp::Trim {
            self.background
        } else if flags.sync || flags.meta || flags.prio || self.recent_wait(now) {
            self.depth.max
        } else if flags.background || self.close_io(now) {
            self.background
        } else {
            self.normal
        }
    }

    fn wait_of(&mut self, account: Account) -> Option<&mut Wait> {
        match account {
            Account::Write => Some(&mut self.writes),
            Account::Discard => Some(&mut self.discards),
            Account::None | Account::Read => None,
        }
    }

    /// Returns whether a bio may become a request (`wbt_wait`). If not, it has to [`wait`](Wbt::wait).
    pub(super) fn ask(&mut self, bio: &Bio, now: Time) -> bool {
        let account = Wbt::account(bio);
        if account == Account::Read {
            self.last_issue = Some(now);
        }
        let limit = self.limit(bio, now);
        let Some(wait) = self.wait_of(account) else { return true };
        // Latecomers are not served first (`rq_qos_wait`).
        let granted = wait.waiting.is_empty() && wait.in_flight < limit;
        if granted {
            wait.in_flight += 1;
            self.arm_if_idle(now);
        }
        granted
    }

    /// Queues a bio until it is woken with permission.
    pub(super) fn wait(&mut self, bio: &Bio, who: u32) {
        if let Some(wait) = self.wait_of(Wbt::account(bio)) {
            wait.waiting.push_back((who, *bio));
        }
    }

    /// Arms the timer for a woken task that goes on.
    pub(super) fn arm_if_idle(&mut self, now: Time) {
        if self.timer.is_none() {
            self.arm(now);
        }
    }

    /// Records that the driver received a request (`wbt_issue`).
    pub(super) fn issue(&mut self, name: u32, request: &Request, now: Time) {
        if request.account == Account::Read && self.sync.is_none() {
            self.sync = Some((name, now));
        }
    }

    /// Records the latency of a completed request (`blk_stat_add`), if a window is open.
    pub(super) fn sample(&mut self, request: &Request, now: Time) {
        if self.timer.is_none() {
            return;
        }
        let latency = now.since(request.issued);
        if request.op == IoOp::Read {
            self.reads_seen.add(latency);
        } else if request.is_write() {
            self.writes_seen.add(latency);
        }
    }

    /// Handles the end of a request (`wbt_done`); passes the waiters that now have permission to `wake`.
    pub(super) fn done(&mut self, name: u32, account: Account, now: Time, wake: &mut impl FnMut(u32)) {
        if account == Account::Read {
            self.last_done = Some(now);
        }
        if self.sync.is_some_and(|(read, _)| read == name) {
            self.sync = None;
        }
        // A drive with a write cache drains all writes before new ones start, unless a writer was recently paused.
        let limit = match account {
            Account::Discard => self.background,
            _ if self.write_cache && !self.recent_wait(now) => 0,
            _ => self.normal,
        };
        let background = self.background;
        let Some(wait) = self.wait_of(account) else { return };
        wait.in_flight -= 1;
        let in_flight = wait.in_flight;
        if in_flight == 0 || (in_flight < limit && limit - in_flight >= background / 2) {
            self.wake(account, now, wake);
        }
    }

    /// Grants waiting tasks permission, in order, within their limits (`rq_qos_wake_function`).
    fn wake(&mut self, account: Account, now: Time, wake: &mut impl FnMut(u32)) {
        loop {
            let Some(wait) = self.wait_of(account) else { return };
            let Some((who, bio)) = wait.waiting.front().copied() else { return };
            let in_flight = wait.in_flight;
            if in_flight >= self.limit(&bio, now) {
                return;
            }
            if let Some(wait) = self.wait_of(account) {
                wait.in_flight += 1;
                wait.waiting.pop_front();
            }
            wake(who);
        }
    }

    /// Records that a writer of dirty pages was paused (`bdi_writeback.dirty_sleep`).
    pub(super) fn paused(&mut self, now: Time) {
        self.paused = Some(now);
    }

    pub(super) fn next_timer(&self) -> Option<Time> {
        self.timer
    }

    /// Ends the window, if it is due (`wb_timer_fn`).
    pub(super) fn timer(&mut self, now: Time, wake: &mut impl FnMut(u32)) {
        if self.timer.is_none_or(|at| at > now) {
            return;
        }
        self.timer = None;
        match self.verdict(now) {
            Verdict::Exceeded => {
                self.stats.exceeded += 1;
                self.scale_down(true);
            }
            Verdict::Fine | Verdict::UnknownWrites => self.scale_up(now, wake),
            Verdict::Unknown => {
                self.unknown += 1;
                if self.unknown >= UNKNOWN_BUMP && self.depth.step > 0 {
                    self.scale_up(now, wake);
                } else if self.unknown >= UNKNOWN_BUMP && self.depth.step < 0 {
                    self.scale_down(false);
                }
            }
        }
        (self.reads_seen, self.writes_seen) = (Samples::default(), Samples::default());
        if self.depth.step != 0 || self.in_flight() > 0 {
            self.arm(now);
        }
    }

    fn in_flight(&self) -> u32 {
        self.writes.in_flight + self.discards.in_flight
    }

    /// `latency_exceeded`.
    fn verdict(&self, now: Time) -> Verdict {
        let under_way = self.sync.map_or(Time::ZERO, |(_, since)| now.since(since));
        let (reads, writes) = (&self.reads_seen, &self.writes_seen);
        if under_way > self.window || (under_way > self.target && reads.count == 0) {
            return Verdict::Exceeded;
        }
        if reads.count == 0 || writes.count < WRITE_SAMPLES {
            let only_writes = writes.count > 0 || self.recent_wait(now) || self.in_flight() > 0;
            return if only_writes { Verdict::UnknownWrites } else { Verdict::Unknown };
        }
        if reads.least > self.target { Verdict::Exceeded } else { Verdict::Fine }
    }

    fn scale_up(&mut self, now: Time, wake: &mut impl FnMut(u32)) {
        if self.depth.scale_up() {
            self.stats.scaled_up += 1;
            self.unknown = 0;
            self.set_limits();
            self.wake(Account::Write, now, wake);
            self.wake(Account::Discard, now, wake);
        }
    }

    fn scale_down(&mut self, hard: bool) {
        if self.depth.scale_down(hard) {
            self.stats.scaled_down += 1;
            self.unknown = 0;
            self.set_limits();
        }
    }

    /// Arms the window timer (`rwb_arm_timer`); after steps down the window shrinks with the root of their number.
    fn arm(&mut self, now: Time) {
        self.window = WINDOW;
        if self.depth.step > 0 {
            let root = (u64::from(self.depth.step.unsigned_abs() + 1) << 8).isqrt();
            self.window = Time::from_ns((WINDOW.ns() << 4) / root);
        }
        self.timer = Some(now + self.window);
    }

    pub(super) fn stats(&self) -> WbtStats {
        self.stats
    }

    pub(super) fn reset_stats(&mut self) {
        self.stats = WbtStats::default();
    }
}

// Scalable depth (block/blk-rq-qos.c, `struct rq_depth`).

/// `RWB_DEF_DEPTH`.
const DEFAULT: u32 = 16;

/// Limit of writes in flight: each step above zero halves it, each below doubles it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Depth {
    /// Requests of the queue.
    queue: u32,
    /// Step, initially zero.
    step: i32,
    /// True if the depth has reached its maximum.
    scaled_max: bool,
    /// Current depth.
    max: u32,
}

impl Depth {
    fn new(queue: u32) -> Depth {
        let mut depth = Depth { queue, step: 0, scaled_max: false, max: 0 };
        depth.calculate();
        depth
    }

    /// Computes the depth (`rq_depth_calc_max_depth`); returns whether it is at its maximum.
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

    /// Grows the depth (`rq_depth_scale_up`); returns whether it could.
    fn scale_up(&mut self) -> bool {
        if self.scaled_max {
            return false;
        }
        self.step -= 1;
        self.scaled_max = self.calculate();
        true
    }

    /// Shrinks the depth (`rq_depth_scale_down`); returns whether it could. `hard`: gains are given up at once.
    fn scale_down(&mut self, hard: bool) -> bool {
        if self.max == 1 {
            return false;
        }
        self.step = if self.step < 0 && hard { 0 } else { self.step + 1 };
        self.scaled_max = false;
        self.calculate();
        true
    }
}
