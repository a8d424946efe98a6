//! Requests of a run, in columns.

use crate::table::Table;
use arrow_array::types::UInt8Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, RecordBatch, StringArray, UInt8Array, UInt16Array, UInt32Array,
    UInt64Array,
};
use arrow_schema::ArrowError;
use engine::Time;
use proto::{Account, Holder, IoOp};
use requests::inject::{Observer, Seen};
use ssd::device::MILESTONES;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Operations, by their number in the column.
const OPS: [&str; 5] = ["read", "write", "trim", "write_zeroes", "flush"];

const fn number(op: IoOp) -> u8 {
    match op {
        IoOp::Read => 0,
        IoOp::Write => 1,
        IoOp::Trim => 2,
        IoOp::WriteZeroes => 3,
        IoOp::Flush => 4,
    }
}

/// Columns of requests, in order of completion; times in nanoseconds, offsets and lengths in bytes.
#[derive(Clone, Default)]
struct Columns {
    id: Vec<u64>,
    flow: Vec<u16>,
    op: Vec<u8>,
    at_ns: Vec<f64>,
    issued_ns: Vec<f64>,
    submitted_ns: Vec<f64>,
    answered_ns: Vec<f64>,
    completed_ns: Vec<f64>,
    offset: Vec<u64>,
    bytes: Vec<u64>,
    latency_ns: Vec<f64>,
    waits: Option<Waits>,
}

/// Waits of requests before each milestone, and outside the device; missing for a target that reports none.
#[derive(Clone, Default)]
struct Waits {
    milestones: [Vec<Option<f64>>; MILESTONES.len()],
    host: Vec<Option<f64>>,
    /// Longest blocker at the die and the channel together, by its number.
    blocked_by: Vec<Option<u8>>,
    die: Vec<Option<u32>>,
    channel: Vec<Option<u32>>,
}

impl Waits {
    fn see(&mut self, seen: &Seen, account: Option<&Account>) {
        let ns = |ps: u64| Time::from_ps(ps).as_ns_f64();
        for (n, column) in self.milestones.iter_mut().enumerate() {
            column.push(account.map(|account| ns(account.waits[n])));
        }
        let inside = |account: &Account| account.waits.iter().sum::<u64>();
        self.host.push(account.map(|account| ns(seen.latency().ps().saturating_sub(inside(account)))));
        self.blocked_by.push(account.and_then(blocker));
        let place = account.and_then(|account| account.place);
        self.die.push(place.map(|place| place.die));
        self.channel.push(place.map(|place| place.channel));
    }
}

/// Longest blocker, if any.
fn blocker(account: &Account) -> Option<u8> {
    let waited = (0..Holder::COUNT).map(|n| account.die[n] + account.channel[n]);
    let (most, n) = waited.zip(0..).max_by_key(|(time, n)| (*time, std::cmp::Reverse(*n)))?;
    (most > 0).then_some(n)
}

/// Observer that records requests.
#[derive(Clone)]
pub(crate) struct Requests(Rc<RefCell<Columns>>);

impl Observer for Requests {
    fn completed(&mut self, seen: &Seen, account: Option<&Account>) {
        let mut columns = self.0.borrow_mut();
        let Seen { request, .. } = seen;
        columns.id.push(seen.id);
        columns.flow.push(seen.flow);
        columns.op.push(number(request.op));
        columns.at_ns.push(request.at.as_ns_f64());
        columns.issued_ns.push(seen.issued.as_ns_f64());
        columns.submitted_ns.push(seen.submitted.as_ns_f64());
        columns.answered_ns.push(seen.answered.as_ns_f64());
        columns.completed_ns.push(seen.completed.as_ns_f64());
        columns.offset.push(request.offset);
        columns.bytes.push(request.bytes);
        columns.latency_ns.push(seen.latency().as_ns_f64());
        if let Some(waits) = &mut columns.waits {
            waits.see(seen, account);
        }
    }
}

impl Requests {
    /// Starts without requests; `waits` also records their waits.
    pub(crate) fn new(waits: bool) -> Requests {
        let waits = waits.then(Waits::default);
        Requests(Rc::new(RefCell::new(Columns { waits, ..Columns::default() })))
    }

    /// Moves the recorded requests into a table, without copying.
    ///
    /// # Errors
    /// None known: the columns have one length.
    pub(crate) fn take(&self) -> Result<Table, ArrowError> {
        self.0.take().table()
    }

    /// Copies the recorded requests into a table.
    ///
    /// # Errors
    /// The errors of [`Requests::take`].
    pub(crate) fn so_far(&self) -> Result<Table, ArrowError> {
        self.0.borrow().clone().table()
    }
}

/// Converts numbers of names to names.
fn named(numbers: UInt8Array, names: &[&str]) -> Result<ArrayRef, ArrowError> {
    let names = Arc::new(StringArray::from(names.to_vec()));
    Ok(Arc::new(DictionaryArray::<UInt8Type>::try_new(numbers, names)?))
}

impl Columns {
    fn table(self) -> Result<Table, ArrowError> {
        let times = |column: Vec<f64>| Arc::new(Float64Array::from(column)) as ArrayRef;
        let mut columns = vec![
            ("id".to_owned(), Arc::new(UInt64Array::from(self.id)) as ArrayRef),
            ("flow".to_owned(), Arc::new(UInt16Array::from(self.flow))),
            ("op".to_owned(), named(UInt8Array::from(self.op), &OPS)?),
            ("at_ns".to_owned(), times(self.at_ns)),
            ("issued_ns".to_owned(), times(self.issued_ns)),
            ("submitted_ns".to_owned(), times(self.submitted_ns)),
            ("answered_ns".to_owned(), times(self.answered_ns)),
            ("completed_ns".to_owned(), times(self.completed_ns)),
            ("offset".to_owned(), Arc::new(UInt64Array::from(self.offset))),
            ("bytes".to_owned(), Arc::new(UInt64Array::from(self.bytes))),
            ("latency_ns".to_owned(), times(self.latency_ns)),
        ];
        if let Some(waits) = self.waits {
            let times = |column: Vec<Option<f64>>| Arc::new(Float64Array::from(column)) as ArrayRef;
            let milestones = MILESTONES.into_iter().zip(waits.milestones);
            columns.extend(milestones.map(|(name, column)| (format!("{name}_ns"), times(column))));
            columns.push(("host_ns".to_owned(), times(waits.host)));
            columns.push(("blocked_by".to_owned(), named(waits.blocked_by.into(), &Holder::NAMES)?));
            columns.push(("die".to_owned(), Arc::new(UInt32Array::from(waits.die))));
            columns.push(("channel".to_owned(), Arc::new(UInt32Array::from(waits.channel))));
        }
        RecordBatch::try_from_iter(columns).map(Table::of)
    }
}
