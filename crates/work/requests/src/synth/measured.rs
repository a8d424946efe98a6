//! Popularity as it was measured: which share of the requests each group of objects got.
//!
//! Two kinds of files are read, plain or compressed: the distributions of CacheLib's cachebench (JSON, `popularityBuckets` with
//! the number of keys of each group and `popularityWeights` with its requests), and lists of what was requested, one name a
//! line.

use config::{Diagnostic, Place};
use rustc_hash::FxHashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use text::Input;

/// The longest file, decompressed: it is held in memory.
const LONGEST: u64 = 1 << 30;

/// Shares of requests over shares of objects, from the most popular on; uniform inside a group.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    groups: Vec<Group>,
}

/// The end of a group: how much lies up to here, of all.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Group {
    requests: f64,
    objects: f64,
}

#[derive(serde::Deserialize)]
struct CacheBench {
    #[serde(rename = "popularityBuckets")]
    keys: Vec<u64>,
    #[serde(rename = "popularityWeights")]
    requests: Vec<f64>,
}

impl Measured {
    /// Reads a file.
    ///
    /// # Errors
    /// A file that cannot be read or is neither of the two kinds.
    pub fn read(path: &Path) -> Result<Measured, Diagnostic> {
        let shown = path.display().to_string();
        let unreadable = |fault| Diagnostic::new(format!("cannot read `{shown}`: {fault}"));
        let input = Input::new(File::open(path).map_err(unreadable)?).map_err(unreadable)?;
        let mut bytes = Vec::new();
        input.bytes.take(LONGEST + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 > LONGEST {
            return Err(Diagnostic::new(format!("`{shown}` has more than {LONGEST} B")));
        }
        let json = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
        let groups = if json { distribution(&shown, &bytes)? } else { list(&shown, &bytes)? };
        Measured::new(groups).map_err(|what| Diagnostic::new(format!("`{shown}`: {what}")))
    }

    /// From the keys and the requests of each group.
    fn new(mut groups: Vec<(u64, f64)>) -> Result<Measured, String> {
        if let Some((_, wrong)) = groups.iter().find(|(_, requests)| !requests.is_finite() || *requests < 0.0)
        {
            return Err(format!("{wrong} requests of a group; allowed: finite numbers from 0"));
        }
        groups.retain(|(keys, _)| *keys > 0);
        let each = |(keys, requests): &(u64, f64)| requests / *keys as f64;
        groups.sort_by(|a, b| each(b).total_cmp(&each(a)));
        let all = |part: fn(&(u64, f64)) -> f64| groups.iter().map(part).sum::<f64>();
        let (objects, requests) = (all(|(keys, _)| *keys as f64), all(|(_, requests)| *requests));
        if requests <= 0.0 {
            return Err("nothing was requested".into());
        }
        let mut end = Group { requests: 0.0, objects: 0.0 };
        let group = |(keys, part): &(u64, f64)| {
            end.requests += part / requests;
            end.objects += *keys as f64 / objects;
            end
        };
        Ok(Measured { groups: groups.iter().map(group).collect() })
    }

    /// A rank of `n`, from a draw that is uniform between 0 and 1. However many objects were measured, the same share of objects gets
    /// the same share of requests.
    pub fn rank(&self, n: u64, unit: f64) -> u64 {
        let at = self.groups.partition_point(|group| group.requests <= unit).min(self.groups.len() - 1);
        let end = self.groups[at];
        let start =
            at.checked_sub(1).map_or(Group { requests: 0.0, objects: 0.0 }, |before| self.groups[before]);
        let inside = (unit - start.requests) / (end.requests - start.requests);
        let share = start.objects + inside * (end.objects - start.objects);
        ((share * n as f64) as u64).min(n - 1)
    }
}

/// A distribution of cachebench.
fn distribution(shown: &str, bytes: &[u8]) -> Result<Vec<(u64, f64)>, Diagnostic> {
    let read: CacheBench = serde_json::from_slice(bytes).map_err(|fault| {
        let help = "a distribution of cachebench has `popularityBuckets` and `popularityWeights`, a list of numbers each";
        Diagnostic::new(format!("`{shown}` is no measured popularity: {fault}")).help(help)
    })?;
    if read.keys.len() != read.requests.len() {
        let (keys, requests) = (read.keys.len(), read.requests.len());
        let what = format!("`{shown}` has {keys} `popularityBuckets` and {requests} `popularityWeights`");
        return Err(Diagnostic::new(what).help("there is one weight for each bucket"));
    }
    Ok(read.keys.into_iter().zip(read.requests).collect())
}

/// What was requested, one name a line: a group for each number of requests.
fn list(shown: &str, bytes: &[u8]) -> Result<Vec<(u64, f64)>, Diagnostic> {
    let mut requests: FxHashMap<&[u8], u64> = FxHashMap::default();
    for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        let name = line.trim_ascii();
        if !name.iter().all(u8::is_ascii_graphic) {
            let text = String::from_utf8_lossy(line).chars().take(80).collect();
            let place = Place { source: shown.into(), line: number, column: 1, text, key: String::new() };
            let what = "a list of requests has one name a line: letters, digits and signs, no blanks";
            return Err(Diagnostic::new(what).at(place));
        }
        if !name.is_empty() {
            *requests.entry(name).or_default() += 1;
        }
    }
    let mut counts: Vec<u64> = requests.into_values().collect();
    counts.sort_unstable();
    let group = |same: &[u64]| (same.len() as u64, same.iter().sum::<u64>() as f64);
    Ok(counts.chunk_by(|a, b| a == b).map(group).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synth::{Purpose, Stream};

    fn read(text: &str) -> Result<Measured, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("measured");
        std::fs::write(&path, text).expect("a file");
        Measured::read(&path).map_err(|diagnostic| diagnostic.to_string())
    }

    /// Two of six objects get 8 of 12 requests, one gets two, three get two.
    #[test]
    fn shares_by_hand() {
        let list = read("b\na\na\nb\nc\na\nb\nc\na\nb\nd\ne\n").expect("a list");
        let json = read(
            r#"{"oneHits": 0.5, "popularityWeights": [2, 2, 8], "popularityBuckets": [2, 1, 2], "more": []}"#,
        );
        assert_eq!(Ok(&list), json.as_ref());
        let groups = [(8.0 / 12.0, 2.0 / 5.0), (10.0 / 12.0, 3.0 / 5.0), (1.0, 1.0)];
        for (group, (requests, objects)) in list.groups.iter().zip(groups) {
            assert!((group.requests - requests).abs() < 1e-12 && (group.objects - objects).abs() < 1e-12);
        }
        let mut drawn = [0u32; 10];
        let mut stream = Stream::new(3, Purpose::Request);
        (0..60_000).for_each(|_| drawn[list.rank(10, stream.unit()) as usize] += 1);
        // A rank of ten is half an object: 10,000 of 60,000, 5,000, 2,500; five standard deviations.
        for (rank, count) in drawn.into_iter().enumerate() {
            let expected: f64 = if rank < 4 {
                10_000.0
            } else if rank < 6 {
                5_000.0
            } else {
                2_500.0
            };
            assert!((f64::from(count) - expected).abs() < 5.0 * expected.sqrt(), "{rank}: {count}");
        }
    }

    #[test]
    fn the_ends_are_ranks() {
        let one = read("x").expect("a list");
        assert_eq!((one.rank(1, 0.0), one.rank(7, 0.0), one.rank(7, 1.0 - 1e-16)), (0, 0, 6));
    }

    #[test]
    fn what_is_no_popularity_is_refused() {
        for (text, said) in [
            ("", "nothing was requested"),
            ("1 2\n", "one name a line"),
            ("{\"popularityBuckets\": [1]}", "missing field `popularityWeights`"),
            ("{\"popularityBuckets\": [1], \"popularityWeights\": [1, 2]}", "1 `popularityBuckets` and 2"),
            ("{\"popularityBuckets\": [1], \"popularityWeights\": [-1]}", "-1 requests"),
            ("{\"popularityBuckets\": [1", "EOF"),
        ] {
            let refused = read(text).expect_err(text);
            assert!(refused.contains(said), "{text}: {refused}");
        }
    }

    /// The most popular hundredth and tenth of the objects, as the data's own description has them.
    #[test]
    fn traces_of_caches_keep_their_shares() {
        let root = std::env::var_os("NANDSCAPE_DATA").map_or_else(
            || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/data"),
            std::path::PathBuf::from,
        );
        for (name, hundredth, tenth) in [("multi1", 0.20, 0.52), ("sprite", 0.20, 0.77)] {
            let path = root.join(format!("popularity/lirs/{name}.trace.gz"));
            if !path.exists() {
                println!("skipped: no data");
                return;
            }
            let measured = Measured::read(&path).expect("a list of requests");
            let mut stream = Stream::new(9, Purpose::Request);
            let (n, draws) = (1_000_000, 100_000);
            let ranks: Vec<u64> = (0..draws).map(|_| measured.rank(n, stream.unit())).collect();
            let below = |share: f64| {
                ranks.iter().filter(|rank| (**rank as f64) < share * n as f64).count() as f64
                    / f64::from(draws)
            };
            // The description has whole per cent.
            assert!((below(0.01) - hundredth).abs() < 0.012, "{name}: {}", below(0.01));
            assert!((below(0.1) - tenth).abs() < 0.012, "{name}: {}", below(0.1));
        }
    }
}
