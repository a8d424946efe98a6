//! The kinds of parts. A kind is a line here, with the links of its parts in [`super::links`].

use super::own::{DriveSpec, DrivenSpec, OffloadedSpec, ServerSpec};
use super::{HostSoftware, MemorySpec, Sim};
use compute::simt::GpuSpec;
use config::Pieces;
use mem::directory::DirectorySpec;
use mem::l2::L2Spec;
use mem::mmu::MmuSpec;
use mem::paging::PagingSpec;
use mem::placement::PlacementSpec;
use mem::stripe::StripeSpec;
use mem::swap::SwapSpec;
use net::fabric::FabricSpec;
use net::noc::NocSpec;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use ssd::page_groups::GroupsFlashSpec;

/// One part of a machine, as a user writes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Part<T> {
    /// What the user calls it: the table at the root of the spec, and of several that one table stands for, `table.0` and so on.
    pub name: String,
    /// What it is.
    pub spec: T,
    /// The parts that it asks or uses, by the key that names them; a link that was left out, and that nothing could be meant by, is
    /// not there.
    pub(super) links: Vec<(&'static str, Vec<Id>)>,
}

/// A part: its kind, and its number among those of its kind, in the order in which they are declared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Id {
    /// What it is.
    pub kind: Kind,
    /// Which of them.
    pub number: usize,
}

impl<T> Part<T> {
    /// The table that it was read from: its keys begin so.
    pub fn table(&self) -> &str {
        self.name.split('.').next().unwrap_or(&self.name)
    }

    /// The parts at the other end of a link.
    pub fn linked(&self, key: &str) -> &[Id] {
        self.links.iter().find(|(link, _)| *link == key).map_or(&[], |(_, to)| to)
    }

    /// The part at the other end of a link to one.
    pub fn link(&self, key: &str) -> Option<Id> {
        self.linked(key).first().copied()
    }
}

/// What a kind's table holds, besides links.
pub(super) trait Table: Sized + Serialize {
    /// Its JSON Schema, not behind a reference.
    fn schema(generator: &mut SchemaGenerator) -> Value;
    /// Reads it from the table of that name, in which the keys `apart` are not its own.
    fn read(pieces: &mut Pieces<'_>, table: &str, apart: &[&str]) -> Option<Self>;
}

/// What is read as it stands.
macro_rules! tables {
    ($($spec:ty),+ $(,)?) => {
        $(impl Table for $spec {
            fn schema(generator: &mut SchemaGenerator) -> Value {
                <$spec as JsonSchema>::json_schema(generator).to_value()
            }
            fn read(pieces: &mut Pieces<'_>, table: &str, apart: &[&str]) -> Option<Self> {
                whole(pieces, table, apart)
            }
        })+
    };
}

fn whole<T: DeserializeOwned>(pieces: &mut Pieces<'_>, table: &str, apart: &[&str]) -> Option<T> {
    pieces.read(&[table], apart)
}

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $name:ident: $kind:ident($spec:ty),)+) => {
        /// What a part is.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Kind {
            $($(#[doc = $doc])+ $kind,)+
        }

        impl Kind {
            /// Every kind.
            pub const ALL: &[Kind] = &[$(Kind::$kind,)+];

            /// As a spec has it: the value of `kind`, and the name of a part that needs no other.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Kind::$kind => stringify!($name),)+
                }
            }

            /// What it is, in words.
            pub(super) fn doc(self) -> String {
                let lines: &[&str] = match self {
                    $(Kind::$kind => &[$($doc),+],)+
                };
                lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join("\n")
            }

            /// The JSON Schema of its tables, links apart.
            pub(super) fn schema(self, generator: &mut SchemaGenerator) -> Value {
                match self {
                    $(Kind::$kind => <$spec as Table>::schema(generator),)+
                }
            }
        }

        /// A machine.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Spec {
            /// What the machine is, in one line.
            pub description: String,
            /// The simulation itself.
            pub sim: Sim,
            /// The tables that the parts were read from, in the order in which they are declared.
            pub(super) tables: Vec<Declared>,
            $($(#[doc = $doc])+ pub $name: Vec<Part<$spec>>,)+
        }

        impl Spec {
            /// A machine without parts.
            pub(super) fn empty(description: String, sim: Sim) -> Spec {
                Spec { description, sim, tables: Vec::new(), $($name: Vec::new(),)+ }
            }

            /// Reads the parts of a table and adds them; whether nothing was wrong.
            pub(super) fn read(&mut self, pieces: &mut Pieces<'_>, from: &Declared, apart: &[&str]) -> bool {
                match from.kind {
                    $(Kind::$kind => {
                        let Some(spec) = <$spec as Table>::read(pieces, &from.table, apart) else { return false };
                        let part = |name| Part { name, spec: spec.clone(), links: Vec::new() };
                        self.$name.extend(from.names().map(part));
                        true
                    })+
                }
            }

            /// How many parts of a kind there are.
            pub fn count(&self, kind: Kind) -> usize {
                match kind {
                    $(Kind::$kind => self.$name.len(),)+
                }
            }

            /// What a part is called.
            pub fn name_of(&self, id: Id) -> &str {
                match id.kind {
                    $(Kind::$kind => &self.$name[id.number].name,)+
                }
            }

            pub(super) fn links_of(&self, id: Id) -> &[(&'static str, Vec<Id>)] {
                match id.kind {
                    $(Kind::$kind => &self.$name[id.number].links,)+
                }
            }

            pub(super) fn links_mut(&mut self, id: Id) -> &mut Vec<(&'static str, Vec<Id>)> {
                match id.kind {
                    $(Kind::$kind => &mut self.$name[id.number].links,)+
                }
            }

            /// What stands in the table of a part, links apart, as JSON.
            pub(super) fn table_of(&self, id: Id) -> Value {
                // It came out of a TOML file: it has a JSON form.
                match id.kind {
                    $(Kind::$kind => serde_json::to_value(&self.$name[id.number].spec).unwrap_or_default(),)+
                }
            }
        }
    };
}

/// A table at the root of a spec that stands for one part or for several.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Declared {
    /// Its key.
    pub(super) table: String,
    /// What it is.
    pub(super) kind: Kind,
    /// How many parts it stands for, if it says so.
    pub(super) count: Option<u16>,
    /// Links as they are written: the key, and the names.
    pub(super) links: Vec<(&'static str, Vec<String>)>,
}

impl Declared {
    /// The names of its parts.
    pub(super) fn names(&self) -> impl Iterator<Item = String> {
        let many = self.count.is_some();
        (0..self.count.unwrap_or(1))
            .map(move |n| if many { format!("{}.{n}", self.table) } else { self.table.clone() })
    }
}

tables! {
    HostSoftware, GpuSpec, MmuSpec, NocSpec, FabricSpec, DirectorySpec, L2Spec, MemorySpec, PagingSpec, SwapSpec, StripeSpec, PlacementSpec,
    GroupsFlashSpec,
}

kinds! {
    /// A flash device: a drive, the flash behind an SSD engine, or what a GPU reaches by itself.
    flash: Flash(DriveSpec),
    /// Several drives as one.
    stripe: Stripe(StripeSpec),
    /// The GPU's multiprocessors.
    gpu: Gpu(GpuSpec),
    /// The processors of a server: cores, their threads, and their load.
    cpu: Cpu(ServerSpec),
    /// The memory management unit: one that a GPU's multiprocessors share, or that of each core of a server.
    mmu: Mmu(MmuSpec),
    /// The network between multiprocessors, cache banks and controllers.
    network: Network(NocSpec),
    /// The network between cores, cache banks and controllers: a core and a bank at each router of a mesh.
    fabric: Fabric(FabricSpec),
    /// The directory that keeps the first-level caches of cores coherent: a slice at each cache bank.
    directory: Directory(DirectorySpec),
    /// The cache that all multiprocessors or cores share.
    l2: L2(L2Spec),
    /// What stands behind the shared cache.
    memory: Memory(MemorySpec),
    /// Several memories behind one shared cache, and which page lies in which.
    placement: Placement(PlacementSpec),
    /// The host that brings missing pages from the flash device into the GPU's memory.
    paging: Paging(PagingSpec),
    /// The operating system of a server that brings missing pages from the flash device into DRAM.
    swap: Swap(SwapSpec),
    /// The host's software.
    host: Host(HostSoftware),
    /// An accelerator that governs its own flash: cores, the memory that they share, and how kernels come to it.
    accelerator: Accelerator(OffloadedSpec),
    /// A coprocessor that executes what a host's programs order, on data that they bring: cores, the memory that they share, and what it costs the host to work with it.
    coprocessor: Coprocessor(DrivenSpec),
    /// Flash of page groups that an accelerator governs by itself.
    group_flash: GroupFlash(GroupsFlashSpec),
}
