//! Memory as a user writes it, and the properties of each kind for a machine. Every function here names every kind: a
//! new kind does not compile without its answers.

use config::SpecError;
use mem::dram::DramSpec;
use mem::dram_cache::{Backing, DramCacheSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssd::direct::DirectSpec;
use ssd::port::engine::EngineSpec;
use ssd::port::initiator::InitiatorSpec;

/// Memory behind the shared cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum MemorySpec {
    /// DRAM, or persistent memory, with its controllers beside the cache banks.
    Dram(DramSpec),
    /// Flash whose controllers are on the network.
    Direct(DirectSpec),
    /// An SSD engine on the network, and the flash device behind it.
    Engine(EngineSpec),
    /// A flash device to which the GPU sends block commands directly, over the network.
    Initiator(InitiatorSpec),
    /// DRAM as a cache over flash, its controllers on the mesh.
    DramCache(DramCacheSpec),
}

/// Kind of part that a memory asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asks {
    /// No part.
    Nothing,
    /// A drive, with block commands.
    Drive,
    /// A different memory.
    Memory,
}

impl MemorySpec {
    /// Key of the memory's table.
    pub fn form(&self) -> &'static str {
        match self {
            MemorySpec::Dram(_) => "dram",
            MemorySpec::Direct(_) => "direct",
            MemorySpec::Engine(_) => "engine",
            MemorySpec::Initiator(_) => "initiator",
            MemorySpec::DramCache(_) => "dram_cache",
        }
    }

    /// Checks that the memory can be built, for lines of `line` bytes.
    ///
    /// # Errors
    /// The first invalid value; its key is relative to the table of its form.
    pub fn check(&self, line: u64) -> Result<(), SpecError> {
        match self {
            MemorySpec::Dram(dram) => dram.check(line),
            MemorySpec::Direct(direct) => direct.check(),
            MemorySpec::Engine(engine) => engine.check(),
            MemorySpec::Initiator(initiator) => initiator.check(),
            MemorySpec::DramCache(cache) => cache.check(),
        }
    }

    fn asks(&self) -> Asks {
        match self {
            MemorySpec::Dram(_) | MemorySpec::Direct(_) => Asks::Nothing,
            MemorySpec::Engine(_) | MemorySpec::Initiator(_) => Asks::Drive,
            MemorySpec::DramCache(cache) => match cache.backing {
                Backing::device => Asks::Drive,
                Backing::memory => Asks::Memory,
                Backing::fixed(_) => Asks::Nothing,
            },
        }
    }

    /// Checks that the memory has the link with this key, `drive` or `memory`.
    ///
    /// # Errors
    /// The reason why it has not.
    pub(super) fn has_link(&self, key: &str) -> Result<(), &'static str> {
        let is_cache = matches!(self, MemorySpec::DramCache(_));
        match (self.asks(), key) {
            (Asks::Drive, "drive") | (Asks::Memory, "memory") => Ok(()),
            (_, "drive") if is_cache => Err("a DRAM cache uses a drive only with `backing = \"device\"`"),
            (_, _) if is_cache => Err("a DRAM cache uses a memory only with `backing = \"memory\"`"),
            (_, "drive") => Err("this kind of memory uses no drive"),
            _ => Err("this kind of memory uses no other memory"),
        }
    }

    /// Returns whether a host or an operating system can page into the memory: every address has its own place, and no
    /// part is behind it.
    pub fn is_pageable(&self) -> bool {
        match self {
            MemorySpec::Dram(_) => true,
            MemorySpec::Direct(_)
            | MemorySpec::Engine(_)
            | MemorySpec::Initiator(_)
            | MemorySpec::DramCache(_) => false,
        }
    }

    /// DRAM cache that the jobs of a server fill before the run, as a state; `None` for other memories.
    pub fn filled(&self) -> Option<&DramCacheSpec> {
        match self {
            MemorySpec::DramCache(cache) => Some(cache),
            MemorySpec::Dram(_)
            | MemorySpec::Direct(_)
            | MemorySpec::Engine(_)
            | MemorySpec::Initiator(_) => None,
        }
    }

    /// Preparation that every run repeats, whatever states are kept; `None` if the memory begins as built, or in a
    /// state.
    pub fn done_anew(&self) -> Option<&'static str> {
        match self {
            MemorySpec::Direct(_) => {
                Some("flash as memory is filled with its programs' data: each run repeats that")
            }
            MemorySpec::Dram(_)
            | MemorySpec::Engine(_)
            | MemorySpec::Initiator(_)
            | MemorySpec::DramCache(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Loaded, systems::Shipped};
    use config::Layers;

    fn load(system: &str) -> Loaded {
        let layers = Layers::load(system, &Shipped).expect("a system");
        Loaded::read(system, layers, &[], |_| Ok(())).expect("a system")
    }

    /// Shipped memories, by their kind of hardware.
    #[test]
    fn a_memory_has_the_links_that_its_hardware_has() {
        let cases = [
            ("ideal", "dram", [false, false], true),
            ("zng", "direct", [false, false], false),
            ("hybridgpu", "engine", [true, false], false),
            ("mqms", "initiator", [true, false], false),
            ("astriflash", "dram_cache", [true, false], false),
            ("zng-cached", "dram_cache", [false, true], false),
        ];
        for (system, form, links, pageable) in cases {
            let loaded = load(system);
            let memory = &loaded.spec.memory[0].spec;
            assert_eq!(memory.form(), form, "{system}");
            assert_eq!(["drive", "memory"].map(|key| memory.has_link(key).is_ok()), links, "{system}");
            assert_eq!(memory.is_pageable(), pageable, "{system}");
        }
        // Fixed times replace a drive.
        let loaded = load("astriflash");
        let MemorySpec::DramCache(mut cache) = loaded.spec.memory[0].spec.clone() else {
            unreachable!("its own")
        };
        cache.backing = Backing::fixed(Default::default());
        assert!(
            ["drive", "memory"].iter().all(|key| MemorySpec::DramCache(cache.clone()).has_link(key).is_err())
        );
    }
}
