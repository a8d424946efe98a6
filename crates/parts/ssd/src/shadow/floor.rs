//! Lower bound for power cuts: of each sector, the last version that was durable at the cut, or a later one, must be
//! left.
//!
//! This account uses only host submissions and completions, nothing that the device does internally. A version is
//! durable once its write has completed on a device whose completions promise flash, or once a flush submitted later
//! has completed. A durable version rules out those that had completed before its write was submitted. A deallocation
//! is a version of zeroes that a flush makes durable.

use super::Shadow;
use super::data::{Sectors, Stamps, Version};
use super::oracle::OUTSTANDING;
use ftl::page_map::Ftl;
use ftl::page_map::map_cache::MapCache;
use proto::{Command, IoOp, Lpn, Status};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

#[derive(Clone, Debug)]
struct Write {
    command: u32,
    version: Version,
    sectors: Sectors,
    submitted: u64,
    acknowledged: u64,
    /// True if the completion makes the write durable.
    promised: bool,
}

/// Command inside the device.
#[derive(Clone, Debug)]
enum Inside {
    Write(Vec<Lpn>),
    Flush { submitted: u64 },
}

/// Versions that may be found in each written unit.
#[derive(Default)]
pub(super) struct Floor {
    units: FxHashMap<Lpn, Vec<Write>>,
    inside: FxHashMap<u32, Inside>,
    /// Units with completed writes that are not durable.
    volatile: BTreeSet<Lpn>,
    sequence: u64,
    /// True if everything completed survives.
    protected: bool,
    /// Contents of each unit on flash at the power cut.
    image: Vec<Stamps>,
}

/// Initial contents of a unit.
fn initial(held: &Stamps) -> Vec<Write> {
    let mut writes = Vec::new();
    held.each(|version, sectors| {
        let (command, submitted, acknowledged) = (u32::MAX, 0, 0);
        writes.push(Write { command, version, sectors, submitted, acknowledged, promised: true });
    });
    writes
}

impl Floor {
    fn begin(&mut self, lpn: Lpn, write: Write, initially: impl FnOnce() -> Stamps) {
        self.units.entry(lpn).or_insert_with(|| initial(&initially())).push(write);
    }

    /// Handles a command that has completed, or was refused and had no effect.
    pub(super) fn leaves(&mut self, id: u32, status: Status) {
        if status == Status::Success {
            self.acknowledged(id);
        } else if let Some(Inside::Write(units)) = self.inside.remove(&id) {
            for lpn in units {
                let writes = self.units.entry(lpn).or_default();
                writes.retain(|w| w.command != id || w.acknowledged != OUTSTANDING);
            }
        }
    }

    fn acknowledged(&mut self, id: u32) {
        self.sequence += 1;
        let now = self.sequence;
        match self.inside.remove(&id) {
            Some(Inside::Write(units)) => {
                for lpn in units {
                    let Some(writes) = self.units.get_mut(&lpn) else { continue };
                    let mine = |w: &Write| w.command == id && w.acknowledged == OUTSTANDING;
                    let Some(at) = writes.iter().position(mine) else { continue };
                    writes[at].acknowledged = now;
                    if writes[at].promised {
                        is_durable(writes, at);
                    } else {
                        self.volatile.insert(lpn);
                    }
                }
            }
            Some(Inside::Flush { submitted }) => self.flushed(submitted),
            None => {}
        }
    }

    fn flushed(&mut self, submitted: u64) {
        let units = &mut self.units;
        self.volatile.retain(|lpn| {
            let Some(writes) = units.get_mut(lpn) else { return false };
            for at in 0..writes.len() {
                if writes[at].acknowledged < submitted && !writes[at].promised {
                    writes[at].promised = true;
                    is_durable(writes, at);
                }
            }
            writes.retain(|w| w.sectors != 0);
            writes.iter().any(|w| !w.promised && w.acknowledged != OUTSTANDING)
        });
    }
}

/// Result of comparing the recovered device with the required data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survivors {
    /// Units of which flash holds a different version than the one named by the map at the cut.
    pub changed: Vec<Lpn>,
    /// First unit with forbidden contents, in words.
    pub lost: Option<String>,
}

/// Notes that a write has become durable: older ones will not be seen again.
fn is_durable(writes: &mut [Write], at: usize) {
    let Write { submitted, sectors, .. } = writes[at];
    for older in writes.iter_mut().filter(|w| w.acknowledged < submitted) {
        older.sectors &= !sectors;
    }
}

impl Shadow {
    /// Starts the account of data that a power cut must leave; call it before the first command. With `protected`,
    /// memory survives too.
    pub(crate) fn keep_floor(&mut self, protected: bool, ftl: &Ftl) {
        let mut floor = Floor { protected, sequence: 1, ..Floor::default() };
        // Initial contents of the buffer count as written and completed.
        for lpn in &self.unsettled {
            let held = self.truth.initially(*lpn, ftl);
            let mut writes = initial(&held);
            for (version, sectors) in self.oracle.candidates(*lpn).filter(|(v, _)| held.of(*v) == 0) {
                let (command, submitted, acknowledged) = (u32::MAX, 1, 1);
                writes.push(Write {
                    command,
                    version,
                    sectors,
                    submitted,
                    acknowledged,
                    promised: protected,
                });
                if protected {
                    let newest = writes.len() - 1;
                    is_durable(&mut writes, newest);
                } else {
                    floor.volatile.insert(*lpn);
                }
            }
            floor.units.insert(*lpn, writes);
        }
        self.floor = Some(floor);
    }

    /// Notes a submitted command. With `durable`, its completion promises that data is on flash.
    pub(super) fn floor_rises(
        &mut self,
        id: u32,
        command: &Command,
        version: Version,
        durable: bool,
        ftl: &Ftl,
    ) {
        let Some(mut floor) = self.floor.take() else { return };
        floor.sequence += 1;
        let submitted = floor.sequence;
        if command.op == IoOp::Flush {
            floor.inside.insert(id, Inside::Flush { submitted });
        } else if command.op != IoOp::Read {
            let mut units = Vec::new();
            let promised = durable || floor.protected;
            for lpn in self.units(command).map(Lpn) {
                let sectors = self.sectors(command, lpn.0);
                // A partial unit is not deallocated.
                if sectors == 0 || (command.op == IoOp::Trim && sectors != self.all_sectors()) {
                    continue;
                }
                let acknowledged = OUTSTANDING;
                let write = Write { command: id, version, sectors, submitted, acknowledged, promised };
                floor.begin(lpn, write, || self.truth.initially(lpn, ftl));
                units.push(lpn);
            }
            floor.inside.insert(id, Inside::Write(units));
        }
        self.floor = Some(floor);
    }

    /// Records the contents of flash just before a power cut. O(map units).
    pub(crate) fn photograph(&mut self, ftl: &Ftl) {
        let image = (0..ftl.logical()).map(|unit| self.on_flash(Lpn(unit), ftl)).collect();
        if let Some(floor) = &mut self.floor {
            floor.image = image;
        }
    }

    /// Compares recovered data with the data that must have survived; `lines` are the dirty sectors in a protected
    /// buffer. O(map units). `None` without an account.
    pub(crate) fn survivors(&self, ftl: &Ftl, lines: &[(Lpn, Sectors)]) -> Option<Survivors> {
        let floor = self.floor.as_ref()?;
        let lines: FxHashMap<Lpn, Sectors> = lines.iter().copied().collect();
        let mut survivors = Survivors::default();
        for lpn in (0..ftl.logical()).map(Lpn) {
            let flash = self.on_flash(lpn, ftl);
            if floor.image.get(lpn.0 as usize) != Some(&flash) {
                survivors.changed.push(lpn);
            }
            let found = self.with_line(lpn, flash, lines.get(&lpn).copied().unwrap_or(0));
            let mut wrong = None;
            found.each(|version, sectors| {
                let legal = match floor.units.get(&lpn) {
                    Some(writes) => {
                        writes.iter().filter(|w| w.version == version).fold(0, |all, w| all | w.sectors)
                    }
                    None => self.truth.initially(lpn, ftl).of(version),
                };
                if sectors & self.all_sectors() & !legal != 0 {
                    wrong = Some(version);
                }
            });
            if let Some(version) = wrong {
                survivors.lost.get_or_insert(format!("unit {} holds {version} after a power cut", lpn.0));
            }
        }
        Some(survivors)
    }

    /// Data of a unit on flash, overlaid with these sectors of its line.
    fn with_line(&self, lpn: Lpn, flash: Stamps, sectors: Sectors) -> Stamps {
        self.lines.get(&lpn).map_or(flash.clone(), |line| flash.under(line, sectors))
    }

    /// Restarts the account after a power cut with the contents of the device; `lines` are the dirty sectors in a
    /// protected buffer. The contents of the pages remain known.
    pub(crate) fn restart(self, ftl: &Ftl, cache: Option<&MapCache>, lines: &[(Lpn, Sectors)]) -> Shadow {
        let flash: Vec<Stamps> = (0..ftl.logical()).map(|unit| self.on_flash(Lpn(unit), ftl)).collect();
        let mut held = flash;
        for (lpn, sectors) in lines {
            let unit = &mut held[lpn.0 as usize];
            *unit = self.with_line(*lpn, unit.clone(), *sectors);
        }
        let kept = lines.iter().map(|(lpn, _)| (*lpn, held[lpn.0 as usize].clone())).collect();
        let Shadow { mut truth, writes, units_checked, violations, described, .. } = self;
        truth.restart(held);
        let lines = lines.iter().map(|(lpn, _)| *lpn).collect();
        let fresh = Shadow::new(ftl, cache);
        Shadow { truth, lines: kept, unsettled: lines, writes, units_checked, violations, described, ..fresh }
    }
}
