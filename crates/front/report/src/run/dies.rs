//! Flash section: dies, channels, blocks and counters.

use super::parts::counters;
use crate::figure::{Cell, Figure, Part, Picture, Table, columns, heat};
use crate::number::{Unit, shown};
use crate::page::{Text, lacking};
use crate::read::{at, items, number, numbers, text};
use serde_json::Value;

/// Renders the section; empty without a flash device.
pub(super) fn html(document: &Value) -> String {
    items(document, "flash").iter().map(|drive| of_drive(document, drive)).collect()
}

fn of_drive(document: &Value, drive: &Value) -> String {
    let name = text(drive, "name");
    let mut out = format!("<h3>{}</h3>", Text(name));
    match Dies::of(document, drive) {
        Some(dies) => out.push_str(&dies.figure(name).html()),
        None => out.push_str(&lacking("Dies", "the document has no die utilisation by channel")),
    }
    out.push_str(&erases(drive, name));
    out.push_str(&counters(&format!("Counters of {name}"), drive));
    out
}

/// Utilisation of dies and channels.
pub(super) struct Dies {
    /// Utilisation of dies, by channel.
    pub(super) by_channel: Vec<Vec<f64>>,
    /// Utilisation of channels.
    pub(super) channels: Vec<f64>,
}

impl Dies {
    /// Reads the utilisation of a drive, if the document has it. The channel of each die is in the document, or follows
    /// from the geometry and the order of dies, in which the channel changes fastest.
    pub(super) fn of(document: &Value, drive: &Value) -> Option<Dies> {
        let dies = numbers(drive, "dies.utilisation").or_else(|| numbers(drive, "utilisation.die"))?;
        let channels =
            numbers(drive, "channels.utilisation").or_else(|| numbers(drive, "utilisation.channel"))?;
        let of = match numbers(drive, "dies.channel") {
            Some(of) => of.into_iter().map(|channel| channel as usize).collect::<Vec<_>>(),
            None => {
                let name = text(drive, "name").split('.').next().unwrap_or_default();
                let each = number(document, &format!("spec.{name}.geometry.dies"))?.max(1.0) as usize;
                let ways = number(document, &format!("spec.{name}.geometry.ways"))?.max(1.0) as usize;
                // Dies are counted channel by channel.
                (0..dies.len()).map(|die| die / (each * ways)).collect()
            }
        };
        let count = channels.len();
        if of.len() != dies.len() || of.iter().any(|channel| *channel >= count) || dies.is_empty() {
            return None;
        }
        let mut by_channel = vec![Vec::new(); count];
        of.iter().zip(&dies).for_each(|(channel, die)| by_channel[*channel].push(*die));
        Some(Dies { by_channel, channels })
    }

    fn figure(&self, name: &str) -> Figure {
        let deepest = self.by_channel.iter().map(Vec::len).max().unwrap_or(0);
        let labels = |n: usize| (0..n).map(|n| n.to_string()).collect::<Vec<_>>();
        let mut cells = Vec::new();
        for (channel, dies) in self.by_channel.iter().enumerate() {
            cells.extend(dies.iter().enumerate().map(|(die, value)| (channel, die, *value)));
        }
        let across = labels(self.channels.len());
        let chart = heat(("channel", &across), ("die of the channel", &labels(deepest)), Unit::Share, &cells);
        let head = ["channel".to_owned(), "channel utilisation".to_owned()];
        let head: Vec<String> =
            head.into_iter().chain((0..deepest).map(|die| format!("die {die}"))).collect();
        let mut table = Table::new(format!("Utilisation of {name}"), head.iter().map(String::as_str));
        for (channel, dies) in self.by_channel.iter().enumerate() {
            let row = [Cell::Number(channel.to_string()), Cell::of(self.channels[channel], Unit::Share)];
            table.push(row.into_iter().chain(dies.iter().map(|die| Cell::of(*die, Unit::Share))));
        }
        let all = || self.by_channel.iter().flatten().copied();
        let (least, most) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
        Figure {
            title: format!("Die utilisation of {name}"),
            about: format!(
                "Share of time in which each die was busy, by channel: from {} to {}.",
                shown(least, Unit::Share),
                shown(most, Unit::Share)
            ),
            picture: Picture::Chart { chart, height: (90 + 22 * deepest as u32).clamp(180, 620) },
            table,
        }
    }
}

/// Distribution of erase counts.
fn erases(drive: &Value, name: &str) -> String {
    let title = format!("Erase counts of {name}");
    let (Some(erases), Some(blocks)) =
        (numbers(drive, "erase_count.histogram.erases"), numbers(drive, "erase_count.histogram.blocks"))
    else {
        let figure = |key: &str| number(drive, &format!("erase_count.{key}"));
        let known = match (figure("min"), figure("mean"), figure("max")) {
            (Some(min), Some(mean), Some(max)) => {
                format!("; from {min} to {max} times, {} on average", shown(mean, Unit::Plain))
            }
            _ => String::new(),
        };
        return lacking(&title, &format!("the document has no `flash.*.erase_count.histogram`{known}"));
    };
    if at(drive, "erase_count.max").and_then(Value::as_f64) == Some(0.0) || erases.is_empty() {
        return lacking(&title, "no block was erased");
    }
    let mut table = Table::new(title.clone(), ["times erased", "blocks"]);
    for (erases, blocks) in erases.iter().zip(&blocks) {
        table.push([Cell::of(*erases, Unit::Plain), Cell::of(*blocks, Unit::Plain)]);
    }
    let categories: Vec<String> = erases.iter().map(|erases| shown(*erases, Unit::Plain)).collect();
    let parts = [Part { name: "blocks".into(), values: blocks, hidden: false }];
    Figure {
        title,
        about: "Number of blocks by erase count since new, preconditioning included.".into(),
        picture: Picture::Chart {
            chart: columns("times erased", Unit::Plain, &categories, &parts),
            height: 240,
        },
        table,
    }
    .html()
}
