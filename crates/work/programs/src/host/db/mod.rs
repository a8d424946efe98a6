//! Programs `db-s` and `db-u`: point selects and updates by key, as sysbench requests them from InnoDB.

mod pool;
#[cfg(test)]
mod tests;
mod tree;
mod writeback;

use engine::{Rng, Time};
use proto::file::{Call, Fd, FileId, FileSpec, Next, OpenFlags};
use requests::synth::{Permutation, Zipf};

use self::pool::{Pool, Room};
use self::tree::{Keys, Tree};
use self::writeback::{Capacity, Cleaner, Commit, Flush, Redo};
use super::demand::{self, Arrivals};
use super::server::{Serve, Server, Step};
use super::{Built, DRIVE, Entry, Named, Options, Parameter, Range, SWITCH, SWITCHED};

/// Bytes of a page.
const PAGE: u64 = 16 << 10;
const TABLE: Fd = Fd(0);
const LOG: Fd = Fd(1);
const DOUBLEWRITE: Fd = Fd(2);

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "size",
        what: "bytes of the table",
        default: "8GB",
        range: Range::Size(1 << 20, 1 << 45),
        source: "chosen: larger than the memory for pages",
    },
    Parameter {
        name: "row",
        what: "bytes of a row in its page",
        default: "190B",
        range: Range::Size(16, 8_000),
        source: "sysbench oltp: two integers, 120 and 60 characters",
    },
    Parameter {
        name: "keys",
        what: "special: three quarters of the requests for a hundredth of the table; uniform; zipf",
        default: "special",
        range: Range::Word(&["special", "uniform", "zipf"]),
        source: "sysbench 1.0: --rand-type, sb_rand_special",
    },
    Parameter {
        name: "theta",
        what: "skew of Zipf's law over the rows (keys=zipf)",
        default: "0.8",
        range: Range::Real(0.01, 4.0),
        source: "sysbench 1.0: --rand-zipfian-exp",
    },
    Parameter {
        name: "cpu",
        what: "core time per request, excluding its system calls",
        default: "100us",
        range: Range::Span(Time::ZERO, Time::from_s(1)),
        source: "chosen: about 10,000 point selects per second on a core of 2 GHz",
    },
    Parameter {
        name: "pool",
        what: "bytes of the buffer pool, at least 1 MiB",
        default: "128MiB",
        range: Range::Size(1 << 20, 1 << 40),
        source: "MySQL 8.0: innodb_buffer_pool_size",
    },
    Parameter {
        name: "flush",
        what: "innodb_flush_method: fsync uses the page cache, O_DIRECT bypasses it for pages of the table",
        default: "fsync",
        range: Range::Word(&["fsync", "O_DIRECT"]),
        source: "MySQL 8.0",
    },
    Parameter {
        name: "doublewrite",
        what: "whether pages are first written to a separate file and synced before they go to their places",
        default: "yes",
        range: SWITCH,
        source: "MySQL 8.0: innodb_doublewrite",
    },
    Parameter {
        name: "log",
        what: "bytes of the circular redo log",
        default: "96MiB",
        range: Range::Size(4 << 20, 1 << 39),
        source: "MySQL 8.0: two of innodb_log_file_size",
    },
    Parameter {
        name: "record",
        what: "bytes that an update appends to the redo log",
        default: "600B",
        range: Range::Size(1, 1 << 20),
        source: "chosen: the row's change, its undo record, the transaction's end",
    },
    Parameter {
        name: "commit",
        what: "sync: an update is answered once its record is durable; write: once it is written",
        default: "sync",
        range: Range::Word(&["sync", "write"]),
        source: "MySQL 8.0: innodb_flush_log_at_trx_commit of 1 and 2",
    },
    Parameter {
        name: "io_capacity",
        what: "pages per second that the page cleaner writes at 100 %",
        default: "200",
        range: Range::Count(1, 1_000_000),
        source: "MySQL 8.0: innodb_io_capacity",
    },
    Parameter {
        name: "io_capacity_max",
        what: "most pages per second that the page cleaner writes; at least `io_capacity`",
        default: "2000",
        range: Range::Count(1, 1_000_000),
        source: "MySQL 8.0: innodb_io_capacity_max",
    },
    Parameter {
        name: "dirty_low",
        what: "percent of dirty pages at which the page cleaner starts to write; 0: at `dirty_most`",
        default: "10",
        range: Range::Count(0, 99),
        source: "MySQL 8.0: innodb_max_dirty_pages_pct_lwm",
    },
    Parameter {
        name: "dirty_most",
        what: "percent of dirty pages at which it writes at 100 %",
        default: "90",
        range: Range::Count(0, 99),
        source: "MySQL 8.0: innodb_max_dirty_pages_pct",
    },
    Parameter {
        name: "lru_depth",
        what: "pages that the page cleaner keeps free",
        default: "1024",
        range: Range::Count(1, 1 << 24),
        source: "MySQL 8.0: innodb_lru_scan_depth",
    },
    DRIVE,
];

/// Returns the parameter for the percentage of updates.
const fn updates(default: &'static str) -> Parameter {
    Parameter {
        name: "updates",
        what: "percent of requests that update a row",
        default,
        range: Range::Real(0.0, 100.0),
        source: "the program's name",
    }
}

const WHAT: &str =
    "rows of a table by key: a B-tree of 16 KiB pages, a buffer pool, a redo log that is synced at commit";

/// Program of point selects.
pub(super) const SELECT: Entry = Entry {
    name: "db-s",
    source: "sysbench 1.0 on MySQL 8.0, InnoDB",
    what: WHAT,
    parameters: &[&demand::arrival_parameters("4000"), PARAMETERS, &[updates("0")]],
    build,
};

/// Program of updates by key.
pub(super) const UPDATE: Entry = Entry {
    name: "db-u",
    source: "sysbench 1.0 on MySQL 8.0, InnoDB",
    what: WHAT,
    parameters: &[&demand::arrival_parameters("2000"), PARAMETERS, &[updates("100")]],
    build,
};

fn build(options: &Options, named: Named<'_>) -> Built {
    if options.whole("io_capacity") > options.whole("io_capacity_max") {
        return Err(options.refused("io_capacity", "at most `io_capacity_max`".to_owned()));
    }
    if options.whole("dirty_low") > options.whole("dirty_most") {
        return Err(options.refused("dirty_low", "at most `dirty_most`".to_owned()));
    }
    let arrivals = Arrivals::new(options, named.stream("arrivals"));
    let service = Database::new(options, named, arrivals.1);
    Ok(Box::new(Server::new(named.name, service, arrivals, options.whole("requests"))))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Begin,
    /// Looks for the page at this depth.
    Find(u32),
    /// Writes a page to get its frame for the page at this depth.
    Write(u32),
    /// Reads the page at this depth into a frame.
    Read(u32, u32),
    /// Appends to the log, once it has room.
    Append,
    /// Waits for room in the log.
    NoRoom,
    Commit,
    /// Writes the log for all threads.
    Lead,
    Sync,
    Synced,
    Wake,
    Answer,
    Done,
}

#[derive(Clone)]
struct Job {
    update: bool,
    row: u64,
    lsn: u64,
    phase: Phase,
    flush: Flush,
}

struct Database {
    rng: Rng,
    updates: f64,
    cpu: Time,
    tree: Tree,
    keys: Keys,
    pool: Pool,
    redo: Redo,
    cleaner: Cleaner,
    jobs: Vec<Job>,
    record: u64,
    sync: bool,
    direct: bool,
    doublewrite: bool,
    log_bytes: u64,
    drive: u16,
}

impl Database {
    fn new(options: &Options, named: Named<'_>, workers: u32) -> Database {
        let tree = Tree::new(options.whole("size"), options.whole("row"));
        let rows = tree.rows();
        let salt = named.stream("keys").next_u64();
        let keys = match options.word("keys", &[0, 1, 2]) {
            0 => Keys::Special,
            1 => Keys::Uniform,
            _ => {
                let zipf = Zipf::new(rows, options.real("theta"));
                Keys::Zipf(Box::new((zipf, Permutation::new(rows, salt))))
            }
        };
        let doublewrite = options.word("doublewrite", SWITCHED);
        let frames = (options.whole("pool") / PAGE) as u32;
        let capacity = Capacity {
            usual: options.whole("io_capacity"),
            most: options.whole("io_capacity_max"),
            low_dirty: options.whole("dirty_low"),
            most_dirty: options.whole("dirty_most"),
            // Limited so that pages in use are not written and evicted for it.
            depth: (options.whole("lru_depth") as u32).min(frames / 4),
        };
        let job = Job { update: false, row: 0, lsn: 0, phase: Phase::Done, flush: Flush::default() };
        Database {
            rng: named.stream("requests"),
            updates: options.real("updates"),
            cpu: options.span("cpu"),
            tree,
            keys,
            pool: Pool::new(frames),
            redo: Redo::new(options.whole("log")),
            cleaner: Cleaner::new(capacity, doublewrite),
            jobs: vec![job; workers as usize],
            record: options.whole("record"),
            sync: options.word("commit", &[true, false]),
            direct: options.word("flush", &[false, true]),
            doublewrite,
            log_bytes: options.whole("log"),
            drive: options.whole("drive") as u16,
        }
    }

    /// Looks for a page of the row's path; returns the worker's next step if it takes time.
    fn find(&mut self, at: usize, depth: u32, now: Time) -> Option<Next> {
        let page = self.tree.page(self.jobs[at].row, depth);
        if self.pool.find(page, now).is_some() {
            self.found(at, depth);
            return None;
        }
        let (phase, next) = match self.pool.room() {
            Room::Free(frame) => {
                let offset = u64::from(page) * PAGE;
                let read = Next::Call(Call::Read { fd: TABLE, offset, bytes: PAGE });
                (Phase::Read(depth, frame), Some(read))
            }
            // buf_flush_single_page_from_LRU.
            Room::Write(frame) => {
                let flush = &mut self.jobs[at].flush;
                flush.frames.push(frame);
                flush.begin(self.doublewrite);
                (Phase::Write(depth), None)
            }
            // As buf_LRU_get_free_block, which sleeps for 10 ms.
            Room::None => (Phase::Find(depth), Some(Next::Until(now + Time::from_ms(10)))),
        };
        self.jobs[at].phase = phase;
        next
    }

    /// Handles a page of the row's path that is in memory.
    fn found(&mut self, at: usize, depth: u32) {
        let job = &mut self.jobs[at];
        job.phase = match depth + 1 < self.tree.height() {
            true => Phase::Find(depth + 1),
            false if job.update => Phase::Append,
            false => Phase::Answer,
        };
    }

    /// Changes the row and appends its record to the log, if there is room.
    fn append(&mut self, at: usize, now: Time) -> Option<Next> {
        if self.redo.age() + self.record > self.redo.most() {
            // As log_free_check: the page cleaner is woken, and the worker checks again a little later.
            self.jobs[at].phase = Phase::NoRoom;
            return Some(Next::Wake(self.jobs.len() as u32));
        }
        let leaf = self.tree.page(self.jobs[at].row, self.tree.height() - 1);
        let Some(frame) = self.pool.find(leaf, now) else {
            // The page was evicted during the wait for room.
            self.jobs[at].phase = Phase::Find(self.tree.height() - 1);
            return None;
        };
        let since = self.redo.end();
        self.jobs[at].lsn = self.redo.append(self.record);
        self.pool.change(frame, since);
        self.jobs[at].phase = Phase::Commit;
        None
    }
}

impl Serve for Database {
    fn kinds(&self) -> &'static [&'static str] {
        &["select", "update"]
    }

    fn files(&self) -> Vec<FileSpec> {
        let file = |name: &str, bytes| FileSpec { name: name.to_owned(), bytes, drive: self.drive };
        let copies = writeback::BATCH as u64 * PAGE;
        vec![
            file("sbtest1.ibd", Some(self.tree.bytes())),
            file("ib_logfile", Some(self.log_bytes)),
            file("doublewrite", Some(copies)),
        ]
    }

    fn setup(&self) -> Vec<Call> {
        let open = |fd: Fd, direct| {
            let flags = OpenFlags { direct, ..OpenFlags::default() };
            Call::Open { fd, file: FileId(u32::from(fd.0)), flags }
        };
        vec![open(TABLE, self.direct), open(LOG, false), open(DOUBLEWRITE, self.direct)]
    }

    fn begin(&mut self, worker: u32) {
        let update = self.rng.unit() * 100.0 < self.updates;
        let row = self.keys.draw(self.tree.rows(), &mut self.rng);
        let job = &mut self.jobs[worker as usize];
        (job.update, job.row, job.phase) = (update, row, Phase::Begin);
    }

    fn step(&mut self, worker: u32, now: Time) -> Step {
        let at = worker as usize;
        loop {
            let next = match self.jobs[at].phase {
                Phase::Begin => {
                    self.jobs[at].phase = Phase::Find(0);
                    Some(Next::Compute(self.cpu))
                }
                Phase::Find(depth) => self.find(at, depth, now),
                Phase::Write(depth) => {
                    let call = self.jobs[at].flush.next(&mut self.pool, self.redo.end());
                    if call.is_none() {
                        self.jobs[at].phase = Phase::Find(depth);
                    }
                    call.map(Next::Call)
                }
                Phase::Read(depth, frame) => {
                    let page = self.tree.page(self.jobs[at].row, depth);
                    self.pool.insert(frame, page, now);
                    self.found(at, depth);
                    None
                }
                Phase::Append => self.append(at, now),
                Phase::NoRoom => {
                    self.jobs[at].phase = Phase::Append;
                    Some(Next::Until(now + Time::from_ms(1)))
                }
                Phase::Commit => {
                    let commit = self.redo.commit(worker, self.jobs[at].lsn);
                    match commit {
                        Commit::Durable => self.jobs[at].phase = Phase::Answer,
                        Commit::Lead => self.jobs[at].phase = Phase::Lead,
                        Commit::Wait => {}
                    }
                    (commit == Commit::Wait).then_some(Next::Wait)
                }
                Phase::Lead => {
                    let write = self.redo.write();
                    let write =
                        write.map(|(offset, bytes)| Next::Call(Call::Write { fd: LOG, offset, bytes }));
                    if write.is_none() {
                        self.jobs[at].phase = Phase::Sync;
                    }
                    write
                }
                Phase::Sync => {
                    self.jobs[at].phase = Phase::Synced;
                    self.sync.then_some(Next::Call(Call::Sync { fd: LOG, data_only: false }))
                }
                Phase::Synced => {
                    self.redo.synced();
                    self.jobs[at].phase = Phase::Wake;
                    None
                }
                Phase::Wake => {
                    let other = self.redo.wake();
                    if other.is_none() {
                        self.jobs[at].phase = Phase::Answer;
                    }
                    other.map(Next::Wake)
                }
                Phase::Answer => {
                    self.jobs[at].phase = Phase::Done;
                    let update = self.jobs[at].update;
                    return Step::Answered { kind: usize::from(update), bytes: 0 };
                }
                Phase::Done => return Step::Done,
            };
            if let Some(next) = next {
                return Step::Next(next);
            }
        }
    }

    fn helpers(&self) -> u32 {
        1
    }

    fn help(&mut self, _helper: u32, now: Time) -> Next {
        self.cleaner.next(&mut self.pool, &mut self.redo, now)
    }
}
