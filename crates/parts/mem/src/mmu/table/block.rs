//! Single table in a buffer of the unit: ZnG's read-only block mapping table.

use super::{Step, Table};
use config::SpecError;
use config::units::Bytes;
use proto::memory::PAGE;

/// Parameters of `block`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Reach of an entry: the data blocks that it groups. A multiple of 4 KiB, not necessarily a power of two.
    #[schemars(extend("x-minimum" = "4KiB", "x-maximum" = "1TiB", "x-multiple-of" = "4KiB"))]
    pub reach: Bytes,
    /// Cycles of a look-up in the buffer.
    #[schemars(range(max = 1_000_000), extend("x-unit" = "cycles"))]
    pub latency: u32,
    /// Width of one field of an entry in bits: enough to number every flash block.
    #[schemars(range(min = 1, max = 64))]
    pub field_bits: u32,
}

impl Default for Params {
    /// Returns 128 blocks of 384 pages of 4 KiB, and fields for 1,024 blocks in each of 1,024 planes, as in ZnG's Table
    /// I; the latency is chosen.
    fn default() -> Params {
        Params { reach: Bytes::from_kib(192 << 10), latency: 4, field_bits: 20 }
    }
}

impl Params {
    pub(super) fn check(&self) -> Result<(), SpecError> {
        let reach = self.reach.get();
        if reach == 0 || !reach.is_multiple_of(PAGE) {
            let what = format!("a reach of {} is not a multiple of the page size", self.reach);
            return Err(SpecError::new("table.block.reach", what).help("choose a multiple of 4KiB"));
        }
        SpecError::positive("table.block.field_bits", self.field_bits.into())
    }
}

/// Fields of an entry: virtual, logical, physical log and physical data block number (ZnG, section IV-A).
pub const FIELDS: u64 = 4;

/// Size of a block mapping table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    /// Number of entries.
    pub entries: u64,
    /// Width of one field in bits: enough to number every block.
    pub field_bits: u32,
    /// Size of all entries in bytes, without gaps.
    pub bytes: u64,
}

impl Size {
    /// Size for `planes` with `blocks` of `pages` of 4 KiB each, with an entry for every `reach` bytes of data blocks.
    ///
    /// Returns `None` if the reach is not a whole number of blocks, or if there is nothing to map.
    pub fn of(planes: u64, blocks: u64, pages: u64, reach: u64) -> Option<Size> {
        let (blocks, block) = (planes * blocks, pages * PAGE);
        if blocks == 0 || block == 0 || reach == 0 || !reach.is_multiple_of(block) {
            return None;
        }
        let entries = blocks.div_ceil(reach / block);
        let field_bits = (blocks - 1).max(1).ilog2() + 1;
        Some(Size { entries, field_bits, bytes: bytes(entries, field_bits) })
    }
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Size { entries, field_bits, bytes } = self;
        write!(f, "{entries} entries x {FIELDS} fields x {field_bits} bits = {bytes} B")
    }
}

fn bytes(entries: u64, field_bits: u32) -> u64 {
    (entries * FIELDS * u64::from(field_bits)).div_ceil(8)
}

/// Block mapping table with an entry for a group of blocks, held in the unit itself.
///
/// Source: Zhang and Jung, "ZnG: Architecting GPU Multi-Processors with New Flash for Scalable Data Analysis", ISCA 2020,
/// sections III-B and VI.
pub struct Block {
    params: Params,
    entries: u64,
}

impl Block {
    /// Creates a table without entries.
    pub fn new(params: &Params) -> Block {
        Block { params: params.clone(), entries: 0 }
    }
}

impl Table for Block {
    fn reach(&self) -> u64 {
        self.params.reach.get()
    }

    fn span(&self) -> u64 {
        u64::MAX
    }

    fn lay_out(&mut self, pages: &[u64], base: u64) -> u64 {
        self.entries = pages.iter().sum();
        base
    }

    fn bytes(&self) -> u64 {
        bytes(self.entries, self.params.field_bits)
    }

    fn step(&mut self, _app: u8, _page: u64, level: &mut u8) -> Step {
        *level = 1;
        Step { cycles: self.params.latency, cached: 0, read: None }
    }
}
