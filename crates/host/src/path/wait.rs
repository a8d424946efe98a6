//! Who waits for what.

use super::io::Counter;
use crate::pagecache::Folio;
use crate::tasks::Task;
use kernel::{List, Lists, Slab};
use rustc_hash::FxHashMap;

/// Threads that sleep until something happens. Each looks again when it wakes, whatever woke it.
#[derive(Default)]
pub(super) struct Waits {
    lists: Lists<Task>,
    /// For a page to be unlocked, or written.
    folios: FxHashMap<Folio, List>,
    /// For memory.
    memory: List,
    /// By disk: for a commit to begin, for one to end, for blocks of metadata to be in their places.
    began: Vec<List>,
    commits: Vec<List>,
    homes: Vec<List>,
    pub(super) counters: Slab<Counter>,
}

impl Waits {
    pub(super) fn on_folio(&mut self, folio: Folio, task: Task) {
        self.lists.push(self.folios.entry(folio).or_default(), task);
    }

    /// Those who waited for a page, into `woken`.
    pub(super) fn folio_changed(&mut self, folio: Folio, woken: &mut Vec<Task>) {
        if let Some(mut list) = self.folios.remove(&folio) {
            self.take(&mut list, woken);
        }
    }

    pub(super) fn on_memory(&mut self, task: Task) {
        let mut list = std::mem::take(&mut self.memory);
        self.lists.push(&mut list, task);
        self.memory = list;
    }

    /// Those who waited for memory, into `woken`.
    pub(super) fn memory_freed(&mut self, woken: &mut Vec<Task>) {
        let mut list = self.memory.take();
        self.take(&mut list, woken);
    }

    pub(super) fn on_journal(&mut self, disk: u16, task: Task) {
        join(&mut self.lists, &mut self.began, disk, task);
    }

    /// A commit has begun: those who waited for a new transaction, into `woken`.
    pub(super) fn journal_began(&mut self, disk: u16, woken: &mut Vec<Task>) {
        leave(&mut self.lists, &mut self.began, disk, woken);
    }

    pub(super) fn on_commit(&mut self, disk: u16, task: Task) {
        join(&mut self.lists, &mut self.commits, disk, task);
    }

    /// A commit has ended.
    pub(super) fn committed(&mut self, disk: u16, woken: &mut Vec<Task>) {
        leave(&mut self.lists, &mut self.commits, disk, woken);
    }

    pub(super) fn on_home(&mut self, disk: u16, task: Task) {
        join(&mut self.lists, &mut self.homes, disk, task);
    }

    /// A block of metadata is in its place.
    pub(super) fn home_written(&mut self, disk: u16, woken: &mut Vec<Task>) {
        leave(&mut self.lists, &mut self.homes, disk, woken);
    }

    fn take(&mut self, list: &mut List, woken: &mut Vec<Task>) {
        while let Some(task) = self.lists.pop(list) {
            woken.push(task);
        }
    }
}

fn join(lists: &mut Lists<Task>, of: &mut Vec<List>, disk: u16, task: Task) {
    let at = usize::from(disk);
    if of.len() <= at {
        of.resize_with(at + 1, List::default);
    }
    lists.push(&mut of[at], task);
}

fn leave(lists: &mut Lists<Task>, of: &mut [List], disk: u16, woken: &mut Vec<Task>) {
    if let Some(list) = of.get_mut(usize::from(disk)) {
        while let Some(task) = lists.pop(list) {
            woken.push(task);
        }
    }
}
