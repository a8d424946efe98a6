//! Spec of the translation layer.

use super::{CellSpec, Programming, ReclaimUnit, SlcSpec, SpecError, StripeOrder};
use crate::device::{GcMode, MapMemory, ReclaimPolicy, TranslationParts, Unwritten};
use config::units::{Bandwidth, Bytes, Duration, Share};
use ftl::page_map::Thresholds;
use ftl::page_map::alloc::Allocation;
use ftl::page_map::gc::VictimPolicy;
use ftl::page_map::map_cache::{Granularity, MapCache};
use ftl::page_map::pages::{PageChoice, PageOrder};
use ftl::page_map::units::buckets_width;
use ftl::page_map::wear::WearRule;
use nand::geometry::Geometry;
use net::Rate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Flash translation layer (FTL).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FtlSpec {
    /// Mapping granularity: 512 B to 64 KiB, a divisor or a multiple of the page.
    #[schemars(extend("x-minimum" = "512B", "x-maximum" = "64KiB", "x-power-of-two" = true))]
    pub map_unit: Bytes,
    /// Location of the map.
    pub mapping: Mapping,
    /// Controller memory for the map; if omitted, a look-up in it takes no time and its size is not reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map_memory: Option<MapMemorySpec>,
    /// Unit that garbage collection frees as a whole.
    pub reclaim_unit: ReclaimUnit,
    /// Striping order of consecutive program units over channel, way, die and plane, fastest first.
    pub stripe: StripeOrder,
    /// Allocation policy for host data.
    pub allocation: Allocation,
    /// Page order: the page of its open blocks that a group programs next for the host; `in_order` if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<PageOrder>,
    /// SLC cache for host writes; none if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slc_cache: Option<SlcSpec>,
    /// Superblock parity (RAIN): number of program units protected by one parity unit, each on a different die; none if
    /// omitted. Dies form sets of one more than this number, neighbours on different channels first. In a set, each row
    /// of blocks of equal number has one parity program unit, on each die in turn. It is programmed with data of every
    /// kind. A page that read retry cannot correct (`cell.errors`) is recovered by reading its row on the other dies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 255))]
    pub parity: Option<u32>,
    /// Over-provisioning: share of the raw capacity hidden from the host; parity comes out of it.
    pub over_provisioning: Share,
    /// Host data streams kept apart; `gc.streams` decides whether they stay apart when moved. Each flow of the workload
    /// has a stream; the last one takes all remaining flows.
    #[schemars(range(min = 1))]
    pub placements: u8,
    /// Cost of reading a map unit that was never written.
    pub unwritten_read: UnwrittenRead,
    /// Garbage collection.
    pub gc: GcSpec,
    /// Wear levelling.
    pub wear: WearSpec,
}

/// Controller memory for the map. The entries of a command's map units are adjacent; they are looked up when the
/// controller takes the command, one command after the other. Look-ups for buffer flushes and garbage collection run in
/// parallel and take no time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MapMemorySpec {
    /// Size of an entry: enough to name every map unit of the array.
    #[schemars(extend("x-minimum" = "1B", "x-maximum" = "64B"))]
    pub entry: Bytes,
    /// Latency of a look-up, up to its first entry.
    pub latency: Duration,
    /// Bytes a second at which entries follow.
    pub bandwidth: Bandwidth,
}

/// Location of the map.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Mapping {
    /// Whole map in the controller's memory.
    Table,
    /// Map on flash, in translation pages of one map unit each; the controller's memory caches a part of it. Pages
    /// changed by garbage collection may wait in memory beside the cache; writing them back takes at most half of the
    /// space that garbage collection gains.
    Demand {
        /// Memory for the cached part.
        capacity: Bytes,
        /// Caching granularity: single entries or whole translation pages.
        granularity: MapGranularity,
        /// Size of an entry in memory; whole pages take their own size.
        #[schemars(extend("x-minimum" = "1B"))]
        cached_entry: Bytes,
        /// Size of an entry on flash.
        #[schemars(extend("x-minimum" = "1B"))]
        stored_entry: Bytes,
        /// Bytes that a look-up moves over the channel.
        #[schemars(extend("x-minimum" = "1B"))]
        read: Bytes,
    },
}

config::policies! {
    /// Contents of one slot of the map cache.
    #[derive(Copy, Eq)]
    pub family MapGranularity: choice {
        /// One entry, as in DFTL and MQSim: reading an entry does not load its neighbours.
        default entry,
        /// A whole translation page.
        page,
    }
}

config::policies! {
    /// Cost of reading a map unit that was never written. In every case the read is counted and returns zeroes; a
    /// deallocated unit costs nothing.
    #[derive(Copy, Eq)]
    pub family UnwrittenRead: choice {
        /// No cost: the map shows that the unit has no data.
        default zero,
        /// A read of the page where writing the device in order would have put the unit.
        ///
        /// Timing is as if the device had been written before the run.
        as_written,
        /// A read of a page assigned on the first read; later writes may merge with it.
        ///
        /// As in MQSim: the unit then counts as written in the sectors of its first read, so that writing other sectors
        /// from the buffer merges them with nothing. Each group assigns pages in order. No space is taken.
        created,
    }
}

impl From<UnwrittenRead> for Unwritten {
    fn from(rule: UnwrittenRead) -> Unwritten {
        match rule {
            UnwrittenRead::zero => Unwritten::Free,
            UnwrittenRead::as_written => Unwritten::AsWritten,
            UnwrittenRead::created => Unwritten::Created,
        }
    }
}

/// Garbage collection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GcSpec {
    /// Victim policy: the closed reclaim unit that is taken next.
    pub victim: VictimPolicy,
    /// Free reclaim units of a group at or below which reclaiming starts.
    pub start: u32,
    /// Free reclaim units at which reclaiming stops.
    pub stop: u32,
    /// Free reclaim units at or below which host writes wait.
    pub hard: u32,
    /// Sharing of the device between reclaiming and the host.
    pub mode: GcModeSpec,
    /// Destination of moved data.
    pub scope: GcScope,
    /// Program units in flight while a group reclaims.
    #[schemars(range(min = 1))]
    pub window: u32,
    /// Copy-back: copies whole pages inside their plane, without the channel.
    pub copy_back: bool,
    /// Separation of moved data by placement; `isolated` if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<GcStreams>,
}

/// Wear levelling.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WearSpec {
    /// Dynamic wear levelling: opens the least-erased free unit next. If false, the unit freed first.
    pub dynamic: bool,
    /// Static wear levelling: when a free unit has at least this many more erases than the least-worn closed unit of
    /// its group, the data of that unit moves into it and stays there. Erase counts of a group then differ by at most
    /// this number plus two. The cost is one more erase in about this number of erases, reported in `wear_programs`.
    /// Off if omitted.
    #[schemars(range(min = 1))]
    pub static_gap: Option<u32>,
}

config::policies! {
    /// Sharing of the device between garbage collection and the host.
    #[derive(Copy, Eq)]
    pub family GcModeSpec: choice {
        /// GC operations wait in the dies' queues beside the host's; the die scheduler decides at every operation.
        default preemptible,
        /// Host data avoids a group while it is being reclaimed.
        foreground,
        /// A group is reclaimed while its die is otherwise idle, until its free units fall to the hard limit.
        background,
    }
}

config::policies! {
    /// Destination of data moved by garbage collection.
    #[derive(Copy, Eq)]
    pub family GcScope: choice {
        /// The group it comes from.
        default local,
        /// Any group that has space, in turn.
        global,
    }
}

config::policies! {
    /// Separation of moved data by placement (`placements`).
    #[derive(Copy, Eq)]
    pub family GcStreams: choice {
        /// One frontier for each placement's moved data; no reclaim unit holds data of two placements.
        ///
        /// Corresponds to reclaim unit handles of the type "persistently isolated" (NVMe 2.1, flexible data placement).
        /// A group has one more open frontier for each placement but the first. Translation pages move with the first
        /// placement's data. The victim policy divides the over-provisioning: `greedy` in proportion to the data, so
        /// that skewed writes cost as much as uniform ones (`theory::wa::hot_cold_streams`); `cost_benefit` leaves hot
        /// data more; `marginal_gain` minimizes the write amplification.
        default isolated,
        /// One frontier for all moved data.
        ///
        /// Corresponds to reclaim unit handles of the type "initially isolated" (NVMe 2.1): data is apart until it is
        /// moved.
        mixed,
    }
}

impl WearSpec {
    pub(crate) fn rule(&self) -> WearRule {
        WearRule { least_worn: self.dynamic, gap: self.static_gap }
    }
}

impl FtlSpec {
    /// Returns the policy of garbage collection in time.
    pub(crate) fn reclaim(&self) -> ReclaimPolicy {
        ReclaimPolicy {
            mode: match self.gc.mode {
                GcModeSpec::preemptible => GcMode::Preemptible,
                GcModeSpec::foreground => GcMode::Foreground,
                GcModeSpec::background => GcMode::Background,
            },
            window: self.gc.window,
            copy_back: self.gc.copy_back,
            global: self.gc.scope == GcScope::global,
        }
    }

    pub(crate) fn check(&self, page_bytes: u64, block_bytes: u64) -> Result<(), SpecError> {
        let unit = self.map_unit.get();
        if !(512..=65_536).contains(&unit) || !unit.is_power_of_two() {
            let what =
                format!("a map unit of {}; allowed are powers of two from 512 B to 64 KiB", self.map_unit);
            return Err(SpecError::new("ftl.map_unit", what).help("4KiB is usual"));
        }
        let fits = page_bytes.is_multiple_of(unit) || unit.is_multiple_of(page_bytes);
        if !fits || !block_bytes.is_multiple_of(unit) {
            let what = format!(
                "a map unit of {} neither divides a page of {page_bytes} B nor is a multiple of it that divides a \
                 block",
                self.map_unit
            );
            let help = "set flash.geometry.page_size to a power of two, and flash.ftl.map_unit to a divisor or multiple of it";
            return Err(SpecError::new("ftl.map_unit", what).help(help));
        }
        SpecError::positive("ftl.placements", self.placements.into())?;
        SpecError::positive("ftl.gc.window", self.gc.window.into())?;
        let GcSpec { start, stop, hard, .. } = self.gc;
        if hard == 0 {
            return Err(SpecError::new(
                "ftl.gc.hard",
                "with a hard limit of 0, garbage collection has nowhere to move data",
            )
            .help("set it to 1 or more"));
        }
        if !(hard <= start && start < stop) {
            let what = format!("the thresholds cross: hard {hard} <= start {start} < stop {stop} must hold");
            let help = "set flash.ftl.gc.hard to at most flash.ftl.gc.start, and flash.ftl.gc.stop above flash.ftl.gc.start";
            return Err(SpecError::new("ftl.gc.start", what).help(help));
        }
        Ok(())
    }

    /// Demand-cached map and its number of translation pages, if the map is on flash.
    pub(crate) fn translation(&self, logical: u64) -> Result<Option<(TranslationParts, u64)>, SpecError> {
        let Mapping::Demand { capacity, granularity, cached_entry, stored_entry, read } = &self.mapping
        else {
            return Ok(None);
        };
        let key = |name: &str| format!("ftl.mapping.demand.{name}");
        SpecError::positive(&key("cached_entry"), cached_entry.get())?;
        SpecError::positive(&key("stored_entry"), stored_entry.get())?;
        let unit = self.map_unit.get();
        let entries = unit / stored_entry.get();
        SpecError::positive(&key("stored_entry"), entries)?;
        if read.get() == 0 || read.get() > unit {
            let what = format!("a look-up of {read}; allowed are 1 B to a translation page, {unit} B");
            return Err(SpecError::new(&key("read"), what));
        }
        let (granularity, place) = match granularity {
            MapGranularity::entry => (Granularity::Entry, cached_entry.get()),
            MapGranularity::page => (Granularity::Page, unit),
        };
        let places = u32::try_from(capacity.get() / place).unwrap_or(u32::MAX);
        SpecError::positive(&key("capacity"), places.into())?;
        let cache = MapCache::new(granularity, entries, places);
        Ok(Some((TranslationParts { cache, read_bytes: read.get() as u32 }, logical.div_ceil(entries))))
    }

    /// Memory for the map of `logical` units, if it takes time.
    pub(crate) fn map_memory(&self, geo: &Geometry, logical: u64) -> Result<Option<MapMemory>, SpecError> {
        let Some(memory) = &self.map_memory else { return Ok(None) };
        let entry = memory.entry.get();
        // One more value marks a unit without data.
        let needed = u64::from((u64::BITS - geo.slots.leading_zeros()).div_ceil(8));
        if !(needed..=64).contains(&entry) {
            let what = format!(
                "an entry of {} for {} map units; allowed are {needed} B to 64 B",
                memory.entry, geo.slots
            );
            return Err(SpecError::new("ftl.map_memory.entry", what));
        }
        let bytes = match &self.mapping {
            Mapping::Table => logical * entry,
            Mapping::Demand { capacity, .. } => capacity.get(),
        };
        let rate = Rate::new(memory.bandwidth.bytes_per_s());
        Ok(Some(MapMemory::new(entry, bytes, memory.latency.time(), rate)))
    }

    pub(crate) fn thresholds(&self) -> Thresholds {
        Thresholds { start: self.gc.start, stop: self.gc.stop, hard: self.gc.hard }
    }

    /// Logical map units, after checking that reclaiming always makes progress although some group lacks `bad` reclaim
    /// units.
    pub(crate) fn logical(&self, geo: &Geometry, bad: u32) -> Result<u64, SpecError> {
        let raw = geo.raw_units();
        let logical = raw - self.over_provisioning.of(raw);
        if logical == 0 {
            let what = format!("over-provisioning of {} leaves the host no capacity", self.over_provisioning);
            return Err(SpecError::new("ftl.over_provisioning", what).help("7% to 28% is usual"));
        }
        let hidden = self.translation(logical)?.map_or(0, |(_, pages)| pages);
        let per_group = (logical + hidden).div_ceil(u64::from(geo.groups));
        let needed = per_group.div_ceil(u64::from(geo.units_per_ru));
        // Free units that reclaiming keeps, plus frontiers.
        let frontiers = self.frontiers(hidden > 0);
        let kept = u64::from(self.gc.start) + frontiers;
        let cached = self.kept_for_cache();
        let blocks = u64::from(geo.shape.blocks.saturating_sub(bad).saturating_sub(cached));
        if needed + kept > blocks {
            let mut lost = if bad == 0 { String::new() } else { format!(" left without {bad} bad ones") };
            if cached > 0 {
                lost += &format!(" left without {cached} for flash.ftl.slc_cache.fixed");
            }
            if let Some(data) = self.parity {
                lost += &format!(", a part in {} of each holding parity", data + 1);
            }
            let what = format!(
                "too little over-provisioning: a group has {blocks} reclaim units{lost}; {needed} hold the logical \
                 space, {} are kept free and {frontiers} are frontiers{}, {} too many",
                self.gc.start,
                self.frontiers_in_words(hidden > 0),
                needed + kept - blocks,
            );
            return Err(SpecError::new("ftl.over_provisioning", what).help(if self.movers() > 1 {
                "raise flash.ftl.over_provisioning, lower flash.ftl.gc.start, or set flash.ftl.gc.streams to \"mixed\""
            } else {
                "raise flash.ftl.over_provisioning or lower flash.ftl.gc.start"
            }));
        }
        self.check_progress(geo, bad.saturating_add(cached), per_group, hidden > 0)?;
        Ok(logical)
    }

    /// Returns true if garbage collection keeps placements apart.
    pub(crate) fn isolates(&self) -> bool {
        self.gc.streams.unwrap_or_default() == GcStreams::isolated
    }

    /// Number of frontiers for data moved by garbage collection.
    fn movers(&self) -> u64 {
        if self.isolates() { self.placements.into() } else { 1 }
    }

    /// Number of reclaim units that the host may have open in a group.
    fn of_host(&self) -> u64 {
        self.page_choice().map_or(self.placements.into(), |choice| choice.open().into())
    }

    /// Returns the policy that chooses pages, unless they are programmed in order.
    pub(crate) fn page_choice(&self) -> Option<Box<dyn PageChoice>> {
        let choice = self.pages.as_ref()?.build(&());
        (!choice.is_off()).then_some(choice)
    }

    /// Checks that pages can be chosen.
    pub(crate) fn check_pages(&self, cell: &CellSpec) -> Result<(), SpecError> {
        let (Some(_), Some(order)) = (self.page_choice(), &self.pages) else { return Ok(()) };
        let name = order.name();
        if cell.programming != Programming::page || cell.bits == 1 {
            let what = format!(
                "`{name}` chooses among page types, but the cells have one type, or word lines are programmed as one"
            );
            return Err(SpecError::new("ftl.pages", what)
                .help("set flash.cell.programming = \"page\" and flash.cell.bits to 2 or more"));
        }
        if self.placements > 1 {
            let what = format!("`{name}` cannot keep placements apart, but there are {}", self.placements);
            return Err(SpecError::new("ftl.placements", what));
        }
        if self.wear.static_gap.is_some() {
            let what = format!("static wear levelling never reaches units that `{name}` leaves open");
            return Err(SpecError::new("ftl.wear.static_gap", what).help("omit it"));
        }
        Ok(())
    }

    /// Number of frontiers of a group: one for each of the host's streams, and one for translation pages, if any. Moved
    /// data has one, or one for each placement; data moved for wear levelling likewise, if enabled.
    fn frontiers(&self, maps: bool) -> u64 {
        let moved = 1 + u64::from(self.wear.static_gap.is_some());
        self.of_host() + u64::from(maps) + moved * self.movers()
    }

    /// Sum of the frontiers in words, if it exceeds the host's streams plus one for moved data.
    fn frontiers_in_words(&self, maps: bool) -> String {
        let mut terms =
            vec![format!("{} of the host", self.of_host()), format!("{} of moved data", self.movers())];
        if self.wear.static_gap.is_some() {
            terms.push(format!("{} of data moved for wear", self.movers()));
        }
        if maps {
            terms.push("1 of translation pages".to_owned());
        }
        format!(" ({})", terms.join(" + "))
    }

    /// Minimum number of reclaim units of each group.
    pub(crate) fn least_units(&self, geo: &Geometry) -> u32 {
        // More bad units leave less room.
        let lost: Vec<u32> = (0..=geo.shape.blocks).collect();
        let most = lost.partition_point(|bad| self.logical(geo, *bad).is_ok()) as u32;
        geo.shape.blocks + 1 - most.max(1)
    }

    /// Checks that some reclaim unit gives back at least one program unit while host data waits for space. Other units
    /// may have invalid map units, but fewer than a program unit each.
    fn check_progress(&self, geo: &Geometry, bad: u32, per_group: u64, maps: bool) -> Result<(), SpecError> {
        let holes = u64::from(geo.units_per_program + buckets_width(geo.units_per_ru)) - 2;
        let fullest = u64::from(geo.units_per_ru).saturating_sub(holes).max(1);
        // The frontier of the waiting data is used up; the others may be empty.
        let apart = u64::from(self.gc.hard) + self.frontiers(maps) - 1;
        let closed = u64::from(geo.shape.blocks.saturating_sub(bad)).saturating_sub(apart);
        if closed * fullest > per_group {
            return Ok(());
        }
        let what = format!(
            "over-provisioning may end up in pieces too small to reclaim: the {per_group} map units of a group fit \
             into {closed} reclaim units with {holes} of {} units left over in each",
            geo.units_per_ru
        );
        Err(SpecError::new("ftl.over_provisioning", what).help("raise flash.ftl.over_provisioning"))
    }
}
