//! What can be built.

use super::*;

fn fault(change: fn(&mut GpuSpec)) -> String {
    let mut spec = small();
    change(&mut spec);
    spec.check().map_or_else(|fault| fault.key, |()| String::new())
}

#[test]
fn what_cannot_be_built_is_refused_with_its_key() {
    assert_eq!(fault(|_| ()), "");
    assert_eq!(fault(|s| s.sms = 0), "sms");
    assert_eq!(fault(|s| s.clock = Frequency::new(0)), "clock");
    assert_eq!(fault(|s| s.clock = Frequency::new(2_000_000_000_000)), "clock");
    assert_eq!(fault(|s| s.issue = 0), "issue");
    assert_eq!(fault(|s| s.resident.warps = 129), "resident.warps");
    assert_eq!(fault(|s| s.sms = 5000), "resident.warps");
    assert_eq!(fault(|s| s.alu.latency = 0), "alu.latency");
    assert_eq!(fault(|s| s.sfu.interval = 5000), "sfu.interval");
    assert_eq!(fault(|s| s.shared.banks = 24), "shared.banks");
    assert_eq!(fault(|s| s.load_store.stores = 0), "load_store.stores");
    assert_eq!(fault(|s| s.l1.miss_registers = 0), "l1.miss_registers");
    assert_eq!(fault(|s| s.tlb.ways = 5), "tlb.ways");
    assert_eq!(fault(|s| s.tlb.misses = 0), "tlb.misses");
    assert_eq!(Gpu::new(&small(), 1, 4095).err().map(|fault| fault.key), Some("tlb".into()));
    assert_eq!(Gpu::new(&small(), 1, 0).err().map(|fault| fault.key), Some("tlb".into()));
    assert!(Gpu::new(&small(), 1, 384 * 4096).is_ok());
}
