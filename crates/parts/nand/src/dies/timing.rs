//! Times of the array and of the channel, and their deviation by block.

use super::errors::ErrorRates;
use super::op::{NO_OP, Op, OpKind};
use engine::{Time, mix};
use net::Rate;

/// Array times by page type, and channel times.
#[derive(Clone, Debug)]
pub struct Timing {
    /// Read time by page type.
    pub read: Vec<Time>,
    /// Program time of one program unit's page, by page type; one entry if a word line is programmed in one shot.
    pub program: Vec<Time>,
    /// Number of passes of a program; each moves the data again.
    pub passes: u32,
    /// True if one program operation writes the whole program unit at once.
    pub one_shot: bool,
    /// Block erase time.
    pub erase: Time,
    /// Page type of each page of a block.
    pub page_type: Vec<u8>,
    /// Relative speed-up of programs and slow-down of erases by 1,000 erases, in parts per million.
    pub wear_ppm: Wear,
    /// Deviation of blocks; `None` if they do not differ.
    pub spread: Option<Spread>,
    /// Times of SLC blocks (one bit per cell), if any.
    pub slc: Option<SlcTimes>,
    /// Raw bit errors; `None` if not modelled.
    pub errors: Option<ErrorRates>,
    /// Time of the command and address cycles of a read.
    pub read_command: Time,
    /// Time of the command and address cycles of a column change, for a read of what the register holds.
    pub column_command: Time,
    /// Time of the command and address cycles of a program.
    pub program_command: Time,
    /// Time of the command and address cycles of an erase.
    pub erase_command: Time,
    /// Set-up time before data leaves the die.
    pub data_out: Time,
    /// Set-up time before data enters the die.
    pub data_in: Time,
    /// Data rate of the channel.
    pub rate: Rate,
    /// Bytes of a page, or of a map unit if that is larger: the maximum that leaves for reads that share a sensing.
    pub most_bytes: u32,
    /// Pages that one map unit touches.
    pub pages_per_unit: u32,
    /// Pages that one program operation writes into a block.
    pub program_pages: u32,
}

/// Times of a page of an SLC block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlcTimes {
    /// Read time.
    pub read: Time,
    /// Program time.
    pub program: Time,
}

/// Drift of times with wear.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wear {
    /// Parts per million by which each erase speeds programs up.
    pub program: u32,
    /// Parts per million by which each erase slows erases down.
    pub erase: u32,
}

impl Timing {
    /// Returns the timing of dies whose planes all do the same, so that one operation with the data of all represents
    /// one command per plane. `None` if the times of `planes` transfers of `bytes` do not add up to that of their sum.
    pub fn of_planes(&self, planes: u32, bytes: u64) -> Option<Timing> {
        let all = |time: Time| time.times(planes.into());
        let is_same = self.rate.time(bytes * u64::from(planes)) == all(self.rate.time(bytes));
        is_same.then(|| Timing {
            read_command: all(self.read_command),
            column_command: all(self.column_command),
            program_command: all(self.program_command),
            erase_command: all(self.erase_command),
            data_out: all(self.data_out),
            data_in: all(self.data_in),
            most_bytes: self.most_bytes * planes,
            ..self.clone()
        })
    }

    /// Returns the array time of an operation.
    #[inline]
    pub fn array(&self, op: &Op) -> Time {
        match op.kind {
            OpKind::Read if op.from_register => Time::ZERO,
            OpKind::Read => self.of_block(Work::Read, op, op.block, self.sensing(op)),
            OpKind::Program => self.of_block(Work::Program, op, op.block, self.programming(op)),
            OpKind::CopyBack => {
                let sensing = self.sense(op.source_page, self.program_pages);
                self.of_block(Work::Read, op, op.source_block, sensing)
                    + self.of_block(Work::Program, op, op.block, self.programming(op))
            }
            OpKind::Erase => self.of_block(Work::Erase, op, op.block, self.erasing(op)),
        }
    }

    #[inline]
    fn of_block(&self, work: Work, op: &Op, block: u32, time: Time) -> Time {
        match &self.spread {
            None => time,
            Some(spread) => spread.of(work, op, block, time),
        }
    }

    #[inline]
    fn erasing(&self, op: &Op) -> Time {
        if self.wear_ppm.erase == 0 {
            return self.erase;
        }
        scale(self.erase, 1_000_000 + u64::from(self.wear_ppm.erase) * u64::from(op.erases))
    }

    #[inline]
    fn sensing(&self, op: &Op) -> Time {
        match self.slc.filter(|_| op.is_slc) {
            None => self.sense(op.page, self.pages_per_unit),
            Some(slc) => slc.read.times(self.pages_per_unit.into()),
        }
    }

    /// Returns the array time to read `pages` pages from `page` on.
    #[inline]
    pub fn sense(&self, page: u32, pages: u32) -> Time {
        if pages == 1 {
            return self.read[usize::from(self.page_type[page as usize])];
        }
        (page..page + pages)
            .fold(Time::ZERO, |sum, p| sum + self.read[usize::from(self.page_type[p as usize])])
    }

    #[inline]
    fn programming(&self, op: &Op) -> Time {
        let (page, pages) = (op.page, self.program_pages);
        let time = if let Some(slc) = self.slc.filter(|_| op.is_slc) {
            // Page by page, even if a word line is programmed as one elsewhere.
            slc.program.times(pages.into())
        } else if self.one_shot {
            self.program[0].times(u64::from(self.passes))
        } else if pages == 1 {
            self.program[usize::from(self.page_type[page as usize])]
        } else {
            (page..page + pages)
                .fold(Time::ZERO, |sum, p| sum + self.program[usize::from(self.page_type[p as usize])])
        };
        if self.wear_ppm.program == 0 {
            return time;
        }
        scale(time, 1_000_000u64.saturating_sub(u64::from(self.wear_ppm.program) * u64::from(op.erases)))
    }

    /// Returns the channel time of a command; programs move their data in the same tenure.
    #[inline]
    pub fn command(&self, op: &Op) -> Time {
        match op.kind {
            OpKind::Read if op.from_register => self.column_command,
            OpKind::Read | OpKind::CopyBack => self.read_command,
            OpKind::Erase => self.erase_command,
            OpKind::Program if op.register != NO_OP => self.program_command,
            OpKind::Program => {
                let once = self.enter(u64::from(op.bytes));
                if op.is_slc { once } else { once.times(u64::from(self.passes)) }
            }
        }
    }

    /// Returns the channel time of data that enter a die.
    #[inline]
    pub(super) fn enter(&self, bytes: u64) -> Time {
        self.program_command + self.data_in + self.rate.time(bytes)
    }

    /// Returns the channel time of read data that leave.
    #[inline]
    pub fn leave(&self, bytes: u64) -> Time {
        self.data_out + self.rate.time(bytes)
    }
}

fn scale(time: Time, ppm: u64) -> Time {
    Time::from_ps((u128::from(time.ps()) * u128::from(ppm) / 1_000_000) as u64)
}

// Deviation of blocks: each is a little faster or slower than its kind.
//
// A block's deviation is drawn once and for all from the run's seed and the block's place, as a hash: nothing is
// stored, and no other random stream changes. It is the sum of four uniform numbers (Irwin and Hall), scaled to the
// standard deviation of the spread: bell-shaped, symmetric, and never beyond 3.46 standard deviations.

/// Standard deviation of the sum of four numbers of 16 bits, doubled: `2 * sqrt(4 * (2^32 - 1) / 12)`.
const DEVIATION: i64 = 75_674;
/// Twice the mean of that sum.
const CENTRE: i64 = 4 * 65_535;
/// Parts per million of a whole.
const WHOLE: i64 = 1_000_000;

/// Standard deviations of block times, in parts per million of these times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Seed that distinguishes devices.
    pub seed: u64,
    /// Deviation of sensing.
    pub read: u32,
    /// Deviation of programs.
    pub program: u32,
    /// Deviation of erases.
    pub erase: u32,
}

/// Kind of work whose time deviates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    Read,
    Program,
    Erase,
}

impl Spread {
    /// Returns the deviating time of a block of the operation's plane.
    pub(super) fn of(&self, work: Work, op: &Op, block: u32, time: Time) -> Time {
        let deviation = match work {
            Work::Read => self.read,
            Work::Program => self.program,
            Work::Erase => self.erase,
        };
        let plane = u64::from(op.die) << 8 | u64::from(op.plane);
        let place = mix(self.seed ^ mix(plane << 32 | u64::from(block)));
        let ppm = WHOLE + deviations(mix(place ^ work as u64), deviation);
        Time::from_ps((u128::from(time.ps()) * ppm as u128 / WHOLE as u128) as u64)
    }
}

/// Returns the distance of 64 random bits from the middle, in parts per million; at most 3.47 times the deviation.
pub(super) fn deviations(bits: u64, deviation: u32) -> i64 {
    let sum: i64 = (0..4).map(|n| (bits >> (16 * n) & 0xffff) as i64).sum();
    i64::from(deviation) * (2 * sum - CENTRE) / DEVIATION
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean, standard deviation and ends of the sum of four uniform numbers.
    #[test]
    fn deviations_are_those_of_four_uniform_numbers() {
        let draws: Vec<f64> =
            (0..40_000u64).map(|n| deviations(mix(n), 1_000_000) as f64 / 1_000_000.0).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let square = draws.iter().map(|d| d * d).sum::<f64>() / draws.len() as f64;
        // Standard errors: 1 / sqrt(n), and sqrt((kurtosis - 1) / 4n) with a kurtosis of 2.7.
        assert!(mean.abs() < 4.0 / 200.0, "{mean}");
        assert!((square.sqrt() - 1.0).abs() < 4.0 * 0.65 / 200.0, "{square}");
        let ends = [deviations(0, 1_000_000), deviations(u64::MAX, 1_000_000)];
        assert!(ends.iter().all(|end| (end.abs() - 3_464_100).abs() < 100), "{ends:?}");
    }
}
