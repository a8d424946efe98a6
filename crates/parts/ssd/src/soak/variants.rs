//! Combinations with what only some devices can have.

use super::combination::{Combination, Memory};
use crate::spec::{ErrorsSpec, ReclaimUnit, RetrySpec, UpkeepSpec, WriterSpec};
use config::units::{Duration, Share};
use engine::Time;
use ftl::buffer::ahead::LookAheadPolicy;
use ftl::buffer::destage::DestagePolicy;
use ftl::page_map::alloc::Allocation;
use ftl::page_map::pages::PageOrder;

impl Combination {
    /// Errors of which everything depends on everything: a third of the first reads fails, some pages stay uncorrectable.
    pub(super) fn errors(&self) -> Option<ErrorsSpec> {
        self.errors.then(|| ErrorsSpec {
            fresh: 0.002,
            wear: 0.1,
            retention: 0.5,
            reads: 0.01,
            age: Some(0.002),
            types: Some(if self.one_shot { vec![0.7, 1.0, 2.0] } else { vec![1.0, 2.0] }),
            spread: Share::percent(50),
            retry: RetrySpec {
                correctable: 0.004,
                gain: 0.6,
                limit: 5,
                latency: Duration::new(Time::from_us(if self.suspend { 3 } else { 0 })),
            },
        })
    }

    /// Cores of their own for writes, no two of which take as long, and which have some work left to do.
    pub(super) fn writers(&self) -> Option<WriterSpec> {
        let ns = |ns| Duration::new(Time::from_ns(ns));
        self.nvme.then(|| WriterSpec {
            cores: 1,
            command: ns(1500),
            unit: ns(100),
            spread: Some(1.5),
            upkeep: Some(UpkeepSpec { write: ns(2000), batch: 3, spread: Some(0.5) }),
        })
    }

    /// Percent of the raw capacity that the host does not see, unless as little as possible is wanted.
    pub(super) fn spare(&self) -> u8 {
        let spare = if self.gap.is_some() { 60 } else { 50 };
        // Of the rest, parity takes its part.
        self.parity.map_or(spare, |data| 100 - ((100 - u32::from(spare)) * data / (data + 1)) as u8)
    }

    /// The same with registers that gather writes, and what these ask for.
    pub fn with_registers(self, protected: bool) -> Combination {
        Combination {
            map_unit: self.page,
            reclaim: ReclaimUnit::block,
            one_shot: false,
            allocation: Allocation::striped,
            memory: if protected { Memory::ProtectedRegisters } else { Memory::Registers },
            look_ahead: LookAheadPolicy::none,
            ..self
        }
    }

    /// The same with a buffer whose data leaves as a policy says, and what that asks for.
    pub fn with_destage(self, destage: DestagePolicy) -> Combination {
        let chooses_die = matches!(
            self.allocation,
            Allocation::round_robin | Allocation::least_queued(_) | Allocation::full(_)
        );
        Combination {
            reclaim: match self.reclaim {
                ReclaimUnit::superblock => ReclaimUnit::plane_set,
                other => other,
            },
            allocation: if chooses_die { self.allocation } else { Allocation::round_robin },
            memory: match self.memory {
                Memory::Protected | Memory::WriteBackAndReads => self.memory,
                _ => Memory::WriteBack,
            },
            destage,
            ..self
        }
    }

    /// The same with pages that are chosen by their type, and what that asks for.
    pub fn with_pages(self, pages: PageOrder) -> Combination {
        Combination {
            map_unit: self.map_unit.min(self.page),
            one_shot: false,
            placements: 1,
            gap: None,
            pages,
            ..self
        }
    }
}
