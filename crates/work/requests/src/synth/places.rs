//! The regions that a job goes over: one, or several files that it serves by fio's `file_service_type` (`get_next_file` in `io_u.c`).

use super::job::{Direction, Files, Job, Region, Service};
use super::place::{Extent, PlaceStreams, Placer};
use super::popularity::Popular;
use super::{Purpose, Stream};

/// Draws of a file after which the next one in service is taken: *chosen*. fio draws until it finds one, however long that takes.
const MOST_DRAWS: u32 = 100;

/// The position of a job in all its files.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    files: Vec<File>,
    service: Service,
    /// The draw of [`Service::Skewed`].
    skew: Option<Popular>,
    /// Requests of a file before the next comes.
    each: u64,
    /// Files in service at most, and now.
    most_open: usize,
    open: usize,
    /// Files that are done in this pass.
    done: usize,
    /// The file that was served last, and how many more requests it gets.
    at: usize,
    left: u64,
    /// The file that is looked at next.
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
    /// At the start of the first pass; `seed` places the popular blocks, and chooses files.
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

    /// Back to the start of every file, no block taken, in a new random order.
    pub(crate) fn restart(&mut self, streams: &mut PlaceStreams) {
        for file in &mut self.files {
            file.placer.restart(streams);
        }
        self.open_first();
    }

    /// No file is done, and the first of them are in service.
    fn open_first(&mut self) {
        let most = self.most_open;
        for (number, file) in self.files.iter_mut().enumerate() {
            file.state = if number < most { State::Open } else { State::Closed };
        }
        (self.open, self.done, self.left) = (most.min(self.files.len()), 0, 0);
    }

    /// The next extent of this direction, counted from the start of the device; none if every file is exhausted.
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
                // A file that a skewed choice exhausts starts over (`fio_file_reset`): the job ends by its bytes.
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

    /// The file whose turn it is, of those that are not done.
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
