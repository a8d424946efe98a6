//! Applications take turns.

use super::{Admitted, AppView};

/// Whose turn it is, and how many kernels have ended in it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turns {
    owner: usize,
    kernels: u32,
    /// Whether the turn is over: the next application that works is the owner.
    over: bool,
}

impl Turns {
    /// A kernel has ended; `keep` says of the number of kernels in the turn so far whether the turn goes on. A kernel that
    /// had begun in an earlier turn, before its application was held, counts in none.
    pub(super) fn ended(&mut self, app: usize, keep: impl Fn(u32) -> bool) {
        if app == self.owner && !self.over {
            self.kernels = self.kernels.saturating_add(1);
            self.over = !keep(self.kernels);
        }
    }

    /// The owner, or the next behind it if its turn is over, or it is held, or has no kernel.
    pub(super) fn admit(&mut self, apps: &[AppView]) -> Admitted {
        let works = |app: &usize| apps.get(*app).is_some_and(AppView::works);
        if !self.over && works(&self.owner) {
            return Admitted::One(self.owner);
        }
        let behind = self.owner + 1..apps.len();
        let Some(next) = behind.chain(0..=self.owner).find(works) else { return Admitted::Nobody };
        *self = Turns { owner: next, kernels: 0, over: false };
        Admitted::One(next)
    }
}
