use super::*;
use crate::service::drive::{drive, small};
use proto::cpu::{Op, OpKind};
use std::collections::BTreeMap;

/// Clause 2.4.2.2: what a line does to S_QUANTITY.
fn expected(quantity: u64, ordered: u64) -> u64 {
    if quantity as i64 - ordered as i64 >= 10 { quantity - ordered } else { quantity + 91 - ordered }
}

#[test]
fn orders_are_numbered_without_gaps_and_stocks_add_up() {
    for slots in [1, 30] {
        let mut tpcc = Tpcc::new(&small(tables::LEAST * 3));
        let warehouses = tpcc.warehouses.len();
        assert!(warehouses >= 3);
        let mut last: BTreeMap<u64, u64> = BTreeMap::new();
        let mut stocks: BTreeMap<u64, Stock> = BTreeMap::new();
        let fresh = Tpcc::new(&small(tables::LEAST * 3));
        let mut rolled_back = 0;
        drive(&mut tpcc, 0..3000, slots, |tpcc, _, job, _| {
            assert!((5..=15).contains(&job.lines.len()));
            let Some(order) = job.order else {
                rolled_back += 1;
                return;
            };
            let number = last.entry(tpcc.district(job)).or_insert(3000);
            *number += 1;
            assert_eq!(order, *number);
            for line in &job.lines {
                let key = line.supplier * ITEMS + line.item.unwrap();
                let stock = stocks.entry(key).or_insert_with(|| fresh.stock(key));
                stock.quantity = expected(stock.quantity, line.quantity);
                stock.ytd += line.quantity;
                stock.orders += 1;
                stock.remote += u64::from(line.supplier != job.warehouse);
                assert!((10..=100).contains(&stock.quantity));
            }
        });
        assert!(stocks.iter().all(|(&key, &stock)| tpcc.stock(key) == stock));
        assert_eq!(tpcc.stocks.len(), stocks.len());
        // 1 % of 3000, within five standard deviations; of some 30 000 lines 1 % are remote.
        assert!((3..58).contains(&rolled_back), "{rolled_back}");
        let remote: u64 = stocks.values().map(|stock| stock.remote).sum();
        assert!((215..385).contains(&remote), "{remote}");
    }
}

#[test]
fn locks_are_taken_in_order_and_lines_lie_where_the_number_says() {
    let mut tpcc = Tpcc::new(&small(1 << 40));
    drive(&mut tpcc, 0..200, 4, |tpcc, _, job, history| {
        let Some(order) = job.order else { return };
        let mut keys: Vec<u64> = job.lines.iter().filter_map(Tpcc::key).collect();
        keys.sort_unstable();
        keys.dedup();
        let district = tpcc.district(job);
        let mut locks = vec![tpcc.tables.district(district)];
        locks.extend(keys.into_iter().map(|key| tpcc.stock_address(key)));
        let at = |kind, range: std::ops::Range<u64>| {
            let of = history.iter().filter(move |op| op.kind == kind && range.contains(&op.address));
            of.map(|op| op.address).collect::<Vec<_>>()
        };
        assert_eq!(at(OpKind::Atomic, 0..u64::MAX), locks);
        let [first, new_order, lines] = tpcc.tables.order(district, order);
        assert_eq!(at(OpKind::Store, first..first + ORDER), [first]);
        assert_eq!(at(OpKind::Store, new_order..new_order + NEW_ORDER), [new_order]);
        let count = job.lines.len() as u64;
        assert_eq!(
            at(OpKind::Store, lines..lines + LINES * ORDER_LINE),
            (0..count).map(|n| lines + n * ORDER_LINE).collect::<Vec<_>>()
        );
    });
    assert!(tpcc.entered.len() <= 200 && tpcc.stocks.len() <= 200 * 15 && tpcc.stocks.len() > 1000);
}

/// Clause 2.4.2.2: request, warehouse, customer, four statements a line, three for district and order, reply. With the same share each, no
/// stretch between two accesses has more than three of them, and a job has its whole share but for a turn of the loop.
#[test]
fn work_lies_between_accesses_and_follows_the_lines() {
    let instructions = |ops: &[Op]| ops.iter().map(|op| u64::from(op.count)).sum::<u64>();
    let run = |work| {
        let mut tpcc = Tpcc::new(&Common { work, ..small(tables::LEAST * 3) });
        let mut jobs = Vec::new();
        drive(&mut tpcc, 0..300, 1, |_, number, job, history| {
            let ended = job.order.is_some();
            let data = |op: &Op| op.width > 0 && op.address >= crate::service::served::DATA;
            let longest = history.split(data).map(instructions).max();
            jobs.push((number, ended, job.lines.len() as u64, instructions(history), longest));
        });
        jobs
    };
    let (without, with) = (run(0), run(47_000));
    let mut ended = 0;
    for ((_, _, _, bare, _), (_, done, lines, all, longest)) in without.iter().zip(&with) {
        if !done {
            continue;
        }
        ended += 1;
        let expected = 1000 * (7 + 4 * lines);
        let work = all - bare;
        assert!(work <= expected && work + 240 > expected, "{work} of {expected}");
        // Beside the work there are the few instructions of a statement.
        assert!(longest.is_some_and(|most| most < 3000 + 240 + 200), "{longest:?}");
    }
    assert!(ended > 280);
}
