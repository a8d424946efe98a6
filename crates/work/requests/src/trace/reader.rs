//! The reader: requests in order of time, on the simulator's clock and with the device's addresses.

use std::io::Read;
use std::path::{Path, PathBuf};

use config::{Diagnostic, Place};
use engine::{Mutant, Time, planted_nth};
use proto::{IoOp, IoRequest};

use crate::inject::Recorded;
use crate::trace::options::{Remap, TraceOptions, Volumes};
use crate::trace::order::{Disorder, SortWindow};
use crate::trace::record::{Extent, RawRequest, TraceNotes};
use crate::trace::remap::{Beyond, Places, Remapper};
use crate::trace::scan::Scan;
use crate::trace::{human, together};

/// Streams a trace; memory use does not grow with its length.
pub struct TraceReader {
    pub(super) scan: Scan,
    pub(super) options: TraceOptions,
    /// Files of the trace, if they can be read again.
    pub(super) files: Option<Vec<PathBuf>>,
    /// Size of the files in bytes, as packed.
    pub(super) file_bytes: Option<u64>,
    /// Number among the traces that are read side by side.
    number: u16,
    window: SortWindow,
    disorder: Disorder,
    remap: Remapper,
    /// Raw time zero, if it is not the time of the first request.
    pub(super) origin: Option<u128>,
    /// Raw time of the first request.
    base: Option<u128>,
    /// Raw time of the request last taken from the window.
    taken: u128,
    /// Next fragment of the request last handed out.
    following: Option<IoRequest>,
    /// Part of a request that has no place yet.
    rest: Option<Rest>,
    at_end: bool,
    /// Recorded response times of the requests handed out.
    recorded: Recorded,
}

/// A request on its way to the device, without the pieces already handed out.
struct Rest {
    at: Time,
    request: RawRequest,
    pieces: u64,
}

/// Position of a request on the simulator's clock.
pub(super) enum Clock {
    Before,
    At(Time),
    After,
    /// After the end of the clock, this many picoseconds of trace time after the start of the clip.
    Beyond(u128),
}

impl TraceReader {
    /// Opens a trace by its name ([`parts`](crate::trace::parts)): a file, plain or compressed, of any format, or
    /// several files that are its parts.
    ///
    /// # Errors
    /// If a file cannot be read or recognised, or an option does not apply to its format; for a device
    /// ([`TraceOptions::capacity`]), if a trace exceeds the simulator's clock.
    pub fn open(path: impl AsRef<Path>, options: &TraceOptions) -> Result<TraceReader, Diagnostic> {
        together::open_one(path.as_ref(), options)
    }

    /// Opens the parts of a trace without settling it.
    pub(super) fn of_parts(parts: Vec<PathBuf>, options: &TraceOptions) -> Result<TraceReader, Diagnostic> {
        let mut reader = TraceReader::of_scan(Scan::open(&parts, options)?, options);
        let size = |part: &PathBuf| part.metadata().ok().filter(|m| m.is_file()).map(|m| m.len());
        reader.file_bytes = parts.iter().map(size).sum();
        reader.files = Some(parts);
        Ok(reader)
    }

    /// Reads from any input; `source` is its name in diagnostics.
    ///
    /// # Errors
    /// As [`TraceReader::open`].
    pub fn from_read(
        source: &str,
        input: impl Read + Send + 'static,
        options: &TraceOptions,
    ) -> Result<TraceReader, Diagnostic> {
        let mut reader = TraceReader::of_scan(Scan::new(source, input, options)?, options);
        reader.settle(options.remap, 0, Places::default());
        Ok(reader)
    }

    fn of_scan(scan: Scan, options: &TraceOptions) -> TraceReader {
        TraceReader {
            scan,
            options: options.clone(),
            files: None,
            file_bytes: None,
            number: 0,
            window: SortWindow::new(options.sort_window),
            disorder: Disorder::new(),
            remap: Remapper::new(options.remap, options.capacity, Places::default()),
            origin: None,
            base: None,
            taken: 0,
            following: None,
            rest: None,
            at_end: false,
            recorded: Recorded::default(),
        }
    }

    /// Decides the places of its requests: the treatment of those beyond the device, its number among the traces of
    /// that device, and the places that they share.
    pub(super) fn settle(&mut self, remap: Remap, number: u16, places: Places) {
        let shared = self.options.capacity.is_some() && !remap.packs() && !self.scan.info().one_device;
        self.scan.notes_mut().one_device = shared && self.options.volumes == Volumes::Apart;
        self.options.remap = remap;
        self.number = number;
        self.remap = Remapper::new(remap, self.options.capacity, places);
    }

    /// Reopens the same files from the start, to run them again alone.
    ///
    /// # Errors
    /// If the reader was not made from files, or a file no longer exists.
    pub fn reopen(&self) -> Result<TraceReader, Diagnostic> {
        let Some(files) = &self.files else {
            let what = format!("{} is not a file and cannot be read again", self.scan.source());
            return Err(Diagnostic::new(what));
        };
        if self.file_bytes.is_none() {
            let what = format!("{} is a pipe and cannot be read again", self.scan.source());
            return Err(Diagnostic::new(what).help("write the trace to a file to run it more than once"));
        }
        let mut again = TraceReader::of_parts(files.clone(), &self.options)?;
        again.origin = self.origin;
        again.settle(self.options.remap, self.number, Places::default());
        Ok(again)
    }

    /// Returns the share of the work done, zero to one: of the file's bytes, or of the requests asked for if that is
    /// more. `None` if neither is known.
    pub fn progress(&self) -> Option<f64> {
        let of = |done: u64, all: u64| if all > 0 { done as f64 / all as f64 } else { 1.0 };
        let bytes = self.file_bytes.map(|all| of(self.scan.bytes_taken(), all));
        let requests = self.options.max_requests.map(|all| of(self.notes().delivered, all));
        bytes.into_iter().chain(requests).reduce(f64::max).map(|share| share.min(1.0))
    }

    /// Returns the notes so far; complete once [`TraceReader::next`] has returned `None`.
    pub fn notes(&self) -> &TraceNotes {
        self.scan.notes()
    }

    /// Returns the number of requests handed out so far, excluding those without a place; `None` if some were refused
    /// a place.
    pub fn handed_out(&self) -> Option<u64> {
        let notes = self.notes();
        (notes.beyond_device == 0).then(|| notes.delivered - notes.trims_of_nothing)
    }

    /// Returns the recorded response times of the requests handed out so far; empty if the trace has none.
    pub fn recorded(&self) -> &Recorded {
        &self.recorded
    }

    /// Returns true if the next request is one more fragment of the one handed out last: a remap has separated its
    /// bytes.
    pub fn continues(&self) -> bool {
        self.following.is_some()
    }

    /// Returns the next request, or the next fragment of one; times never decrease. `None` at the end of the trace or
    /// of the clip.
    ///
    /// # Errors
    /// If a line is bad, data is damaged, a request is beyond the device, the trace is more out of order than the
    /// sort window allows, or a span exceeds the simulator's clock. Reading on after an error is allowed and skips
    /// the bad part.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<IoRequest>, Diagnostic> {
        loop {
            if let Some(request) = self.following.take() {
                self.following = self.place_rest()?;
                return Ok(Some(request));
            }
            let Some((request, clock)) = self.upcoming()? else { return Ok(None) };
            let at = match clock {
                Clock::At(at) => at,
                Clock::Beyond(ps) => return Err(self.too_long(&request, ps)),
                Clock::Before | Clock::After => continue,
            };
            if planted_nth(Mutant::LeftOut, 101) {
                continue;
            }
            self.rest = Some(Rest { at, request, pieces: 0 });
            self.following = self.place_rest()?;
        }
    }

    /// Returns the next request inside the clip and the limit, and its position on the clock: inside or beyond it.
    pub(super) fn upcoming(&mut self) -> Result<Option<(RawRequest, Clock)>, Diagnostic> {
        loop {
            let limit = self.options.max_requests;
            if limit.is_some_and(|limit| self.notes().delivered >= limit) {
                return Ok(None);
            }
            let Some(request) = self.take()? else {
                if self.notes().delivered == 0 {
                    self.scan.notes_mut().remark("no request is inside the clip".to_owned());
                }
                return Ok(None);
            };
            match self.clock(&request) {
                Clock::Before => self.scan.notes_mut().clipped += 1,
                // Requests come in order of time: nothing later is inside the clip.
                Clock::After => self.stop(),
                inside => {
                    self.scan.notes_mut().delivered += 1;
                    if let Some(ps) = request.response {
                        self.recorded.add(request.op, ps);
                    }
                    return Ok(Some((request, inside)));
                }
            }
        }
    }

    /// Returns the raw time of the earliest request, if there is one.
    pub(super) fn first_time(&mut self) -> Result<Option<u128>, Diagnostic> {
        self.fill()?;
        Ok(self.window.first())
    }

    /// Adds requests to the window until one must be taken.
    fn fill(&mut self) -> Result<(), Diagnostic> {
        while !self.at_end && !self.window.is_full() {
            match self.scan.next()? {
                Some(request) => self.admit(request)?,
                None => {
                    self.at_end = true;
                    if let Some(diagnostic) = self.scan.nothing_found() {
                        return Err(diagnostic);
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the earliest request, in the trace's own time.
    fn take(&mut self) -> Result<Option<RawRequest>, Diagnostic> {
        self.fill()?;
        let Some(mut request) = self.window.pop() else {
            return Ok(None);
        };
        if planted_nth(Mutant::ChangedPlaces, 101)
            && let Some(next) = self.window.pop()
        {
            self.window.push(std::mem::replace(&mut request, next));
        }
        self.base.get_or_insert(request.at);
        self.taken = request.at;
        Ok(Some(request))
    }

    fn admit(&mut self, mut request: RawRequest) -> Result<(), Diagnostic> {
        self.disorder.add(request.at);
        if self.disorder.unsorted() > 0 {
            let notes = self.scan.notes_mut();
            notes.unsorted = self.disorder.unsorted();
            notes.lateness_ps = self.disorder.lateness();
            notes.sort_window_needed = self.disorder.window();
        }
        if self.base.is_some() && request.at < self.taken {
            if self.options.timed && !self.options.lenient {
                return Err(self.too_late(&request));
            }
            request.at = self.taken;
            let notes = self.scan.notes_mut();
            notes.clamped += u64::from(self.options.timed);
            notes.taken_late += u64::from(!self.options.timed);
        }
        self.window.push(request);
        Ok(())
    }

    /// Reads the rest of the trace to find a sufficient sort window.
    fn too_late(&mut self, request: &RawRequest) -> Diagnostic {
        let behind = self.taken - request.at;
        while let Ok(Some(next)) = self.scan.next() {
            self.disorder.add(next.at);
        }
        self.stop();
        let needed = self.disorder.window();
        let what = format!(
            "the request is {} earlier than one that was already issued: the trace is more out of order than a sort window \
             of {} requests can sort",
            human::span(behind),
            human::count(self.options.sort_window as u64)
        );
        Diagnostic::new(what).at(self.place_of(request)).help(format!(
            "--sort-window {needed} is enough for this trace; --lenient moves late requests to the time of the previous one"
        ))
    }

    /// Stops handing out requests.
    fn stop(&mut self) {
        self.at_end = true;
        self.window = SortWindow::new(0);
    }

    /// Returns the request's time on the simulator's clock.
    fn clock(&self, request: &RawRequest) -> Clock {
        // With the clock of all, none is before time zero, but one that comes later than any sort window.
        let since_first = request.at.saturating_sub(self.origin.or(self.base).unwrap_or(request.at));
        if self.options.end.is_some_and(|end| since_first >= end.ps()) {
            return Clock::After;
        }
        let Some(ps) = since_first.checked_sub(self.options.start.unwrap_or_default().ps()) else {
            return Clock::Before;
        };
        if !self.options.timed {
            return Clock::At(Time::ZERO);
        }
        let scaled = self.options.time_scale.apply(ps).and_then(|ps| u64::try_from(ps).ok());
        scaled.map_or(Clock::Beyond(ps), |ps| Clock::At(Time::from_ps(ps)))
    }

    fn too_long(&self, request: &RawRequest, ps: u128) -> Diagnostic {
        let what = format!(
            "the request is {} after the start, but the simulator's clock ends at {}",
            human::span(ps),
            human::span(u128::from(u64::MAX))
        );
        Diagnostic::new(what).at(self.place_of(request)).help(together::remedies(ps, &self.options))
    }

    /// Returns the volume to which a flow's addresses belong.
    fn volume(&self, flow: u16) -> u32 {
        let file = u32::from(self.number) << 16;
        match self.options.volumes {
            Volumes::One => 0,
            Volumes::Apart if self.scan.info().one_device => file,
            Volumes::Apart => file | u32::from(flow),
        }
    }

    /// Returns the next piece of what is left of a request.
    fn place_rest(&mut self) -> Result<Option<IoRequest>, Diagnostic> {
        self.rest.take().map_or(Ok(None), |rest| self.place(rest))
    }

    /// Returns the next piece of a request at its place on the device; `None` if it was skipped.
    fn place(&mut self, rest: Rest) -> Result<Option<IoRequest>, Diagnostic> {
        let Rest { at, request, pieces } = rest;
        let RawRequest { op, flow, fua, .. } = request;
        let whole = Extent { offset: request.offset, bytes: request.bytes };
        if op == IoOp::Flush {
            return Ok(Some(IoRequest { at, op, offset: 0, bytes: 0, flow, fua }));
        }
        let piece = match self.remap.piece(op, self.volume(flow), whole) {
            Ok(piece) => piece,
            Err(_) if self.options.lenient => {
                self.scan.notes_mut().beyond_device += 1;
                return Ok(None);
            }
            Err(beyond) => return Err(self.beyond_device(&request, &beyond)),
        };
        let notes = self.scan.notes_mut();
        let there = piece.there;
        if there.bytes == 0 {
            notes.trims_of_nothing += u64::from(pieces == 0);
            return Ok(None);
        }
        let taken = piece.skipped + there.bytes;
        notes.remapped += u64::from(pieces == 0 && there.offset != whole.offset);
        notes.split += u64::from(pieces == 0 && taken < whole.bytes);
        if taken < whole.bytes {
            let request = RawRequest { offset: whole.offset + taken, bytes: whole.bytes - taken, ..request };
            self.rest = Some(Rest { at, request, pieces: pieces + 1 });
        }
        Ok(Some(IoRequest { at, op, offset: there.offset, bytes: there.bytes, flow, fua }))
    }

    fn beyond_device(&self, request: &RawRequest, beyond: &Beyond) -> Diagnostic {
        let help = match self.options.remap {
            Remap::Error => {
                "--remap wrap folds addresses into the device, --remap compact packs the regions that the trace touches"
            }
            Remap::Wrap => "the device must hold the largest request",
            Remap::Compact | Remap::Fit => {
                "--remap wrap folds addresses into the device; --max-requests or --end shorten the trace"
            }
        };
        Diagnostic::new(beyond.text(self.options.capacity.unwrap_or(u64::MAX)))
            .at(self.place_of(request))
            .help(help)
    }

    fn place_of(&self, request: &RawRequest) -> Place {
        let text = format!(
            "{:?} of {} at byte {}",
            request.op,
            human::bytes(request.bytes),
            human::count(request.offset)
        );
        Place {
            source: self.scan.source_of(request.part).to_owned(),
            line: request.line,
            column: 0,
            text,
            key: String::new(),
        }
    }
}
