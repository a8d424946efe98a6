//! Throttling of write-back (block/blk-wbt.c): few buffered writes are under way while reads are slow.
//!
//! Left out: `WBT_RWQ_KSWAPD`, since reclaim of this host writes nothing.

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
/// A task that was paused within this time says that the drive must be quick (`wb_recent_wait`).
const RECENT: Time = Time::from_s(1);
/// Other I/O within this time is close (`close_io`).
const CLOSE: Time = Time::from_ms(100);

/// How a request is counted (`enum wbt_flags`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Account {
    /// Not at all.
    None,
    /// As a read, whose latency matters.
    Read,
    /// As a write that is throttled.
    Write,
    /// As a discard, which is throttled apart.
    Discard,
}

/// What the throttling decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WbtStats {
    /// Windows at whose end the depth was made larger.
    pub scaled_up: u64,
    /// Windows at whose end it was made smaller.
    pub scaled_down: u64,
    /// Windows in which reads were too slow.
    pub exceeded: u64,
}

/// Latencies of a window (`struct blk_rq_stat`).
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

/// Writes of one account, and the tasks that wait for leave (`struct rq_wait`).
#[derive(Debug, Default)]
struct Wait {
    in_flight: u32,
    /// Who, and the bio.
    waiting: VecDeque<(u32, Bio)>,
}

/// What a window says (`latency_exceeded`).
enum Verdict {
    Fine,
    Exceeded,
    Unknown,
    UnknownWrites,
}

/// The throttling of one queue (`struct rq_wb`).
#[derive(Debug)]
pub(super) struct Wbt {
    target: Time,
    write_cache: bool,
    depth: Depth,
    normal: u32,
    background: u32,
    writes: Wait,
    discards: Wait,
    /// When a read was last asked for, and last done.
    last_issue: Option<Time>,
    last_done: Option<Time>,
    /// When a writer was last paused.
    paused: Option<Time>,
    /// A read that the drive has, and since when: a hint that one takes long.
    sync: Option<(u32, Time)>,
    unknown: u32,
    window: Time,
    timer: Option<Time>,
    reads_seen: Samples,
    writes_seen: Samples,
    stats: WbtStats,
}

impl Wbt {
    /// Reads of `target` at most, for a queue of so many requests.
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

    /// `bio_to_wbt_flags`, `wbt_should_throttle`: a write past the page cache is not throttled.
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

    /// Writes that may be under way when this one joins (`get_limit`).
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

    /// A bio is about to become a request (`wbt_wait`): whether it may. If not, it has to [`wait`](Wbt::wait).
    pub(super) fn ask(&mut self, bio: &Bio, now: Time) -> bool {
        let account = Wbt::account(bio);
        if account == Account::Read {
            self.last_issue = Some(now);
        }
        let limit = self.limit(bio, now);
        let Some(wait) = self.wait_of(account) else { return true };
        // Who comes later is not served first (`rq_qos_wait`).
        let granted = wait.waiting.is_empty() && wait.in_flight < limit;
        if granted {
            wait.in_flight += 1;
            self.arm_if_idle(now);
        }
        granted
    }

    /// A bio waits until it is woken, and has leave then.
    pub(super) fn wait(&mut self, bio: &Bio, who: u32) {
        if let Some(wait) = self.wait_of(Wbt::account(bio)) {
            wait.waiting.push_back((who, *bio));
        }
    }

    /// A task that was woken goes on.
    pub(super) fn arm_if_idle(&mut self, now: Time) {
        if self.timer.is_none() {
            self.arm(now);
        }
    }

    /// The driver gets a request (`wbt_issue`).
    pub(super) fn issue(&mut self, name: u32, request: &Request, now: Time) {
        if request.account == Account::Read && self.sync.is_none() {
            self.sync = Some((name, now));
        }
    }

    /// The drive has done a request (`blk_stat_add`): its latency counts if a window is open.
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

    /// A request is no more (`wbt_done`); those who are woken by it, with leave, are told to `wake`.
    pub(super) fn done(&mut self, name: u32, account: Account, now: Time, wake: &mut impl FnMut(u32)) {
        if account == Account::Read {
            self.last_done = Some(now);
        }
        if self.sync.is_some_and(|(read, _)| read == name) {
            self.sync = None;
        }
        // For a drive with a write cache all have to be through before others come, if nobody is in a hurry.
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

    /// Waiting tasks get leave, in order, as far as their limits go (`rq_qos_wake_function`).
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

    /// A writer of dirty pages was paused (`bdi_writeback.dirty_sleep`).
    pub(super) fn paused(&mut self, now: Time) {
        self.paused = Some(now);
    }

    pub(super) fn next_timer(&self) -> Option<Time> {
        self.timer
    }

    /// The end of a window (`wb_timer_fn`), if it is due.
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

    /// `rwb_arm_timer`: after a step down the window is shorter, by the root of the steps.
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

// A depth that is scaled up and down (block/blk-rq-qos.c, `struct rq_depth`).

/// `RWB_DEF_DEPTH`.
const DEFAULT: u32 = 16;

/// How many writes may be under way: a step above zero halves it so often, one below doubles it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Depth {
    /// Requests of the queue.
    queue: u32,
    /// Zero at first.
    step: i32,
    /// Whether it can grow no more.
    scaled_max: bool,
    /// Now.
    max: u32,
}

impl Depth {
    fn new(queue: u32) -> Depth {
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
    fn scale_up(&mut self) -> bool {
        if self.scaled_max {
            return false;
        }
        self.step -= 1;
        self.scaled_max = self.calculate();
        true
    }

    /// `rq_depth_scale_down`; whether it was possible. `hard`: what has been gained is given up at once.
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
