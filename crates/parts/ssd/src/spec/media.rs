//! Spec of geometry and memory cells: page types, programming and times.

use super::{ErrorsSpec, SpecError};
use config::{
    schema::product,
    units::{Bytes, Duration, Share},
};
use engine::{Rng, Time};
use nand::dies::timing::Wear;
use nand::{
    dies::Spread,
    geometry::{Digit, Reclaim},
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::borrow::Cow;

/// Memory cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CellSpec {
    /// Bits a cell: 1 SLC, 2 MLC, 3 TLC, 4 QLC.
    #[schemars(range(min = 1, max = 4))]
    pub bits: u8,
    /// Page types: the order of types within a block.
    pub layout: PageLayout,
    /// Programming scheme.
    pub programming: Programming,
    /// Read time (tR) by page type, lowest bit first; one value for all types.
    pub read: Vec<Duration>,
    /// Program time (tPROG) by page type, lowest bit first; one value for all. With one-shot and two-pass programming, one
    /// value: a word line, or one pass over it.
    pub program: Vec<Duration>,
    /// Block erase time (tBERS).
    pub erase: Duration,
    /// Program drift: share by which programs get faster in 1,000 erases of the block.
    pub program_drift: Share,
    /// Erase drift: share by which erases get slower in 1,000 erases of the block.
    pub erase_drift: Share,
    /// Variation between blocks; if omitted, all blocks are alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<SpreadSpec>,
    /// Raw bit errors and read retry; if omitted, every read succeeds at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors: Option<ErrorsSpec>,
}

/// Variation between blocks: standard deviations of their times, relative to the mean times above. Each block draws
/// deviations from the run's seed, of bell shape and at most 3.46 times the standard deviation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpreadSpec {
    /// Deviation of read times, at most 25 %.
    pub read: Share,
    /// Deviation of program times, at most 25 %.
    pub program: Share,
    /// Deviation of erase times, at most 25 %.
    pub erase: Share,
}

impl SpreadSpec {
    pub(crate) fn build(&self, seed: u64, device: &str) -> Spread {
        let ppm = |share: Share| (share.get() * 1_000_000.0).round() as u32;
        Spread {
            seed: Rng::stream(seed, &format!("{device}/cell.spread")).next_u64(),
            read: ppm(self.read),
            program: ppm(self.program),
            erase: ppm(self.erase),
        }
    }

    fn check(&self) -> Result<(), SpecError> {
        let all = [
            ("cell.spread.read", self.read),
            ("cell.spread.program", self.program),
            ("cell.spread.erase", self.erase),
        ];
        match all.into_iter().find(|(_, share)| share.get() > 0.25) {
            Some((key, share)) => {
                let what = format!("`{key}` is {share}; at most 25 % keep every time above zero");
                Err(SpecError::new(key, what))
            }
            None => Ok(()),
        }
    }
}

config::policies! {
    /// Order of page types within a block.
    #[derive(Copy, Eq)]
    pub family PageLayout: choice {
        /// Types take turns: page `n` is of type `n mod bits`, so the pages of a word line are adjacent.
        default by_word_line,
        /// Order of early planar MLC and TLC chips: the first pages are of the fastest type.
        ///
        /// Pages 0 to 5 are LSB, 6 and 7 CSB, then pairs of each type in turn (Yaakobi et al., ICNC 2012; used by MQSim
        /// and SimpleSSD for TLC). With two bits a cell, types take turns.
        planar,
    }
}

config::policies! {
    /// Programming scheme.
    #[derive(Copy, Eq)]
    pub family Programming: choice {
        /// Page by page: the program unit is one page.
        default page,
        /// One word line at a time, as in 3D TLC: the program unit is the pages of a word line.
        one_shot,
        /// One word line in two passes that each move the data, as in 3D QLC.
        two_pass,
    }
}

impl CellSpec {
    /// Number of pages that one program operation writes.
    pub(crate) fn program_pages(&self) -> u32 {
        match self.programming {
            Programming::page => 1,
            Programming::one_shot | Programming::two_pass => u32::from(self.bits),
        }
    }

    /// Number of passes of one program operation.
    pub(crate) fn passes(&self) -> u32 {
        if self.programming == Programming::two_pass { 2 } else { 1 }
    }

    pub(crate) fn page_types(&self, pages: u32) -> Vec<u8> {
        let bits = u32::from(self.bits);
        let planar = |page: u32| match page {
            _ if bits != 3 => page % bits,
            0..=5 => 0,
            6..=7 => 1,
            _ => ((page - 8) >> 1) % 3,
        };
        let of = |page: u32| match self.layout {
            PageLayout::by_word_line => page % bits,
            PageLayout::planar => planar(page),
        };
        (0..pages).map(|page| of(page) as u8).collect()
    }

    /// Returns one value for each page type.
    pub(crate) fn by_type<T: Copy>(&self, key: &str, values: &[T]) -> Result<Vec<T>, SpecError> {
        match values {
            [one] => Ok(vec![*one; usize::from(self.bits)]),
            many if many.len() == usize::from(self.bits) => Ok(many.to_vec()),
            other => {
                let what = format!(
                    "`{key}` has {} values; a cell of {} bits needs 1 or {}",
                    other.len(),
                    self.bits,
                    self.bits
                );
                Err(SpecError::new(key, what))
            }
        }
    }

    pub(crate) fn wear(&self) -> Wear {
        // Drift per erase in parts per million, from the share per 1,000 erases.
        let ppm = |share: Share| (share.get() * 1_000.0).round() as u32;
        Wear { program: ppm(self.program_drift), erase: ppm(self.erase_drift) }
    }

    pub(crate) fn check(&self, geometry: &GeometrySpec) -> Result<(), SpecError> {
        if !(1..=4).contains(&self.bits) {
            return Err(SpecError::new(
                "cell.bits",
                format!("{} bits a cell; allowed are 1 to 4", self.bits),
            ));
        }
        if !geometry.pages.is_multiple_of(self.program_pages()) {
            let what = format!(
                "{} pages a block are not a multiple of the word line size, {} pages",
                geometry.pages,
                self.program_pages()
            );
            return Err(SpecError::new("geometry.pages", what));
        }
        if self.programming != Programming::page && self.program.len() != 1 {
            let what = format!(
                "`cell.program` has {} values; a word line that is programmed as one needs 1",
                self.program.len()
            );
            return Err(SpecError::new("cell.program", what));
        }
        self.spread.as_ref().map_or(Ok(()), SpreadSpec::check)?;
        self.errors.as_ref().map_or(Ok(()), ErrorsSpec::check)?;
        let zero = [("cell.read", &self.read), ("cell.program", &self.program)];
        for (key, times) in zero {
            if times.iter().any(|t| t.time() == Time::ZERO) {
                return Err(SpecError::new(key, format!("`{key}` is zero; it must be above zero")));
            }
        }
        Ok(())
    }
}

// Spec of the geometry.

/// Geometry of the device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-products" = [
    product(1 << 16, "dies", &["channels", "ways", "dies"]),
    product(1 << 28, "blocks", &["channels", "ways", "dies", "planes", "blocks"]),
]))]
pub struct GeometrySpec {
    /// Number of channels.
    #[schemars(range(min = 1, max = 65_536))]
    pub channels: u32,
    /// Ways (packages, chip enables) per channel.
    #[schemars(range(min = 1, max = 65_536))]
    pub ways: u32,
    /// Dies (LUNs) per way.
    #[schemars(range(min = 1, max = 65_536))]
    pub dies: u32,
    /// Planes per die.
    #[schemars(range(min = 1, max = 16))]
    pub planes: u32,
    /// Blocks per plane.
    #[schemars(range(min = 1))]
    pub blocks: u32,
    /// Pages per block.
    #[schemars(range(min = 1))]
    pub pages: u32,
    /// Page size: data bytes, without the out-of-band area.
    #[schemars(extend("x-minimum" = "512B", "x-maximum" = "1MiB"))]
    pub page_size: Bytes,
}

impl GeometrySpec {
    pub(crate) fn check(&self) -> Result<(), SpecError> {
        SpecError::positive("geometry.channels", self.channels.into())?;
        SpecError::positive("geometry.ways", self.ways.into())?;
        SpecError::positive("geometry.dies", self.dies.into())?;
        SpecError::positive("geometry.planes", self.planes.into())?;
        SpecError::positive("geometry.blocks", self.blocks.into())?;
        SpecError::positive("geometry.pages", self.pages.into())?;
        let page = self.page_size.get();
        if page < 512 || !page.is_multiple_of(512) || page > 1 << 20 {
            let what = format!("a page of {} is not a multiple of 512 B up to 1 MiB", self.page_size);
            return Err(SpecError::new("geometry.page_size", what));
        }
        if self.planes > 16 {
            return Err(SpecError::new(
                "geometry.planes",
                format!("{} planes a die; allowed are at most 16", self.planes),
            ));
        }
        let planes = [self.channels, self.ways, self.dies, self.planes]
            .iter()
            .try_fold(1u32, |n, x| n.checked_mul(*x));
        let slots =
            planes.and_then(|p| u64::from(p).checked_mul(u64::from(self.blocks) * u64::from(self.pages)));
        if slots.and_then(|s| s.checked_mul(page)).is_none_or(|bytes| bytes > 1 << 60) {
            return Err(SpecError::new("geometry", "the device is larger than the limit of 1 EiB"));
        }
        Ok(())
    }
}

config::policies! {
    /// Unit that garbage collection frees as a whole.
    #[derive(Copy, Eq)]
    pub family ReclaimUnit: choice {
        /// One block of one plane.
        default block,
        /// Blocks of equal number in all planes of a die; program units of its planes are adjacent.
        plane_set,
        /// Blocks of equal number in all planes of the device.
        superblock,
    }
}

impl From<ReclaimUnit> for Reclaim {
    fn from(unit: ReclaimUnit) -> Reclaim {
        match unit {
            ReclaimUnit::block => Reclaim::Block,
            ReclaimUnit::plane_set => Reclaim::PlaneSet,
            ReclaimUnit::superblock => Reclaim::Superblock,
        }
    }
}

/// Order of channel, way, die and plane, fastest first, one of 24: `"CWDP"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StripeOrder(pub [Digit; 4]);

impl StripeOrder {
    /// Parses four different letters of `C`, `W`, `D`, `P`.
    pub fn parse(text: &str) -> Option<StripeOrder> {
        let digits: Option<Vec<Digit>> = text.chars().map(Digit::of_letter).collect();
        let order: [Digit; 4] = digits?.try_into().ok()?;
        let all_differ = (0..4).all(|i| (0..i).all(|j| order[i] != order[j]));
        all_differ.then_some(StripeOrder(order))
    }
}

impl Serialize for StripeOrder {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0.iter().map(|d| d.letter()).collect::<String>())
    }
}

impl<'de> Deserialize<'de> for StripeOrder {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<StripeOrder, D::Error> {
        let text = String::deserialize(deserializer)?;
        StripeOrder::parse(&text).ok_or_else(|| {
            D::Error::custom(format!("`{text}` is not an order of C, W, D and P, such as \"CWDP\""))
        })
    }
}

impl JsonSchema for StripeOrder {
    fn schema_name() -> Cow<'static, str> {
        "StripeOrder".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "pattern": "^[CWDP]{4}$",
            "description": "Order of channel, way, die and plane, fastest first: \"CWDP\"."
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{StripeOrder, *};

    #[test]
    fn planar_tlc_is_the_published_order() {
        let us = |n| Duration::new(Time::from_us(n));
        let cell = CellSpec {
            bits: 3,
            layout: PageLayout::planar,
            programming: Programming::page,
            read: vec![us(1)],
            program: vec![us(1)],
            erase: us(1),
            program_drift: Share::percent(0),
            erase_drift: Share::percent(0),
            spread: None,
            errors: None,
        };
        // Order of Yaakobi et al., ICNC 2012, figure 1, as in MQSim's Flash_Chip.h.
        assert_eq!(cell.page_types(16), [0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 0, 0]);
    }

    #[test]
    fn there_are_24_orders() {
        let letters = ["C", "W", "D", "P"];
        let words =
            (0..256).map(|n| [n & 3, n >> 2 & 3, n >> 4 & 3, n >> 6].map(|d: usize| letters[d]).concat());
        assert_eq!(words.filter(|w| StripeOrder::parse(w).is_some()).count(), 24);
    }
}
