//! The files that a log speaks of: their names, and how long they were before the program began.

use std::collections::BTreeMap;
use std::ops::Bound;

/// A file of the log.
#[derive(Debug)]
struct File {
    name: String,
    /// Its length before the program began, as far as the log shows it; none if it was not there.
    before: Option<u64>,
    /// Its length now.
    now: u64,
    /// Whether the log has changed its length or written to it, so that its length now says nothing of the one before.
    changed: bool,
    /// Descriptors, which outlive its names.
    open: u32,
    names: u32,
}

/// Files by name.
///
/// A file was there before the program began if the log opens it without `O_CREAT`, reads from it what the log has not written, or says its
/// length. It was then as long as the largest of: the end of what was read, and what `fstat` and `lseek(SEEK_END)` said, before the log
/// wrote to it.
#[derive(Debug, Default)]
pub(super) struct Files {
    list: Vec<File>,
    by_name: BTreeMap<String, u32>,
    /// Files that have lost their last name, to be used again under it once no descriptor holds them.
    gone: BTreeMap<String, u32>,
    /// Lengths before the beginning, as an earlier reading of the same log has found them.
    known: Vec<Option<u64>>,
}

impl Files {
    /// Files for another reading of a log, whose lengths before the beginning are known.
    pub(super) fn known(known: Vec<Option<u64>>) -> Files {
        Files { known, ..Files::default() }
    }

    /// Names and lengths before the beginning.
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

    /// What it was called first.
    pub(super) fn name(&self, file: u32) -> &str {
        &self.list[file as usize].name
    }

    /// The file of a name, if it is known.
    pub(super) fn find(&self, name: &str) -> Option<u32> {
        self.by_name.get(name).copied()
    }

    /// The file of a name that is there.
    pub(super) fn there(&mut self, name: &str) -> u32 {
        if let Some(file) = self.find(name) {
            return file;
        }
        let file = self.make(name, Some(0));
        self.by_name.insert(name.to_owned(), file);
        file
    }

    /// The file of a name, which comes to be if it was not there.
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

    /// A file without a name.
    pub(super) fn unnamed(&mut self) -> u32 {
        let file = self.make("(O_TMPFILE)", None);
        self.of(file).names = 0;
        file
    }

    /// A descriptor more.
    pub(super) fn open(&mut self, file: u32) {
        self.of(file).open += 1;
    }

    /// A descriptor less.
    pub(super) fn close(&mut self, file: u32) {
        self.of(file).open -= 1;
    }

    /// How long it is.
    pub(super) fn bytes(&self, file: u32) -> u64 {
        self.list[file as usize].now
    }

    /// It is at least so long, and the log has not made it so.
    pub(super) fn was(&mut self, file: u32, bytes: u64) {
        let file = self.of(file);
        // A file that was made is not there before because it is empty now.
        let says = !file.changed && (file.before.is_some() || bytes > 0);
        if says || file.before.is_some() && bytes > file.now {
            file.before = Some(file.before.unwrap_or(0).max(bytes));
        }
        file.now = file.now.max(bytes);
    }

    /// Written up to here.
    pub(super) fn written(&mut self, file: u32, end: u64) {
        let file = self.of(file);
        (file.now, file.changed) = (file.now.max(end), true);
    }

    /// Cut or grown to this length.
    pub(super) fn cut(&mut self, file: u32, bytes: u64) {
        let file = self.of(file);
        (file.now, file.changed) = (bytes, true);
    }

    /// A name is gone; the file, if that was its last one.
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

    /// Another name for a file.
    pub(super) fn link(&mut self, old: &str, new: &str) {
        let file = self.there(old);
        self.of(file).names += 1;
        self.by_name.insert(new.to_owned(), file);
    }

    /// A file takes another name, or a directory does with all that is in it; the file that was called so, if that was its last name, and the one
    /// that is called so now.
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

    /// Two files change their names.
    pub(super) fn exchange(&mut self, one: &str, other: &str) {
        let (first, second) = (self.there(one), self.there(other));
        self.by_name.insert(one.to_owned(), second);
        self.by_name.insert(other.to_owned(), first);
    }
}
