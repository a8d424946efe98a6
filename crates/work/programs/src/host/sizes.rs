//! How large objects are, and how often each is asked for.

use engine::Rng;
use requests::synth::Zipf;

/// Files of one class in a directory.
const FILES: u64 = 9;
/// Files of a directory.
const DIRECTORY: u64 = 4 * FILES;
/// Percent of the requests by class.
const CLASSES: [u64; 4] = [35, 50, 14, 1];
/// A class's files from the most to the least popular; the one at place `k`, counted from one, gets a share of 1 / k. It gives SPECweb99's
/// percentages 3.9, 5.9, 8.8, 17.7, 35.3, 11.8, 7.1, 5.0, 4.4.
const BY_POPULARITY: [u64; FILES as usize] = [4, 3, 5, 2, 6, 1, 7, 8, 0];
/// The smallest common multiple of the places, so that the shares are whole.
const WHOLE: u64 = 2_520;

/// Objects, by number.
pub(crate) trait Set {
    /// How many.
    fn len(&self) -> u64;
    /// Bytes of one.
    fn bytes(&self, object: u64) -> u64;
    /// One that is asked for.
    fn draw(&self, rng: &mut Rng) -> u64;
    /// Its name.
    fn name(&self, object: u64) -> String;
}

/// The static files of SPECweb99: directories of 36 files, nine of each class, of about 5 MB.
pub(crate) struct SpecWeb {
    directories: u64,
    zipf: Zipf,
}

impl SpecWeb {
    /// Bytes of a directory.
    pub(crate) fn directory_bytes() -> u64 {
        (0..DIRECTORY).map(SpecWeb::bytes_of).sum()
    }

    /// As many directories as fit, at least one, with Zipf's law over them.
    pub(crate) fn new(bytes: u64, theta: f64) -> SpecWeb {
        let directories = (bytes / SpecWeb::directory_bytes()).max(1);
        SpecWeb { directories, zipf: Zipf::new(directories, theta) }
    }

    /// Class `c` has files of 1 to 9 times 102.4, 1,024, 10,240 and 102,400 bytes.
    fn bytes_of(file: u64) -> u64 {
        let (class, n) = (file % DIRECTORY / FILES, file % FILES + 1);
        (n * 1_024 * 10_u64.pow(class as u32) + 5) / 10
    }

    fn class(rng: &mut Rng) -> u64 {
        let mut percent = rng.below(100);
        for (class, share) in (0..).zip(CLASSES) {
            if percent < share {
                return class;
            }
            percent -= share;
        }
        unreachable!("the shares are 100 together")
    }

    fn file(rng: &mut Rng) -> u64 {
        let all: u64 = (1..=FILES).map(|place| WHOLE / place).sum();
        let mut part = rng.below(all);
        for (place, file) in (1..).zip(BY_POPULARITY) {
            if part < WHOLE / place {
                return file;
            }
            part -= WHOLE / place;
        }
        unreachable!("the parts are all of them")
    }
}

impl Set for SpecWeb {
    fn len(&self) -> u64 {
        self.directories * DIRECTORY
    }

    fn bytes(&self, object: u64) -> u64 {
        SpecWeb::bytes_of(object)
    }

    fn draw(&self, rng: &mut Rng) -> u64 {
        let directory = self.zipf.rank(|| rng.unit());
        directory * DIRECTORY + SpecWeb::class(rng) * FILES + SpecWeb::file(rng)
    }

    fn name(&self, object: u64) -> String {
        let (directory, file) = (object / DIRECTORY, object % DIRECTORY);
        format!("dir{directory:05}/class{}_{}", file / FILES, file % FILES)
    }
}

/// Images, uniform in the logarithm of their size.
pub(crate) struct Images {
    count: u64,
    least: f64,
    /// Logarithm of the largest size over the smallest.
    octaves: f64,
    salt: u64,
    zipf: Option<Zipf>,
}

impl Images {
    /// As many as have `bytes` together in the mean, at least one; popular by Zipf's law, or all alike if `theta` is zero.
    pub(crate) fn new(bytes: u64, (least, most): (u64, u64), theta: f64, salt: u64) -> Images {
        let (low, high) = (least as f64, most as f64);
        let octaves = libm::log(high / low);
        let mean = if octaves > 0.0 { (high - low) / octaves } else { low };
        let count = ((bytes as f64 / mean) as u64).max(1);
        let zipf = (theta > 0.0).then(|| Zipf::new(count, theta));
        Images { count, least: low, octaves, salt, zipf }
    }
}

impl Set for Images {
    fn len(&self) -> u64 {
        self.count
    }

    fn bytes(&self, object: u64) -> u64 {
        let unit = (engine::mix(self.salt ^ object) >> 11) as f64 / (1_u64 << 53) as f64;
        (self.least * libm::exp(unit * self.octaves)) as u64
    }

    fn draw(&self, rng: &mut Rng) -> u64 {
        match &self.zipf {
            Some(zipf) => zipf.rank(|| rng.unit()),
            None => rng.below(self.count),
        }
    }

    fn name(&self, object: u64) -> String {
        format!("image{object:08}")
    }
}
