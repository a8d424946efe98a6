//! Kinds of parts. A kind is a line here, with the links of its parts in [`super::links`].

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

/// Part of a machine, as a user writes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Part<T> {
    /// Name of the part: the table at the root of the spec, or `table.0` and so on if the table has several parts.
    pub name: String,
    /// Contents of the part's table.
    pub spec: T,
    /// Parts that it asks or uses, by link key. A link that was left out and has no possible target is absent.
    pub(super) links: Vec<(&'static str, Vec<Id>)>,
}

/// Identity of a part: its kind, and its number among those of the kind, in the order of declaration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Id {
    /// Kind of the part.
    pub kind: Kind,
    /// Number within the kind.
    pub number: usize,
}

impl<T> Part<T> {
    /// Table that the part was read from: the prefix of its keys.
    pub fn table(&self) -> &str {
        self.name.split('.').next().unwrap_or(&self.name)
    }

    /// Parts that a link names.
    pub fn linked(&self, key: &str) -> &[Id] {
        self.links.iter().find(|(link, _)| *link == key).map_or(&[], |(_, to)| to)
    }

    /// Part that a link to one part names.
    pub fn link(&self, key: &str) -> Option<Id> {
        self.linked(key).first().copied()
    }
}

/// Contents of a kind's table, links excluded.
pub(super) trait Table: Sized + Serialize {
    /// Returns the JSON Schema of the table, inlined.
    fn schema(generator: &mut SchemaGenerator) -> Value;
    /// Reads the table of this name, ignoring the keys `apart`.
    fn read(pieces: &mut Pieces<'_>, table: &str, apart: &[&str]) -> Option<Self>;
}

/// Tables read without further processing.
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
        /// Kind of a part.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Kind {
            $($(#[doc = $doc])+ $kind,)+
        }

        impl Kind {
            /// Every kind.
            pub const ALL: &[Kind] = &[$(Kind::$kind,)+];

            /// Name of the kind in a spec: the value of `kind`, and the default name of a part.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Kind::$kind => stringify!($name),)+
                }
            }

            /// Description of the kind.
            pub(super) fn doc(self) -> String {
                let lines: &[&str] = match self {
                    $(Kind::$kind => &[$($doc),+],)+
                };
                lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join("\n")
            }

            /// JSON Schema of the kind's tables, links excluded.
            pub(super) fn schema(self, generator: &mut SchemaGenerator) -> Value {
                match self {
                    $(Kind::$kind => <$spec as Table>::schema(generator),)+
                }
            }
        }

        /// Spec of a machine.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Spec {
            /// Description of the machine, in one line.
            pub description: String,
            /// Settings of the simulation.
            pub sim: Sim,
            /// Tables that the parts were read from, in the order of declaration.
            pub(super) tables: Vec<Declared>,
            $($(#[doc = $doc])+ pub $name: Vec<Part<$spec>>,)+
        }

        impl Spec {
            /// Spec without parts.
            pub(super) fn empty(description: String, sim: Sim) -> Spec {
                Spec { description, sim, tables: Vec::new(), $($name: Vec::new(),)+ }
            }

            /// Reads and adds the parts of a table; returns false on an error.
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

            /// Number of parts of a kind.
            pub fn count(&self, kind: Kind) -> usize {
                match kind {
                    $(Kind::$kind => self.$name.len(),)+
                }
            }

            /// Name of a part.
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

            /// Table of a part as JSON, links excluded.
            pub(super) fn table_of(&self, id: Id) -> Value {
                // Read from TOML, so it has a JSON form.
                match id.kind {
                    $(Kind::$kind => serde_json::to_value(&self.$name[id.number].spec).unwrap_or_default(),)+
                }
            }
        }
    };
}

/// Table at the root of a spec, for one part or several.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Declared {
    /// Key of the table.
    pub(super) table: String,
    /// Kind of its parts.
    pub(super) kind: Kind,
    /// Number of parts, if given.
    pub(super) count: Option<u16>,
    /// Links as written: key and names.
    pub(super) links: Vec<(&'static str, Vec<String>)>,
}

impl Declared {
    /// Names of the table's parts.
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
    /// A flash device: a drive, the flash behind an SSD engine, or flash that a GPU reaches directly.
    flash: Flash(DriveSpec),
    /// Several drives as one (a stripe).
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
    /// Memory behind the shared cache.
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
    /// A coprocessor that executes kernels for a host's programs, on data that they send: cores, the memory that they
    /// share, and the host's costs of working with it.
    coprocessor: Coprocessor(DrivenSpec),
    /// Flash of page groups that an accelerator governs directly.
    group_flash: GroupFlash(GroupsFlashSpec),
}
