//! What happens inside the flash device, and what it says.

use proto::Completion;

kernel::events! {
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
        /// The array of a die has finished.
        ArrayDone(u32),
        /// A read's data has left its die.
        TransferDone(u32),
        /// A channel has become free.
        ChannelFree(u32),
        /// A die that was told to suspend takes commands.
        Suspended(u32),
        /// A die has waited for host programs that could share its command.
        Gathered(u32),
        /// The map's entries for a command have been looked up.
        Known(u32),
    }
}

/// Messages that the device sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// A command is done.
    Complete(Completion),
}
