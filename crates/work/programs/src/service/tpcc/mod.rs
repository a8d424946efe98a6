//! TPC-C: the transaction New-Order.
//!
//! Source: TPC Benchmark C, revision 5.11, clause 2.4: reads the warehouse, the customer, and of 5 to 15 lines the item and the
//! stock; then takes the district's next order number, updates the stocks, inserts the order, its new-order and its lines. One
//! of a hundred transactions names an item that does not exist in its last line and is rolled back; one of a hundred lines is
//! supplied by another warehouse. AstriFlash (section V-A) runs this transaction only and draws from Zipf distributions instead of
//! NURand: here home warehouse, customer of the district, and item, each with the skew `theta`. Warehouses and what belongs to
//! one lie together, as they are loaded; placement moves warehouses, and items, stocks and customers within a warehouse.
//!
//! Data that may change is read under locks: all rows are found and fetched first, one per piece; in the last piece
//! the district and the stocks are locked in the order of their keys, read, updated and unlocked. So there is nothing
//! to abort.
//!
//! The work of a job ([`WORK`](crate::service::common::work)) is distributed between its accesses, as in the profile
//! (clause 2.4.2.2): one statement each for the warehouse, the customer, the district, the order and the new-order,
//! and for each line one each for the item, the stock, the update of the stock and the line itself. Chosen: all have
//! the same share of it, and so have the request and the reply. A job with the mean of ten lines has `work`
//! instructions.
//!
//! Left out: the other four transactions, the table History, indices (keys are dense, rows are found by arithmetic),
//! and the archiving of old orders (see [`tables`]).

mod tables;

use requests::synth::Stream;
use rustc_hash::FxHashMap;

use super::{Built, Entry};
use crate::program::Params;
use crate::service::common::{Common, Objects, keys};
use crate::service::jobs::{Emit, FIRST_BLOCK, Program, Served, Value, turns};
use crate::service::loaded::{self, COUNT_MAX};
use tables::{CUSTOMERS, DISTRICTS, ITEMS, LINES, LOADED_ORDERS, NEW_ORDER, ORDER, ORDER_LINE, Tables};

/// Offsets of columns in their rows: W_TAX and W_ID; D_TAX and D_NEXT_O_ID.
const TAX: u64 = 80;
/// C_LAST in the first line of the row, C_CREDIT and C_DISCOUNT in the third.
const LAST_NAME: u64 = 34;
const CREDIT: u64 = 144;
/// S_QUANTITY and the three counters; S_DIST_01 to S_DIST_10; S_DATA, after the lock and the keys.
const QUANTITY: u64 = 14;
const DISTRICT_INFO: u64 = 24;
const STOCK_DATA: u64 = 264;
/// Bytes of a district's information, of S_DATA, of an item's row.
const INFO_BYTES: u64 = 24;
const DATA_BYTES: u64 = 50;
const ITEM_BYTES: u64 = 82;
/// Statements of a job except those of its lines, with request and reply; of each line; and the mean number of lines.
const STATEMENTS: u32 = 7;
const OF_A_LINE: u32 = 4;
const MEAN_LINES: u32 = 10;
/// Instructions to look for "ORIGINAL" in 50 characters: one comparison and branch for each of the first letters.
const FIND: u16 = 60;

const WAREHOUSE: u32 = FIRST_BLOCK;
const CUSTOMER: u32 = WAREHOUSE + 1;
const ITEM: u32 = WAREHOUSE + 2;
const STOCK: u32 = WAREHOUSE + 3;
const BRAND: u32 = WAREHOUSE + 4;
const TAKE: u32 = WAREHOUSE + 5;
const INSERT: u32 = WAREHOUSE + 6;
const UPDATE: u32 = WAREHOUSE + 7;
const RELEASE: u32 = WAREHOUSE + 8;

pub(crate) const ENTRY: Entry = Entry {
    name: "tpcc",
    source: "TPC-C 5.11",
    what: "enters orders of 5 to 15 lines: the transaction New-Order",
    keys: keys!["60000"],
    build,
};

fn build(params: &Params) -> Built {
    let common = Common::read(params, tables::LEAST)?;
    // All of the work is the program's own.
    Ok(Box::new(Served::new(Tpcc::new(&common), 0)))
}

/// Changing columns of a stock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stock {
    quantity: u64,
    ytd: u64,
    orders: u64,
    remote: u64,
}

engine::snapshot!(Stock { quantity, ytd, orders, remote });

/// The database.
pub(crate) struct Tpcc {
    common: Common,
    warehouses: Objects,
    customers: Objects,
    items: Objects,
    tables: Tables,
    salt: u64,
    /// Orders entered in a district since it was loaded.
    entered: FxHashMap<u64, u64>,
    /// Stocks that were updated.
    stocks: FxHashMap<u64, Stock>,
}

/// A line of an order.
struct Line {
    /// Number of the item; `None` if it does not exist.
    item: Option<u64>,
    supplier: u64,
    quantity: u64,
    /// Information of the stock for the district, once it is read.
    info: Value,
}

/// Next row to be read.
enum Stage {
    Warehouse,
    Customer,
    Item(usize),
    Stock(usize),
    Commit,
}

/// An order to be entered, and its progress.
pub(crate) struct Job {
    warehouse: u64,
    district: u64,
    customer: u64,
    lines: Vec<Line>,
    stage: Stage,
    /// Number assigned to it.
    order: Option<u64>,
    /// Work of statements that has not been done, in fractions of an instruction, which loses nothing to
    /// rounding.
    owed: u64,
}

impl Tpcc {
    pub(crate) fn new(common: &Common) -> Tpcc {
        let warehouses = Tables::warehouses(common.data);
        Tpcc {
            common: common.clone(),
            warehouses: Objects::new(warehouses, common),
            customers: Objects::new(CUSTOMERS, common),
            items: Objects::new(ITEMS, common),
            tables: Tables::new(warehouses),
            salt: common.salt(3),
            entered: FxHashMap::default(),
            stocks: FxHashMap::default(),
        }
    }

    /// Returns the number of a district among all.
    fn district(&self, job: &Job) -> u64 {
        self.warehouses.slot(job.warehouse) * DISTRICTS + job.district
    }

    /// Returns a stock's number: that of its warehouse, then that of its item.
    fn key(line: &Line) -> Option<u64> {
        line.item.map(|item| line.supplier * ITEMS + item)
    }

    fn stock(&self, key: u64) -> Stock {
        // S_QUANTITY is loaded with 10 to 100 (clause 4.3.3.1).
        let loaded = 10 + engine::mix(key ^ self.salt) % 91;
        let loaded = Stock { quantity: loaded, ytd: 0, orders: 0, remote: 0 };
        self.stocks.get(&key).copied().unwrap_or(loaded)
    }

    fn stock_address(&self, key: u64) -> u64 {
        let slot = self.warehouses.slot(key / ITEMS) * ITEMS + self.items.slot(key % ITEMS);
        self.tables.stock(slot)
    }

    fn line(&self, home: u64, stream: &mut Stream) -> Line {
        let others = self.warehouses.len() - 1;
        let remote = others > 0 && stream.below(100) == 0;
        let supplier = if remote { (home + 1 + stream.below(others)) % self.warehouses.len() } else { home };
        Line {
            item: Some(self.items.draw(stream)),
            supplier,
            quantity: 1 + stream.below(10),
            info: Value::READY,
        }
    }

    /// Writes the work of `statements` statements.
    fn work(&self, statements: u32, job: &mut Job, e: &mut Emit<'_>) {
        let parts = u64::from(STATEMENTS + OF_A_LINE * MEAN_LINES);
        job.owed += u64::from(statements) * u64::from(self.common.work);
        job.owed -= parts * u64::from(turns(e, job.owed / parts));
    }

    fn read_customer(&self, job: &Job, e: &mut Emit<'_>) {
        let slot = self.district(job) * CUSTOMERS + self.customers.slot(job.customer);
        let row = self.tables.customer(slot);
        e.block(CUSTOMER);
        let index = e.compute(4, []);
        e.load(row + LAST_NAME, 16, [index]);
        e.load(row + CREDIT, 16, [index]);
    }

    /// Reads a line's item; returns whether it exists.
    fn read_item(&self, line: &Line, e: &mut Emit<'_>) -> bool {
        e.block(ITEM);
        let index = e.compute(2, []);
        e.branch(line.item.is_none(), [index]);
        if let Some(item) = line.item {
            let row = e.read(self.tables.item(self.items.slot(item)), ITEM_BYTES, index);
            e.compute(FIND / 2, [row]);
        }
        line.item.is_some()
    }

    fn read_stock(&self, line: &mut Line, district: u64, e: &mut Emit<'_>) {
        let Some(key) = Tpcc::key(line) else { return };
        let row = self.stock_address(key);
        e.block(STOCK);
        let index = e.compute(4, []);
        e.load(row + QUANTITY, 10, [index]);
        line.info = e.read(row + DISTRICT_INFO + district * INFO_BYTES, INFO_BYTES, index);
        let data = e.read(row + STOCK_DATA, DATA_BYTES, index);
        e.block(BRAND);
        e.compute(FIND, [data]);
    }

    fn commit(&mut self, job: &mut Job, e: &mut Emit<'_>) {
        let district = self.district(job);
        let mut keys: Vec<u64> = job.lines.iter().filter_map(Tpcc::key).collect();
        keys.sort_unstable();
        keys.dedup();
        let locks: Vec<u64> = std::iter::once(self.tables.district(district))
            .chain(keys.iter().map(|&key| self.stock_address(key)))
            .collect();
        for &lock in &locks {
            e.block(TAKE);
            let index = e.compute(4, []);
            let taken = e.atomic(lock, [index]);
            e.branch(false, [taken]);
        }
        let entered = self.entered.entry(district).or_default();
        *entered += 1;
        let number = LOADED_ORDERS + *entered;
        job.order = Some(number);
        self.work(3, job, e);
        let [order, new_order, lines] = self.tables.order(district, number);
        e.block(INSERT);
        let next = e.load(locks[0] + TAX, 8, []);
        let incremented = e.compute(1, [next]);
        e.store(locks[0] + TAX, 8, [incremented]);
        let at = e.compute(4, [next]);
        e.store(order, ORDER, [at]);
        e.store(new_order, NEW_ORDER, [at]);
        for n in 0..job.lines.len() {
            self.work(2, job, e);
            self.update(&job.lines[n], job.warehouse, lines + n as u64 * ORDER_LINE, at, e);
        }
        for &lock in &locks {
            e.block(RELEASE);
            e.store(lock, 8, []);
        }
    }

    /// Takes a line's quantity from its stock and inserts the line at `row`.
    fn update(&mut self, line: &Line, home: u64, row: u64, at: Value, e: &mut Emit<'_>) {
        let Some(key) = Tpcc::key(line) else { return };
        let mut stock = self.stock(key);
        let enough = stock.quantity >= line.quantity + 10;
        let columns = self.stock_address(key) + QUANTITY;
        e.block(UPDATE);
        let index = e.compute(4, []);
        let loaded = e.load(columns, 10, [index]);
        e.branch(enough, [loaded]);
        let updated = e.compute(5, [loaded]);
        e.store(columns, 10, [index, updated]);
        // Amount: quantity times price; then the columns of the line.
        e.compute(6, []);
        e.store(row, ORDER_LINE, [at, line.info]);
        e.branch(true, []);
        stock.quantity += if enough { 0 } else { 91 };
        stock.quantity -= line.quantity;
        stock.ytd += line.quantity;
        stock.orders += 1;
        stock.remote += u64::from(line.supplier != home);
        self.stocks.insert(key, stock);
    }
}

impl Program for Tpcc {
    type Job = Job;
    const BLOCKS: u32 = RELEASE + 1;

    fn end(&self) -> u64 {
        self.tables.end()
    }

    fn begin(&self, job: u64) -> Job {
        let mut stream = self.common.stream(job);
        let warehouse = self.warehouses.draw(&mut stream);
        let district = stream.below(DISTRICTS);
        let customer = self.customers.draw(&mut stream);
        let count = 5 + stream.below(LINES - 4);
        let mut lines: Vec<Line> = (0..count).map(|_| self.line(warehouse, &mut stream)).collect();
        if let Some(last) = lines.last_mut().filter(|_| stream.below(100) == 0) {
            last.item = None;
        }
        Job { warehouse, district, customer, lines, stage: Stage::Warehouse, order: None, owed: 0 }
    }

    fn piece(&mut self, job: &mut Job, e: &mut Emit<'_>) -> bool {
        job.stage = match job.stage {
            Stage::Warehouse => {
                self.work(2, job, e);
                e.block(WAREHOUSE);
                e.load(self.tables.warehouse(self.warehouses.slot(job.warehouse)) + TAX, 8, []);
                Stage::Customer
            }
            Stage::Customer => {
                self.work(1, job, e);
                self.read_customer(job, e);
                Stage::Item(0)
            }
            Stage::Item(n) => {
                self.work(1, job, e);
                if !self.read_item(&job.lines[n], e) {
                    self.work(1, job, e);
                    return false;
                }
                Stage::Stock(n)
            }
            Stage::Stock(n) => {
                self.work(1, job, e);
                self.read_stock(&mut job.lines[n], job.district, e);
                if n + 1 < job.lines.len() { Stage::Item(n + 1) } else { Stage::Commit }
            }
            Stage::Commit => {
                self.commit(job, e);
                self.work(1, job, e);
                return false;
            }
        };
        true
    }

    fn save(&self, out: &mut Vec<u8>) {
        loaded::save_changes(&self.entered, out);
        loaded::save_changes(&self.stocks, out);
    }

    fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        let warehouses = self.warehouses.len();
        let may_be = |orders: &u64| *orders < COUNT_MAX;
        self.entered = loaded::load_changes(input, |district, orders| {
            district < warehouses * DISTRICTS && may_be(orders)
        })?;
        let is_stock = |stock: &Stock| {
            let Stock { quantity, ytd, orders, remote } = stock;
            [quantity, ytd, orders, remote].into_iter().all(may_be)
        };
        self.stocks = loaded::load_changes(input, |key, stock| key < warehouses * ITEMS && is_stock(stock))?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::drive::{drive, small};
    use proto::cpu::{Op, OpKind};
    use std::collections::BTreeMap;

    /// Computes the new S_QUANTITY of a line: clause 2.4.2.2.
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
                let data = |op: &Op| op.width > 0 && op.address >= crate::service::jobs::DATA;
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
}
