//! Links as a user writes them.

use super::SpecError;
use config::units::{Bandwidth, Bytes, Duration, Share};
use net::pcie::lane_bytes_per_s;
use net::{pcie, sata};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A link that sends both ways at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LinkSpec {
    /// PCI Express.
    Pcie(PcieSpec),
    /// A link of which only the payload rate is known.
    Plain(PlainSpec),
}

/// The link between a host and its drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum HostLinkSpec {
    /// PCI Express.
    Pcie(PcieSpec),
    /// A link of which only the payload rate is known.
    Plain(PlainSpec),
    /// Serial ATA: one way at a time, for `ahci`.
    Sata(SataSpec),
}

/// PCI Express.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PcieSpec {
    /// Generation, 1 to 6.
    #[schemars(range(min = 1, max = 6))]
    pub generation: u32,
    /// Lanes.
    #[schemars(extend("enum" = [1, 2, 4, 8, 16]))]
    pub lanes: u32,
    /// Largest packet payload.
    #[schemars(extend("x-minimum" = "1B"))]
    pub max_payload: Bytes,
    /// One-way latency.
    pub latency: Duration,
    /// Share of the rate, each way, that acknowledgements and updates of flow control take; left out, none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-maximum" = "50%"))]
    pub flow_control: Option<Share>,
}

/// A link of which only the payload rate is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlainSpec {
    /// Payload bytes a second, each way.
    pub bandwidth: Bandwidth,
    /// One-way latency.
    pub latency: Duration,
}

/// Serial ATA.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SataSpec {
    /// Generation, 1 to 3: 1.5, 3 and 6 Gb/s.
    #[schemars(range(min = 1, max = 3))]
    pub generation: u32,
    /// One-way latency, from the sender's link layer to the receiver's; each frame takes it four times, for its handshakes.
    pub latency: Duration,
}

/// A link of [`HostLinkSpec`], built.
pub(super) enum HostLink {
    Both(pcie::Link),
    Sata(sata::Link),
}

impl LinkSpec {
    /// The link; `table` is where it stands.
    ///
    /// # Errors
    /// A generation, lanes or packets that there are not.
    pub fn build(&self, table: &str) -> Result<pcie::Link, SpecError> {
        match self {
            LinkSpec::Pcie(spec) => spec.build(&format!("{table}.link.pcie")),
            LinkSpec::Plain(spec) => Ok(spec.build()),
        }
    }
}

impl HostLinkSpec {
    /// The link; `table` is where it stands.
    pub(super) fn build(&self, table: &str) -> Result<HostLink, SpecError> {
        Ok(match self {
            HostLinkSpec::Pcie(spec) => HostLink::Both(spec.build(&format!("{table}.link.pcie"))?),
            HostLinkSpec::Plain(spec) => HostLink::Both(spec.build()),
            HostLinkSpec::Sata(spec) => HostLink::Sata(spec.build(&format!("{table}.link.sata"))?),
        })
    }
}

impl PcieSpec {
    fn build(&self, table: &str) -> Result<pcie::Link, SpecError> {
        let key = |name: &str| format!("{table}.{name}");
        let PcieSpec { generation, lanes, max_payload, latency, flow_control } = self;
        let lane = lane_bytes_per_s(*generation).ok_or_else(|| {
            let what = format!("PCIe generation {generation}; allowed are 1 to 6");
            SpecError::new(&key("generation"), what)
        })?;
        if ![1, 2, 4, 8, 16].contains(lanes) {
            let what = format!("{lanes} lanes; allowed are 1, 2, 4, 8, 16");
            return Err(SpecError::new(&key("lanes"), what));
        }
        SpecError::positive(&key("max_payload"), max_payload.get())?;
        let link = pcie::Link::new(lane * u64::from(*lanes), max_payload.get(), latency.time());
        Ok(match flow_control {
            Some(share) if *share > Share::percent(50) => {
                let what = format!("{share} of the rate for flow control; allowed are 0 % to 50 %");
                return Err(SpecError::new(&key("flow_control"), what));
            }
            Some(share) => link.with_flow_control(*share),
            None => link,
        })
    }
}

impl PlainSpec {
    fn build(&self) -> pcie::Link {
        pcie::Link::new(self.bandwidth.bytes_per_s(), 0, self.latency.time())
    }
}

impl SataSpec {
    fn build(&self, table: &str) -> Result<sata::Link, SpecError> {
        let rate = sata::bytes_per_s(self.generation).ok_or_else(|| {
            let what = format!("SATA generation {}; allowed are 1 to 3", self.generation);
            SpecError::new(&format!("{table}.generation"), what)
        })?;
        Ok(sata::Link::new(rate, self.latency.time()))
    }
}
