//! Files named by a log, with their lengths before the program began, and the descriptors of its processes.

use std::collections::BTreeMap;
use std::ops::Bound;

/// A file of the log.
#[derive(Debug)]
struct File {
    name: String,
    /// Length before the program began, as far as the log shows it; none if it did not exist.
    before: Option<u64>,
    /// Current length.
    now: u64,
    /// True if the log has changed its length or written to it, so that its current length does not determine the
    /// earlier one.
    changed: bool,
    /// Number of descriptors, which outlive its names.
    open: u32,
    names: u32,
}

/// Files by name.
///
/// A file existed before the program began if the log opens it without `O_CREAT`, reads data from it that the log has
/// not written, or gives its length. Its length was then the maximum of the end of the data read, and of the results
/// of `fstat` and `lseek(SEEK_END)`, before the log wrote to it.
#[derive(Debug, Default)]
pub(super) struct Files {
    list: Vec<File>,
    by_name: BTreeMap<String, u32>,
    /// Files that have lost their last name, to be reused under it once no descriptor holds them.
    gone: BTreeMap<String, u32>,
    /// Initial lengths found by an earlier pass over the same log.
    known: Vec<Option<u64>>,
}

impl Files {
    /// Creates the files for a second pass over a log, with known initial lengths.
    pub(super) fn known(known: Vec<Option<u64>>) -> Files {
        Files { known, ..Files::default() }
    }

    /// Returns names and initial lengths.
    pub(super) fn before(&self) -> impl Iterator<Item = (&str, Option<u64>)> {
        self.list.iter().map(|file| (file.name.as_str(), file.before))
    }

    fn of(&mut self, file: u32) -> &mut File {
        &mut self.list[file as usize]
    }

    fn make(&mut self, name: &str, before: Option<u64>) -> u32 {
        let number = self.list.len() as u32;
        let before = self.known.get(number as usize).copied().unwrap_or(before);
        let now = before.unwrap_or(0);
        self.list.push(File { name: name.to_owned(), before, now, changed: false, open: 0, names: 1 });
        number
    }

    /// Returns the first name of a file.
    pub(super) fn name(&self, file: u32) -> &str {
        &self.list[file as usize].name
    }

    /// Returns the file of a name, if it is known.
    pub(super) fn find(&self, name: &str) -> Option<u32> {
        self.by_name.get(name).copied()
    }

    /// Returns the file of a name, which must exist.
    pub(super) fn there(&mut self, name: &str) -> u32 {
        if let Some(file) = self.find(name) {
            return file;
        }
        let file = self.make(name, Some(0));
        self.by_name.insert(name.to_owned(), file);
        file
    }

    /// Returns the file of a name, which is created if it did not exist.
    pub(super) fn there_or_new(&mut self, name: &str) -> u32 {
        if let Some(file) = self.find(name) {
            return file;
        }
        let again = self.gone.get(name).copied().filter(|file| self.list[*file as usize].open == 0);
        let file = match again {
            Some(file) => {
                self.gone.remove(name);
                let file_again = self.of(file);
                (file_again.now, file_again.names, file_again.changed) = (0, 1, true);
                file
            }
            None => self.make(name, None),
        };
        self.by_name.insert(name.to_owned(), file);
        file
    }

    /// Creates a file without a name.
    pub(super) fn unnamed(&mut self) -> u32 {
        let file = self.make("(O_TMPFILE)", None);
        self.of(file).names = 0;
        file
    }

    /// Counts one more descriptor.
    pub(super) fn open(&mut self, file: u32) {
        self.of(file).open += 1;
    }

    /// Counts one descriptor less.
    pub(super) fn close(&mut self, file: u32) {
        self.of(file).open -= 1;
    }

    /// Returns the length in bytes.
    pub(super) fn bytes(&self, file: u32) -> u64 {
        self.list[file as usize].now
    }

    /// Records that a file is at least `bytes` long without the log's writes.
    pub(super) fn was(&mut self, file: u32, bytes: u64) {
        let file = self.of(file);
        // A created file did not exist before just because it is empty now.
        let says = !file.changed && (file.before.is_some() || bytes > 0);
        if says || file.before.is_some() && bytes > file.now {
            file.before = Some(file.before.unwrap_or(0).max(bytes));
        }
        file.now = file.now.max(bytes);
    }

    /// Records a write up to `end`.
    pub(super) fn written(&mut self, file: u32, end: u64) {
        let file = self.of(file);
        (file.now, file.changed) = (file.now.max(end), true);
    }

    /// Cuts or extends a file to a length.
    pub(super) fn cut(&mut self, file: u32, bytes: u64) {
        let file = self.of(file);
        (file.now, file.changed) = (bytes, true);
    }

    /// Removes a name; returns the file if that was its last one.
    pub(super) fn unlink(&mut self, name: &str) -> Option<u32> {
        let file = self.there(name);
        self.by_name.remove(name);
        self.of(file).names -= 1;
        if self.of(file).names > 0 {
            return None;
        }
        self.gone.insert(name.to_owned(), file);
        Some(file)
    }

    /// Adds a name for a file.
    pub(super) fn link(&mut self, old: &str, new: &str) {
        let file = self.there(old);
        self.of(file).names += 1;
        self.by_name.insert(new.to_owned(), file);
    }

    /// Renames a file, or a directory with everything in it; returns the file that had the name before, if that was
    /// its last one, and the file that has it now.
    pub(super) fn rename(&mut self, old: &str, new: &str) -> (Option<u32>, Option<u32>) {
        if old == new {
            return (None, None);
        }
        let below = format!("{old}/");
        let inside = (Bound::Included(below.clone()), Bound::Unbounded);
        let inside = self.by_name.range::<String, _>(inside).take_while(|(name, _)| name.starts_with(&below));
        let inside: Vec<(String, u32)> = inside.map(|(name, file)| (name.clone(), *file)).collect();
        let is_directory = !inside.is_empty() && self.find(old).is_none();
        for (name, file) in inside {
            self.by_name.remove(&name);
            self.by_name.insert(format!("{new}/{}", &name[below.len()..]), file);
        }
        if is_directory {
            return (None, None);
        }
        let gone = self.find(new).and_then(|_| self.unlink(new));
        let file = self.there(old);
        self.by_name.remove(old);
        self.by_name.insert(new.to_owned(), file);
        (gone, Some(file))
    }

    /// Swaps the names of two files.
    pub(super) fn exchange(&mut self, one: &str, other: &str) {
        let (first, second) = (self.there(one), self.there(other));
        self.by_name.insert(one.to_owned(), second);
        self.by_name.insert(other.to_owned(), first);
    }
}

// Descriptors of processes, and their targets.

/// Target of a descriptor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Target {
    /// A replayed file.
    File {
        /// Number of the file.
        file: u32,
        /// Open file description, counted over the whole log.
        name: u32,
        /// Offset of the next read or write.
        position: u64,
        /// True if a write begins at the end.
        append: bool,
    },
    /// A directory, or something other than a file; with its path if known.
    Other(Option<String>),
}

/// Open file description, shared by duplicated or inherited descriptors.
#[derive(Debug)]
struct Description {
    target: Target,
    descriptors: u32,
}

/// Descriptors of a process and its directory; threads share them.
#[derive(Clone, Debug, Default)]
struct Table {
    /// Description, and whether an `execve` closes the descriptor.
    descriptors: BTreeMap<u32, (u32, bool)>,
    directory: String,
    threads: u32,
}

/// Descriptor tables of all processes.
#[derive(Debug, Default)]
pub(super) struct Descriptors {
    tables: Vec<Table>,
    descriptions: Vec<Description>,
    free: Vec<u32>,
    named: u32,
    /// Number of open files.
    open: u32,
}

/// Close of a file's last descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Closed {
    pub(super) file: u32,
    pub(super) name: u32,
}

impl Descriptors {
    /// Creates an empty table for one thread.
    pub(super) fn table(&mut self) -> u32 {
        self.tables.push(Table { threads: 1, ..Table::default() });
        self.tables.len() as u32 - 1
    }

    /// Returns the table for a new thread: the same one, or a copy.
    pub(super) fn inherit(&mut self, table: u32, shared: bool) -> u32 {
        if shared {
            self.tables[table as usize].threads += 1;
            return table;
        }
        let copy = Table { threads: 1, ..self.tables[table as usize].clone() };
        for (description, _) in copy.descriptors.values() {
            self.descriptions[*description as usize].descriptors += 1;
        }
        self.tables.push(copy);
        self.tables.len() as u32 - 1
    }

    /// Removes a thread of a table; with the last one everything is closed.
    pub(super) fn leave(&mut self, table: u32, closed: &mut Vec<Closed>) {
        let of = &mut self.tables[table as usize];
        of.threads -= 1;
        if of.threads == 0 {
            for (_, (description, _)) in std::mem::take(&mut of.descriptors) {
                self.release(description, closed);
            }
            self.tables[table as usize] = Table::default();
        }
    }

    /// Handles an `execve` of a thread: it gets a separate table, without descriptors that are closed on `execve`.
    pub(super) fn execute(&mut self, table: u32, closed: &mut Vec<Closed>) -> u32 {
        let own = self.inherit(table, false);
        self.leave(table, closed);
        let closing = self.tables[own as usize].descriptors.iter().filter(|(_, (_, closes))| *closes);
        let closing: Vec<u32> = closing.map(|(number, _)| *number).collect();
        for number in closing {
            self.close(own, number, closed);
        }
        own
    }

    /// Creates a name for an open file description.
    pub(super) fn name(&mut self) -> u32 {
        self.named += 1;
        self.named - 1
    }

    /// Returns the number of open files.
    pub(super) fn open_files(&self) -> u32 {
        self.open
    }

    /// Opens a new descriptor.
    pub(super) fn open(
        &mut self,
        table: u32,
        number: u32,
        target: Target,
        closes: bool,
        closed: &mut Vec<Closed>,
    ) {
        self.close(table, number, closed);
        self.open += u32::from(matches!(target, Target::File { .. }));
        let description = Description { target, descriptors: 1 };
        let name = match self.free.pop() {
            Some(name) => {
                self.descriptions[name as usize] = description;
                name
            }
            None => {
                self.descriptions.push(description);
                self.descriptions.len() as u32 - 1
            }
        };
        self.tables[table as usize].descriptors.insert(number, (name, closes));
    }

    /// Duplicates a descriptor.
    pub(super) fn duplicate(
        &mut self,
        table: u32,
        from: u32,
        to: u32,
        closes: bool,
        closed: &mut Vec<Closed>,
    ) {
        if from == to {
            return;
        }
        self.close(table, to, closed);
        let descriptors = &mut self.tables[table as usize].descriptors;
        if let Some((description, _)) = descriptors.get(&from).copied() {
            descriptors.insert(to, (description, closes));
            self.descriptions[description as usize].descriptors += 1;
        }
    }

    /// Sets whether an `execve` closes a descriptor.
    pub(super) fn set_closing(&mut self, table: u32, number: u32, closes: bool) {
        if let Some(entry) = self.tables[table as usize].descriptors.get_mut(&number) {
            entry.1 = closes;
        }
    }

    /// Closes a descriptor, if it was open.
    pub(super) fn close(&mut self, table: u32, number: u32, closed: &mut Vec<Closed>) {
        if let Some((description, _)) = self.tables[table as usize].descriptors.remove(&number) {
            self.release(description, closed);
        }
    }

    /// Closes a range of descriptors, now or on `execve`.
    pub(super) fn close_range(
        &mut self,
        table: u32,
        (first, last): (u32, u32),
        only_mark: bool,
        closed: &mut Vec<Closed>,
    ) {
        if first > last {
            return;
        }
        let within = self.tables[table as usize].descriptors.range(first..=last);
        let within: Vec<u32> = within.map(|(number, _)| *number).collect();
        for number in within {
            if only_mark {
                self.set_closing(table, number, true);
            } else {
                self.close(table, number, closed);
            }
        }
    }

    fn release(&mut self, description: u32, closed: &mut Vec<Closed>) {
        let of = &mut self.descriptions[description as usize];
        of.descriptors -= 1;
        if of.descriptors == 0 {
            if let Target::File { file, name, .. } = of.target {
                closed.push(Closed { file, name });
                self.open -= 1;
            }
            self.free.push(description);
        }
    }

    /// Returns the target of a descriptor; none if it is not known.
    pub(super) fn target(&mut self, table: u32, number: u32) -> Option<&mut Target> {
        let (description, _) = self.tables[table as usize].descriptors.get(&number)?;
        Some(&mut self.descriptions[*description as usize].target)
    }

    /// Returns the directory of a process; empty if it is not known.
    pub(super) fn directory(&mut self, table: u32) -> &mut String {
        &mut self.tables[table as usize].directory
    }
}
