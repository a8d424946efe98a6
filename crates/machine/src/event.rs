//! The machine's one event type.

kernel::events! {
    /// An event of one of the machine's parts.
    pub enum Ev {
        /// The flash device's.
        Flash(flash::Event),
        /// The injector's.
        Inject(workload::inject::Event),
        /// The multiprocessors'.
        Gpu(compute::simt::Event),
        /// The network's.
        Network(net::crossbar::Event),
        /// The shared cache's.
        L2(mem::l2::Event),
        /// The memory management unit's.
        Mmu(mem::mmu::Event),
        /// The DRAM's.
        Dram(mem::dram::Event),
        /// The network-attached flash's.
        Direct(flash::direct::Event),
        /// The SSD engine's.
        Engine(flash::engine::Event),
        /// The host's paging.
        Paging(host::paging::Event),
    }
}
