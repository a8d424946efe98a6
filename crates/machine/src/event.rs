//! The machine's one event type.

kernel::events! {
    /// An event of one of the machine's parts.
    pub enum Ev {
        /// The flash device's.
        Flash(flash::Event),
        /// The injector's.
        Inject(workload::inject::Event),
    }
}
