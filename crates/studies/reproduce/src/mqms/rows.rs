//! Which runs each figure needs, and what it is worked out from.

use super::super::expected::Figure;
use super::super::mean::{Metric, Values};
use super::super::row::Row;
use super::super::study::{Entry, Found, Point};
use super::{MapOf, Suite, alloc, end, iops, policy, response};
use config::Diagnostic;

/// A figure's entry; none if the effort leaves it out.
pub(super) fn entry(figure: &Figure, suite: &Suite) -> Option<Entry> {
    let id = figure.id.strip_prefix("mqms.")?;
    if let Some(id) = id.strip_prefix("policy.") {
        return policy::entry(figure, suite, id, suite.policy_map).map(Entry::seen);
    }
    Some(match id {
        // The place of data that are read was decided when these had been seen (`papers/mqms/README.md`).
        "iops.bert_vs_baseline" => iops_order(figure, suite).seen(),
        "end_time.worst_case_orders" => orders(figure, suite, end, Values::max).seen(),
        "response.orders" => orders(figure, suite, response, Values::min).seen(),
        _ => return alloc::entry(figure, suite, id),
    })
}

/// The figures under the other placement of data, and section 4's under a map of sectors as well: sweeps, which stand beside the rows.
pub(super) fn beside(figures: &[Figure], suite: &Suite) -> Vec<Entry> {
    let Some(strewn) = suite.strewn() else { return Vec::new() };
    let of = |figure: &Figure| {
        let id = figure.id.strip_prefix("mqms.").unwrap_or_default();
        let named = |under: &str, entry: Option<Entry>| {
            Some(entry?.changed(format!("mqms.{under}.{id}"), Row::swept))
        };
        if let Some(cell) = id.strip_prefix("policy.") {
            let with = |suite: &Suite| policy::entry(figure, suite, cell, MapOf::Sectors);
            return [named("sectors", with(suite)), named("strewn", with(&strewn))];
        }
        let reads = matches!(id, "iops.bert_vs_baseline" | "end_time.worst_case_orders" | "response.orders");
        [named("strewn", reads.then(|| entry(figure, &strewn)).flatten()), None]
    };
    figures.iter().flat_map(of).flatten().collect()
}

/// Both systems on every network.
fn both(suite: &Suite) -> (Vec<Point>, Vec<Point>) {
    let on = |system: &str| suite.networks.iter().map(|(_, w)| suite.point(system, w)).collect::<Vec<_>>();
    (on("mqsim-macsim"), on("mqms"))
}

/// IOPS of MQMS over the baseline's, network by network.
fn iops_order(figure: &Figure, suite: &Suite) -> Entry {
    let (under, over) = both(suite);
    let names: Vec<&'static str> = suite.networks.iter().map(|(name, _)| *name).collect();
    let (id, figure) = (figure.id.clone(), figure.clone());
    Entry::new(id, [over.clone(), under.clone()].concat(), move |found| {
        let ratio = |(name, (over, under)): (&&'static str, (&Point, &Point))| {
            Ok((*name, iops(found.get(over)?)? / iops(found.get(under)?)?))
        };
        let ratios =
            names.iter().zip(over.iter().zip(&under)).map(ratio).collect::<Result<Vec<_>, Diagnostic>>()?;
        let most = ratios.iter().map(|(_, ratio)| *ratio).fold(0.0, f64::max);
        // An order more on BERT is a factor of ten.
        let by_ten: Vec<(&str, f64)> = ratios
            .iter()
            .map(|(name, ratio)| (*name, if *name == "bert" { ratio / 10.0 } else { *ratio }))
            .collect();
        Ok(figure
            .order(&by_ten, format!("IOPS over the baseline's, BERT's divided by ten; largest {most:.3}")))
    })
}

/// Decades between the baseline and MQMS.
fn orders(figure: &Figure, suite: &Suite, metric: Metric, extreme: fn(&Values) -> f64) -> Entry {
    let (over, under) = both(suite);
    let (id, figure) = (figure.id.clone(), figure.clone());
    Entry::new(id, [over.clone(), under.clone()].concat(), move |found: &Found| {
        let values = Values::ratios(found, &over, &under, metric)?;
        figure.row(libm::log10(extreme(&values)), format!("baseline over MQMS: {}", values.note()))
    })
}
