//! Tables of TPC-C: numbers, sizes and places of rows.
//!
//! Rows and their sizes: TPC Benchmark C, revision 5.11, clauses 1.2.1 and 1.3; each row that is updated has a lock of eight
//! bytes before its columns, and rows begin on lines unless several fit one.

use crate::service::jobs::{DATA, LINE};

/// Districts of a warehouse, customers of a district, items and so stocks of a warehouse (clause 1.2.1).
pub(super) const DISTRICTS: u64 = 10;
pub(super) const CUSTOMERS: u64 = 3000;
pub(super) const ITEMS: u64 = 100_000;
/// Number of orders initially in a district (clause 4.3.3.1).
pub(super) const LOADED_ORDERS: u64 = 3000;
/// Number of orders for which a district has room; later ones replace the oldest, which a real system would archive.
const ORDERS: u64 = 4096;
/// Maximum lines per order (clause 2.4.1.3).
pub(super) const LINES: u64 = 15;

/// Bytes of rows: 89 and a lock, 95 and a lock, 655 and a lock, 306 and a lock, 82, 24 and a lock, 8, 54.
const WAREHOUSE: u64 = 2 * LINE;
const DISTRICT: u64 = 2 * LINE;
const CUSTOMER: u64 = 11 * LINE;
const STOCK: u64 = 5 * LINE;
const ITEM: u64 = 2 * LINE;
pub(super) const ORDER: u64 = 32;
pub(super) const NEW_ORDER: u64 = 8;
pub(super) const ORDER_LINE: u64 = LINE;

/// Bytes of a district's orders, and of all that belongs to a warehouse.
const OF_ORDERS: u64 = ORDERS * (ORDER + NEW_ORDER + LINES * ORDER_LINE);
const OF_WAREHOUSE: u64 =
    WAREHOUSE + DISTRICTS * (DISTRICT + CUSTOMERS * CUSTOMER + OF_ORDERS) + ITEMS * STOCK;

/// Bytes of a database of one warehouse.
pub(super) const LEAST: u64 = ITEMS * ITEM + OF_WAREHOUSE;

/// Tables of some warehouses, one after another; rows are found by arithmetic from their keys, which are dense.
pub(super) struct Tables {
    districts: u64,
    customers: u64,
    stocks: u64,
    items: u64,
    orders: u64,
    new_orders: u64,
    order_lines: u64,
    end: u64,
}

impl Tables {
    /// Returns the number of warehouses that fit `bytes`, at least [`LEAST`].
    pub(super) fn warehouses(bytes: u64) -> u64 {
        (bytes - ITEMS * ITEM) / OF_WAREHOUSE
    }

    pub(super) fn new(warehouses: u64) -> Tables {
        let mut end = DATA + warehouses * WAREHOUSE;
        let mut table = |bytes: u64| {
            end += bytes;
            end - bytes
        };
        let districts = warehouses * DISTRICTS;
        Tables {
            districts: table(districts * DISTRICT),
            customers: table(districts * CUSTOMERS * CUSTOMER),
            stocks: table(warehouses * ITEMS * STOCK),
            items: table(ITEMS * ITEM),
            orders: table(districts * ORDERS * ORDER),
            new_orders: table(districts * ORDERS * NEW_ORDER),
            order_lines: table(districts * ORDERS * LINES * ORDER_LINE),
            end,
        }
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Returns the address of the row in a slot of its table.
    pub(super) fn warehouse(&self, slot: u64) -> u64 {
        DATA + slot * WAREHOUSE
    }
    pub(super) fn district(&self, slot: u64) -> u64 {
        self.districts + slot * DISTRICT
    }
    pub(super) fn customer(&self, slot: u64) -> u64 {
        self.customers + slot * CUSTOMER
    }
    pub(super) fn stock(&self, slot: u64) -> u64 {
        self.stocks + slot * STOCK
    }
    pub(super) fn item(&self, slot: u64) -> u64 {
        self.items + slot * ITEM
    }
    /// Returns the addresses of an order's rows in Order, New-Order and Order-Line, the last of which has [`LINES`]
    /// in a row.
    pub(super) fn order(&self, district: u64, order: u64) -> [u64; 3] {
        let slot = district * ORDERS + order % ORDERS;
        [
            self.orders + slot * ORDER,
            self.new_orders + slot * NEW_ORDER,
            self.order_lines + slot * LINES * ORDER_LINE,
        ]
    }
}
