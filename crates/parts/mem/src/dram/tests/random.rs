//! Properties of any traffic.

use super::*;
use crate::dram::map::Map;
use crate::dram::sched::DramScheduler;
use config::units::Bytes;
use proptest::prelude::*;

fn any_memory() -> impl Strategy<Value = DramSpec> {
    let preset = prop::sample::select(presets::all().map(|(_, spec)| spec).to_vec());
    let policy = prop::sample::select(DramScheduler::all_defaults());
    (preset, policy, 1u16..8, prop::sample::select(vec![128u64, 256, 384, 1024, 4096, 8192]), 1u32..20)
        .prop_map(|(spec, scheduler, controllers, interleave, count)| {
            let mut spec = DramSpec { scheduler, controllers, interleave: Bytes::new(interleave), ..spec };
            spec.banks.count = count;
            spec.banks.hash &= count.is_power_of_two();
            spec
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Every command is done once, its bytes pass the bus of its controllers, and nothing else is on the bus meanwhile.
    #[test]
    fn every_command_is_done_once_and_no_data_overlap(
        spec in any_memory(),
        traffic in proptest::collection::vec((0u64..400, 0u64..40, 1u64..1 << 32, any::<bool>(), any::<bool>()), 1..200),
    ) {
        let mut bench = Bench::new(&spec);
        let mut now = Time::ZERO;
        for (gap, page, mask, sparse, write) in &traffic {
            now += Time::from_ns(if *gap < 200 { 0 } else { *gap });
            let mask = if *sparse { mask & mask.wrapping_neg() } else { *mask };
            bench.at(now, lines(page * PAGE, mask, *write));
        }
        let ends = bench.run();
        prop_assert!(ends.iter().all(|end| *end < Time::MAX));
        let stats = &bench.dram.stats;
        prop_assert_eq!((stats.reads + stats.writes) as usize, traffic.len());
        let bytes: u64 = bench.outside.commands.iter().map(|c| c.bytes(LINE)).sum();
        prop_assert_eq!(stats.read_bytes + stats.written_bytes, bytes);
        prop_assert_eq!(stats.bus_busy, on_the_bus(&spec, bytes / LINE));
        let pieces = bench.dram.transfers.len() as u64;
        prop_assert_eq!(stats.row_hits + stats.row_closed + stats.row_conflicts, pieces);
        prop_assert!(stats.activations >= stats.row_closed + stats.row_conflicts);

        let tally: u128 = [bench.dram.tally.reads(), bench.dram.tally.writes()].iter().flat_map(|t| t.iter()).sum();
        let waited = |(end, command): (&Time, &MemCommand)| u128::from((*end - command.since).ps());
        prop_assert_eq!(tally, ends.iter().zip(&bench.outside.commands).map(waited).sum::<u128>());

        for controller in 0..spec.controllers {
            let of = |(number, transfer): &(u16, _)| (*number == controller).then_some(*transfer);
            let bus: Vec<_> = bench.dram.transfers.iter().filter_map(of).collect();
            for pair in bus.windows(2) {
                let gap = if pair[1].write && !pair[0].write { spec.timing.turnaround.time() } else { Time::ZERO };
                prop_assert!(pair[1].begin >= pair[0].end + gap, "{:?}", pair);
            }
        }
    }

    /// In order means in order: data pass in the order in which the commands came.
    #[test]
    fn first_come_is_first_served(
        traffic in proptest::collection::vec((0u64..100, 0u64..60, any::<bool>()), 1..150),
    ) {
        let spec = DramSpec { scheduler: DramScheduler::fcfs, ..presets::gddr5() };
        let mut bench = Bench::new(&spec);
        let mut now = Time::ZERO;
        for (gap, at, write) in &traffic {
            now += Time::from_ns(*gap);
            bench.at(now, line(at * 8 * LINE, *write));
        }
        bench.run();
        for controller in 0..spec.controllers {
            let order: Vec<u32> = bench.outside.done.iter().map(|(_, command)| command)
                .filter(|command| {
                    let first = command.page + u64::from(command.lines.trailing_zeros()) * LINE;
                    bench.dram.controller_of(first) == controller
                })
                .map(|command| command.tag)
                .collect();
            prop_assert!(order.is_sorted(), "{:?}", order);
        }
    }

    /// Against a memory filled line by line: each controller gets its chunks in turn and fills row after row, each row
    /// in the next bank, which a hash may exchange for another that no other row of that number has.
    #[test]
    fn the_address_map_fills_row_by_row(spec in any_memory()) {
        let map = Map::new(&spec);
        let mut filled = vec![0u64; spec.controllers.into()];
        let mut seen = std::collections::BTreeMap::new();
        for n in 0..6_000u64 {
            let address = n * LINE;
            let controller = (address / spec.interleave.get()) as usize % filled.len();
            let place = map.place(address);
            prop_assert_eq!(usize::from(place.controller), controller);
            prop_assert_eq!(map.controller_of(address), place.controller);
            let rows = filled[controller] / spec.banks.row.get();
            filled[controller] += LINE;
            prop_assert_eq!(place.row, rows / u64::from(spec.banks.count));
            if !spec.banks.hash {
                prop_assert_eq!(u64::from(place.bank), rows % u64::from(spec.banks.count));
            }
            let key = (place.controller, place.bank, place.row);
            prop_assert_eq!(*seen.entry(key).or_insert(rows), rows, "two rows in one place");
        }
    }

    /// A command and its lines one by one lie in the same rows: as many accesses as there are different places.
    #[test]
    fn a_command_is_one_access_a_row(spec in any_memory(), page in 0u64..50, mask in 1u64..1 << 32) {
        let map = Map::new(&spec);
        let mut places: Vec<_> = (0..PAGE / LINE).filter(|n| mask >> n & 1 == 1)
            .map(|n| map.place(page * PAGE + n * LINE))
            .map(|place| (place.controller, place.bank, place.row))
            .collect();
        places.sort_unstable();
        places.dedup();
        let mut bench = Bench::new(&spec);
        bench.at(Time::ZERO, lines(page * PAGE, mask, false));
        bench.run();
        prop_assert_eq!(bench.dram.transfers.len(), places.len());
    }
}
