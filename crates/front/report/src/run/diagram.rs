//! Drawing of a machine: components as boxes in columns, wires between them.

use super::dies::Dies;
use super::machine::{Load, Part, Wire, loads, traffic};
use crate::number::{Unit, shown};
use crate::page::Text;
use crate::read::{items, text};
use serde_json::Value;
use std::fmt::Write as _;

const WIDTH: usize = 168;
const HEAD: usize = 48;
const LOAD: usize = 18;
const BETWEEN: usize = 110;
const GAP: usize = 22;
/// Maximum number of dies per channel, and of channels, that are drawn one by one.
const MOST_DIES: usize = 32;
const MOST_CHANNELS: usize = 32;
/// Maximum number of components of one table that are drawn one by one.
const MOST_ALIKE: usize = 4;

/// Box of the drawing.
struct Node<'p, 'v> {
    part: &'p Part<'v>,
    /// Number of components that it represents.
    count: usize,
    loads: Vec<Load>,
    dies: Option<Dies>,
    column: usize,
    top: usize,
}

impl Node<'_, '_> {
    fn height(&self) -> usize {
        HEAD + LOAD * self.loads.len() + self.dies.as_ref().map_or(0, |dies| 12 * dies.channels.len() + 10)
    }

    fn left(&self) -> usize {
        self.column * (WIDTH + BETWEEN) + 1
    }
}

/// Table that a component is declared in.
fn table(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(table, _)| table)
}

/// Renders the drawing.
pub(super) fn svg(document: &Value, parts: &[Part<'_>], wires: &[Wire]) -> String {
    let alike = |name: &str| parts.iter().filter(|part| table(&part.name) == table(name)).count();
    let mut nodes: Vec<Node<'_, '_>> = Vec::new();
    for part in parts {
        let count = alike(&part.name);
        let is_first = !nodes.iter().any(|node| table(&node.part.name) == table(&part.name));
        if count > MOST_ALIKE && !is_first {
            continue;
        }
        let drive = items(document, "flash").iter().find(|drive| text(drive, "name") == part.name);
        let dies = drive.filter(|_| part.kind == "flash").and_then(|drive| Dies::of(document, drive));
        let fits = |dies: &Dies| {
            dies.channels.len() <= MOST_CHANNELS && dies.by_channel.iter().all(|dies| dies.len() <= MOST_DIES)
        };
        let count = if count > MOST_ALIKE { count } else { 1 };
        let column = depth(&part.name, wires, parts.len());
        nodes.push(Node {
            part,
            count,
            loads: loads(document, part),
            dies: dies.filter(fits),
            column,
            top: 0,
        });
    }
    nodes.sort_by_key(|node| node.column);
    let columns = nodes.iter().map(|node| node.column + 1).max().unwrap_or(1);
    let height_of = |nodes: &[Node<'_, '_>], column: usize| {
        nodes.iter().filter(|node| node.column == column).map(|node| node.height() + GAP).sum::<usize>()
    };
    let height = (0..columns).map(|column| height_of(&nodes, column)).max().unwrap_or(0);
    for column in 0..columns {
        let mut top = (height - height_of(&nodes, column)) / 2 + GAP / 2;
        for node in nodes.iter_mut().filter(|node| node.column == column) {
            node.top = top;
            top += node.height() + GAP;
        }
    }
    let width = columns * WIDTH + (columns - 1) * BETWEEN + 2;
    let mut out = format!(
        "<svg class=\"machine\" role=\"img\" aria-label=\"Components of the machine and their wires; the table below has the same data.\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\">"
    );
    wires.iter().for_each(|wire| draw_wire(&mut out, document, &nodes, wire));
    nodes.iter().for_each(|node| draw(&mut out, node));
    out.push_str("</svg>");
    out
}

/// Number of wires between a component and one without requesters.
fn depth(name: &str, wires: &[Wire], left: usize) -> usize {
    let askers = wires.iter().filter(|wire| wire.to == name && left > 0);
    askers.map(|wire| 1 + depth(&wire.from, wires, left - 1)).max().unwrap_or(0)
}

fn draw(out: &mut String, node: &Node<'_, '_>) {
    let (x, y) = (node.left(), node.top);
    let name = if node.count > 1 {
        format!("{} × {}", table(&node.part.name), node.count)
    } else {
        node.part.name.clone()
    };
    let _ = write!(
        out,
        "<g><rect class=\"part {kind}\" x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{}\" rx=\"6\"/>\
         <text class=\"name\" x=\"{tx}\" y=\"{}\">{}</text><text class=\"kind\" x=\"{tx}\" y=\"{}\">{kind}</text>",
        node.height(),
        y + 19,
        Text(&clipped(&name)),
        y + 35,
        kind = node.part.kind,
        tx = x + 10,
    );
    for (at, load) in node.loads.iter().enumerate() {
        let top = y + HEAD + LOAD * at;
        let full = WIDTH - 20;
        let _ = write!(
            out,
            "<rect class=\"empty\" x=\"{tx}\" y=\"{}\" width=\"{full}\" height=\"4\"/><rect class=\"full\" x=\"{tx}\" y=\"{0}\" width=\"{:.1}\" height=\"4\"/>\
             <text class=\"load\" x=\"{tx}\" y=\"{}\">{} {}</text>",
            top + 6,
            full as f64 * load.share.clamp(0.0, 1.0),
            top + 4,
            load.name,
            Text(&shown(load.share, Unit::Share)),
            tx = x + 10,
        );
    }
    if let Some(dies) = &node.dies {
        draw_dies(out, dies, x + 10, y + HEAD + LOAD * node.loads.len() + 6);
    }
    out.push_str("</g>");
}

/// Draws channels as lines with their dies.
fn draw_dies(out: &mut String, dies: &Dies, x: usize, y: usize) {
    let room = WIDTH - 20;
    let deepest = dies.by_channel.iter().map(Vec::len).max().unwrap_or(1).max(1);
    let step = (room - 14) as f64 / deepest as f64;
    for (channel, of) in dies.by_channel.iter().enumerate() {
        let top = y + 12 * channel;
        let busy = dies.channels[channel];
        let _ = write!(
            out,
            "<line class=\"channel\" x1=\"{x}\" y1=\"{0}\" x2=\"{1}\" y2=\"{0}\" stroke-width=\"{2:.1}\"><title>channel {channel}: {3}</title></line>",
            top + 5,
            x + room,
            1.0 + 5.0 * busy.clamp(0.0, 1.0),
            Text(&shown(busy, Unit::Share)),
        );
        for (die, busy) in of.iter().enumerate() {
            let _ = write!(
                out,
                "<rect class=\"under\" x=\"{left:.1}\" y=\"{top}\" width=\"{wide:.1}\" height=\"10\"/>\
                 <rect class=\"die\" x=\"{left:.1}\" y=\"{top}\" width=\"{wide:.1}\" height=\"10\" fill-opacity=\"{:.2}\"><title>channel {channel}, die {die}: {}</title></rect>",
                busy.clamp(0.0, 1.0),
                Text(&shown(*busy, Unit::Share)),
                left = (x + 12) as f64 + step * die as f64,
                wide = (step - 2.0).max(1.0),
            );
        }
    }
}

fn draw_wire(out: &mut String, document: &Value, nodes: &[Node<'_, '_>], wire: &Wire) {
    let node = |name: &str| {
        let own = nodes.iter().find(|node| node.part.name == name);
        own.or_else(|| nodes.iter().find(|node| node.count > 1 && table(&node.part.name) == table(name)))
    };
    let (Some(from), Some(to)) = (node(&wire.from), node(&wire.to)) else { return };
    // Components drawn as one box share one wire.
    if (from.count > 1 && from.part.name != wire.from) || (to.count > 1 && to.part.name != wire.to) {
        return;
    }
    let (x1, y1) = (from.left() + WIDTH, from.top + from.height() / 2);
    let (x2, y2) = (to.left(), to.top + to.height() / 2);
    let bend = BETWEEN / 2;
    let label = traffic(document, wire);
    let _ = write!(
        out,
        "<path class=\"wire\" d=\"M{x1},{y1} C{},{y1} {},{y2} {x2},{y2}\"><title>{} asks {} ({}){}</title></path>",
        x1 + bend,
        x2.saturating_sub(bend),
        Text(&wire.from),
        Text(&wire.to),
        Text(&wire.key),
        Text(&label.as_ref().map(|label| format!(": {label}")).unwrap_or_default()),
    );
    if let Some(label) = label {
        let x = x2.saturating_sub(BETWEEN / 2);
        let y = (y1 + 3 * y2) / 4;
        let _ = write!(
            out,
            "<text class=\"carries\" x=\"{x}\" y=\"{}\">{}</text>",
            y.saturating_sub(5),
            Text(&label)
        );
    }
}

/// Clips a name to fit a box.
fn clipped(name: &str) -> String {
    const FITS: usize = 20;
    if name.chars().count() <= FITS {
        name.to_owned()
    } else {
        name.chars().take(FITS - 1).chain(['…']).collect()
    }
}
