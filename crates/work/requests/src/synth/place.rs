//! Place of the next request: fio's `get_next_block` and `get_next_buflen` over one region, and `get_next_file` over
//! several files.

use super::job::{Choice, Direction, Each, Files, Follow, Job, Order, Region, Service};
use super::permute::Permutation;
use super::popularity::{Popular, ZoneTable};
use super::{Purpose, Stream};

/// Range of bytes, counted from the start of a region or of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// Random streams from which places are drawn.
#[derive(Clone, Debug)]
pub(crate) struct PlaceStreams {
    pub(crate) offset: Stream,
    pub(crate) size: Stream,
    pub(crate) mixture: Stream,
}

/// Position of a job in its region.
#[derive(Clone, Debug)]
pub(crate) struct Placer {
    source: Source,
    /// Request size of a direction in which every request is a fresh random block of one size; otherwise zero.
    plain: Each<u64>,
    align: Each<u64>,
    bytes: u64,
    /// True if sequential requests start over at the end of the region.
    wraps: bool,
    /// End of the last request of each direction.
    tail: Each<u64>,
    /// Start of the last request of each direction.
    head: Each<u64>,
    /// Requests left until the next random block of a run.
    left_in_run: u64,
}

#[derive(Clone, Debug)]
enum Source {
    Sequential,
    EachOnce { maps: Vec<BlockMap>, of: Each<u8> },
    Uniform(Each<u64>),
    Popular(Box<Each<Option<Popular>>>),
    Zoned(Box<Each<ZoneTable>>),
}

/// Blocks of a region in random order, each once.
///
/// While all requests are one block long, the permutation alone tells which blocks are left. Longer requests also
/// take neighbours, which a bitmap records (fio's `axmap`).
#[derive(Clone, Debug)]
struct BlockMap {
    unit: u64,
    order: Permutation,
    blocks: u64,
    cursor: u64,
    taken: Option<Vec<u64>>,
}

impl Placer {
    /// Creates the position at the start of the first pass over a region of `bytes` bytes; `seed` places the popular
    /// blocks.
    pub(crate) fn new(job: &Job, bytes: u64, seed: u64, streams: &mut PlaceStreams) -> Placer {
        let each = |f: &dyn Fn(Direction) -> u64| Direction::ALL.map(f);
        let source = match &job.order {
            Order::Sequential { .. } => Source::Sequential,
            Order::Random { choice: Choice::EachOnce, .. } => {
                let (maps, of) = block_maps(job, bytes);
                Source::EachOnce { maps, of }
            }
            Order::Random { choice: Choice::Uniform, .. } => {
                Source::Uniform(each(&|d| job.blocks_of(d, bytes)))
            }
            Order::Random { choice: Choice::Popular { popularity, center }, .. } => {
                let blocks = |d| job.blocks_of(d, bytes);
                let one = |d| job.access.has(d).then(|| Popular::new(*popularity, blocks(d), *center, seed));
                Source::Popular(Box::new(Direction::ALL.map(one)))
            }
            Order::Random { choice: Choice::Zoned(zones), .. } => {
                Source::Zoned(Box::new(Direction::ALL.map(|d| ZoneTable::new(&zones[d as usize]))))
            }
        };
        let mut placer = Placer {
            plain: each(&|d| plain_size(job, &source, d)),
            source,
            align: job.align,
            bytes,
            wraps: job.limits.time_based || job.limits.pass_bytes > job.all_bytes(),
            tail: [0; 3],
            head: [0; 3],
            left_in_run: 1,
        };
        placer.restart(streams);
        placer
    }

    /// Returns to the start of the region with no block taken, in a new random order.
    pub(crate) fn restart(&mut self, streams: &mut PlaceStreams) {
        self.tail = [0; 3];
        self.head = [0; 3];
        self.left_in_run = 1;
        if let Source::EachOnce { maps, .. } = &mut self.source {
            for map in maps {
                map.order = Permutation::new(map.blocks, streams.offset.bits());
                map.cursor = 0;
                if let Some(taken) = &mut map.taken {
                    taken.fill(0);
                }
            }
        }
    }

    /// Returns the next extent of this direction; none if the region is exhausted.
    #[inline]
    pub(crate) fn next(&mut self, d: Direction, job: &Job, streams: &mut PlaceStreams) -> Option<Extent> {
        let size = self.plain[d as usize];
        if size != 0 {
            let block = self.random_block(d, &mut streams.offset)?;
            return Some(Extent { offset: block * self.align[d as usize], bytes: size });
        }
        self.next_mixed(d, job, streams)
    }

    fn next_mixed(&mut self, d: Direction, job: &Job, streams: &mut PlaceStreams) -> Option<Extent> {
        let i = d as usize;
        let mut marks = false;
        let mut random = false;
        let offset = match &job.order {
            Order::Sequential { gap } => self.sequential(d, *gap)?,
            Order::Random { run, follow, percent, .. } => {
                self.left_in_run -= 1;
                let fresh = self.left_in_run == 0;
                if fresh {
                    self.left_in_run = *run;
                }
                if fresh && (percent[i] == 100 || streams.mixture.percent() <= percent[i]) {
                    (random, marks) = (true, true);
                    self.random_block(d, &mut streams.offset)? * self.align[i]
                } else if !fresh && *follow == Follow::Same {
                    self.head[i]
                } else {
                    self.sequential(d, 0).unwrap_or_else(|| {
                        // fio takes a random block when a sequential run reaches the end; it marks none.
                        random = true;
                        streams.offset.below(job.blocks_of(d, self.bytes)) * self.align[i]
                    })
                }
            }
        };
        let room = self.bytes.checked_sub(offset)?;
        let mut bytes = job.sizes[job.sizes_index(d, random)].draw(room, &mut streams.size)?;
        if marks && let Source::EachOnce { maps, of } = &mut self.source {
            bytes = maps[of[i] as usize].take(offset, bytes);
        }
        self.head[i] = offset;
        self.tail[i] = offset + bytes;
        Some(Extent { offset, bytes })
    }

    /// Returns the next sequential offset, as fio's `get_next_seq_offset`.
    fn sequential(&mut self, d: Direction, gap: i64) -> Option<u64> {
        let mut at = self.tail[d as usize];
        if at >= self.bytes {
            if !self.wraps {
                return None;
            }
            at = 0;
        }
        if at == 0 || gap == 0 {
            return Some(at);
        }
        match at.checked_add_signed(gap) {
            Some(next) if next < self.bytes => Some(next),
            _ if gap > 0 => Some(0),
            _ => self.bytes.checked_add_signed(gap),
        }
    }

    #[inline]
    fn random_block(&mut self, d: Direction, stream: &mut Stream) -> Option<u64> {
        let i = d as usize;
        match &mut self.source {
            Source::EachOnce { maps, of } => maps[of[i] as usize].next(),
            Source::Uniform(blocks) => Some(stream.below(blocks[i])),
            Source::Popular(popular) => popular[i].as_ref().map(|p| p.draw(stream)),
            Source::Zoned(zones) => Some(zones[i].draw(stream)),
            Source::Sequential => None,
        }
    }
}

/// Returns the size that makes a direction plain, or zero.
fn plain_size(job: &Job, source: &Source, d: Direction) -> u64 {
    let Order::Random { run: 1, percent, .. } = &job.order else { return 0 };
    let mapped =
        matches!(source, Source::EachOnce { maps, of } if maps[of[d as usize] as usize].taken.is_some());
    match job.sizes[job.sizes_index(d, true)] {
        super::job::Sizes::Fixed(bytes) if percent[d as usize] == 100 && !mapped => bytes,
        _ => 0,
    }
}

/// Creates one map for all directions of the same block size, as fio has one map per file. Directions of different
/// block sizes get one each, because a map of 64 KiB blocks cannot tell which 4 KiB are left.
fn block_maps(job: &Job, bytes: u64) -> (Vec<BlockMap>, Each<u8>) {
    let mut maps: Vec<BlockMap> = Vec::new();
    let mut of = [0u8; 3];
    for d in Direction::ALL.into_iter().filter(|&d| job.access.has(d)) {
        let (unit, blocks) = (job.align[d as usize], job.blocks_of(d, bytes));
        let index = maps.iter().position(|map| map.unit == unit).unwrap_or(maps.len());
        if index == maps.len() {
            maps.push(BlockMap { unit, order: Permutation::new(blocks, 0), blocks, cursor: 0, taken: None });
        }
        if job.sizes[job.sizes_index(d, true)].max() > unit {
            maps[index].taken = Some(vec![0; blocks.div_ceil(64) as usize]);
        }
        of[d as usize] = index as u8;
    }
    (maps, of)
}

impl BlockMap {
    /// Draws a block that is not taken yet.
    #[inline]
    fn next(&mut self) -> Option<u64> {
        while self.cursor < self.blocks {
            let block = self.order.at(self.cursor);
            self.cursor += 1;
            match &self.taken {
                Some(taken) if taken[(block / 64) as usize] >> (block % 64) & 1 == 1 => {}
                _ => return Some(block),
            }
        }
        None
    }

    /// Takes the blocks of a request, which is cut before the first block that is already taken.
    fn take(&mut self, offset: u64, bytes: u64) -> u64 {
        let Some(taken) = &mut self.taken else { return bytes };
        let first = offset / self.unit;
        let mut block = first;
        while block < self.blocks && (block - first) * self.unit < bytes {
            let (word, bit) = ((block / 64) as usize, 1 << (block % 64));
            if taken[word] & bit != 0 {
                break;
            }
            taken[word] |= bit;
            block += 1;
        }
        bytes.min((block - first) * self.unit)
    }
}

// Regions that a job accesses: one, or several files served by fio's `file_service_type` (`get_next_file` in
// `io_u.c`).

/// Number of draws of a file after which the next one in use is taken: *chosen*. fio draws until it finds one.
const MOST_DRAWS: u32 = 100;

/// Position of a job in all its files.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    files: Vec<File>,
    service: Service,
    /// Distribution of [`Service::Skewed`].
    skew: Option<Popular>,
    /// Requests per file before the next file is chosen.
    each: u64,
    /// Number of files in use: maximum, and now.
    most_open: usize,
    open: usize,
    /// Number of files that are done in this pass.
    done: usize,
    /// File that was served last, and how many more requests it gets.
    at: usize,
    left: u64,
    /// File that is considered next.
    next: usize,
    choice: Stream,
}

#[derive(Clone, Debug)]
struct File {
    start: u64,
    placer: Placer,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Closed,
    Open,
    Done,
}

impl Places {
    /// Creates the position at the start of the first pass; `seed` places the popular blocks and chooses files.
    pub(crate) fn new(job: &Job, seed: u64, streams: &mut PlaceStreams) -> Places {
        let one = Files {
            regions: vec![Region { start: job.start, bytes: job.bytes }],
            service: Service::RoundRobin,
            each: 1,
            open: 1,
        };
        let of = job.files.as_ref().unwrap_or(&one);
        let file = |(number, region): (u64, &Region)| File {
            start: region.start,
            placer: Placer::new(job, region.bytes, seed.wrapping_add(number), streams),
            state: State::Closed,
        };
        let mut choice = Stream::new(seed, Purpose::File);
        let skew = match of.service {
            Service::Skewed { popularity, center } => {
                Some(Popular::of_files(popularity, of.regions.len() as u64, center, &mut choice))
            }
            _ => None,
        };
        let mut places = Places {
            files: (0..).zip(&of.regions).map(file).collect(),
            service: of.service,
            skew,
            each: of.each,
            most_open: of.open,
            open: 0,
            done: 0,
            at: 0,
            left: 0,
            next: 0,
            choice,
        };
        places.open_first();
        places
    }

    /// Returns to the start of every file with no block taken, in a new random order.
    pub(crate) fn restart(&mut self, streams: &mut PlaceStreams) {
        for file in &mut self.files {
            file.placer.restart(streams);
        }
        self.open_first();
    }

    /// Marks no file as done, and takes the first ones into use.
    fn open_first(&mut self) {
        let most = self.most_open;
        for (number, file) in self.files.iter_mut().enumerate() {
            file.state = if number < most { State::Open } else { State::Closed };
        }
        (self.open, self.done, self.left) = (most.min(self.files.len()), 0, 0);
    }

    /// Returns the next extent of this direction, counted from the start of the device; none if every file is
    /// exhausted.
    #[inline]
    pub(crate) fn next(&mut self, d: Direction, job: &Job, streams: &mut PlaceStreams) -> Option<Extent> {
        if let [file] = &mut self.files[..] {
            let extent = file.placer.next(d, job, streams)?;
            return Some(Extent { offset: file.start + extent.offset, ..extent });
        }
        let mut starts_over = 0;
        while self.done < self.files.len() {
            let file = self.serve();
            let File { start, placer, state } = &mut self.files[file];
            if let Some(extent) = placer.next(d, job, streams) {
                return Some(Extent { offset: *start + extent.offset, ..extent });
            }
            self.open -= 1;
            if self.skew.is_some() && starts_over < MOST_DRAWS {
                // A file exhausted by a skewed choice starts over (`fio_file_reset`): the job ends by its bytes.
                placer.restart(streams);
                *state = State::Closed;
                starts_over += 1;
            } else {
                *state = State::Done;
                self.done += 1;
            }
        }
        None
    }

    /// Returns the file whose turn it is, among those that are not done.
    fn serve(&mut self) -> usize {
        if self.files[self.at].state == State::Open {
            if self.service == Service::Sequential && self.left > 0 {
                return self.at;
            }
            if self.left > 1 {
                self.left -= 1;
                return self.at;
            }
        }
        let count = self.files.len();
        let mut draws = 0;
        loop {
            let file = match &self.skew {
                Some(skew) if draws < MOST_DRAWS => skew.draw_file(&mut self.choice),
                None if self.service == Service::Random => self.choice.below(count as u64) as usize,
                _ => self.next,
            };
            draws += 1;
            self.next = (file + 1) % count;
            match self.files[file].state {
                State::Open => {}
                State::Closed if self.open < self.most_open => {
                    self.files[file].state = State::Open;
                    self.open += 1;
                }
                State::Closed | State::Done => continue,
            }
            (self.at, self.left) = (file, self.each);
            return file;
        }
    }
}
