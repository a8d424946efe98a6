//! Bills of the parts: sources of their counts.

use super::{Bill, Costs, Span, Spender};
use crate::parts::Parts;
use crate::parts::complex::{Ooo, Simt};
use crate::parts::driven::{Driven, Hosted};
use crate::parts::governed::Governed;
use crate::parts::memory::Memory;
use crate::parts::pager::Pager;
use compute::ooo::Spent;
use engine::Time;
use serde_json::Value;
use ssd::Device;
use ssd::direct::Direct;

/// Bills under way, and the source of their constants.
struct Books<'b> {
    spec: &'b Value,
    spenders: &'b [Spender],
    span: Span,
    faults: Vec<String>,
}

impl Books<'_> {
    /// Bills a part, if its spec has energy constants.
    fn bill(&mut self, spender: &str, part: &str, path: &str, with: impl FnOnce(&mut Bill<'_>)) {
        let of = self.spenders.iter().find(|of| of.name == spender);
        let Some(energy) = of.and_then(|of| of.energy.as_ref()) else { return };
        let Some(costs) = Costs::of(self.spec, part, path) else {
            return self.faults.push(format!("{spender}: the spec has no `{part}{path}`"));
        };
        let open = energy.activities.iter().map(|spent| spent.activity.name).collect();
        let mut bill = Bill { part: spender, costs, energy, span: self.span, open, faults: &mut self.faults };
        with(&mut bill);
        bill.close();
    }
}

impl Parts {
    /// Lists differences between energies and counts times the constants of a resolved spec.
    pub(crate) fn audit(&self, spec: &Value, spenders: &[Spender], span: Span) -> Vec<String> {
        let mut books = Books { spec, spenders, span, faults: Vec::new() };
        for at in &self.complexes {
            books.bill(&at.name, &at.name, "/energy", |bill| match &at.processor {
                crate::parts::complex::Processor::Simt(simt) => multiprocessors(bill, simt),
                crate::parts::complex::Processor::Ooo(ooo) => cores(bill, ooo),
            });
        }
        for at in &self.memories {
            match &at.memory {
                Memory::Dram(dram) => books.bill(&at.name, &at.name, "/dram/energy", |bill| {
                    devices(bill, dram.controllers());
                }),
                Memory::DramCache(cache) => {
                    books.bill(&at.name, &at.name, "/dram_cache/dram/energy", |bill| {
                        devices(bill, cache.controllers());
                    })
                }
                Memory::Direct(direct) => {
                    books.bill(&at.name, &at.name, "/direct/energy", |bill| planes(bill, direct));
                }
                Memory::Placement(_) | Memory::Engine(_) | Memory::Initiator(_) => {}
            }
        }
        for at in &self.pagers {
            if let Pager::Paging(paging) = &at.pager {
                books.bill(&format!("{}.link", at.name), &at.name, "/link/energy", |bill| {
                    bill.link(["/transfer", "/on"], paging.carried());
                });
            }
        }
        self.hosts.iter().for_each(|at| {
            books.bill(&at.name, &at.name, "/linux/cores/energy", |bill| host(bill, at));
        });
        self.governed.iter().for_each(|at| accelerator(&mut books, at));
        for at in &self.driven {
            books.bill(&at.name, &at.name, "/energy", |bill| coprocessor(bill, at));
        }
        for at in &self.drives {
            books.bill(&at.name, &at.name, "/energy", |bill| drive(bill, &at.device));
        }
        books.faults
    }
}

fn multiprocessors(bill: &mut Bill<'_>, simt: &Simt) {
    let sms = &simt.gpu.stats.sms;
    bill.stays("multiprocessors on", "/multiprocessor/idle", sms.len() as u64);
    let cycles: u64 = sms.iter().map(|sm| sm.busy).sum();
    let issued = u128::from(simt.cycle.ps()) * u128::from(cycles);
    bill.works("multiprocessor issues", ["/multiprocessor/idle", "/multiprocessor/busy"], issued, 0);
    bill.stays("chip on", "/chip_on", 1);
}

/// Bills cores. They run ahead of the present: the energy between two looks at a core may lie beyond a window's ends.
fn cores(bill: &mut Bill<'_>, ooo: &Ooo) {
    let (cores, now) = (&ooo.cores, bill.span.now);
    bill.stays("cores on", "/core/idle", cores.cores().into());
    let (cycle, width) = (u128::from(cores.cycle().ps()), u128::from(cores.width()));
    let idle = u128::from(cores.spent(now)[Spent::Idle as usize]) * cycle / width;
    let at_work = (bill.span.ps() * u128::from(cores.cores())).saturating_sub(idle);
    let ahead = if bill.span.is_whole() { cores.lead(now) } else { cores.ahead() };
    // A slot may be a fraction of a picosecond, which is cut whenever a core has nothing to run; so are cycles at the
    // ends.
    let idles = u128::from(cores.stats().jobs + cores.stats().halts + u64::from(cores.cores()));
    let off = (u128::from(ahead) + width * u128::from(cores.cores())) * cycle / width + 2 * idles;
    bill.works("core at work", ["/core/idle", "/core/busy"], at_work, off);
    bill.stays("chip on", "/chip_on", 1);
}

/// Operations are compared where they are counted ("DRAM spends what its operations cost").
fn devices(bill: &mut Bill<'_>, controllers: u16) {
    bill.elsewhere(&["activate", "read", "write", "refresh"]);
    bill.tile(&[("standby", "/standby"), ("active standby", "/active")], controllers.into());
}

fn planes(bill: &mut Bill<'_>, direct: &Direct) {
    let (stats, counts) = (&direct.stats, direct.counts());
    // Arrays spend energy when they begin, and are counted when they end.
    let before = if bill.span.is_whole() { 0 } else { counts.planes };
    let around = |count: u64| [count.saturating_sub(before), count + counts.at_work];
    bill.operations("read", "/read", around(stats.senses()));
    bill.operations("program", "/program", around(stats.programs()));
    bill.operations("erase", "/erase", around(stats.erases));
    bill.exactly("flash network transfer", "/transfer", stats.bytes_in + stats.bytes_out);
    bill.stays("planes on", "/plane/idle", counts.planes);
    bill.works("planes at work", ["/plane/idle", "/plane/busy"], counts.busy_ps, 0);
    bill.stays("controllers on", "/controllers_on", 1);
}

fn host(bill: &mut Bill<'_>, at: &Hosted) {
    let cores = at.host.cores();
    let used = cores.used(bill.span.now);
    let keys = ["/core/idle", "/core/busy"];
    bill.stays("cores on", keys[0], cores.count().into());
    for (activity, time) in [("core in user mode", used.user), ("core in system mode", used.system)] {
        bill.works(activity, keys, time.ps().into(), 0);
    }
    if bill.span.is_whole() {
        bill.works("core in interrupts", keys, used.interrupt.ps().into(), 0);
    }
    // An interrupt under way at the start of the window is counted whole, or not at all.
    bill.elsewhere(&["core in interrupts"]);
    bill.stays("package on", "/package_on", 1);
    bill.stays("memory on", "/memory_on", 1);
}

/// States of a worker.
const WORKER: [(&str, &str); 3] = [
    ("worker idle", "/worker/idle"),
    ("worker waits", "/worker/waits"),
    ("worker computes", "/worker/computes"),
];

fn sum(times: &[Time]) -> u128 {
    times.iter().map(|time| u128::from(time.ps())).sum()
}

fn accelerator(books: &mut Books<'_>, at: &Governed) {
    let is_over = books.span.is_whole() && at.accelerator.is_idle();
    books.bill(&at.name, &at.name, "/energy", |bill| {
        let (firmware, moved) = at.accelerator.counts();
        if is_over {
            let computes = bill.costs.power(WORKER[2].1);
            bill.lasts(WORKER[2].0, computes, sum(&at.accelerator.stats.busy), 0);
            let keys = ["/firmware/idle", "/firmware/busy"];
            bill.works("firmware works", keys, firmware.ps().into(), 0);
            bill.exactly("memory transfer", "/memory_transfer", moved);
        }
        bill.elsewhere(&["firmware works", "memory transfer"]);
        bill.tile(&WORKER, at.accelerator.workers().into());
        // Cores of Flashvisor and Storengine.
        bill.stays("firmware idle", "/firmware/idle", 2);
        bill.stays("memory on", "/memory_on", 1);
        bill.stays("chip on", "/chip_on", 1);
    });
    let name = format!("{}.offload", at.name);
    books.bill(&name, &at.name, "/offload/energy", |bill| {
        let tables = at.offload.table * at.kernels.len() as u64;
        let bytes = if bill.span.is_whole() { Some([tables; 2]) } else { at.offload.link.carried() };
        bill.link(["/transfer", "/on"], bytes);
    });
    books.bill(&at.storage, &at.storage, "/energy", |bill| {
        if let Some(counts) = at.flash.counts().filter(|_| bill.span.is_whole()) {
            bill.exactly("read", "/read", counts.read);
            bill.exactly("program", "/program", counts.programmed);
            bill.exactly("erase", "/erase", counts.erased);
            bill.exactly("channel transfer", "/transfer", counts.channel_bytes);
            bill.exactly("link transfer", "/link/transfer", counts.link_bytes);
            bill.tile(&[("die idle", "/die/idle"), ("die busy", "/die/busy")], counts.dies);
        }
        bill.elsewhere(&[
            "read",
            "program",
            "erase",
            "channel transfer",
            "link transfer",
            "die idle",
            "die busy",
        ]);
        bill.tile(&[("controller idle", "/controller/idle"), ("controller busy", "/controller/busy")], 1);
        bill.stays("link on", "/link/on", 1);
    });
}

fn coprocessor(bill: &mut Bill<'_>, at: &Driven) {
    let stats = &at.coprocessor.stats;
    if bill.span.is_whole() && at.coprocessor.open() == 0 {
        let computes = bill.costs.power(WORKER[2].1);
        bill.lasts(WORKER[2].0, computes, sum(&stats.computed), 0);
        bill.exactly("memory transfer", "/memory_transfer", stats.memory_bytes);
        bill.exactly("link transfer", "/link_transfer", stats.sent.bytes + stats.received.bytes);
    }
    bill.elsewhere(&["memory transfer", "link transfer"]);
    bill.tile(&WORKER, at.coprocessor.cores().into());
    bill.stays("memory on", "/memory_on", 1);
    bill.stays("link on", "/link_on", 1);
    bill.stays("chip on", "/chip_on", 1);
}

/// Bills a drive. Reads, programs and erases are compared by the drive (`read_energy`, `program_energy`,
/// `erase_energy`).
fn drive(bill: &mut Bill<'_>, device: &Device) {
    bill.elsewhere(&["read", "program", "erase"]);
    let counts = device.counts(bill.span.now);
    match counts.channel_bytes {
        Some(bytes) => bill.exactly("channel transfer", "/transfer", bytes),
        None => bill.elsewhere(&["channel transfer"]),
    }
    let all = bill.span.ps() * u128::from(counts.dies);
    let powers = [bill.costs.power("/die/idle"), bill.costs.power("/die/busy")];
    bill.lasts("die idle", powers[0], all - counts.dies_busy_ps, 0);
    bill.lasts("die busy", powers[1], counts.dies_busy_ps, 0);
    bill.tile(&[("controller idle", "/controller/idle"), ("controller busy", "/controller/busy")], 1);
    bill.link(["/link/transfer", "/link/on"], counts.link_bytes);
}
