//! The paper's figures under other assumptions than those of its rows: they do not count.

mod list;

use super::super::Effort;
use super::super::expected::Figure;
use super::super::row::Row;
use super::super::study::Entry;
use super::rows;
use super::suite::Suite;
use list::VARIANTS;

/// An assumption.
struct Variant {
    /// What its rows' names begin with, behind the paper's.
    name: &'static str,
    /// Overrides of a system.
    set: fn(&str) -> Vec<String>,
    /// What stands behind a program's instances on the command line.
    parameters: &'static str,
    /// What is shown of it.
    shown: Shown,
    /// Whether it is shown beside the paper's rows, or only with everything.
    beside: bool,
}

/// Which figures a variant has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// Those that are read from the programs of Table 2, each by itself.
    Table2,
    /// The same, and those of section 5.6.
    Programs,
    /// The same of one program alone: of what moves little, or in one way.
    Only(&'static [&'static str]),
    /// Those of energy and power: nothing else depends on it.
    Energy,
}

/// Figures that are read from the programs of Table 2, each by itself. Mixes follow from them, and the others have no table of work.
fn is_of_programs(id: &str) -> bool {
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

impl Shown {
    fn has(self, id: &str) -> bool {
        match self {
            Shown::Programs => is_of_programs(id) || id.starts_with("real."),
            Shown::Energy => is_of_programs(id) && (id.contains("energy") || id.starts_with("power.")),
            Shown::Table2 | Shown::Only(_) => is_of_programs(id),
        }
    }
}

/// The rows that variants have of these figures.
pub(super) fn entries(figures: &[Figure], effort: Effort) -> Vec<Entry> {
    let run = |variant: &&Variant| effort == Effort::Whole || (variant.beside && effort == Effort::Full);
    let mut entries: Vec<Entry> =
        VARIANTS.iter().filter(run).flat_map(|variant| of(variant, figures)).collect();
    // From the runs of the paper's own rows.
    if effort != Effort::Quick {
        let whole = rows::with_whole_energy(figures, &Suite::of(effort));
        entries.extend(whole.into_iter().map(|entry| swept(entry, "energy.whole", "")));
    }
    entries
}

/// An entry under the name of an assumption, and of the programs that it is read from where these are not all.
fn swept(entry: Entry, name: &str, of: &str) -> Entry {
    let id = entry.id.strip_prefix("flashabacus.").unwrap_or(&entry.id);
    let id = format!("flashabacus.{name}.{of}{id}");
    entry.changed(id, Row::swept)
}

fn of(variant: &Variant, figures: &[Figure]) -> Vec<Entry> {
    let suite = Suite::of(Effort::Full).with(variant.set, variant.parameters);
    let (suite, of) = match variant.shown {
        Shown::Only(programs) => (suite.only(programs), format!("{}.", programs.join("_"))),
        _ => (suite, String::new()),
    };
    let entry = |figure: &Figure| {
        let id = figure.id.strip_prefix("flashabacus.")?;
        let entry = variant.shown.has(id).then(|| rows::entry(figure, &suite))??;
        // None of its workloads is run.
        let is_read = !entry.points.is_empty();
        is_read.then(|| swept(entry, variant.name, &of))
    };
    figures.iter().filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::super::suite::{SCHEDULERS, SIMD};
    use super::*;
    use crate::Loaded;
    use crate::run::{self, Plan};
    use std::collections::BTreeSet;

    #[test]
    fn every_variant_can_be_built_and_changes_something() {
        for variant in VARIANTS {
            let mut changes = !variant.parameters.is_empty();
            for system in SCHEDULERS.iter().chain([&SIMD]) {
                let of = |set: &[String]| {
                    let loaded = Loaded::load(system, set);
                    loaded
                        .unwrap_or_else(|fault| panic!("{} on {system}: {fault}", variant.name))
                        .spec
                        .to_json()
                };
                let set = (variant.set)(system);
                assert!(set.is_empty() || of(&set) != of(&[]), "{} sets what {system} has", variant.name);
                changes |= !set.is_empty();
            }
            assert!(changes, "{}", variant.name);
        }
    }

    #[test]
    fn every_variant_has_rows_of_its_own() {
        let expected = super::super::expected();
        let mut seen = BTreeSet::new();
        for variant in VARIANTS {
            let rows = of(variant, expected.figures());
            assert!(!rows.is_empty(), "{}", variant.name);
            for row in rows {
                assert!(seen.insert(row.id.clone()), "{} twice", row.id);
            }
        }
    }

    /// Six instances of every program with input of their own fit the flash.
    #[test]
    fn programs_fit_with_input_of_their_own() {
        let own = VARIANTS.iter().find(|variant| variant.name == "inputs.own").expect("it is there");
        let suite = Suite::of(Effort::Full).with(own.set, own.parameters);
        for workload in suite.worlds(super::super::suite::Group::Homogeneous).concat() {
            assert!(workload.ends_with(",inputs=own"), "{workload}");
            let plan = Plan::new(SCHEDULERS[0], &workload);
            assert!(run::check(&plan).is_ok(), "{workload}: {:?}", run::check(&plan).err());
        }
    }
}
