//! Which launches of a whole sequence are executed.

use std::ops::Range;
use std::path::Path;

use config::{Diagnostic, Place};
use serde::Deserialize;

use crate::program::Params;

/// Launches, by their numbers in the whole sequence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Selection {
    Range(Range<u64>),
    /// In rising order, none twice.
    List(Vec<u64>),
}

/// What is read of a file of sampled kernels; further tables and keys are the sampler's own.
#[derive(Deserialize)]
struct Sampled {
    /// Kernels of the run that was sampled.
    kernels: Option<u64>,
    #[serde(default)]
    group: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    #[serde(default)]
    samples: Vec<u64>,
}

impl Selection {
    /// What the parameters `launches` and `kernels` say of a sequence of `count` launches.
    ///
    /// # Errors
    /// A range or a file that cannot be read, both at once, or launches that the sequence does not have.
    pub(crate) fn read(params: &Params, count: u64) -> Result<Selection, Diagnostic> {
        let (range, file) = (params.text("launches"), params.text("kernels"));
        match (range, file) {
            (None, None) => Ok(Selection::Range(0..count)),
            (Some(_), Some(_)) => {
                let both = Diagnostic::new("`launches` and `kernels` both say what is executed");
                Err(both.help("give one of them"))
            }
            (Some(text), None) => {
                let bounds =
                    text.split_once("..").and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
                let within = bounds.filter(|(a, b): &(u64, u64)| a < b && *b <= count);
                let allowed = || {
                    params.refused("launches", vec![format!("A..B, from A up to B - 1, within 0..{count}")])
                };
                within.map(|(a, b)| Selection::Range(a..b)).ok_or_else(allowed)
            }
            (None, Some(file)) => Selection::from_file(Path::new(file), count),
        }
    }

    fn from_file(path: &Path, count: u64) -> Result<Selection, Diagnostic> {
        let name = path.display().to_string();
        let place = || Place { source: name.clone(), ..Place::default() };
        let text = std::fs::read_to_string(path)
            .map_err(|e| Diagnostic::new(format!("cannot read `{name}`: {e}")).at(place()))?;
        let sampled: Sampled = toml::from_str(&text).map_err(|e| {
            Diagnostic::new(format!("no file of sampled kernels: {}", e.message())).at(place())
        })?;
        if let Some(other) = sampled.kernels.filter(|kernels| *kernels != count) {
            let what = format!("samples of a run with {other} kernels, for a program with {count} launches");
            return Err(Diagnostic::new(what).at(place()).help("sample the program with these parameters"));
        }
        let mut list: Vec<u64> = sampled.group.into_iter().flat_map(|group| group.samples).collect();
        list.sort_unstable();
        list.dedup();
        match list.last() {
            None => Err(Diagnostic::new("a file of sampled kernels without samples")
                .at(place())
                .help("`nandscape sample` writes tables [[group]] with samples = [launch, ...]")),
            Some(last) if *last >= count => {
                let what = format!("sample {last} of a program with {count} launches");
                Err(Diagnostic::new(what).at(place()).help("sample the program with these parameters"))
            }
            Some(_) => Ok(Selection::List(list)),
        }
    }

    /// Number of the `n`-th of them.
    pub(crate) fn get(&self, n: u64) -> Option<u64> {
        match self {
            Selection::Range(range) => Some(range.start + n).filter(|number| *number < range.end),
            Selection::List(list) => list.get(usize::try_from(n).ok()?).copied(),
        }
    }
}
