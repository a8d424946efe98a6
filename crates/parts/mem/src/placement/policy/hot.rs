//! Hot page selection: pages used soon after they were marked rise into the first memory.
//!
//! Linux marks the pages of slow memory one after the other, repeatedly (`task_numa_work`: it removes the access right,
//! so that the next use is a fault). The time from a page's mark to its next use shows how hot it is: a page used with
//! rate `r` is used within the threshold `t` with a probability of `1 - exp(-r t)`. A mark not followed by a use stays
//! as it is, however often the scan passes. A page used within the threshold is a candidate; a limited number of
//! candidates per window rise.
//!
//! Where a mark is a bit of the table, setting and checking it costs nothing: a scan is not an event here, and the time
//! of a mark follows from the page's number. Linux also adapts the threshold to the number of candidates; here it is
//! fixed.
//!
//! Linux keeps free pages in the first memory (watermarks) by demoting pages ahead of need. Pages behind a cache are
//! never given back: once a slower memory has a page, none is free. A page that rises therefore takes the frame
//! of another, which gets its own: an exchange, as in memories managed by hardware (Sim, Alameldeen, Chishti, Wilkerson
//! and Kim, MICRO 2014). A clock (Corbato 1968) replaces Linux's two lists in choosing the other page: the first one
//! that was not used since the hand passed it.

use super::{Extent, Place, Placing, Table, Targets, Verdict};
use config::SpecError;
use config::units::{Bandwidth, Bytes, Duration};
use engine::Time;
use proto::memory::PAGE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `hot`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Threshold: a page of a slower memory used within this time of its mark is hot.
    pub threshold: Duration,
    /// Scan period: time in which each page is marked once.
    #[schemars(extend("x-minimum" = "1us"))]
    pub scan: Duration,
    /// Promotion rate limit in bytes per second. With `window`, at least a page.
    pub rate: Bandwidth,
    /// Window of the rate limit: when it is over, the next candidate begins a new one.
    #[schemars(extend("x-minimum" = "1us"))]
    pub window: Duration,
    /// Maximum concurrent exchanges of two pages. Hot pages beyond this stay.
    #[schemars(range(min = 1, max = 65_536))]
    pub exchanges: u32,
}

impl Default for Params {
    /// Returns chosen values: Linux's threshold, scan and window are 1 s each, its rate 65,536 MB/s. A simulated run
    /// takes milliseconds, so scan and window are a thousandth, and the threshold a tenth of a scan, so that pages used
    /// once per scan stay. The rate is a small part of what memories carry.
    fn default() -> Params {
        Params {
            threshold: Duration::new(Time::from_us(100)),
            scan: Duration::new(Time::from_us(1_000)),
            rate: Bandwidth::new(1_000_000_000),
            window: Duration::new(Time::from_us(1_000)),
            exchanges: 8,
        }
    }
}

/// See the family's list.
pub struct Hot {
    table: Table,
    params: Params,
    /// First page that holds page tables, which never move; and the number of pages.
    extent: Extent,
    /// Number of the mark that each page's next use answers: marks of a page are counted from one, modulo the size of
    /// the number. Only those of slower memories matter.
    marks: Vec<u32>,
    /// Reference bits: true if the page in a frame of the first memory was used since the hand passed.
    recent: Vec<bool>,
    /// Frame of the first memory at the clock's hand.
    hand: u32,
    /// Start of the window, and its candidates.
    window: (Time, u64),
    /// Maximum candidates of a window that rise.
    most: u64,
}

impl Hot {
    /// Creates the policy for these memories.
    pub fn new(params: &Params, targets: &Targets) -> Hot {
        let bytes = u128::from(params.rate.bytes_per_s()) * u128::from(params.window.time().ps()) / PS_OF_S;
        Hot {
            table: Table::new(targets),
            params: params.clone(),
            extent: Extent::default(),
            marks: Vec::new(),
            recent: Vec::new(),
            hand: 0,
            window: (Time::ZERO, 0),
            most: u64::try_from(bytes).unwrap_or(u64::MAX) / PAGE,
        }
    }

    /// Number of a page's marks so far, and the time since the latest one; before the first, the time since the
    /// beginning.
    #[inline]
    fn marked(&self, page: u32, now: Time) -> (u64, u64) {
        let scan = self.params.scan.time().ps();
        // Pages are marked in the order of their numbers, evenly over a scan.
        let share = (u64::from(page) << 32) / u64::from(self.extent.end);
        let first = ((u128::from(scan) * u128::from(share)) >> 32) as u64;
        match now.ps().checked_sub(first) {
            Some(since) => (since / scan + 1, since % scan),
            None => (0, now.ps()),
        }
    }

    /// Makes the next use of a page answer its next mark.
    #[inline]
    fn wait_for_mark(&mut self, page: u32, now: Time) {
        self.marks[page as usize] = self.marked(page, now).0.wrapping_add(1) as u32;
    }

    /// Returns true if a page of a slower memory is used within the threshold of its mark.
    fn is_hot(&mut self, page: u32, now: Time) -> bool {
        let (count, since) = self.marked(page, now);
        let older = (count as u32).wrapping_sub(self.marks[page as usize]);
        if older >= 1 << 31 {
            // The page's mark is still to come.
            return false;
        }
        self.marks[page as usize] = (count as u32).wrapping_add(1);
        let latency = u128::from(older) * u128::from(self.params.scan.time().ps()) + u128::from(since);
        latency < u128::from(self.params.threshold.time().ps())
    }

    /// Returns true if one more candidate is within the rate.
    fn is_within_rate(&mut self, now: Time) -> bool {
        let (start, count) = &mut self.window;
        if now.since(*start) >= self.params.window.time() {
            (*start, *count) = (now, 0);
        }
        *count += 1;
        *count <= self.most
    }
}

/// Picoseconds per second.
const PS_OF_S: u128 = 1_000_000_000_000;

impl Placing for Hot {
    fn check(&self) -> Result<(), SpecError> {
        let Params { scan, rate, window, exchanges, .. } = &self.params;
        SpecError::positive("policy.hot.scan", scan.time().ps())?;
        SpecError::positive("policy.hot.window", window.time().ps())?;
        SpecError::positive("policy.hot.exchanges", (*exchanges).into())?;
        if self.most == 0 {
            let what = format!("{rate} in a window of {window} is less than a page, {}", Bytes::new(PAGE));
            let help = "choose a longer window, a higher rate, or `policy = \"first_touch\"`";
            return Err(SpecError::new("policy.hot.rate", what).help(help));
        }
        Ok(())
    }
    fn settle(&mut self, extent: &Extent) {
        self.extent = *extent;
        self.table.settle(extent);
        self.marks = vec![0; extent.end as usize];
        self.recent = vec![false; self.table.used(0) as usize];
    }
    #[inline]
    fn place(&mut self, page: u32, now: Time) -> (Place, bool) {
        let (place, is_new) = self.table.place(page);
        if is_new {
            self.wait_for_mark(page, now);
        }
        (place, is_new)
    }
    fn find(&self, page: u32) -> Option<Place> {
        self.table.find(page)
    }
    fn page_in(&self, place: Place) -> Option<u32> {
        self.table.page_in(place)
    }
    fn frames(&self, target: u8) -> u32 {
        self.table.used(target)
    }
    fn exchanges(&self) -> u32 {
        self.params.exchanges
    }
    #[inline]
    fn used(&mut self, page: u32, place: Place, now: Time) -> Verdict {
        if place.target == 0 {
            self.recent[place.frame as usize] = true;
            return Verdict::Stay;
        }
        if page >= self.extent.tables || !self.is_hot(page, now) {
            return Verdict::Stay;
        }
        if self.is_within_rate(now) { Verdict::Rise } else { Verdict::Limited }
    }
    fn makes_room(&mut self, may: &dyn Fn(u32) -> bool) -> Option<u32> {
        // After one round, every evictable page has lost its second chance.
        for _ in 0..2 * self.recent.len() {
            let frame = self.hand;
            self.hand = (frame + 1) % self.recent.len() as u32;
            let page = self.table.page_in(Place { target: 0, frame });
            let page = page.filter(|page| *page < self.extent.tables && may(*page));
            if page.is_some() && !std::mem::take(&mut self.recent[frame as usize]) {
                return page;
            }
        }
        None
    }
    fn exchanged(&mut self, risen: u32, sunk: u32, now: Time) {
        self.table.exchange(risen, sunk);
        self.wait_for_mark(sunk, now);
        if let Some(Place { target: 0, frame }) = self.table.find(risen) {
            self.recent[frame as usize] = true;
        }
    }
}
