//! What each step of the kernel costs on a core.

use config::units::{Bandwidth, Duration};
use engine::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Core time of the kernel's steps. Where nothing else is said: Lee et al., Asynchronous I/O Stack, USENIX ATC 2019, who took the read path of
/// Linux 5.0 apart on a 3.7 GHz core.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CostsSpec {
    /// Into a system call and back.
    pub call: Duration,
    /// Finding a page in the page cache.
    pub lookup: Duration,
    /// Allocating a page.
    pub allocate: Duration,
    /// Putting a page into the page cache, or taking it out.
    pub insert: Duration,
    /// Copying between a program and the page cache.
    pub copy: Bandwidth,
    /// Making a page dirty: accounts, tags, the file system's part.
    pub dirty: Duration,
    /// Preparing a dirty page for being written: lock, tags, accounts.
    pub write_page: Duration,
    /// Finding the blocks of an extent.
    pub map: Duration,
    /// Building a bio and passing it through the block layer.
    pub bio: Duration,
    /// Preparing a request for the drive: mapping its memory, the command, the doorbell.
    pub request: Duration,
    /// Entering and leaving the handler of an interrupt.
    pub interrupt: Duration,
    /// A request's completion.
    pub complete: Duration,
    /// The end of reading or writing a page, by page.
    pub end_page: Duration,
    /// A handle of the journal: start, access to buffers, stop.
    pub handle: Duration,
    /// Looking at a page for reclaim.
    pub scan: Duration,
}

/// The same as times.
#[derive(Clone, Debug)]
pub(super) struct Costs {
    pub(super) call: Time,
    pub(super) lookup: Time,
    pub(super) allocate: Time,
    pub(super) insert: Time,
    copy: u64,
    pub(super) dirty: Time,
    pub(super) write_page: Time,
    pub(super) map: Time,
    pub(super) bio: Time,
    pub(super) request: Time,
    pub(super) interrupt: Time,
    pub(super) complete: Time,
    pub(super) end_page: Time,
    pub(super) handle: Time,
    pub(super) scan: Time,
}

impl Costs {
    pub(super) fn new(spec: &CostsSpec) -> Costs {
        Costs {
            call: spec.call.time(),
            lookup: spec.lookup.time(),
            allocate: spec.allocate.time(),
            insert: spec.insert.time(),
            copy: spec.copy.bytes_per_s(),
            dirty: spec.dirty.time(),
            write_page: spec.write_page.time(),
            map: spec.map.time(),
            bio: spec.bio.time(),
            request: spec.request.time(),
            interrupt: spec.interrupt.time(),
            complete: spec.complete.time(),
            end_page: spec.end_page.time(),
            handle: spec.handle.time(),
            scan: spec.scan.time(),
        }
    }

    /// Copying so many bytes.
    pub(super) fn copy(&self, bytes: u64) -> Time {
        Time::transfer(bytes, self.copy)
    }
}

impl Default for CostsSpec {
    fn default() -> CostsSpec {
        let ns = |ns| Duration::new(Time::from_ns(ns));
        CostsSpec {
            // Chosen: 100 to 200 ns with the usual mitigations.
            call: ns(150),
            lookup: ns(300),
            allocate: ns(190),
            insert: ns(330),
            // 4 KiB in 0.21 us.
            copy: Bandwidth::new(19_500_000_000),
            // Chosen, as inserting.
            dirty: ns(330),
            // Chosen, as inserting.
            write_page: ns(330),
            map: ns(90),
            bio: ns(720),
            // DMA mapping 0.29, submission 0.37.
            request: ns(660),
            // Chosen: what an interrupt takes beside the request's completion.
            interrupt: ns(500),
            // DMA unmapping 0.23, completion 0.81.
            complete: ns(1040),
            // Chosen: unlocking, tags, waking nobody.
            end_page: ns(100),
            // Chosen: jbd2_journal_start to stop with two buffers.
            handle: ns(500),
            // Chosen: shrink_folio_list over use-once pages takes about 10 GB/s.
            scan: ns(200),
        }
    }
}
