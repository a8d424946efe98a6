//! What happens in dies and on channels.

engine::events! {
    /// The events of dies and channels.
    pub enum Event {
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
        /// A transfer between the controller and a register is over.
        Moved(u32),
    }
}
