//! What happens inside the flash device, and what it says.

use nand::dies;
use proto::Completion;

engine::events! {
    /// The device's own events.
    pub enum Event {
        /// A doorbell write has reached the controller.
        Doorbell(u16),
        /// A command has been fetched.
        Fetched(u32),
        /// The controller has processed a command.
        Ready(u32),
        /// The data of a write has arrived.
        DataIn(u32),
        /// The buffer's memory has been accessed for a command.
        Buffered(u32),
        /// A completion has reached the host.
        HostDone(u32),
        /// The map's entries for a command have been looked up.
        Known(u32),
        /// Cores have found a new place for what collection has read.
        Placed(u32),
        /// Dies have been watched for a window, to find those without much work for a buffer: there is one, the first.
        Sampled(u16),
        /// Something in the dies or on a channel.
        Dies(dies::Event),
        /// The host may have rested long enough for folding: there is one, the first.
        Rested(u16),
    }
}

impl From<dies::Event> for Event {
    #[inline]
    fn from(event: dies::Event) -> Event {
        Event::Dies(event)
    }
}

/// Messages that the device sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// A command is done.
    Complete(Completion),
}
