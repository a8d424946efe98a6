//! Drawn kernels, and the file that lists the kernels to simulate.

use crate::plan::{Group, Plan};
use crate::prediction::Prediction;
use crate::profile::Dims;
use crate::rule::Rule;
use config::{Diagnostic, Place};
use engine::Rng;
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// Kernels of a run to simulate, independent of its profile: a readable TOML file.
///
/// ```toml
/// format = "nandscape.kernels/1"
/// profile = "bert.json.gz"       # what it was drawn from
/// kernels = 60                   # kernels of the run
/// error = 0.05                   # the bound, the confidence, the rule and the seed of the draw
/// confidence = 0.95
/// rule = "allegro"
/// seed = 1
///
/// [[group]]
/// name = "gemm"                  # kernels of one name, grid and block; several groups if split
/// grid = [564, 1, 1]             # left out, as block, where the profile does not tell
/// block = [128, 1, 1]
/// count = 12                     # kernels that the samples stand for
/// samples = [3, 17]              # their numbers from zero, in order of starts, ascending
/// ```
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Selection {
    format: Version,
    /// Profile that it was drawn from.
    pub profile: String,
    /// Number of kernels of the run.
    pub kernels: u64,
    /// Bound on the relative error of the total, as a share.
    pub error: f64,
    /// Confidence of the bound, as a share.
    pub confidence: f64,
    /// Rule that distributed the samples.
    pub rule: Rule,
    /// Seed of the draw, below 2^63 as TOML requires.
    pub seed: u64,
    /// Groups of the selection.
    #[serde(rename = "group")]
    pub groups: Vec<Selected>,
}

/// Group of a selection.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Selected {
    /// Name of its kernels.
    pub name: String,
    /// Grid, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grid: Option<Dims>,
    /// Block, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<Dims>,
    /// Number of kernels in the group.
    pub count: u64,
    /// Kernels to simulate: indices in order of starts, from zero, ascending.
    pub samples: Vec<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum Version {
    #[serde(rename = "nandscape.kernels/1")]
    One,
}

impl Selection {
    /// Creates the selection of a plan and a draw; `profile` names the plan's profile.
    pub fn new(plan: &Plan, sample: &Sample, profile: &str, seed: u64) -> Selection {
        let groups = plan.groups().iter().zip(sample.drawn()).map(|(group, drawn)| {
            let kind = &plan.kinds()[group.kind()];
            Selected {
                name: kind.name.clone(),
                grid: kind.grid,
                block: kind.block,
                count: group.count(),
                samples: drawn.clone(),
            }
        });
        Selection {
            format: Version::One,
            profile: profile.to_owned(),
            kernels: plan.kernels(),
            error: plan.bound().error(),
            confidence: plan.bound().confidence(),
            rule: plan.rule(),
            seed,
            groups: groups.collect(),
        }
    }

    /// Writes TOML, with one line per key: thousands of samples do not take a line each.
    pub fn to_toml(&self) -> String {
        let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
        let mut text = format!(
            "# Kernels to simulate: {} of {}. A group's kernels take `count` times the mean time of its samples.\n\
             format = \"nandscape.kernels/1\"\nprofile = {}\nkernels = {}\nerror = {:?}\nconfidence = {:?}\n\
             rule = \"{}\"\nseed = {}\n",
            self.samples(),
            self.kernels,
            quoted(&self.profile),
            self.kernels,
            self.error,
            self.confidence,
            self.rule,
            self.seed,
        );
        for group in &self.groups {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n[[group]]\nname = {}\n", quoted(&group.name));
            for (key, dims) in [("grid", group.grid), ("block", group.block)] {
                if let Some(Dims(sides)) = dims {
                    let _ = writeln!(text, "{key} = {sides:?}");
                }
            }
            let _ = writeln!(text, "count = {}\nsamples = {:?}", group.count, group.samples);
        }
        text
    }

    /// Parses the file; `source` names the text in diagnostics.
    ///
    /// # Errors
    /// The text is not TOML, a key is unknown, missing or of a wrong type, or a group is invalid: without samples, with
    /// more samples than kernels, with a repeated sample or one beyond the kernels of the run, or with a wrong sum of
    /// kernels.
    pub fn from_toml(source: &str, text: &str) -> Result<Selection, Diagnostic> {
        let selection: Selection = toml::from_str(text).map_err(|fault| {
            let place = fault.span().map_or_else(Place::default, |span| place(text, span.start));
            Diagnostic::new(fault.message().to_owned())
                .at(Place { source: source.to_owned(), ..place })
                .help("`nandscape sample FILE --out kernels.toml` writes such a file")
        })?;
        match selection.fault() {
            None => Ok(selection),
            Some(what) => Err(Diagnostic::new(what)
                .at(Place { source: source.to_owned(), ..Place::default() })
                .help("each kernel of the run belongs to one group, and each group has one sample or more")),
        }
    }

    /// Number of kernels to simulate.
    pub fn samples(&self) -> u64 {
        self.groups.iter().map(|group| group.samples.len() as u64).sum()
    }

    /// Total time of all kernels in nanoseconds, if `duration_ns` gives that of a sample.
    pub fn total_ns(&self, mut duration_ns: impl FnMut(u32) -> f64) -> f64 {
        let of = |group: &Selected| {
            let sum: f64 = group.samples.iter().map(|kernel| duration_ns(*kernel)).sum();
            group.count as f64 * (sum / group.samples.len() as f64)
        };
        self.groups.iter().map(of).sum()
    }

    /// First fault of the selection.
    fn fault(&self) -> Option<String> {
        let mut sum = 0_u64;
        let mut all = Vec::new();
        for (number, group) in self.groups.iter().enumerate() {
            let name = format!("group {number} (`{}`)", group.name);
            if group.samples.is_empty() {
                return Some(format!("{name} has no samples"));
            }
            if group.samples.len() as u64 > group.count {
                return Some(format!(
                    "{name} has {} samples of {} kernels",
                    group.samples.len(),
                    group.count
                ));
            }
            if let Some(kernel) = group.samples.iter().find(|kernel| u64::from(**kernel) >= self.kernels) {
                return Some(format!(
                    "{name} has kernel {kernel} among its samples, of {} kernels",
                    self.kernels
                ));
            }
            all.extend_from_slice(&group.samples);
            sum = sum.saturating_add(group.count);
        }
        all.sort_unstable();
        if let Some(pair) = all.windows(2).find(|pair| pair[0] == pair[1]) {
            return Some(format!("kernel {} is a sample twice", pair[0]));
        }
        (sum != self.kernels).then(|| format!("the groups have {sum} kernels, the run has {}", self.kernels))
    }
}

fn place(text: &str, byte: usize) -> Place {
    let before = text.get(..byte).unwrap_or(text);
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = text[start..].lines().next().unwrap_or_default();
    Place {
        source: String::new(),
        line: before.matches('\n').count() as u64 + 1,
        column: before[start..].chars().count() as u64 + 1,
        text: line.to_owned(),
        key: String::new(),
    }
}

/// Kernels to simulate in each group of a plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sample {
    /// Kernels in the order of the plan's groups; indices in order of starts, ascending.
    drawn: Vec<Vec<u32>>,
}

impl Sample {
    pub(crate) fn draw(plan: &Plan, seed: u64) -> Sample {
        Sample { drawn: plan.groups().iter().map(|group| draw(plan, group, seed)).collect() }
    }

    /// Kernels of each group of the plan, by their indices in order of starts, ascending.
    pub fn drawn(&self) -> &[Vec<u32>] {
        &self.drawn
    }

    /// Number of drawn kernels.
    pub fn len(&self) -> u64 {
        self.drawn.iter().map(|group| group.len() as u64).sum()
    }

    /// Returns whether the sample is empty; that of a plan never is.
    pub fn is_empty(&self) -> bool {
        self.drawn.iter().all(Vec::is_empty)
    }

    /// Predicts the time of all kernels of the plan that it was drawn from. `duration_ns` gives the duration of a drawn
    /// kernel in nanoseconds: in the simulation, or in the profile itself to assess the sample.
    pub fn predict(&self, plan: &Plan, duration_ns: impl FnMut(u32) -> f64) -> Prediction {
        Prediction::of(plan, self, duration_ns)
    }
}

/// Draws without replacement (R. W. Floyd, in J. Bentley, More Programming Pearls, 1988, column 13).
fn draw(plan: &Plan, group: &Group, seed: u64) -> Vec<u32> {
    let kernels = plan.kernels_of(group);
    let (count, samples) = (group.count(), group.samples());
    let mut drawn: Vec<u32> = if samples == count {
        kernels.to_vec()
    } else {
        let kind = &plan.kinds()[group.kind()];
        let dims = |dims: Option<crate::Dims>| dims.map_or_else(|| "?".to_owned(), |dims| dims.to_string());
        let stream =
            format!("sampling/{}/{}/{}/{}", kind.name, dims(kind.grid), dims(kind.block), group.part());
        let mut rng = Rng::stream(seed, &stream);
        let mut taken = FxHashSet::default();
        let mut places = Vec::with_capacity(samples as usize);
        for last in count - samples..count {
            let place = rng.below(last + 1);
            let place = if taken.insert(place) { place } else { last };
            taken.insert(place);
            places.push(place);
        }
        places.into_iter().map(|place| kernels[place as usize]).collect()
    };
    drawn.sort_unstable();
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bound, Plan, Profile, Rule};

    fn selection() -> Selection {
        let mut profile = Profile::default();
        for kernel in 0..50_u32 {
            let name = ["void f<float, 2>(char const*)", "say \"hi\"\\\t\u{1}é"][kernel as usize % 2];
            profile.push(name, Some(Dims([kernel % 2 + 1, 1, 1])), None, f64::from(kernel / 9)).unwrap();
        }
        let plan = Plan::new(&profile, Bound::new(0.05, 0.95).unwrap(), Rule::Neyman).unwrap();
        Selection::new(&plan, &plan.draw(9), "a \"b\".csv", 9)
    }

    #[test]
    fn reads_back_what_it_writes() {
        let selection = selection();
        let text = selection.to_toml();
        assert_eq!(Selection::from_toml("x", &text).unwrap(), selection, "{text}");
        assert!(text.contains("[[group]]") && text.contains("grid = [1, 1, 1]") && !text.contains("block"));
    }

    #[test]
    fn the_total_of_a_selection_is_that_of_the_prediction() {
        let text = "format = \"nandscape.kernels/1\"\nprofile = \"p\"\nkernels = 7\nerror = 0.05\nconfidence = 0.95\n\
                    rule = \"allegro\"\nseed = 1\n[[group]]\nname = \"a\"\ncount = 5\nsamples = [0, 3]\n\
                    [[group]]\nname = \"b\"\ncount = 2\nsamples = [1]\n";
        let selection = Selection::from_toml("x", text).unwrap();
        assert_eq!(
            selection.total_ns(|kernel| [10.0, 7.0, f64::NAN, 30.0][kernel as usize]),
            5.0 * 20.0 + 2.0 * 7.0
        );
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_place() {
        let good = selection().to_toml();
        let line = |said: &str| said.to_owned();
        for (from, to, said) in [
            ("kernels = 50", "kernel = 50", line("unknown field `kernel`")),
            ("kernels/1", "kernels/2", line("nandscape.kernels/2")),
            ("rule = \"neyman\"", "rule = \"neymann\"", line("neymann")),
            ("seed = 9", "", line("missing field `seed`")),
            ("kernels = 50", "kernels = 51", line("the groups have 50 kernels, the run has 51")),
            ("kernels = 50", "kernels = -50", line("-50")),
            ("samples = [", "samples = [] # [", line("has no samples")),
            ("samples = [", "samples = [77, ", line("has kernel 77")),
            ("count = ", "count = 0 # ", line("of 0 kernels")),
            ("[[group]]", "[[groups]]", line("unknown field `groups`")),
            ("seed = 9", "seed = ", line("")),
        ] {
            let text = good.replacen(from, to, 1);
            assert_ne!(text, good, "{from}");
            let fault = Selection::from_toml("kernels.toml", &text).unwrap_err();
            assert!(fault.what.contains(&said), "{to}: {fault}");
            assert_eq!(fault.place.as_ref().unwrap().source, "kernels.toml", "{fault}");
        }
        let fault = Selection::from_toml("k", &good.replacen("seed = 9", "sed = 9", 1)).unwrap_err();
        assert_eq!(fault.place.unwrap().line, 8);
    }

    fn plan() -> Plan {
        let mut profile = Profile::default();
        for kernel in 0..200_u32 {
            let name = ["a", "b"][kernel as usize % 2];
            profile.push(name, None, None, 3000.0 + f64::from(kernel * 7919 % 163)).unwrap();
        }
        Plan::new(&profile, Bound::new(0.01, 0.95).unwrap(), Rule::Allegro).unwrap()
    }

    #[test]
    fn distinct_kernels_of_the_group_and_as_many_as_asked_for() {
        let plan = plan();
        for seed in 0..50 {
            for (group, drawn) in plan.groups().iter().zip(plan.draw(seed).drawn()) {
                assert_eq!(drawn.len() as u64, group.samples());
                assert!(drawn.windows(2).all(|pair| pair[0] < pair[1]));
                assert!(drawn.iter().all(|kernel| plan.kernels_of(group).contains(kernel)));
            }
        }
    }

    #[test]
    fn a_seed_draws_the_same_and_another_something_else() {
        let plan = plan();
        assert_eq!(plan.draw(1), plan.draw(1));
        assert_ne!(plan.draw(1), plan.draw(2));
    }

    /// Chi-square over the kernels of a group; 140 is beyond the 0.999 quantile at 99 degrees of freedom less what
    /// drawing without replacement takes from it.
    #[test]
    fn every_kernel_is_drawn_alike() {
        let plan = plan();
        let group = &plan.groups()[0];
        let mut times = vec![0.0; 200];
        let draws = 2000;
        for seed in 0..draws {
            for kernel in &plan.draw(seed).drawn()[0] {
                times[*kernel as usize] += 1.0;
            }
        }
        let expected = draws as f64 * group.samples() as f64 / group.count() as f64;
        assert!(group.samples() < group.count() && group.count() == 100);
        let chi: f64 = times.iter().step_by(2).map(|n| (n - expected) * (n - expected) / expected).sum();
        assert!(chi < 140.0, "{chi}");
    }
}
