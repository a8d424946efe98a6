//! What each of MQMS's mechanisms does, alone and together with the others.

use super::super::row::{Row, Rule};
use super::super::study::{Entry, Found, Point};
use super::{PROGRAMS, SWITCHES, Suite, account, end, iops, response};
use config::Diagnostic;

/// For each workload a row a switch, and one that holds the product of what they do against all of them together; then the same with
/// strewn data.
pub(super) fn entries(suite: &Suite) -> Vec<Entry> {
    let strewn = suite.strewn();
    let workloads = suite.networks.iter().chain(&PROGRAMS);
    let of = |(name, workload): &(&'static str, &'static str)| {
        let beside = strewn.as_ref().map(|strewn| of_workload(strewn, "mqms.strewn.switch", name, workload));
        of_workload(suite, "mqms.switch", name, workload).into_iter().chain(beside.into_iter().flatten())
    };
    workloads.flat_map(of).collect()
}

fn of_workload(suite: &Suite, rows: &str, name: &str, workload: &str) -> Vec<Entry> {
    // With every switch off MQMS is the baseline, bit for bit: a test holds it to that.
    let none = suite.point("mqsim-macsim", workload);
    let all = suite.point("mqms", workload);
    let alone: Vec<(&str, Point)> =
        SWITCHES.iter().map(|(switch, _)| (*switch, suite.with(&[*switch], workload))).collect();
    let mut entries: Vec<Entry> = alone
        .iter()
        .map(|(switch, point)| gain(format!("{rows}.{name}.{switch}"), none.clone(), point.clone()))
        .collect();
    entries.push(gain(format!("{rows}.{name}.all"), none.clone(), all.clone()));
    let alone: Vec<Point> = alone.into_iter().map(|(_, point)| point).collect();
    let points = alone.iter().cloned().chain([none.clone(), all.clone()]).collect();
    entries.push(Entry::new(format!("{rows}.{name}.product"), points, move |found| {
        explained(found, &alone, &none, &all)
    }));
    entries
}

/// How many times sooner the last kernel ends.
fn gain(id: String, none: Point, with: Point) -> Entry {
    Entry::new(id.clone(), vec![none.clone(), with.clone()], move |found| {
        let (before, after) = (found.get(&none)?, found.get(&with)?);
        let note = format!(
            "end time, all switches off over this; IOPS {:.3} times, response {:.3} times shorter; {}",
            iops(after)? / iops(before)?,
            response(before)? / response(after)?,
            account(after)
        );
        let ratio = end(before)? / end(after)?;
        Ok(Row::new(&id, "x", 1.0, ratio, Rule::AtLeast).swept().place("ablation").note(note))
    })
}

/// The product of what each switch does alone, against what all do together: within a factor of two.
fn explained(found: &Found, alone: &[Point], none: &Point, all: &Point) -> Result<Row, Diagnostic> {
    let before = end(found.get(none)?)?;
    let mut product = 1.0;
    for point in alone {
        product *= before / end(found.get(point)?)?;
    }
    let whole = before / end(found.get(all)?)?;
    let row = Row::new("", "log2", libm::log2(whole), libm::log2(product), Rule::Points(1.0));
    Ok(row
        .swept()
        .place("ablation")
        .note(format!("each alone, multiplied: {product:.3}; together {whole:.3}")))
}
