//! Written lines that wait for the rest of their sector.
//!
//! Block commands move whole sectors; a cache writes back single lines. A page with written lines is kept until another
//! page needs its place. It then leaves: each run of adjacent sectors is one write, before which partly written sectors
//! are read. The page answers reads until the last write is done; a write to it waits until then.

use super::GatherSpec;
use engine::List;
use proto::memory::{Lines, PAGE};

/// Bytes of a sector.
pub(super) const SECTOR: u64 = 512;
/// Sectors of a page.
const SECTORS: u32 = (PAGE / SECTOR) as u32;

/// Sectors of a page in lines: one, two, four or eight each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sectors {
    shift: u32,
}

impl Sectors {
    pub(super) fn new(lines: Lines) -> Sectors {
        Sectors { shift: (lines.count() / SECTORS).trailing_zeros() }
    }

    /// Returns whether any line of a sector is among these, and whether all are.
    fn holds(self, lines: u64, sector: u32) -> (bool, bool) {
        let all = (1 << (1 << self.shift)) - 1;
        let held = lines >> (sector << self.shift) & all;
        (held != 0, held == all)
    }

    /// Sectors that hold these lines, including the ones between them.
    pub(super) fn of_lines(self, lines: u64) -> Run {
        debug_assert!(lines != 0, "no lines");
        let last = u64::BITS - 1 - lines.leading_zeros();
        Run { first: lines.trailing_zeros() >> self.shift, end: (last >> self.shift) + 1 }
    }

    /// Partly written sectors of a run, from the first to the last.
    pub(super) fn partial(self, run: Run, lines: u64) -> Option<Run> {
        let is_partial = |sector: &u32| self.holds(lines, *sector) == (true, false);
        let first = (run.first..run.end).find(is_partial)?;
        let last = (run.first..run.end).rfind(is_partial)?;
        Some(Run { first, end: last + 1 })
    }

    /// Runs of adjacent sectors that hold these lines.
    pub(super) fn runs(self, lines: u64) -> impl Iterator<Item = Run> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let holds = |sector: &u32| self.holds(lines, *sector).0;
            let first = (at..SECTORS).find(holds)?;
            let end = (first..SECTORS).find(|sector| !holds(sector)).unwrap_or(SECTORS);
            at = end;
            Some(Run { first, end })
        })
    }
}

/// Adjacent sectors of a page: the first, and one past the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Run {
    pub(super) first: u32,
    pub(super) end: u32,
}

impl Run {
    pub(super) fn offset(self, page: u64) -> u64 {
        page * PAGE + u64::from(self.first) * SECTOR
    }

    pub(super) fn bytes(self) -> u64 {
        u64::from(self.end - self.first) * SECTOR
    }
}

/// Page with written lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gathered {
    pub(super) page: u64,
    /// Application of the page, for which it will be written.
    pub(super) app: u8,
    /// Lines that have been written; zero if the place is free.
    pub(super) lines: u64,
    /// Time of the last write, counted in writes.
    written: u64,
    /// Runs that are not durable yet, once the page leaves.
    pub(super) leaving: u32,
}

const FREE: Gathered = Gathered { page: 0, app: 0, lines: 0, written: 0, leaving: 0 };

/// All pages with written lines: a state machine without time.
pub(super) struct Gather {
    ways: u32,
    sets: u32,
    places: Vec<Gathered>,
    /// Writes that wait for a place, or for their page to have left, by set.
    pub(super) blocked: Vec<List>,
    writes: u64,
}

/// Outcome of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Put {
    /// The lines have joined those of their page, or taken a place.
    Taken,
    /// The write must wait until a page of its set has left.
    Blocked,
}

impl Gather {
    pub(super) fn new(spec: &GatherSpec) -> Gather {
        let sets = spec.sets();
        Gather {
            ways: spec.ways,
            sets,
            places: vec![FREE; (sets * spec.ways) as usize],
            blocked: vec![List::EMPTY; sets as usize],
            writes: 0,
        }
    }

    pub(super) fn set_of(&self, page: u64) -> usize {
        (page % u64::from(self.sets)) as usize
    }

    fn set(&self, page: u64) -> std::ops::Range<usize> {
        let first = self.set_of(page) * self.ways as usize;
        first..first + self.ways as usize
    }

    /// Page in a place.
    pub(super) fn page(&self, place: u32) -> &Gathered {
        &self.places[place as usize]
    }

    /// Lines of a page that are gathered.
    pub(super) fn lines(&self, page: u64) -> u64 {
        let here = |at: usize| Some(&self.places[at]).filter(|g| g.lines != 0 && g.page == page);
        self.set(page).find_map(here).map_or(0, |g| g.lines)
    }

    /// Takes written lines.
    pub(super) fn put(&mut self, page: u64, app: u8, lines: u64) -> Put {
        self.writes += 1;
        let is = |g: &Gathered| g.lines != 0 && g.page == page;
        let own = self.set(page).find(|at| is(&self.places[*at]));
        let Some(at) = own.or_else(|| self.set(page).find(|at| self.places[*at].lines == 0)) else {
            return Put::Blocked;
        };
        let place = &mut self.places[at];
        if place.leaving > 0 {
            return Put::Blocked;
        }
        *place = Gathered { page, app, lines: place.lines | lines, written: self.writes, leaving: 0 };
        Put::Taken
    }

    /// Place to empty so that a write to the set of `page` finds room: the one written longest ago, unless one is free
    /// or already being emptied.
    pub(super) fn victim(&self, page: u64) -> Option<u32> {
        let set = &self.places[self.set(page)];
        if set.iter().any(|g| g.lines == 0 || g.leaving > 0) {
            return None;
        }
        let oldest = self.set(page).min_by_key(|at| self.places[*at].written)?;
        Some(oldest as u32)
    }

    /// Starts the write-back of a page, in `runs` runs.
    pub(super) fn leave(&mut self, place: u32, runs: u32) {
        self.places[place as usize].leaving = runs;
    }

    /// Completes a durable run of a page. Returns true if it was the last, and the place is free.
    pub(super) fn left(&mut self, place: u32) -> bool {
        let gathered = &mut self.places[place as usize];
        gathered.leaving -= 1;
        if gathered.leaving > 0 {
            return false;
        }
        *gathered = FREE;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proto::memory::{CPU_LINE, LINE};

    proptest! {
        #[test]
        fn runs_are_the_sectors_with_lines(mask: u64, line in prop::sample::select(vec![CPU_LINE, LINE, 256, 512])) {
            let of = Lines::of(line).expect("a size of lines");
            let (lines, each) = (mask & of.all(), (SECTOR / line) as u32);
            let full = (1 << each) - 1;
            let mut sectors = [false; SECTORS as usize];
            for line in (0..of.count()).filter(|line| lines >> line & 1 == 1) {
                sectors[(line / each) as usize] = true;
            }
            let by = Sectors::new(of);
            let mut covered = [false; SECTORS as usize];
            let mut last_end = None;
            for run in by.runs(lines) {
                prop_assert!(last_end.is_none_or(|end| run.first > end), "runs do not touch");
                last_end = Some(run.end);
                (run.first..run.end).for_each(|sector| covered[sector as usize] = true);
                let partial = (run.first..run.end).filter(|s| (lines >> (s * each) & full) != full).collect::<Vec<_>>();
                let expected = partial.first().map(|first| Run { first: *first, end: partial[partial.len() - 1] + 1 });
                prop_assert_eq!(by.partial(run, lines), expected);
            }
            prop_assert_eq!(covered, sectors);
            if lines != 0 {
                let outermost = [sectors.iter().position(|s| *s), sectors.iter().rposition(|s| *s)].map(|s| s.expect("lines") as u32);
                prop_assert_eq!(by.of_lines(lines), Run { first: outermost[0], end: outermost[1] + 1 });
            }
        }
    }

    #[test]
    fn lines_are_in_the_sectors_between_the_outermost() {
        let of = |line, lines| Sectors::new(Lines::of(line).expect("a size of lines")).of_lines(lines);
        assert_eq!(of(LINE, 1), Run { first: 0, end: 1 });
        assert_eq!(of(LINE, 0b1_0000), Run { first: 1, end: 2 });
        assert_eq!(of(LINE, 1 << 31 | 1 << 7), Run { first: 1, end: 8 });
        assert_eq!(of(CPU_LINE, 1 << 63 | 1 << 8), Run { first: 1, end: 8 });
        assert_eq!(of(512, 0b1001_0000), Run { first: 4, end: 8 });
        let run = Run { first: 3, end: 5 };
        assert_eq!((run.offset(2), run.bytes()), (2 * 4096 + 1536, 1024));
    }

    #[test]
    fn the_page_written_longest_ago_makes_room() {
        let spec = GatherSpec {
            capacity: config::units::Bytes::from_kib(16),
            ways: 2,
            latency: config::units::Duration::new(engine::Time::ZERO),
        };
        let mut gather = Gather::new(&spec);
        assert_eq!([gather.put(0, 0, 1), gather.put(2, 0, 1), gather.put(0, 0, 2)], [Put::Taken; 3]);
        assert_eq!((gather.lines(0), gather.lines(2), gather.lines(4)), (3, 1, 0));
        let victim = gather.victim(4).expect("the set is full");
        assert_eq!(gather.page(victim).page, 2);
        gather.leave(victim, 2);
        // The page can be read, but not written, and no other page need leave.
        assert_eq!(
            (gather.lines(2), gather.put(2, 0, 8), gather.put(4, 0, 1)),
            (1, Put::Blocked, Put::Blocked)
        );
        assert_eq!((gather.victim(4), gather.left(victim), gather.left(victim)), (None, false, true));
        assert_eq!((gather.put(4, 0, 1), gather.lines(2)), (Put::Taken, 0));
    }
}
