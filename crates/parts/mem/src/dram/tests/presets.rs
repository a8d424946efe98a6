//! Memories with the values of data sheets, and where the values come from.

use super::super::sched::{DramScheduler, fr_fcfs};
use super::super::{DramBanksSpec, DramBusSpec, DramRefreshSpec, DramSpec, DramTimingSpec};
use config::units::{Bytes, Duration, TransferRate};
use engine::Time;

fn ps(ps: u64) -> Duration {
    Duration::new(Time::from_ps(ps))
}

fn ns(ns: u64) -> Duration {
    Duration::new(Time::from_ns(ns))
}

fn refresh(interval: Duration, duration: Duration) -> Option<DramRefreshSpec> {
    Some(DramRefreshSpec { interval, duration })
}

fn scheduler() -> DramScheduler {
    DramScheduler::fr_fcfs(fr_fcfs::Params::default())
}

/// GDDR5 of a GTX 580: six controllers, 384 bit, 4,008 MT/s, 192.4 GB/s (NVIDIA's product sheet). Twelve chips of 1 Gb
/// x32 with rows of 2 KiB, two a controller.
///
/// Times in clocks of 1 ns (4 GT/s): Hynix H5GQ1H24AFR as GPGPU-Sim's GTX 480 has it (CCD 2, RRD 6, RCD 12, RAS 28, RP 12,
/// CL 12, WL 4, CDLR 5, WR 12, RTPL 2; read to write CL + burst + 2 - WL), and equally Ramulator's GDDR5_4000, which adds
/// tFAW 23, tREFI 3,900 and tRFC 110. Controllers change every 256 B: GPGPU-Sim's `dramid@8`.
pub(super) fn gddr5() -> DramSpec {
    DramSpec {
        controllers: 6,
        interleave: Bytes::new(256),
        latency: ns(0),
        bus: DramBusSpec { width: 64, rate: TransferRate::new(4_008_000_000), burst: 8 },
        banks: DramBanksSpec { count: 16, row: Bytes::from_kib(4), hash: true },
        timing: DramTimingSpec {
            rcd: ns(12),
            cl: ns(12),
            cwl: ns(4),
            rp: ns(12),
            ras: ns(28),
            ccd: ps(1_996),
            rrd: ns(6),
            faw: ns(23),
            wr: ns(12),
            wtr: ns(5),
            rtp: ns(2),
            turnaround: ns(2),
        },
        refresh: refresh(ns(3_900), ns(110)),
        scheduler: scheduler(),
        energy: None,
    }
}

/// One channel of DDR4-2400R, x8 chips of 8 Gb: JESD79-4 (and Ramulator's DDR4_2400R): 16-16-16 at 0.833 ns, CWL 12,
/// tRAS 32 ns, tCCD_S 4, tRRD_S 3.3 ns, tFAW 21 ns, tWR 15 ns, tWTR_S 2.5 ns, tRTP 7.5 ns, tREFI 7.8 us, tRFC 350 ns.
pub(super) fn ddr4() -> DramSpec {
    DramSpec {
        controllers: 1,
        interleave: Bytes::new(256),
        latency: ns(0),
        bus: DramBusSpec { width: 64, rate: TransferRate::new(2_400_000_000), burst: 8 },
        banks: DramBanksSpec { count: 16, row: Bytes::from_kib(8), hash: true },
        timing: DramTimingSpec {
            rcd: ps(13_333),
            cl: ps(13_333),
            cwl: ns(10),
            rp: ps(13_333),
            ras: ns(32),
            ccd: ps(3_333),
            rrd: ps(3_300),
            faw: ns(21),
            wr: ns(15),
            wtr: ps(2_500),
            rtp: ps(7_500),
            turnaround: ps(1_667),
        },
        refresh: refresh(ns(7_800), ns(350)),
        scheduler: scheduler(),
        energy: None,
    }
}

/// Four channels of 16 bit of LPDDR4-3200, dies of 8 Gb: JESD209-4: RL 28 (17.5 ns) and tDQSCK at most 3.5 ns, WL 14, tRCD
/// 18 ns, tRPpb 18 ns, tRAS 42 ns, tCCD 8 clocks, tRRD 10 ns, tFAW 40 ns, tWR 18 ns, tWTR 10 ns, tRTP 7.5 ns, tREFI 3.904
/// us, tRFCab 180 ns; rows of 2 KiB, 8 banks.
pub(super) fn lpddr4() -> DramSpec {
    DramSpec {
        controllers: 4,
        interleave: Bytes::new(256),
        latency: ns(0),
        bus: DramBusSpec { width: 16, rate: TransferRate::new(3_200_000_000), burst: 16 },
        banks: DramBanksSpec { count: 8, row: Bytes::from_kib(2), hash: true },
        timing: DramTimingSpec {
            rcd: ns(18),
            cl: ns(21),
            cwl: ps(8_750),
            rp: ns(18),
            ras: ns(42),
            ccd: ns(5),
            rrd: ns(10),
            faw: ns(40),
            wr: ns(18),
            wtr: ns(10),
            rtp: ps(7_500),
            turnaround: ps(625),
        },
        refresh: refresh(ns(3_904), ns(180)),
        scheduler: scheduler(),
        energy: None,
    }
}

/// HybridGPU's data buffer: one package on a data bus of 32 bit (ZnG, section I), DDR3-1600 11-11-11 (its published
/// configuration), 6.4 GB/s. Two dies x16 of 4 Gb with rows of 2 KiB: JESD79-3: CWL 8, tRAS 35 ns, tCCD 4, tRRD 7.5 ns,
/// tFAW 40 ns, tWR 15 ns, tWTR 7.5 ns, tRTP 7.5 ns, tREFI 7.8 us, tRFC 260 ns.
pub(super) fn ddr3_buffer() -> DramSpec {
    DramSpec {
        controllers: 1,
        interleave: Bytes::from_kib(4),
        latency: ns(0),
        bus: DramBusSpec { width: 32, rate: TransferRate::new(1_600_000_000), burst: 8 },
        banks: DramBanksSpec { count: 8, row: Bytes::from_kib(4), hash: true },
        timing: DramTimingSpec {
            rcd: ps(13_750),
            cl: ps(13_750),
            cwl: ns(10),
            rp: ps(13_750),
            ras: ns(35),
            ccd: ns(5),
            rrd: ps(7_500),
            faw: ns(40),
            wr: ns(15),
            wtr: ps(7_500),
            rtp: ps(7_500),
            turnaround: ps(2_500),
        },
        refresh: refresh(ns(7_800), ns(260)),
        scheduler: scheduler(),
        energy: None,
    }
}

/// Optane DC PMM as ZnG has it: six modules; tRCD 190, tCL 8.9, tRP 763 ns (Table I), 39 GB/s (section V-B).
///
/// Izraelevitz et al., arXiv 1903.05714: 6.5 GB/s of sequential reads and 2.3 GB/s of writes a module, media accesses of
/// 256 B, modules interleaved every 4 KiB. Chosen from these: a bus of 6.5 GB/s instead of DDR-T's 21; 25 banks, the
/// fewest whose rows of 256 B give 6.5 GB/s (256 B a bank every 190 + 29.5 + 763 ns); a write recovery of 1,781 ns, so
/// that 25 banks take 2.3 GB/s (256 B a bank every 190 + 8.9 + 39.4 + 1,781 + 763 ns); tCWL as tCL; everything else zero.
pub(super) fn optane() -> DramSpec {
    DramSpec {
        controllers: 6,
        interleave: Bytes::from_kib(4),
        latency: ns(0),
        bus: DramBusSpec { width: 64, rate: TransferRate::new(812_500_000), burst: 8 },
        banks: DramBanksSpec { count: 25, row: Bytes::new(256), hash: false },
        timing: DramTimingSpec {
            rcd: ns(190),
            cl: ps(8_900),
            cwl: ps(8_900),
            rp: ns(763),
            ras: ns(0),
            ccd: ns(0),
            rrd: ns(0),
            faw: ns(0),
            wr: ns(1_781),
            wtr: ns(0),
            rtp: ns(0),
            turnaround: ns(0),
        },
        refresh: None,
        scheduler: scheduler(),
        energy: None,
    }
}

/// All of them, with their names.
pub(super) fn all() -> [(&'static str, DramSpec); 5] {
    [
        ("gddr5", gddr5()),
        ("ddr4", ddr4()),
        ("lpddr4", lpddr4()),
        ("ddr3_buffer", ddr3_buffer()),
        ("optane", optane()),
    ]
}
