//! System calls on files, as recorded in a log.

use proto::file::{Advice, Call, Fd, FileId, OpenFlags, SyncRange};

use super::Fault;
use super::files::Target;
use super::line::{Kind, Syscall, number, path_of};
use super::tracer::{NO_NAME, Tracer};

/// Replayed by the host, in its own time.
const REPLAYED: Option<bool> = Some(false);
/// On something other than a file: it may have slept.
const SLEPT: Option<bool> = Some(true);

/// File of a descriptor.
#[derive(Clone, Copy)]
struct Open {
    file: u32,
    name: u32,
    position: u64,
    append: bool,
}

/// A call that has returned.
#[derive(Clone, Copy)]
pub(super) struct Made<'a> {
    pub(super) thread: u32,
    /// Descriptor table of its process.
    pub(super) table: u32,
    pub(super) kind: Kind,
    pub(super) call: &'a Syscall<'a>,
    pub(super) result: i64,
}

/// Returns the end of a range of a file.
fn end_of(offset: u64, bytes: u64) -> Result<u64, Fault> {
    let end = offset.checked_add(bytes).filter(|end| *end <= i64::MAX as u64);
    end.ok_or_else(|| Fault::new("the offset is too large: files end below 2^63 bytes", 0))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns true if a path is on a file system without a drive.
fn is_virtual(path: &str) -> bool {
    ["/dev/", "/proc/", "/sys/", "/memfd:"].iter().any(|root| path.starts_with(root))
        || !path.starts_with('/') && path.contains(":[")
}

/// Returns a path without `.`, `..` and doubled slashes, as far as the text shows.
fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." && parts.last().is_some_and(|last| *last != "..") {
            parts.pop();
        } else if part != ".." || !path.starts_with('/') {
            parts.push(part);
        }
    }
    let root = if path.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}

impl Tracer {
    /// Returns the path given by a directory's descriptor and a name.
    fn path(&mut self, table: u32, directory: Option<&[u8]>, name: &[u8]) -> String {
        let name = text(name);
        if let Some(now) = directory.filter(|at| at.starts_with(b"AT_FDCWD")).and_then(path_of) {
            // `strace -y` gives the process's directory; calls without a directory do not.
            let (now, known) = (String::from_utf8_lossy(now), self.descriptors.directory(table));
            if *known != now {
                *known = now.into_owned();
            }
        }
        if name.starts_with('/') {
            return normal(&name);
        }
        let base = match directory.filter(|at| !at.starts_with(b"AT_FDCWD")) {
            Some(directory) if path_of(directory).is_some() => path_of(directory).map(text),
            Some(directory) => {
                let number = number(directory).and_then(|n| u32::try_from(n).ok());
                match number.and_then(|number| self.descriptors.target(table, number)) {
                    Some(Target::Other(path)) => path.clone(),
                    // A directory that was opened like a file.
                    Some(Target::File { file, .. }) => {
                        let file = *file;
                        Some(self.files.name(file).to_owned())
                    }
                    None => None,
                }
            }
            None => Some(self.descriptors.directory(table).clone()),
        };
        normal(&format!("{}/{name}", base.filter(|base| !base.is_empty()).unwrap_or_else(|| ".".to_owned())))
    }

    /// Returns the file of a descriptor argument; none if it is not a file.
    fn file(&mut self, thread: u32, table: u32, argument: &[u8]) -> Result<Option<Open>, Fault> {
        let Some(descriptor) = number(argument).and_then(|n| u32::try_from(n).ok()) else {
            return Ok(None);
        };
        if self.descriptors.target(table, descriptor).is_none()
            && let Some(path) = path_of(argument).map(text)
            && path.starts_with('/')
            && !is_virtual(&path)
        {
            // It was open when the log began, and `strace -y` gives its path.
            let file = self.files.there(&normal(&path));
            self.open(thread, (table, descriptor), file, OpenFlags::default(), (false, false))?;
        }
        Ok(match self.descriptors.target(table, descriptor) {
            Some(Target::File { file, name, position, append }) => {
                Some(Open { file: *file, name: *name, position: *position, append: *append })
            }
            _ => None,
        })
    }

    fn seek(&mut self, table: u32, argument: &[u8], to: u64) {
        let descriptor = number(argument).and_then(|n| u32::try_from(n).ok());
        if let Some(Target::File { position, .. }) =
            descriptor.and_then(|descriptor| self.descriptors.target(table, descriptor))
        {
            *position = to;
        }
    }

    /// Replays calls on files and descriptors, as [`Tracer::replay`].
    pub(super) fn file_call(&mut self, made: Made<'_>) -> Result<Option<bool>, Fault> {
        let Made { thread, table, kind, call, .. } = made;
        match kind {
            Kind::Open | Kind::OpenAt | Kind::Create => self.opened(made),
            Kind::Close | Kind::CloseRange | Kind::Duplicate | Kind::DuplicateTo | Kind::Control => {
                Ok(self.descriptor(made))
            }
            Kind::Read | Kind::ReadAt | Kind::Write | Kind::WriteAt => self.moved(made),
            Kind::SendFile | Kind::CopyRange => self.copied(made),
            Kind::Unlink
            | Kind::UnlinkAt
            | Kind::Rename
            | Kind::RenameAt
            | Kind::Link
            | Kind::LinkAt
            | Kind::TruncatePath
            | Kind::ChangeDirectory
            | Kind::ChangeDirectoryTo => self.named(made),
            Kind::SyncAll => {
                self.emit(thread, NO_NAME, Call::SyncAll);
                Ok(REPLAYED)
            }
            Kind::Status => self.status(made),
            Kind::Map => {
                let mapped = self.file(thread, table, call.argument(4))?;
                self.notes.maps += u64::from(mapped.is_some());
                Ok(None)
            }
            _ => self.held(made),
        }
    }

    fn opened(&mut self, made: Made<'_>) -> Result<Option<bool>, Fault> {
        let Made { thread, table, kind, call, result } = made;
        let at = usize::from(kind == Kind::OpenAt);
        let directory = (kind == Kind::OpenAt).then(|| call.argument(0));
        let Some(name) = call.string(at) else {
            return Err(Fault::new("the path is not a string", 0));
        };
        let path = self.path(table, directory, name);
        let has = |flag: &str| call.has(at + 1, flag);
        let number = result as u32;
        let closes = has("O_CLOEXEC");
        if has("O_DIRECTORY") && !has("O_TMPFILE") || has("O_PATH") || is_virtual(&path) {
            self.notes.other += 1;
            let target = Target::Other(Some(path));
            let mut closed = Vec::new();
            self.descriptors.open(table, number, target, closes, &mut closed);
            self.closed_now(thread, closed);
            return Ok(None);
        }
        let create = kind == Kind::Create;
        let file = if has("O_TMPFILE") {
            self.files.unnamed()
        } else if create || has("O_CREAT") {
            self.files.there_or_new(&path)
        } else {
            self.files.there(&path)
        };
        let flags = OpenFlags {
            direct: has("O_DIRECT"),
            sync: has("O_SYNC"),
            data_sync: has("O_DSYNC"),
            truncate: create || has("O_TRUNC"),
        };
        self.open(thread, (table, number), file, flags, (has("O_APPEND"), closes))?;
        Ok(REPLAYED)
    }

    fn descriptor(&mut self, made: Made<'_>) -> Option<bool> {
        let Made { thread, table, kind, call, result } = made;
        let mut closed = Vec::new();
        let from = call.size(0).unwrap_or(u64::MAX).min(u64::from(u32::MAX)) as u32;
        let to = result.max(0) as u32;
        match kind {
            Kind::Close => self.descriptors.close(table, from, &mut closed),
            Kind::CloseRange => {
                let last = call.size(1).unwrap_or(0).min(u64::from(u32::MAX)) as u32;
                let mark = call.has(2, "CLOSE_RANGE_CLOEXEC");
                self.descriptors.close_range(table, (from, last), mark, &mut closed);
            }
            Kind::Control if call.has(1, "F_DUPFD") => {
                let closes = call.has(1, "F_DUPFD_CLOEXEC");
                self.descriptors.duplicate(table, from, to, closes, &mut closed);
            }
            Kind::Control if call.has(1, "F_SETFD") => {
                self.descriptors.set_closing(table, from, call.has(2, "FD_CLOEXEC"));
            }
            Kind::Control => {}
            _ => self.descriptors.duplicate(table, from, to, call.has(2, "O_CLOEXEC"), &mut closed),
        }
        if closed.is_empty() {
            return None;
        }
        self.closed_now(thread, closed);
        // Only a close is replayed as a close; the time of other calls is computed.
        if kind == Kind::Close { REPLAYED } else { None }
    }

    fn moved(&mut self, made: Made<'_>) -> Result<Option<bool>, Fault> {
        let Made { thread, table, kind, call, result } = made;
        let bytes = result as u64;
        let Some(open) = self.file(thread, table, call.argument(0))? else {
            return Ok(SLEPT);
        };
        let reads = matches!(kind, Kind::Read | Kind::ReadAt);
        let given = matches!(kind, Kind::ReadAt | Kind::WriteAt).then(|| call.number(3)).flatten();
        // preadv2 and pwritev2 take -1 for the position.
        let (offset, moves) = match given.map(u64::try_from) {
            Some(Ok(offset)) => (offset, false),
            _ if open.append && !reads => (self.files.bytes(open.file), true),
            _ => (open.position, true),
        };
        let end = end_of(offset, bytes)?;
        self.transfer(thread, open, reads, (offset, bytes));
        if moves {
            self.seek(table, call.argument(0), end);
        }
        Ok(REPLAYED)
    }

    fn transfer(&mut self, thread: u32, open: Open, reads: bool, (offset, bytes): (u64, u64)) {
        let fd = Fd(0);
        if reads {
            if bytes > 0 {
                self.files.was(open.file, offset + bytes);
            }
            self.emit(thread, open.name, Call::Read { fd, offset, bytes });
        } else {
            self.files.written(open.file, offset + bytes);
            self.emit(thread, open.name, Call::Write { fd, offset, bytes });
        }
    }

    /// Replays `sendfile(out, in, offset, n)` and `copy_file_range(in, offset, out, offset, n, flags)`: a read, and a
    /// write.
    fn copied(&mut self, made: Made<'_>) -> Result<Option<bool>, Fault> {
        let Made { thread, table, kind, call, result } = made;
        let bytes = result as u64;
        let (from, from_at, to, to_at) = match kind {
            Kind::SendFile => (1, 2, 0, None),
            _ => (0, 1, 2, Some(3)),
        };
        let mut files = 0;
        for (descriptor, at, reads) in [(from, Some(from_at), true), (to, to_at, false)] {
            let argument = call.argument(descriptor);
            let Some(open) = self.file(thread, table, argument)? else {
                continue;
            };
            files += 1;
            let given = at.and_then(|at| call.argument(at).strip_prefix(b"[")).and_then(number);
            let offset = match given.map(u64::try_from) {
                Some(Ok(offset)) => offset,
                _ if open.append && !reads => self.files.bytes(open.file),
                _ => open.position,
            };
            if bytes > 0 {
                let end = end_of(offset, bytes)?;
                self.transfer(thread, open, reads, (offset, bytes));
                if given.is_none() {
                    self.seek(table, argument, end);
                }
            }
        }
        Ok(if files > 0 { REPLAYED } else { SLEPT })
    }

    fn named(&mut self, made: Made<'_>) -> Result<Option<bool>, Fault> {
        let Made { thread, table, kind, call, .. } = made;
        let at_directory = matches!(kind, Kind::UnlinkAt | Kind::RenameAt | Kind::LinkAt);
        let mut paths = [String::new(), String::new()];
        for (n, path) in paths.iter_mut().enumerate() {
            let at = if at_directory { 2 * n } else { n };
            let directory = at_directory.then(|| call.argument(at));
            if let Some(name) = call.string(at + usize::from(at_directory)) {
                *path = self.path(table, directory, name);
            }
        }
        let [first, second] = paths;
        match kind {
            Kind::ChangeDirectoryTo => {
                let target = call.size(0).and_then(|n| u32::try_from(n).ok());
                let target = target.and_then(|n| self.descriptors.target(table, n));
                if let Some(Target::Other(Some(path))) = target {
                    let path = path.clone();
                    *self.descriptors.directory(table) = path;
                }
                return Ok(None);
            }
            _ if first.is_empty() || is_virtual(&first) => return Ok(None),
            Kind::ChangeDirectory => *self.descriptors.directory(table) = first,
            Kind::UnlinkAt if call.has(2, "AT_REMOVEDIR") => {}
            Kind::Unlink | Kind::UnlinkAt => {
                if let Some(file) = self.files.unlink(&first) {
                    self.emit(thread, NO_NAME, Call::Unlink { file: FileId(file) });
                    return Ok(REPLAYED);
                }
            }
            Kind::TruncatePath => {
                let (file, bytes) = (self.files.there(&first), call.size(1).unwrap_or(0));
                self.files.cut(file, bytes);
                self.briefly(thread, file, Call::Truncate { fd: Fd(0), bytes });
                return Ok(REPLAYED);
            }
            _ if second.is_empty() => {}
            Kind::Link | Kind::LinkAt => self.files.link(&first, &second),
            // RENAME_EXCHANGE: both stay and swap their names.
            _ if call.has(4, "RENAME_EXCHANGE") => self.files.exchange(&first, &second),
            _ => self.replace(thread, &first, &second),
        }
        self.notes.metadata += 1;
        Ok(None)
    }

    /// Records the length of a file given by the log.
    fn status(&mut self, made: Made<'_>) -> Result<Option<bool>, Fault> {
        let Made { thread, table, call, .. } = made;
        let bytes = call.field("st_size=").or_else(|| call.field("stx_size="));
        let regular = memchr::memmem::find(call.text, b"S_IFREG").is_some();
        self.notes.metadata += 1;
        let Some(bytes) = bytes.filter(|_| regular) else {
            return Ok(None);
        };
        let (first, path) = (call.argument(0), call.string(0).or_else(|| call.string(1)));
        let file = match path {
            Some(path) if !path.is_empty() => {
                let directory = call.string(0).is_none().then_some(first);
                let path = self.path(table, directory, path);
                self.files.find(&path)
            }
            _ => self.file(thread, table, first)?.map(|open| open.file),
        };
        if let Some(file) = file {
            self.files.was(file, bytes);
        }
        Ok(None)
    }

    /// Handles calls on a descriptor that move no data.
    fn held(&mut self, made: Made<'_>) -> Result<Option<bool>, Fault> {
        let Made { thread, table, kind, call, result } = made;
        let Some(Open { file, name, .. }) = self.file(thread, table, call.argument(0))? else {
            return Ok(SLEPT);
        };
        let (fd, offset, bytes) = (Fd(0), call.size(1).unwrap_or(0), call.size(2).unwrap_or(0));
        let replayed = match kind {
            Kind::Seek => {
                if call.has(2, "SEEK_END") && call.number(1) == Some(0) {
                    self.files.was(file, result as u64);
                }
                self.seek(table, call.argument(0), result as u64);
                return Ok(None);
            }
            Kind::Sync => Call::Sync { fd, data_only: false },
            Kind::SyncData => Call::Sync { fd, data_only: true },
            Kind::SyncRange => {
                let has = |flag: &str| call.has(3, flag);
                let how = SyncRange {
                    wait_before: has("WAIT_BEFORE"),
                    write: has("RANGE_WRITE"),
                    wait_after: has("WAIT_AFTER"),
                };
                Call::SyncRange { fd, offset, bytes, how }
            }
            Kind::ReadAhead => Call::Advise { fd, offset, bytes, advice: Advice::WillNeed },
            Kind::Advise => {
                let has = |word: &str| call.has(3, word);
                let advice = if has("SEQUENTIAL") {
                    Advice::Sequential
                } else if has("RANDOM") {
                    Advice::Random
                } else if has("WILLNEED") {
                    Advice::WillNeed
                } else if has("DONTNEED") {
                    Advice::DontNeed
                } else {
                    Advice::Normal
                };
                Call::Advise { fd, offset, bytes, advice }
            }
            Kind::Truncate => {
                self.files.cut(file, offset);
                Call::Truncate { fd, bytes: offset }
            }
            Kind::Allocate => {
                let end = end_of(bytes, call.size(3).unwrap_or(0))?;
                if call.number(1) != Some(0) || end <= self.files.bytes(file) {
                    self.notes.metadata += 1;
                    return Ok(None);
                }
                self.files.cut(file, end);
                Call::Truncate { fd, bytes: end }
            }
            _ => return Ok(None),
        };
        self.emit(thread, name, replayed);
        Ok(REPLAYED)
    }
}
