//! The SSD engine of HybridGPU, whose share of a load's life section III-A gives.

use super::super::mean::Metric;
use config::Diagnostic;
use machine::result::Document;
use proto::memory::Stage;
use serde::Deserialize;

/// Parts of the drive that count as its engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Engine {
    /// The dispatcher and the FTL.
    #[default]
    Processor,
    /// The same and the DRAM of the buffer.
    WithBuffer,
}

impl Engine {
    /// The other way to count.
    pub(super) fn other(self) -> Engine {
        match self {
            Engine::Processor => Engine::WithBuffer,
            Engine::WithBuffer => Engine::Processor,
        }
    }

    /// Name of the way to count, as readings have it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Engine::Processor => "processor",
            Engine::WithBuffer => "with_buffer",
        }
    }

    /// The share of a load's life below the first-level cache that it spends in the engine, per cent.
    pub(super) fn share(self) -> Metric {
        match self {
            Engine::Processor => |document| share(document, &[Stage::Controller, Stage::Ftl]),
            Engine::WithBuffer => |document| share(document, &[Stage::Controller, Stage::Ftl, Stage::Buffer]),
        }
    }
}

fn share(document: &Document, inside: &[Stage]) -> Result<f64, Diagnostic> {
    const ABOVE: [Stage; 5] = [Stage::L1, Stage::L1Merge, Stage::Tlb, Stage::Walk, Stage::Fault];
    let named =
        |stages: &[Stage], name: &str| stages.iter().any(|stage| Stage::NAMES[*stage as usize] == name);
    let parts = document.breakdown_ns.get("load").ok_or_else(|| Diagnostic::new("no load was measured"))?;
    let sum = |wanted: &dyn Fn(&str) -> bool| -> f64 {
        parts.iter().filter(|(name, _)| wanted(name)).filter_map(|(_, ns)| ns.as_f64()).sum()
    };
    let below = sum(&|name| !named(&ABOVE, name));
    Ok(100.0 * sum(&|name| named(inside, name)) / below)
}
