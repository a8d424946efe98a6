//! The paper's figures under other assumptions than those of its rows: they do not count.

use super::super::Effort;
use super::super::expected::Figure;
use super::super::row::Row;
use super::super::study::Entry;
use super::rows;
use super::suite::{SIMD, Suite};

/// An assumption.
struct Variant {
    /// What its rows' names begin with, behind the paper's.
    name: &'static str,
    /// Overrides of a system.
    set: fn(&str) -> Vec<String>,
    /// Whether it is shown beside the paper's rows, or only with everything.
    beside: bool,
}

fn accelerator(system: &str, set: &str) -> Vec<String> {
    let part = if system == SIMD { "coprocessor" } else { "accelerator" };
    vec![format!("{part}.{set}")]
}

fn flashabacus(system: &str, set: &str) -> Vec<String> {
    if system == SIMD { Vec::new() } else { vec![set.to_owned()] }
}

fn rival(system: &str, set: &str) -> Vec<String> {
    if system == SIMD { vec![set.to_owned()] } else { Vec::new() }
}

const VARIANTS: &[Variant] = &[
    Variant { name: "work.table", set: |system| accelerator(system, "work=table"), beside: true },
    Variant {
        name: "translation.striped",
        set: |system| flashabacus(system, "group_flash.groups.translation=striped"),
        beside: true,
    },
    Variant { name: "miss.60", set: |system| accelerator(system, "core.l2.miss=60"), beside: false },
    Variant { name: "miss.140", set: |system| accelerator(system, "core.l2.miss=140"), beside: false },
    Variant {
        name: "message.20",
        set: |system| flashabacus(system, "accelerator.costs.message=20"),
        beside: false,
    },
    Variant {
        name: "message.1000",
        set: |system| flashabacus(system, "accelerator.costs.message=1000"),
        beside: false,
    },
    Variant {
        name: "schedule.10000",
        set: |system| flashabacus(system, "accelerator.costs.schedule=10000"),
        beside: false,
    },
    Variant {
        name: "entry.1000",
        set: |system| flashabacus(system, "accelerator.costs.entry=1000"),
        beside: false,
    },
    Variant { name: "simd.six_cores", set: |system| rival(system, "coprocessor.cores=6"), beside: false },
];

/// What is shown of a variant: what is read from the programs of Table 2, each by itself. Mixes follow from them, and the others have no table of work.
fn is_shown(id: &str) -> bool {
    let apart = ["real.", "map.", "series.", "motivation.serial"];
    !apart.iter().any(|family| id.starts_with(family)) && !id.contains("hetero") && !MIXED.contains(&id)
}

/// Rows of mixes without that word in their names.
const MIXED: [&str; 5] = [
    "bw.intrao3_vs_simd",
    "bw.interst_vs_intraio_some",
    "bw.interst_vs_intraio_rest",
    "lat.mx1_last_two",
    "energy.intrao3_vs_simd",
];

/// The rows that variants have of these figures.
pub(super) fn entries(figures: &[Figure], effort: Effort) -> Vec<Entry> {
    let run = |variant: &&Variant| effort == Effort::Whole || (variant.beside && effort == Effort::Full);
    VARIANTS.iter().filter(run).flat_map(|variant| of(variant, figures)).collect()
}

fn of(variant: &Variant, figures: &[Figure]) -> Vec<Entry> {
    let suite = Suite::of(Effort::Full).with(variant.set);
    let entry = |figure: &Figure| {
        let id = figure.id.strip_prefix("flashabacus.")?;
        let entry = is_shown(id).then(|| rows::entry(figure, &suite))??;
        Some(entry.changed(format!("flashabacus.{}.{id}", variant.name), Row::swept))
    };
    figures.iter().filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::super::suite::SCHEDULERS;
    use super::*;
    use crate::Loaded;

    #[test]
    fn every_variant_can_be_built() {
        for variant in VARIANTS {
            for system in SCHEDULERS.iter().chain([&SIMD]) {
                let loaded = Loaded::load(system, &(variant.set)(system));
                assert!(loaded.is_ok(), "{} on {system}: {:?}", variant.name, loaded.err());
            }
        }
    }
}
