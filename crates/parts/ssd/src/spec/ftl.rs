//! The translation layer as a user writes it.

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

/// The translation layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FtlSpec {
    /// What the logical-to-physical map names: 512 B to 64 KiB, a divisor or a multiple of the page.
    #[schemars(extend("x-minimum" = "512B", "x-maximum" = "64KiB", "x-power-of-two" = true))]
    pub map_unit: Bytes,
    /// Where the map lies.
    pub mapping: Mapping,
    /// The controller's memory for the map; left out, a look-up in it takes no time and its size is not reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map_memory: Option<MapMemorySpec>,
    /// What garbage collection frees as one.
    pub reclaim_unit: ReclaimUnit,
    /// Order in which consecutive program units go over channel, way, die and plane, fastest first.
    pub stripe: StripeOrder,
    /// Where host data goes.
    pub allocation: Allocation,
    /// Which page of its open blocks a group programs next for the host; left out, `in_order`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<PageOrder>,
    /// A cache of one bit a cell for what the host writes; left out, there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slc_cache: Option<SlcSpec>,
    /// Superblock parity (RAIN): program units that one of parity protects, each on another die; left out, there is none. Dies form sets
    /// of one more, neighbours on different channels first, and each row of blocks of equal number in a set has one program unit
    /// of parity, in turn on each die. It is programmed with data of every kind, and a page that read retry cannot correct
    /// (`cell.errors`) is recovered by reading its row on the other dies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 255))]
    pub parity: Option<u32>,
    /// Share of the raw capacity that the host does not see; where there is parity, it comes out of it.
    pub over_provisioning: Share,
    /// Host data streams that are kept apart, also when they are moved if `gc.streams` says so: a stream for each flow of
    /// the workload, the last for all that are left.
    #[schemars(range(min = 1))]
    pub placements: u8,
    /// What it costs to read a map unit that was never written.
    pub unwritten_read: UnwrittenRead,
    /// Garbage collection.
    pub gc: GcSpec,
    /// Wear levelling.
    pub wear: WearSpec,
}

/// The controller's memory for the map. The entries of a command's map units lie side by side and are looked up when the
/// controller takes the command, one command after another. Flushes out of a buffer and garbage collection look theirs up
/// beside that, in no time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MapMemorySpec {
    /// Bytes an entry takes: enough to name every map unit of the array.
    #[schemars(extend("x-minimum" = "1B", "x-maximum" = "64B"))]
    pub entry: Bytes,
    /// Time of a look-up before the first entry.
    pub latency: Duration,
    /// Bytes a second at which entries follow.
    pub bandwidth: Bandwidth,
}

/// Where the map lies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Mapping {
    /// In the controller's memory as a whole.
    Table,
    /// On flash, in translation pages of one map unit each; the controller's memory holds a part of it. Pages that
    /// collection has changed may wait in memory beside that part, and take half of what it gains at most.
    Demand {
        /// Memory for the part that is held.
        capacity: Bytes,
        /// What is held: single entries or whole translation pages.
        granularity: MapGranularity,
        /// Bytes an entry takes in memory; whole pages take their size.
        #[schemars(extend("x-minimum" = "1B"))]
        cached_entry: Bytes,
        /// Bytes an entry takes on flash.
        #[schemars(extend("x-minimum" = "1B"))]
        stored_entry: Bytes,
        /// Bytes that a look-up moves over the channel.
        #[schemars(extend("x-minimum" = "1B"))]
        read: Bytes,
    },
}

config::policies! {
    /// What a place of the map cache holds.
    #[derive(Copy, Eq)]
    pub family MapGranularity: choice {
        /// One entry, as in DFTL and MQSim: neighbours of an entry that is read do not come along.
        default entry,
        /// A whole translation page.
        page,
    }
}

config::policies! {
    /// What it costs to read a map unit that was never written. It is counted, and the answer is zeroes, either way; a
    /// deallocated unit costs nothing.
    #[derive(Copy, Eq)]
    pub family UnwrittenRead: choice {
        /// Nothing: the map says that there is no data.
        default zero,
        /// A read of the page where writing the device in order would have put it.
        ///
        /// As if the device had been written before the run, without writing it.
        as_written,
        /// A read of a page that the first read gives it, and merges later on.
        ///
        /// What MQSim does: the unit then counts as written in the sectors of its first read, so that writing others
        /// from the buffer merges them with nothing. Pages are given in order in each group. No space is taken.
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
    /// Which closed reclaim unit is taken next.
    pub victim: VictimPolicy,
    /// Reclaiming starts in a group when this many reclaim units are free, or fewer.
    pub start: u32,
    /// Reclaiming goes on until this many are free.
    pub stop: u32,
    /// Host writes wait while this many are free, or fewer.
    pub hard: u32,
    /// How reclaiming shares the device with the host.
    pub mode: GcModeSpec,
    /// Where moved data goes.
    pub scope: GcScope,
    /// Program units that a group holds in flight while reclaiming.
    #[schemars(range(min = 1))]
    pub window: u32,
    /// Whether whole pages are copied inside their plane, without the channel.
    pub copy_back: bool,
    /// Whether data of different placements stays apart when it is moved; left out, it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<GcStreams>,
}

/// Wear levelling.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WearSpec {
    /// Dynamic: the least erased free unit is opened next; without, the one freed first.
    pub dynamic: bool,
    /// Static: once a free unit has been erased this many times more than the least worn closed one of its group, the data
    /// of that one moves into it and rests there. Erase counts of a group then lie no more than this and two apart, at a
    /// cost of one more erase in about as many, in `wear_programs`; left out, never.
    #[schemars(range(min = 1))]
    pub static_gap: Option<u32>,
}

config::policies! {
    /// How garbage collection shares the device with the host.
    #[derive(Copy, Eq)]
    pub family GcModeSpec: choice {
        /// Its operations wait in the dies' queues beside the host's; the die scheduler decides at every operation.
        default preemptible,
        /// Host data does not go to a group that is being reclaimed.
        foreground,
        /// A group is reclaimed while its die has nothing else to do, until it comes down to the hard limit.
        background,
    }
}

config::policies! {
    /// Where data goes that garbage collection moves.
    #[derive(Copy, Eq)]
    pub family GcScope: choice {
        /// It stays in its group.
        default local,
        /// To any group that has space, in turn.
        global,
    }
}

config::policies! {
    /// Whether data of different placements (`placements`) stays apart when it is moved.
    #[derive(Copy, Eq)]
    pub family GcStreams: choice {
        /// Each placement has a frontier of its own for what garbage collection moves, and no reclaim unit holds data of two.
        ///
        /// Reclaim unit handles of the type "persistently isolated" (NVMe 2.1, flexible data placement). A group has one
        /// more frontier open for each placement but the first. Translation pages are moved with the first placement's
        /// data. The victim policy divides the spare space: `greedy` in proportion to the data, so that skewed writes cost
        /// as much as uniform ones (`theory::wa::hot_cold_streams`); `cost_benefit` leaves hot data more; `marginal_gain`
        /// divides it so that the write amplification is least.
        default isolated,
        /// One frontier for all that garbage collection moves.
        ///
        /// Reclaim unit handles of the type "initially isolated" (NVMe 2.1): data is apart until it is moved.
        mixed,
    }
}

impl WearSpec {
    pub(crate) fn rule(&self) -> WearRule {
        WearRule { least_worn: self.dynamic, gap: self.static_gap }
    }
}

impl FtlSpec {
    /// Garbage collection in time.
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
                format!("a map unit of {} is not a power of two between 512 B and 64 KiB", self.map_unit);
            return Err(SpecError::new("ftl.map_unit", what).help("4KiB is usual"));
        }
        let fits = page_bytes.is_multiple_of(unit) || unit.is_multiple_of(page_bytes);
        if !fits || !block_bytes.is_multiple_of(unit) {
            let what = format!(
                "a map unit of {} neither divides a page of {page_bytes} B nor is a multiple of it that divides a block",
                self.map_unit
            );
            let help =
                "give a power of two as flash.geometry.page_size, and a flash.ftl.map_unit that fits it";
            return Err(SpecError::new("ftl.map_unit", what).help(help));
        }
        SpecError::positive("ftl.placements", self.placements.into())?;
        SpecError::positive("ftl.gc.window", self.gc.window.into())?;
        let GcSpec { start, stop, hard, .. } = self.gc;
        if hard == 0 {
            return Err(SpecError::new(
                "ftl.gc.hard",
                "a hard limit of 0 leaves garbage collection no unit to move into",
            )
            .help("1 is the least"));
        }
        if !(hard <= start && start < stop) {
            let what = format!("the thresholds cross: hard {hard} <= start {start} < stop {stop} must hold");
            let help =
                "keep flash.ftl.gc.hard at flash.ftl.gc.start or below, and flash.ftl.gc.stop above it";
            return Err(SpecError::new("ftl.gc.start", what).help(help));
        }
        Ok(())
    }

    /// The demand-cached map, if there is one, and its translation pages.
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
            let what = format!("a look-up of {read} from a translation page of {unit} B");
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

    /// The memory for the map of `logical` units, if it takes time.
    pub(crate) fn map_memory(&self, geo: &Geometry, logical: u64) -> Result<Option<MapMemory>, SpecError> {
        let Some(memory) = &self.map_memory else { return Ok(None) };
        let entry = memory.entry.get();
        // One value more says that a unit holds nothing.
        let needed = u64::from((u64::BITS - geo.slots.leading_zeros()).div_ceil(8));
        if !(needed..=64).contains(&entry) {
            let what = format!(
                "an entry of {} for {} map units; {needed} B to 64 B are possible",
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

    /// Logical map units, after checking that reclaiming can always free something although some group lacks `bad`
    /// reclaim units.
    pub(crate) fn logical(&self, geo: &Geometry, bad: u32) -> Result<u64, SpecError> {
        let raw = geo.raw_units();
        let logical = raw - self.over_provisioning.of(raw);
        if logical == 0 {
            let what = format!("over-provisioning of {} leaves nothing for the host", self.over_provisioning);
            return Err(SpecError::new("ftl.over_provisioning", what).help("7% to 28% is usual"));
        }
        let hidden = self.translation(logical)?.map_or(0, |(_, pages)| pages);
        let per_group = (logical + hidden).div_ceil(u64::from(geo.groups));
        let needed = per_group.div_ceil(u64::from(geo.units_per_ru));
        // Free units that reclaiming keeps, and frontiers.
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
                "no spare space: a group has {blocks} reclaim units{lost}; {needed} hold the logical space, {} are kept free and {frontiers} are frontiers{}, {} too many",
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

    /// Whether garbage collection keeps placements apart.
    pub(crate) fn isolates(&self) -> bool {
        self.gc.streams.unwrap_or_default() == GcStreams::isolated
    }

    /// Frontiers of data that garbage collection moves.
    fn movers(&self) -> u64 {
        if self.isolates() { self.placements.into() } else { 1 }
    }

    /// Reclaim units that the host may have open in a group.
    fn of_host(&self) -> u64 {
        self.page_choice().map_or(self.placements.into(), |choice| choice.open().into())
    }

    /// What chooses pages, if they are not programmed in order.
    pub(crate) fn page_choice(&self) -> Option<Box<dyn PageChoice>> {
        let choice = self.pages.as_ref()?.build(&());
        (!choice.is_off()).then_some(choice)
    }

    /// Whether pages can be chosen.
    pub(crate) fn check_pages(&self, cell: &CellSpec) -> Result<(), SpecError> {
        let (Some(_), Some(order)) = (self.page_choice(), &self.pages) else { return Ok(()) };
        let name = order.name();
        if cell.programming != Programming::page || cell.bits == 1 {
            let what = format!(
                "`{name}` chooses among pages of different types, but the cells have one, or word lines are programmed as one"
            );
            return Err(SpecError::new("ftl.pages", what)
                .help("choose flash.cell.programming = \"page\" and two bits or more"));
        }
        if self.placements > 1 {
            let what = format!("`{name}` keeps no placements apart, but there are {}", self.placements);
            return Err(SpecError::new("ftl.placements", what));
        }
        if self.wear.static_gap.is_some() {
            let what = format!("units that `{name}` leaves open could lag behind in wear for ever");
            return Err(SpecError::new("ftl.wear.static_gap", what).help("leave it out"));
        }
        Ok(())
    }

    /// Frontiers of a group: one each for the host's streams and for translation pages if there are any; for moved data,
    /// and for data moved to level wear if it is, one, or one for each placement.
    fn frontiers(&self, maps: bool) -> u64 {
        let moved = 1 + u64::from(self.wear.static_gap.is_some());
        self.of_host() + u64::from(maps) + moved * self.movers()
    }

    /// The sum, where it is more than the host's streams and one for moved data.
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

    /// Reclaim units that each group cannot do without.
    pub(crate) fn least_units(&self, geo: &Geometry) -> u32 {
        // The more are bad, the less there is room.
        let lost: Vec<u32> = (0..=geo.shape.blocks).collect();
        let most = lost.partition_point(|bad| self.logical(geo, *bad).is_ok()) as u32;
        geo.shape.blocks + 1 - most.max(1)
    }

    /// While host data waits for space, some reclaim unit must give back at least one program unit. Those that give
    /// nothing back may each have invalid units, but fewer than a program unit.
    fn check_progress(&self, geo: &Geometry, bad: u32, per_group: u64, maps: bool) -> Result<(), SpecError> {
        let holes = u64::from(geo.units_per_program + buckets_width(geo.units_per_ru)) - 2;
        let fullest = u64::from(geo.units_per_ru).saturating_sub(holes).max(1);
        // The frontier of the data that waits is used up; the others may be empty.
        let apart = u64::from(self.gc.hard) + self.frontiers(maps) - 1;
        let closed = u64::from(geo.shape.blocks.saturating_sub(bad)).saturating_sub(apart);
        if closed * fullest > per_group {
            return Ok(());
        }
        let what = format!(
            "spare space may end up in pieces too small to reclaim: the {per_group} map units of a group fit into {closed} reclaim units with {holes} of {} units left over in each",
            geo.units_per_ru
        );
        Err(SpecError::new("ftl.over_provisioning", what).help("raise flash.ftl.over_provisioning"))
    }
}
