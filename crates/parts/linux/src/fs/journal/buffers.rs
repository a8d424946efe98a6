//! What the journal knows of blocks (`journal_head`): which transactions hold them, and whether they may be written home.

use super::Tid;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// A block that a transaction holds, or that has not been written home since one did.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Buffer {
    /// It is in the running transaction.
    running: bool,
    /// It is in the one that is being committed.
    committing: bool,
    /// The running transaction, or then the one that is being committed, has freed it.
    forgotten: bool,
    /// It is a page of a file.
    pub(super) data: bool,
    /// What is written home: the newest committed transaction that holds it.
    content: Tid,
    /// The transaction that is needed until it has been written home; zero: none.
    checkpoint: Tid,
}

impl Buffer {
    /// Whether a transaction that is not committed yet holds it.
    pub(super) fn is_held(&self) -> bool {
        self.running || self.committing
    }

    /// Whether the log gets the block itself: the transaction that is being committed holds it, and the running one has not changed it since.
    pub(super) fn is_shadowed(&self) -> bool {
        self.committing && !self.running && !self.forgotten
    }

    pub(super) fn is_committing(&self) -> bool {
        self.committing
    }

    pub(super) fn checkpoint(&self) -> Tid {
        self.checkpoint
    }
}

/// All of them.
#[derive(Clone, Default, Debug)]
pub(super) struct Buffers {
    all: FxHashMap<u64, Buffer>,
    /// What may be written home.
    pub(super) home: BTreeSet<u64>,
    /// What is being written home, whatever became of it since.
    writing: BTreeSet<u64>,
}

impl Buffers {
    pub(super) fn get(&self, block: u64) -> Buffer {
        self.all.get(&block).copied().unwrap_or_default()
    }

    /// Whether one of some blocks that lie side by side is being written home.
    pub(super) fn is_writing(&self, block: u64, blocks: u64) -> bool {
        self.writing.range(block..block + blocks).next().is_some()
    }

    /// The running transaction holds a block; whether it did not before. What it was before is written home no more, as the journal will.
    pub(super) fn join(&mut self, block: u64, data: bool) -> bool {
        let buffer = self.all.entry(block).or_default();
        buffer.data = data;
        if buffer.running && !buffer.forgotten {
            return false;
        }
        (buffer.running, buffer.forgotten) = (true, false);
        self.home.remove(&block);
        true
    }

    /// The running transaction frees a block.
    pub(super) fn forget(&mut self, block: u64) {
        let buffer = self.all.entry(block).or_default();
        (buffer.running, buffer.forgotten) = (true, true);
        self.home.remove(&block);
    }

    /// Whether the running transaction has freed a block, and not used it again.
    pub(super) fn is_forgotten(&self, block: u64) -> bool {
        self.get(block).forgotten
    }

    /// A block moves from the running transaction to the one that is being committed.
    pub(super) fn switch(&mut self, block: u64) {
        if let Some(buffer) = self.all.get_mut(&block) {
            (buffer.running, buffer.committing) = (false, true);
        }
    }

    /// A transaction that holds a block is committed: the one that it was needed for before.
    pub(super) fn commit(&mut self, block: u64, tid: Tid) -> Tid {
        let Some(buffer) = self.all.get_mut(&block) else { return Tid(0) };
        (buffer.committing, buffer.content) = (false, tid);
        if !buffer.running {
            self.home.insert(block);
        }
        std::mem::replace(&mut buffer.checkpoint, tid)
    }

    /// A transaction that has freed a block is committed: the one that it was needed for before.
    pub(super) fn commit_forgotten(&mut self, block: u64) -> Tid {
        self.all.remove(&block).map_or(Tid(0), |buffer| buffer.checkpoint)
    }

    /// Without a journal: a block was changed.
    pub(super) fn dirty(&mut self, block: u64, content: Tid) {
        self.all.entry(block).or_default().content = content;
        self.home.insert(block);
    }

    /// Without a journal: a block is free.
    pub(super) fn drop(&mut self, block: u64) {
        self.all.remove(&block);
        self.home.remove(&block);
    }

    /// Begins to write a block home: what it holds, if it may be written and is not being written.
    pub(super) fn write(&mut self, block: u64) -> Option<Tid> {
        let buffer = self.all.get(&block).filter(|_| !self.writing.contains(&block))?;
        self.home.remove(&block).then(|| {
            self.writing.insert(block);
            buffer.content
        })
    }

    /// A block has been written home: the transaction that does not need it any more.
    pub(super) fn written(&mut self, block: u64) -> Option<Tid> {
        self.writing.remove(&block);
        let buffer = self.all.get(&block)?;
        if buffer.is_held() || self.home.contains(&block) {
            return None;
        }
        let checkpoint = buffer.checkpoint;
        self.all.remove(&block);
        (checkpoint != Tid(0)).then_some(checkpoint)
    }
}
