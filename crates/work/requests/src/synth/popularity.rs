//! Non-uniform choice of blocks: fio's `random_distribution=`, and measured popularity.

use super::permute::Permutation;
use super::{Purpose, Stream, Zipf};
use config::{Diagnostic, Place};
use rustc_hash::FxHashMap;
use std::{fs::File, io::Read, path::Path};
use text::Input;

/// Frequency of each block by rank: rank 0 is the most popular.
///
/// Ranks are scattered over the region by a permutation, the same for every job; the place of rank 0 differs between
/// jobs unless a center fixes it. fio scatters with `(rank * golden ratio + offset) mod n`, which is not one to one:
/// some blocks have several ranks there, and some are never chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Popularity {
    /// Zipf with this skew.
    Zipf {
        /// Skew, above zero.
        theta: f64,
    },
    /// fio's Pareto: rank = (n - 1) u^(ln h / ln(1 - h)), so that the first `h` of the ranks get `1 - h` of the
    /// requests.
    Pareto {
        /// Between 0 and 1, both excluded.
        h: f64,
    },
    /// fio's normal: the mean of twelve uniform ranks plus a uniform jitter.
    Normal {
        /// Width of the jitter in percent of the ranks, of which at most 50 count.
        deviation: f64,
    },
}

/// Popularity over the blocks of one region.
#[derive(Clone, Debug)]
pub(crate) struct Popular {
    popularity: Sampler,
    /// Place of each rank; none if neighbouring ranks are neighbouring blocks.
    scatter: Option<Permutation>,
    ranks: u64,
    shift: u64,
}

/// Ranks per file, of which fio draws one: `FIO_FSERVICE_SHIFT`.
const RANKS_OF_FILE: u64 = 1 << 10;

#[derive(Clone, Debug)]
enum Sampler {
    Zipf(Zipf),
    Pareto { last: f64, power: f64 },
    Normal { blocks: u64, jitter: u64 },
}

impl Popular {
    /// Creates a popularity over `blocks` blocks; rank 0 is at `center * blocks`, or at a random place if `center` is
    /// not given.
    pub(crate) fn new(popularity: Popularity, blocks: u64, center: Option<f64>, seed: u64) -> Popular {
        let blocks = blocks.max(1);
        let scatter = Permutation::new(blocks, 0);
        let hottest = match center {
            Some(center) => ((center * blocks as f64) as u64).min(blocks - 1),
            None => Stream::new(seed, Purpose::Scatter).below(blocks),
        };
        let shift = (hottest + blocks - scatter.at(0)) % blocks;
        Popular { popularity: Sampler::new(popularity, blocks), scatter: Some(scatter), ranks: blocks, shift }
    }

    /// Creates a popularity over files, as fio's `init_rand_file_service`: each has 1024 adjacent ranks, and ranks
    /// wrap. The first rank is at `center` of all, or at a random place drawn from `stream` if it is not given. For
    /// [`Popularity::Normal`] `center` is the place of the median, 0.5 by default.
    pub(crate) fn of_files(
        popularity: Popularity,
        files: u64,
        center: Option<f64>,
        stream: &mut Stream,
    ) -> Popular {
        let ranks = files.max(1) * RANKS_OF_FILE;
        let at = |share: f64| ((share * ranks as f64) as u64) % ranks;
        let shift = match (popularity, center) {
            (Popularity::Normal { .. }, center) => (at(center.unwrap_or(0.5)) + ranks - ranks / 2) % ranks,
            (_, Some(center)) => at(center),
            (_, None) => stream.below(ranks),
        };
        Popular { popularity: Sampler::new(popularity, ranks), scatter: None, ranks, shift }
    }

    /// Draws a block.
    #[inline]
    pub(crate) fn draw(&self, stream: &mut Stream) -> u64 {
        let rank = self.rank(stream);
        let block = self.scatter.as_ref().map_or(rank, |scatter| scatter.at(rank)) + self.shift;
        if block >= self.ranks { block - self.ranks } else { block }
    }

    /// Draws a file, for a popularity over files.
    pub(crate) fn draw_file(&self, stream: &mut Stream) -> usize {
        (self.draw(stream) / RANKS_OF_FILE) as usize
    }

    #[inline]
    fn rank(&self, stream: &mut Stream) -> u64 {
        match &self.popularity {
            Sampler::Zipf(zipf) => zipf.rank(|| stream.unit()),
            Sampler::Pareto { last, power } => (last * libm::exp(power * libm::log(stream.unit()))) as u64,
            Sampler::Normal { blocks, jitter } => normal(*blocks, *jitter, stream),
        }
    }
}

impl Sampler {
    fn new(popularity: Popularity, ranks: u64) -> Sampler {
        match popularity {
            Popularity::Zipf { theta } => Sampler::Zipf(Zipf::new(ranks, theta)),
            Popularity::Pareto { h } => {
                Sampler::Pareto { last: (ranks - 1) as f64, power: libm::log(h) / libm::log(1.0 - h) }
            }
            Popularity::Normal { deviation } => Sampler::Normal {
                blocks: ranks,
                jitter: ((ranks as f64 * deviation / 100.0).ceil() as u64).min(ranks / 2),
            },
        }
    }
}

/// Draws as fio's `gauss_next`: the mean of twelve uniform draws, moved by a uniform jitter that is halved until it
/// fits.
fn normal(blocks: u64, jitter: u64, stream: &mut Stream) -> u64 {
    let mut sum = 0u64;
    for _ in 0..6 {
        let bits = stream.bits();
        sum += (bits >> 32) + (bits & 0xffff_ffff);
    }
    let mean = ((sum as u128 * blocks as u128) / (12u128 << 32)) as i64;
    if jitter == 0 {
        return mean as u64;
    }
    let mut by = stream.below(jitter) as i64 - (jitter / 2) as i64;
    while !(0..blocks as i64).contains(&(mean + by)) {
        by /= 2;
    }
    (mean + by) as u64
}

/// Range of blocks and its share of the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Percent of the requests.
    pub percent: u8,
    /// First block.
    pub first: u64,
    /// Number of blocks; at least one if the zone gets any requests.
    pub blocks: u64,
}

/// Table of `zoned` and `zoned_abs`: uniform within a zone, zones by percent.
#[derive(Clone, Debug)]
pub(crate) struct ZoneTable {
    /// Zone of each percent, as in fio.
    of_percent: [u8; 100],
    zones: Vec<Zone>,
}

impl ZoneTable {
    /// Creates a table of at most 256 `zones`, whose percentages add up to 100.
    pub(crate) fn new(zones: &[Zone]) -> ZoneTable {
        let mut of_percent = [0u8; 100];
        let mut filled = 0;
        for (index, zone) in zones.iter().enumerate() {
            for slot in of_percent.iter_mut().skip(filled).take(zone.percent as usize) {
                *slot = index as u8;
            }
            filled += zone.percent as usize;
        }
        ZoneTable { of_percent, zones: zones.to_vec() }
    }

    /// Draws a block.
    #[inline]
    pub(crate) fn draw(&self, stream: &mut Stream) -> u64 {
        let zone = self.zones[self.of_percent[stream.below(100) as usize] as usize];
        zone.first + stream.below(zone.blocks)
    }
}

// Measured popularity: the share of requests that each group of objects got.
//
// Two kinds of files are read, plain or compressed: the distributions of CacheLib's cachebench (JSON,
// `popularityBuckets` with the number of keys in each group and `popularityWeights` with its requests), and lists of
// requested names, one per line.

/// Largest file in bytes, decompressed: it is held in memory.
const LONGEST: u64 = 1 << 30;

/// Cumulative shares of requests over shares of objects, most popular first; uniform within a group.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    groups: Vec<Group>,
}

/// End of a group, cumulative over all groups so far.
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
    /// If a file cannot be read or is neither of the two kinds.
    pub fn read(path: &Path) -> Result<Measured, Diagnostic> {
        let shown = path.display().to_string();
        let unreadable = |fault| Diagnostic::new(format!("cannot read `{shown}`: {fault}"));
        let input = Input::new(File::open(path).map_err(unreadable)?).map_err(unreadable)?;
        let mut bytes = Vec::new();
        input.bytes.take(LONGEST + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 > LONGEST {
            return Err(Diagnostic::new(format!("`{shown}` is larger than {LONGEST} B")));
        }
        let json = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
        let groups = if json { distribution(&shown, &bytes)? } else { list(&shown, &bytes)? };
        Measured::new(groups).map_err(|what| Diagnostic::new(format!("`{shown}`: {what}")))
    }

    /// Builds the shares from the keys and the requests of each group.
    fn new(mut groups: Vec<(u64, f64)>) -> Result<Measured, String> {
        if let Some((_, wrong)) = groups.iter().find(|(_, requests)| !requests.is_finite() || *requests < 0.0)
        {
            return Err(format!("{wrong} requests in a group; expected a finite number of at least 0"));
        }
        groups.retain(|(keys, _)| *keys > 0);
        let each = |(keys, requests): &(u64, f64)| requests / *keys as f64;
        groups.sort_by(|a, b| each(b).total_cmp(&each(a)));
        let all = |part: fn(&(u64, f64)) -> f64| groups.iter().map(part).sum::<f64>();
        let (objects, requests) = (all(|(keys, _)| *keys as f64), all(|(_, requests)| *requests));
        if requests <= 0.0 {
            return Err("it lists no requests".into());
        }
        let mut end = Group { requests: 0.0, objects: 0.0 };
        let group = |(keys, part): &(u64, f64)| {
            end.requests += part / requests;
            end.objects += *keys as f64 / objects;
            end
        };
        Ok(Measured { groups: groups.iter().map(group).collect() })
    }

    /// Returns a rank of `n`, from a draw that is uniform between 0 and 1. The share of requests depends only on the
    /// share of objects, not on how many were measured.
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

/// Reads a distribution of cachebench.
fn distribution(shown: &str, bytes: &[u8]) -> Result<Vec<(u64, f64)>, Diagnostic> {
    let read: CacheBench = serde_json::from_slice(bytes).map_err(|fault| {
        let help = "a cachebench distribution has `popularityBuckets` and `popularityWeights`, each a list of numbers";
        Diagnostic::new(format!("`{shown}` is not a measured popularity: {fault}")).help(help)
    })?;
    if read.keys.len() != read.requests.len() {
        let (keys, requests) = (read.keys.len(), read.requests.len());
        let what = format!("`{shown}` has {keys} `popularityBuckets` and {requests} `popularityWeights`");
        return Err(Diagnostic::new(what).help("each bucket needs one weight"));
    }
    Ok(read.keys.into_iter().zip(read.requests).collect())
}

/// Reads a list of requested names, one per line: one group per number of requests.
fn list(shown: &str, bytes: &[u8]) -> Result<Vec<(u64, f64)>, Diagnostic> {
    let mut requests: FxHashMap<&[u8], u64> = FxHashMap::default();
    for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        let name = line.trim_ascii();
        if !name.iter().all(u8::is_ascii_graphic) {
            let text = String::from_utf8_lossy(line).chars().take(80).collect();
            let place = Place { source: shown.into(), line: number, column: 1, text, key: String::new() };
            let what = "a list of requests has one name per line: letters, digits and signs, no blanks";
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

    fn ranks(popularity: Popularity, blocks: u64, draws: u32) -> Vec<u64> {
        let popular = Popular::new(popularity, blocks, None, 1);
        let mut stream = Stream::new(5, Purpose::Offset);
        (0..draws).map(|_| popular.rank(&mut stream)).collect()
    }

    #[test]
    fn pareto_gives_the_first_h_of_the_ranks_the_rest_of_the_requests() {
        for h in [0.1, 0.2, 0.4] {
            let (blocks, draws) = (1_000_000, 100_000);
            let drawn = ranks(Popularity::Pareto { h }, blocks, draws);
            let hot = drawn.iter().filter(|&&rank| (rank as f64) < h * blocks as f64).count() as f64;
            let sigma = (draws as f64 * h * (1.0 - h)).sqrt();
            assert!((hot - (1.0 - h) * draws as f64).abs() < 5.0 * sigma, "h = {h}: {hot}");
        }
    }

    #[test]
    fn normal_has_the_mean_and_variance_of_its_parts() {
        for deviation in [0.0, 10.0, 30.0] {
            let (n, draws) = (1_000_000.0, 100_000);
            let drawn = ranks(Popularity::Normal { deviation }, n as u64, draws);
            let mean = drawn.iter().sum::<u64>() as f64 / draws as f64;
            let variance = drawn.iter().map(|&x| (x as f64 - mean).powi(2)).sum::<f64>() / draws as f64;
            // Twelve uniforms averaged: n^2 / 144. A uniform jitter of width w: w^2 / 12.
            let jitter = n * deviation / 100.0;
            let expected = n * n / 144.0 + jitter * jitter / 12.0;
            assert!((mean - n / 2.0).abs() < 5.0 * (expected / draws as f64).sqrt(), "{mean}");
            assert!((variance / expected - 1.0).abs() < 0.03, "{variance} against {expected}");
        }
    }

    #[test]
    fn center_places_the_hottest_block() {
        for center in [0.0, 0.25, 1.0] {
            let popular = Popular::new(Popularity::Zipf { theta: 1.2 }, 1000, Some(center), 7);
            let mut stream = Stream::new(2, Purpose::Offset);
            let mut counts = vec![0u32; 1000];
            for _ in 0..20_000 {
                counts[popular.draw(&mut stream) as usize] += 1;
            }
            let hottest = (0..1000).max_by_key(|&i| counts[i]).unwrap();
            assert_eq!(hottest, ((center * 1000.0) as usize).min(999));
        }
    }

    #[test]
    fn zones_get_their_share_and_their_range() {
        let zones = [Zone { percent: 60, first: 0, blocks: 10 }, Zone { percent: 40, first: 50, blocks: 25 }];
        let table = ZoneTable::new(&zones);
        let mut stream = Stream::new(2, Purpose::Offset);
        let mut counts = [0u32; 80];
        for _ in 0..100_000 {
            counts[table.draw(&mut stream) as usize] += 1;
        }
        // 34 degrees of freedom: the 99.99 % point is 73.5.
        let cell = |i: usize| match i {
            0..10 => 6_000.0,
            50..75 => 1_600.0,
            _ => 0.0,
        };
        let outside: u32 = (0..80).filter(|&i| cell(i) == 0.0).map(|i| counts[i]).sum();
        assert_eq!(outside, 0);
        let inside = (0..80).filter(|&i| cell(i) > 0.0);
        let chi: f64 = inside.map(|i| (counts[i] as f64 - cell(i)).powi(2) / cell(i)).sum();
        assert!(chi < 73.5, "{chi}");
    }

    fn read(text: &str) -> Result<Measured, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("measured");
        std::fs::write(&path, text).expect("a file");
        Measured::read(&path).map_err(|diagnostic| diagnostic.to_string())
    }

    /// Checks that two of six objects get 8 of 12 requests, one gets two, and three get two.
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
            ("", "lists no requests"),
            ("1 2\n", "one name per line"),
            ("{\"popularityBuckets\": [1]}", "missing field `popularityWeights`"),
            ("{\"popularityBuckets\": [1], \"popularityWeights\": [1, 2]}", "1 `popularityBuckets` and 2"),
            ("{\"popularityBuckets\": [1], \"popularityWeights\": [-1]}", "-1 requests"),
            ("{\"popularityBuckets\": [1", "EOF"),
        ] {
            let refused = read(text).expect_err(text);
            assert!(refused.contains(said), "{text}: {refused}");
        }
    }

    /// Checks the most popular hundredth and tenth of the objects against the data's own description.
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
            // The description gives whole per cent.
            assert!((below(0.01) - hundredth).abs() < 0.012, "{name}: {}", below(0.01));
            assert!((below(0.1) - tenth).abs() < 0.012, "{name}: {}", below(0.1));
        }
    }
}
