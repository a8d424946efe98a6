//! Descriptors of processes, and what they stand for.

use std::collections::BTreeMap;

/// What a descriptor stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Target {
    /// A file that is replayed.
    File {
        /// Which.
        file: u32,
        /// The open file description, counted over the whole log.
        name: u32,
        /// Where the next read or write begins.
        position: u64,
        /// Whether a write begins at the end.
        append: bool,
    },
    /// A directory, or something that is no file; with its path if that is known.
    Other(Option<String>),
}

/// An open file description: descriptors that were duplicated or inherited share one.
#[derive(Debug)]
struct Description {
    target: Target,
    descriptors: u32,
}

/// The descriptors of a process and its directory; threads share them.
#[derive(Clone, Debug, Default)]
struct Table {
    /// Description, and whether an `execve` closes it.
    descriptors: BTreeMap<u32, (u32, bool)>,
    directory: String,
    threads: u32,
}

/// All tables.
#[derive(Debug, Default)]
pub(super) struct Descriptors {
    tables: Vec<Table>,
    descriptions: Vec<Description>,
    free: Vec<u32>,
    named: u32,
    /// Files that are open.
    open: u32,
}

/// A file's last descriptor is closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Closed {
    pub(super) file: u32,
    pub(super) name: u32,
}

impl Descriptors {
    /// A table with nothing open, for one thread.
    pub(super) fn table(&mut self) -> u32 {
        self.tables.push(Table { threads: 1, ..Table::default() });
        self.tables.len() as u32 - 1
    }

    /// A table for a new thread: the same one, or a copy of it.
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

    /// A thread of a table has ended; with the last one all is closed.
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

    /// A thread executes a program: the table is its own from then on, without what is closed on `execve`.
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

    /// A name for an open file description.
    pub(super) fn name(&mut self) -> u32 {
        self.named += 1;
        self.named - 1
    }

    /// Files that are open.
    pub(super) fn open_files(&self) -> u32 {
        self.open
    }

    /// A descriptor of its own.
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

    /// A second descriptor for what another one stands for.
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

    /// Whether an `execve` closes a descriptor.
    pub(super) fn set_closing(&mut self, table: u32, number: u32, closes: bool) {
        if let Some(entry) = self.tables[table as usize].descriptors.get_mut(&number) {
            entry.1 = closes;
        }
    }

    /// A descriptor is closed, if it was open.
    pub(super) fn close(&mut self, table: u32, number: u32, closed: &mut Vec<Closed>) {
        if let Some((description, _)) = self.tables[table as usize].descriptors.remove(&number) {
            self.release(description, closed);
        }
    }

    /// All descriptors from one number to another are closed, or closed on `execve`.
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

    /// What a descriptor stands for; none if it is not known.
    pub(super) fn target(&mut self, table: u32, number: u32) -> Option<&mut Target> {
        let (description, _) = self.tables[table as usize].descriptors.get(&number)?;
        Some(&mut self.descriptions[*description as usize].target)
    }

    /// The directory of a process; empty if it is not known.
    pub(super) fn directory(&mut self, table: u32) -> &mut String {
        &mut self.tables[table as usize].directory
    }
}
