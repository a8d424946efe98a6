//! Geometry as a user writes it.

use super::SpecError;
use config::schema::product;
use config::units::Bytes;
use nand::geometry::{Digit, Reclaim};
use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

/// How many of everything.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-products" = [
    product(1 << 16, "dies", &["channels", "ways", "dies"]),
    product(1 << 28, "blocks", &["channels", "ways", "dies", "planes", "blocks"]),
]))]
pub struct GeometrySpec {
    /// Channels.
    #[schemars(range(min = 1, max = 65_536))]
    pub channels: u32,
    /// Ways (packages, chip enables) a channel.
    #[schemars(range(min = 1, max = 65_536))]
    pub ways: u32,
    /// Dies (LUNs) a way.
    #[schemars(range(min = 1, max = 65_536))]
    pub dies: u32,
    /// Planes a die.
    #[schemars(range(min = 1, max = 16))]
    pub planes: u32,
    /// Blocks a plane.
    #[schemars(range(min = 1))]
    pub blocks: u32,
    /// Pages a block.
    #[schemars(range(min = 1))]
    pub pages: u32,
    /// Data bytes a page, spare area not counted.
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
                format!("{} planes a die; at most 16 are modelled", self.planes),
            ));
        }
        let planes = [self.channels, self.ways, self.dies, self.planes]
            .iter()
            .try_fold(1u32, |n, x| n.checked_mul(*x));
        let slots =
            planes.and_then(|p| u64::from(p).checked_mul(u64::from(self.blocks) * u64::from(self.pages)));
        if slots.and_then(|s| s.checked_mul(page)).is_none_or(|bytes| bytes > 1 << 60) {
            return Err(SpecError::new("geometry", "the device is larger than 1 EiB"));
        }
        Ok(())
    }
}

config::policies! {
    /// What garbage collection frees as one.
    #[derive(Copy, Eq)]
    pub family ReclaimUnit: choice {
        /// One block of one plane.
        default block,
        /// The blocks of equal number in all planes of a die; program units of its planes lie side by side.
        plane_set,
        /// The blocks of equal number in all planes of the device.
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

/// One of the 24 orders of channel, way, die and plane, fastest first: `"CWDP"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StripeOrder(pub [Digit; 4]);

impl StripeOrder {
    /// Reads four different letters of `C`, `W`, `D`, `P`.
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
            D::Error::custom(format!("`{text}` is no order of the four letters C (channel), W (way), D (die), P (plane), such as \"CWDP\""))
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
            "description": "An order of channel, way, die and plane, fastest first: \"CWDP\"."
        })
    }
}

#[cfg(test)]
mod tests {
    use super::StripeOrder;

    #[test]
    fn there_are_24_orders() {
        let letters = ["C", "W", "D", "P"];
        let words =
            (0..256).map(|n| [n & 3, n >> 2 & 3, n >> 4 & 3, n >> 6].map(|d: usize| letters[d]).concat());
        assert_eq!(words.filter(|w| StripeOrder::parse(w).is_some()).count(), 24);
    }
}
