//! What the parts of a machine spend: all that have a meter, in one order.

use crate::parts::Parts;
use engine::Time;
use stats::EnergyReport;

/// A part that spends energy.
pub(crate) struct Spender {
    /// What the user calls it; a link of a part has the part's name before its own.
    pub(crate) name: String,
    /// What it has spent since the measured window began; nothing if its spec does not tell what things cost.
    pub(crate) energy: Option<EnergyReport>,
}

impl Parts {
    /// All of them: processors, memories, what brings pages, hosts, accelerators with their links and flash, coprocessors, drives.
    pub(crate) fn spenders(&self, now: Time) -> Vec<Spender> {
        let mut all = Vec::new();
        let mut add = |name: String, energy| all.push(Spender { name, energy });
        for complex in &self.complexes {
            add(complex.name.clone(), complex.processor.energy(now));
        }
        for at in &self.memories {
            if let Some(energy) = at.memory.energy(now) {
                add(at.name.clone(), energy);
            }
        }
        for at in &self.pagers {
            if let Some(energy) = at.pager.energy(now) {
                add(format!("{}.link", at.name), energy);
            }
        }
        for at in &self.hosts {
            add(at.name.clone(), at.host.cores().energy(now));
        }
        for at in &self.governed {
            add(at.name.clone(), at.accelerator.energy(now));
            add(format!("{}.offload", at.name), at.offload.link.energy(now));
            add(at.storage.clone(), at.flash.energy(now));
        }
        for at in &self.driven {
            add(at.name.clone(), at.coprocessor.energy(now));
        }
        for at in &self.drives {
            add(at.name.clone(), at.device.energy(now));
        }
        all
    }
}
