//! `nandscape point`: one run of a sweep, on a worker of a cluster. Used by `sweep --on`, not by people.

use crate::output::{Fault, print};
use crate::outside::{STOP, catch_interrupts, result_is_coming};
use crate::states::Folder;
use config::Diagnostic;
use machine::state::States;
use std::io::{BufRead, Read};
use std::sync::atomic::Ordering;
use sweep::{OfWorker, Order, simulate};

/// Arguments of `point`: none, as the order comes on standard input.
#[derive(clap::Args)]
pub(crate) struct Args {}

/// Reads an order, runs it and prints the answer, each a line of JSON. Standard input stays open meanwhile; once it is
/// closed, nothing waits for the answer and the run stops.
///
/// # Errors
/// The input is not an order, or the run was stopped.
pub(crate) fn run(_: &Args) -> Result<bool, Fault> {
    catch_interrupts()?;
    let mut line = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut line)
        .map_err(|fault| Diagnostic::new(format!("cannot read standard input: {fault}")))?;
    let order: Order = serde_json::from_str(&line).map_err(|fault| {
        Diagnostic::new(format!("standard input has no valid order: {fault}"))
            .help("`nandscape sweep --on` starts this command; it is not meant for direct use")
    })?;
    result_is_coming();
    std::thread::spawn(|| {
        let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
        STOP.store(true, Ordering::Relaxed);
    });
    let answer = match answer(&order) {
        Ok(Some(document)) => OfWorker::Document(document),
        Ok(None) => return Ok(false),
        Err(fault) => OfWorker::Failure(fault.diagnostic()),
    };
    let text = serde_json::to_string(&answer)
        .map_err(|fault| Diagnostic::new(format!("the answer is not JSON: {fault}")))?;
    print(&text)?;
    Ok(true)
}

/// Runs the order and returns its document; `None` if it was stopped.
fn answer(order: &Order) -> Result<Option<String>, Fault> {
    let plan = order.plan()?;
    let states = order.state_cache.as_deref().map(Folder::open).transpose()?;
    let document = simulate(&plan, states.as_ref().map(|folder| folder as &dyn States), &STOP)?;
    Ok(document.map(|document| document.to_json()))
}
