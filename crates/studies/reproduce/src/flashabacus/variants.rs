//! The paper's figures under a choice beside the reading's, as `papers/flashabacus/readings.toml` lists them: they do not count.

use super::super::expected::Figure;
use super::super::reading::{Variant, variants};
use super::super::row::Row;
use super::super::study::Entry;
use super::super::{Effort, Reading};
use super::rows;
use super::suite::Suite;

/// The rows that variants have of these figures. They are choices beside the first reading: another one has none.
pub(super) fn entries(figures: &[Figure], effort: Effort, reading: &Reading) -> Vec<Entry> {
    if !reading.is_first {
        return Vec::new();
    }
    let run = |variant: &Variant| effort == Effort::Whole || (variant.beside && effort == Effort::Full);
    let all = variants(super::READINGS).into_iter().filter(run);
    all.flat_map(|variant| of(&variant, figures, reading)).collect()
}

fn of(variant: &Variant, figures: &[Figure], reading: &Reading) -> Vec<Entry> {
    let suite = Suite::of(Effort::Full, reading).varied(reading, variant);
    let programs = variant.programs.iter().map(|program| format!("{program}.")).collect::<String>();
    let entry = |figure: &Figure| {
        let id = figure.id.strip_prefix("flashabacus.")?;
        let entry = variant.shows(id).then(|| rows::entry(figure, &suite))??;
        // A figure of other programs has no run.
        let is_read = !entry.points.is_empty();
        let name = format!("flashabacus.{}.{programs}{id}", variant.id);
        is_read.then(|| entry.changed(name, Row::swept))
    };
    figures.iter().filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::super::suite::{Group, SCHEDULERS, SIMD};
    use super::*;
    use crate::reading::{readings, sets};
    use machine::run::{self, Plan};
    use machine::spec::Loaded;
    use std::collections::BTreeSet;

    fn reading() -> Reading {
        readings(super::super::READINGS).swap_remove(0)
    }

    fn spec(system: &str, set: &[&str]) -> String {
        let set: Vec<String> = set.iter().map(|set| (*set).to_owned()).collect();
        let loaded = Loaded::load(system, &set);
        loaded.unwrap_or_else(|fault| panic!("{system} {set:?}: {fault}")).spec.to_json().to_string()
    }

    #[test]
    fn every_choice_can_be_built_and_changes_something() {
        let reading = reading();
        for system in SCHEDULERS.into_iter().chain([SIMD]) {
            let read = sets(&reading.choices, system);
            assert_ne!(spec(system, &read), spec(system, &[]), "the reading leaves {system} as it is");
            for variant in variants(super::super::READINGS) {
                let own = sets(&variant.choices, system);
                let varied = spec(system, &[&read[..], &own].concat());
                assert!(
                    own.is_empty() || varied != spec(system, &read),
                    "{} sets what {system} has",
                    variant.id
                );
            }
        }
    }

    #[test]
    fn every_variant_has_rows_of_its_own() {
        let expected = super::super::expected();
        let mut seen = BTreeSet::new();
        for variant in variants(super::super::READINGS) {
            let rows = of(&variant, expected.figures(), &reading());
            assert!(!rows.is_empty(), "{}", variant.id);
            for row in rows {
                assert!(seen.insert(row.id.clone()), "{} twice", row.id);
            }
        }
    }

    /// Six instances of every program with input of their own fit the flash.
    #[test]
    fn programs_fit_with_input_of_their_own() {
        let suite = Suite::of(Effort::Full, &reading());
        for workload in suite.worlds(Group::Homogeneous).concat() {
            assert!(workload.ends_with(",inputs=own"), "{workload}");
            let plan = Plan::new(SCHEDULERS[0], &workload);
            assert!(run::check(&plan).is_ok(), "{workload}: {:?}", run::check(&plan).err());
        }
    }
}
