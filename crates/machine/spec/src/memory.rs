//! Memory as a user writes it, and what each kind of it means for a machine. Every kind is named in every question: a further one does
//! not compile without its answers.

use config::SpecError;
use mem::dram::DramSpec;
use mem::dram_cache::{Backing, DramCacheSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssd::direct::DirectSpec;
use ssd::port::engine::EngineSpec;
use ssd::port::initiator::InitiatorSpec;

/// What stands behind the shared cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum MemorySpec {
    /// DRAM, or persistent memory, its controllers beside the cache banks.
    Dram(DramSpec),
    /// Flash whose controllers are on the network.
    Direct(DirectSpec),
    /// An SSD engine on the network, and the flash device behind it.
    Engine(EngineSpec),
    /// A flash device to which the GPU sends block commands by itself, over the network.
    Initiator(InitiatorSpec),
    /// DRAM as a cache over flash, its controllers on the mesh.
    DramCache(DramCacheSpec),
}

/// What a memory asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asks {
    /// No other part.
    Nothing,
    /// A drive, by block commands.
    Drive,
    /// Another memory.
    Memory,
}

impl MemorySpec {
    /// The key of its table.
    pub fn form(&self) -> &'static str {
        match self {
            MemorySpec::Dram(_) => "dram",
            MemorySpec::Direct(_) => "direct",
            MemorySpec::Engine(_) => "engine",
            MemorySpec::Initiator(_) => "initiator",
            MemorySpec::DramCache(_) => "dram_cache",
        }
    }

    /// Whether it can be built, for lines of so many bytes.
    ///
    /// # Errors
    /// The first value that cannot be; its key is relative to the table of its form.
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

    /// Whether it has the link of this key, `drive` or `memory`.
    ///
    /// # Errors
    /// Why it has not.
    pub(super) fn has_link(&self, key: &str) -> Result<(), &'static str> {
        let is_cache = matches!(self, MemorySpec::DramCache(_));
        match (self.asks(), key) {
            (Asks::Drive, "drive") | (Asks::Memory, "memory") => Ok(()),
            (_, "drive") if is_cache => Err("a DRAM cache asks a drive with `backing = \"device\"` only"),
            (_, _) if is_cache => Err("a DRAM cache asks a memory with `backing = \"memory\"` only"),
            (_, "drive") => Err("this kind of memory asks no drive"),
            _ => Err("this kind of memory asks no other"),
        }
    }

    /// Whether a host or an operating system can page into it: every address has a place of its own, and nothing is behind it.
    pub fn is_pageable(&self) -> bool {
        match self {
            MemorySpec::Dram(_) => true,
            MemorySpec::Direct(_)
            | MemorySpec::Engine(_)
            | MemorySpec::Initiator(_)
            | MemorySpec::DramCache(_) => false,
        }
    }

    /// What of it the jobs of a server fill before the run, which is a state, if there is something.
    pub fn filled(&self) -> Option<&DramCacheSpec> {
        match self {
            MemorySpec::DramCache(cache) => Some(cache),
            MemorySpec::Dram(_)
            | MemorySpec::Direct(_)
            | MemorySpec::Engine(_)
            | MemorySpec::Initiator(_) => None,
        }
    }

    /// What each run does with it anew before it begins, whatever states are kept; nothing if it begins as it was built, or in a state.
    pub fn done_anew(&self) -> Option<&'static str> {
        match self {
            MemorySpec::Direct(_) => {
                Some("flash as memory is filled with what its programs place in it: each run does that anew")
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

    /// The shipped memories, by what of the hardware they are.
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
        // Times take the place of a drive.
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
