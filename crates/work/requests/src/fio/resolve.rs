//! Resolution of a job against a device: percentages become bytes; anything that does not fit is reported with the
//! arithmetic.

use config::Diagnostic;
use proto::Batches;

use super::spec::{Distribution, Engine, JobSpec, Pattern};
use super::value::Quantity;
use super::warn;
use crate::synth::{
    Access, Choice, Direction, Each, Files, Flushes, Job, Limits, Order, Rate, Region, Share, Sizes, Zone,
};

type Resolved<T> = Result<T, Diagnostic>;

/// Sector size of block devices, in bytes.
const SECTOR: u64 = 512;

/// Limit of the random map for requests of several sizes: one bit per block, at most 2 GiB of bits.
const MOST_MAPPED_BLOCKS: u64 = 1 << 34;

impl JobSpec {
    /// Resolves the job (its first clone) on a device of `capacity` bytes.
    pub fn resolve(&self, capacity: u64) -> Resolved<Job> {
        self.resolve_clone(capacity, 0)
    }

    /// Resolves clone `clone` of the job on a device of `capacity` bytes. The flow number is the clone's number;
    /// [`Jobs::resolve`](super::Jobs::resolve) numbers flows over all jobs.
    pub fn resolve_clone(&self, capacity: u64, clone: u16) -> Resolved<Job> {
        self.resolve_over(capacity, clone, None)
    }

    /// Resolves a clone over files of the device, if there are any.
    pub(super) fn resolve_over(
        &self,
        capacity: u64,
        clone: u16,
        files: Option<Vec<Region>>,
    ) -> Resolved<Job> {
        if files.is_none() && self.drives().is_some() {
            let help = "on a system with a stripe (pm9a3x4) each names a drive behind it; otherwise give each drive its own --workload";
            return Err(self.refuse_drives("the workload goes to one", help));
        }
        let access = self.access();
        let mut warnings = Vec::new();
        let sizes = self.sizes(access, &mut warnings)?;
        let regions = self.regions(capacity, clone, smallest(access, &sizes), files)?;
        let start = regions.first().map_or(0, |region| region.start);
        let bytes = regions.iter().map(|region| region.bytes).min().unwrap_or(0);
        let all = regions.iter().map(|region| region.bytes).sum();
        let depth = self.depth(&mut warnings);
        let mapped = self.engine == Some(Engine::Mapped);
        if mapped && self.buffered == Some(false) {
            let what = "a mapping has no direct reads: as in fio, direct=1 calls msync after each write, and pages stay in the cache";
            warnings.push(format!("job `{}`: {what}", self.name));
        }
        let mut job = Job {
            name: self.name.clone(),
            clone,
            flow: clone,
            access,
            order: Order::Sequential { gap: 0 },
            start,
            bytes,
            files: self.several(regions),
            align: [0; 3],
            sizes,
            sizes_by_order: self.bs_is_seq_rand,
            depth,
            batches: self.batches(depth),
            limits: self.limits(all),
            ramp: self.ramp_time,
            start_delay: self.start_delay,
            seed: self.randseed,
            repeat: self.randrepeat && self.randseed.is_none(),
            rate: [None; 3],
            arrival: self.arrival,
            think: self.think(),
            flushes: Flushes {
                fsync: self.fsync,
                fdatasync: self.fdatasync,
                at_end: (self.end_fsync || self.fsync_on_close) && access.writes(),
                blocking: !matches!(
                    self.engine,
                    Some(Engine::IoUring | Engine::OtherQueuedFlush | Engine::Passthrough)
                ),
            },
            // Mappings have no `O_SYNC`; with direct=1, fio calls `msync` after each request.
            fua: if mapped { self.buffered == Some(false) } else { self.sync },
            warnings,
        };
        job.align = Direction::ALL.map(|d| match self.blockalign[d as usize] {
            Some(align) if self.rw.random => align,
            _ => job.smallest(d),
        });
        job.rate = Direction::ALL.map(|d| self.rate_of(&job, d));
        self.check_room(&job)?;
        self.check_horizon()?;
        job.order = self.order(&mut job)?;
        self.settle_passes(&mut job);
        warn(self, &mut job);
        Ok(job)
    }

    fn access(&self) -> Access {
        match self.rw.pattern {
            Pattern::Read => Access::Read,
            Pattern::Write => Access::Write,
            Pattern::Trim => Access::Trim,
            Pattern::Mixed => Access::Mixed { read_percent: self.rwmixread },
            Pattern::TrimWrite => Access::TrimWrite,
        }
    }

    fn sizes(&self, access: Access, warnings: &mut Vec<String>) -> Resolved<Each<Sizes>> {
        let sizes = Direction::ALL.map(|d| {
            let i = d as usize;
            match (&self.bssplit[i], self.bsrange[i]) {
                (Some(shares), _) => split(shares, &mut *warnings, access.has(d)),
                (None, Some((min, max))) if min < max => Sizes::Range { min, max },
                (None, Some((min, _))) => Sizes::Fixed(min),
                (None, None) => Sizes::Fixed(self.bs[i]),
            }
        });
        // Sequential and random sizes are stored under read and write, regardless of the job's directions.
        let used = |d: &Direction| access.has(*d) || self.bs_is_seq_rand && *d != Direction::Trim;
        for d in Direction::ALL.into_iter().filter(used) {
            let i = d as usize;
            let (option, all) = match &sizes[i] {
                Sizes::Fixed(bytes) => ("bs", vec![*bytes]),
                Sizes::Range { min, max } => ("bsrange", vec![*min, *max]),
                Sizes::Split(shares) => ("bssplit", shares.iter().map(|s| s.bytes).collect()),
            };
            all.into_iter().try_for_each(|bytes| self.check_sectors(option, bytes))?;
            self.check_sectors("ba", self.blockalign[i].unwrap_or(SECTOR))?;
        }
        Ok(sizes)
    }

    fn check_sectors(&self, option: &str, bytes: u64) -> Resolved<()> {
        if bytes.is_multiple_of(SECTOR) {
            return Ok(());
        }
        let what =
            format!("job `{}`: {bytes} bytes are not a multiple of the sector of {SECTOR} bytes", self.name);
        Err(Diagnostic::new(what).at(self.place_of(option)))
    }

    /// Returns the smallest block of the job's requests (`td_min_bs`).
    pub(super) fn least_block(&self) -> u64 {
        let access = self.access();
        self.sizes(access, &mut Vec::new()).map_or(SECTOR, |sizes| smallest(access, &sizes))
    }

    /// Returns the job's part of each file, or of the device.
    fn regions(
        &self,
        capacity: u64,
        clone: u16,
        unit: u64,
        files: Option<Vec<Region>>,
    ) -> Resolved<Vec<Region>> {
        let percent = self.size.filter(|size| matches!(size, Quantity::Percent(_)));
        let Some(files) = files else {
            let device = Region { start: 0, bytes: capacity };
            let Some((_, most)) = self.files.bytes else {
                return Ok(vec![self.region("the device", device, clone, unit, self.size)?]);
            };
            if most > capacity {
                let what =
                    format!("job `{}`: filesize {most}, but the device has {capacity} bytes", self.name);
                return Err(Diagnostic::new(what).at(self.place_of("filesize")));
            }
            return Ok(vec![self.region(
                "a file",
                Region { bytes: most, ..device },
                clone,
                unit,
                percent,
            )?]);
        };
        let count = files.len() as u64;
        let part = |(number, file): (u64, Region)| {
            let given = self.bytes_of_file(number, count, unit).map(Quantity::Bytes);
            let size = given.filter(|_| self.files.bytes.is_none()).or(percent);
            self.region("a file", file, clone, unit, size)
        };
        (0..).zip(files).map(part).collect()
    }

    fn several(&self, regions: Vec<Region>) -> Option<Files> {
        let open = self.files.open.map_or(regions.len(), |open| regions.len().min(open as usize));
        let files = Files { regions, service: self.files.service, each: self.files.each, open };
        (files.regions.len() > 1).then_some(files)
    }

    /// Returns first byte and length of the region within a file or the device: fio's `get_start_offset` and
    /// `setup_files`.
    fn region(
        &self,
        noun: &str,
        of: Region,
        clone: u16,
        unit: u64,
        size: Option<Quantity>,
    ) -> Resolved<Region> {
        let capacity = of.bytes;
        let step = match self.offset_increment {
            Quantity::Bytes(bytes) => bytes,
            Quantity::Percent(percent) => share(capacity, percent),
        };
        let base = match self.offset {
            Quantity::Bytes(bytes) => bytes,
            Quantity::Percent(percent) => share(capacity, percent),
        };
        let mut start = base as u128 + clone as u128 * step as u128;
        let relative = matches!(self.offset, Quantity::Percent(_))
            || matches!(self.offset_increment, Quantity::Percent(_));
        if relative {
            let align = self.offset_align.unwrap_or(unit).max(1) as u128;
            start = start.div_ceil(align) * align;
        }
        let start = match u64::try_from(start) {
            Ok(start) if start < capacity => start,
            _ => {
                let (name, last) = (&self.name, capacity.saturating_sub(1));
                let what = match clone {
                    0 => format!(
                        "job `{name}`: offset {start} is beyond the end of {noun} of {capacity} bytes"
                    ),
                    _ => format!(
                        "job `{name}`, clone {clone}: offset {base} + {clone} x {step} = {start} is beyond the end of {noun} of \
                         {capacity} bytes"
                    ),
                };
                let help = format!("offset can be at most {last}, or a share such as 50%");
                return Err(Diagnostic::new(what).at(self.place_of("offset")).help(help));
            }
        };
        self.check_sectors("offset", start)?;
        let left = capacity - start;
        let bytes = match size {
            None | Some(Quantity::Bytes(0)) => left,
            // Percentage of an offset, which the file's length excludes.
            Some(Quantity::Bytes(bytes)) if relative && noun == "a file" => bytes.min(left),
            Some(Quantity::Percent(percent)) => {
                let bytes = share(capacity, percent).min(left);
                bytes - bytes % unit
            }
            Some(Quantity::Bytes(bytes)) if bytes > left => {
                let end = start as u128 + bytes as u128;
                let what = format!(
                    "job `{}`: offset {start} + size {bytes} = {end} bytes, but the device has {capacity}",
                    self.name
                );
                let help = format!("size can be at most {left}; size=100% uses all that is left");
                return Err(Diagnostic::new(what).at(self.place_of("size")).help(help));
            }
            Some(Quantity::Bytes(bytes)) => bytes,
        };
        // Backwards jobs count from the end, which must be a place where a request can start.
        Ok(Region { start: of.start + start, bytes: bytes - bytes % SECTOR })
    }

    fn check_room(&self, job: &Job) -> Resolved<()> {
        for d in Direction::ALL.into_iter().filter(|&d| job.access.has(d)) {
            let sequential = job.sizes[job.sizes_index(d, false)].min();
            let need = if self.rw.random { sequential.max(job.smallest(d)) } else { sequential };
            if job.bytes < need || self.rw.random && job.blocks(d) == 0 {
                let what = format!(
                    "job `{}`: a region of {} bytes is too small for a request of {need}",
                    self.name, job.bytes
                );
                return Err(Diagnostic::new(what).at(self.place_of("size")));
            }
        }
        Ok(())
    }

    fn check_horizon(&self) -> Resolved<()> {
        let spans = [self.ramp_time, self.runtime.unwrap_or_default()];
        let end = spans.into_iter().try_fold(self.start_delay.1, |sum, span| sum.checked_add(span));
        if end.is_some() {
            return Ok(());
        }
        let what = format!(
            "job `{}`: startdelay, ramp_time and runtime end beyond the limit of 213 days",
            self.name
        );
        Err(Diagnostic::new(what).at(self.place_of("runtime")))
    }

    fn depth(&self, warnings: &mut Vec<String>) -> u32 {
        let buffered = self.buffered == Some(true);
        let blocking = matches!(self.engine, Some(Engine::Blocking | Engine::Mapped));
        // `io_in_polling` and `wait_for_completions`: fio checks for completions after each submission and then waits
        // for one.
        let waits = self.batch_complete_min == 0 && self.batch_complete_max == 0;
        if !blocking && !buffered && !waits {
            return self.iodepth;
        }
        if self.iodepth > 1 {
            let what = if blocking {
                "iodepth has no effect with a blocking ioengine: one request at a time, as in fio"
            } else if buffered {
                "iodepth has no effect on buffered requests, which the kernel serves as they are submitted"
            } else {
                "iodepth has no effect with iodepth_batch_complete_min=0: fio waits for each request, despite its documentation; add iodepth_batch_complete_max to keep the queue full"
            };
            warnings.push(format!("job `{}`: {what}", self.name));
        }
        1
    }

    /// Returns the batches of a queue of this depth (`fixup_options`); none if requests are submitted and reaped one
    /// by one.
    fn batches(&self, depth: u32) -> Option<Batches> {
        let or_depth = |number: u32| if number == 0 { depth } else { number.min(depth) };
        let complete_min = self.batch_complete_min.clamp(1, depth);
        let batches = Batches {
            depth,
            submit: or_depth(self.batch_submit),
            complete_min,
            complete_max: self.batch_complete_max.clamp(complete_min, depth),
            low: or_depth(self.iodepth_low),
        };
        (batches != Batches { depth, low: depth, ..Batches::ONE }).then_some(batches)
    }

    fn limits(&self, all: u64) -> Limits {
        // With `filesize`, `size` is the amount to transfer.
        let size = match (self.files.bytes, self.size) {
            (Some(_), Some(Quantity::Bytes(bytes @ 1..))) => bytes.min(all),
            _ => all,
        };
        let io_size = self.io_bytes(size);
        Limits {
            bytes: io_size.unwrap_or(size).saturating_mul(self.loops),
            requests: self.number_ios.map(|n| {
                let pairs = if self.rw.pattern == Pattern::TrimWrite { 2 } else { 1 };
                n.saturating_mul(self.loops).saturating_mul(pairs)
            }),
            pass_bytes: size,
            passes: self.loops,
            refill: io_size.is_some(),
            runtime: self.runtime,
            time_based: self.time_based,
        }
    }

    fn io_bytes(&self, size: u64) -> Option<u64> {
        match self.io_size? {
            Quantity::Bytes(0) => None,
            Quantity::Bytes(bytes) => Some(bytes),
            Quantity::Percent(percent) => Some(share(size, percent)),
        }
    }

    /// Lets writes without a map continue to `io_size` without a new pass: the head of fio's `do_io`.
    fn settle_passes(&self, job: &mut Job) {
        let mapped = matches!(&job.order, Order::Random { choice: Choice::EachOnce, .. });
        if let Some(io_size) = self.io_bytes(job.limits.pass_bytes)
            && job.access.writes()
            && !mapped
        {
            job.limits.pass_bytes = job.limits.pass_bytes.max(io_size);
        }
    }

    fn rate_of(&self, job: &Job, d: Direction) -> Option<Rate> {
        let i = d as usize;
        if !job.access.has(d) {
            return None;
        }
        if self.rate[i] > 0 {
            return Some(Rate::Bytes(self.rate[i]));
        }
        let per_s = Some(self.rate_iops[i]).filter(|&n| n > 0)?;
        // fio converts requests to bytes at the smallest size, except under bssplit.
        match &job.sizes[i] {
            Sizes::Split(_) => Some(Rate::Requests(per_s)),
            sizes => Some(Rate::Bytes(per_s.saturating_mul(sizes.min()))),
        }
    }

    fn order(&self, job: &mut Job) -> Resolved<Order> {
        if !self.rw.random {
            let gap = self.rw.modifier.unwrap_or(0);
            self.check_sectors("rw", gap.unsigned_abs())?;
            if gap.unsigned_abs() >= job.bytes {
                let what =
                    format!("job `{}`: steps of {gap} bytes leave the region of {}", self.name, job.bytes);
                return Err(Diagnostic::new(what).at(self.place_of("rw")));
            }
            return Ok(Order::Sequential { gap });
        }
        Ok(Order::Random {
            run: self.rw.modifier.map_or(1, |n| n.max(1) as u64),
            follow: self.follow,
            percent: self.percentage_random,
            choice: self.choice(job)?,
        })
    }

    fn choice(&self, job: &mut Job) -> Resolved<Choice> {
        match &self.distribution {
            Distribution::Popular { popularity, center } => {
                return Ok(Choice::Popular { popularity: *popularity, center: *center });
            }
            Distribution::Zoned(zones) => return self.zoned(job, zones),
            Distribution::ZonedAbs(zones) => return self.zoned_abs(job, zones),
            Distribution::Random if self.norandommap => return Ok(Choice::Uniform),
            Distribution::Random => {}
        }
        let used = Direction::ALL.into_iter().filter(|&d| job.access.has(d));
        if used.clone().any(|d| job.align[d as usize] != job.smallest(d)) {
            let what = "blockalign turns the random map off, as in fio: blocks are drawn with replacement";
            job.warnings.push(format!("job `{}`: {what}", self.name));
            return Ok(Choice::Uniform);
        }
        for d in used {
            let mapped = job.sizes[job.sizes_index(d, true)].max() > job.align[d as usize];
            if mapped && job.blocks(d) > MOST_MAPPED_BLOCKS {
                let what = format!(
                    "job `{}`: a map of {} blocks for requests of several sizes would take more than 2 GiB",
                    self.name,
                    job.blocks(d)
                );
                return Err(Diagnostic::new(what).at(self.place_of("bssplit")).help("add norandommap"));
            }
        }
        Ok(Choice::EachOnce)
    }

    /// Converts percent to blocks, rounded as in fio's `__get_next_rand_offset_zoned`.
    fn zoned(&self, job: &Job, zones: &Each<Vec<(u8, u8)>>) -> Resolved<Choice> {
        let mut each: Each<Vec<Zone>> = Default::default();
        for d in Direction::ALL.into_iter().filter(|&d| job.access.has(d)) {
            let mut passed = 0u8;
            for &(percent, size) in &zones[d as usize] {
                let first = share(job.blocks(d), passed);
                each[d as usize].push(Zone { percent, first, blocks: share(job.blocks(d), size) });
                passed += size;
            }
        }
        self.check_zones(job, each)
    }

    fn zoned_abs(&self, job: &Job, zones: &Each<Vec<(u8, u64)>>) -> Resolved<Choice> {
        let mut each: Each<Vec<Zone>> = Default::default();
        for d in Direction::ALL.into_iter().filter(|&d| job.access.has(d)) {
            let align = job.align[d as usize];
            let mut passed = 0u64;
            for &(percent, size) in &zones[d as usize] {
                let end = passed.saturating_add(size);
                if end / align > job.blocks(d) {
                    let what = format!(
                        "job `{}`: zones reach to {end} in a region of {} bytes",
                        self.name, job.bytes
                    );
                    return Err(Diagnostic::new(what).at(self.place_of("random_distribution")));
                }
                let (first, last) = (passed / align, end / align);
                each[d as usize].push(Zone { percent, first, blocks: last - first });
                passed = end;
            }
        }
        self.check_zones(job, each)
    }

    fn check_zones(&self, job: &Job, zones: Each<Vec<Zone>>) -> Resolved<Choice> {
        for d in Direction::ALL.into_iter().filter(|&d| job.access.has(d)) {
            let list = &zones[d as usize];
            if list.is_empty() || list.iter().any(|zone| zone.percent > 0 && zone.blocks == 0) {
                let what = format!("job `{}`: a zone for {:?}s has no block", self.name, d);
                return Err(Diagnostic::new(what).at(self.place_of("random_distribution")));
            }
        }
        Ok(Choice::Zoned(zones))
    }
}

fn share(of: u64, percent: u8) -> u64 {
    (of as u128 * percent as u128 / 100) as u64
}

fn smallest(access: Access, sizes: &Each<Sizes>) -> u64 {
    let used = Direction::ALL.into_iter().filter(|&d| access.has(d));
    used.map(|d| sizes[d as usize].min()).min().unwrap_or(1).max(1)
}

/// Rounds the sizes of a split down to multiples of the smallest, as fio does.
fn split(shares: &[Share], warnings: &mut Vec<String>, used: bool) -> Sizes {
    let min = shares.iter().map(|s| s.bytes).min().unwrap_or(1).max(1);
    let round = |s: &Share| Share { bytes: s.bytes - s.bytes % min, ..*s };
    let rounded: Vec<Share> = shares.iter().map(round).collect();
    if used && rounded != shares {
        let what = format!("bssplit: sizes are rounded down to multiples of the smallest, {min}, as in fio");
        if !warnings.contains(&what) {
            warnings.push(what);
        }
    }
    match rounded.as_slice() {
        [only] => Sizes::Fixed(only.bytes),
        _ => Sizes::Split(rounded),
    }
}
