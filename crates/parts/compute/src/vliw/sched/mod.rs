//! Which core executes what.

pub mod inter_dynamic;
pub mod inter_static;
pub mod intra_in_order;
pub mod intra_out_of_order;
#[cfg(test)]
mod tests;

use super::{Chain, Unit};

config::policies! {
    /// Which core of an accelerator executes what.
    pub family AcceleratorScheduling: dyn AcceleratorScheduler, context u16 {
        /// Any screen that may begin, of whichever kernel, the oldest first: no core waits while one is left.
        ///
        /// FlashAbacus's out-of-order intra-kernel scheduling (section 4.2).
        default intra_out_of_order => intra_out_of_order::IntraOutOfOrder::new,
        /// One kernel after another, and of each one microblock after another: its screens run at once, and cores that have none wait.
        ///
        /// FlashAbacus's in-order intra-kernel scheduling (section 4.2). With all cores it is what a parallel loop of OpenMP does.
        intra_in_order => intra_in_order::IntraInOrder::new,
        /// A kernel has a core from its beginning to its end; the next kernel goes to whichever core is free, in turn.
        ///
        /// FlashAbacus's dynamic inter-kernel scheduling (section 4.1).
        inter_dynamic => inter_dynamic::InterDynamic::new,
        /// A kernel has a core from its beginning to its end, that of its application: its number modulo the cores.
        ///
        /// FlashAbacus's static inter-kernel scheduling (section 4.1).
        inter_static => inter_static::InterStatic::new,
    }
}

/// Chooses what a core does next; built for a number of cores.
///
/// Contract: what is named may begin ([`Chain::begin`]). The answer depends on the calls so far and the chain alone. While no screen is under way and a kernel is not over, some core
/// gets one: nothing waits for ever. No call allocates.
pub trait AcceleratorScheduler {
    /// Whether microblocks are dealt out as screens; otherwise each is one piece.
    fn splits(&self) -> bool;
    /// Whether no core that asks is told to wait while a unit of whichever kernel may begin. Then Graham's bound holds.
    fn is_greedy(&self) -> bool;
    /// What a core that has nothing to do begins; nothing if it is to wait until something has ended or come.
    fn next(&mut self, chain: &Chain, core: u16) -> Option<Unit>;
}
