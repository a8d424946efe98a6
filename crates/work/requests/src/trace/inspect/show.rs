//! An inspection as text.

use std::fmt;

use crate::trace::human::{bytes, count, percent, rate, span};
use crate::trace::inspect::Inspection;

impl fmt::Display for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let packed =
            if self.compression == "plain" { String::new() } else { format!(", {}", self.compression) };
        writeln!(f, "{}: {}{packed}", self.source, self.format)?;
        self.rows(f)?;
        for (kind, lines) in &self.errors {
            let text = format!("{} lines, first on line {}", count(lines.count), lines.first_line);
            row(f, "bad lines", &format!("{}: {text}", kind.name()))?;
        }
        for reason in &self.bad_lines {
            row(f, "", reason)?;
        }
        for warning in &self.warnings {
            writeln!(f, "  warning: {warning}")?;
        }
        Ok(())
    }
}

impl Inspection {
    fn rows(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let span_ps = (self.span_s * 1e12) as u128;
        let mean = self.rate_per_s.map_or_else(|| "all at one instant".to_owned(), rate);
        row(f, "requests", &format!("{} in {} lines", count(self.requests), count(self.lines)))?;
        row(
            f,
            "span",
            &format!(
                "{}, {mean} on average, {} in the busiest second",
                span(span_ps),
                count(self.peak_per_s)
            ),
        )?;
        if let Some(activity) = &self.activity {
            let interval = span((activity.interval_s * 1e12) as u128);
            let busy = rate(activity.busy_rate_per_s);
            let idle = percent(activity.idle_share);
            let intervals = count(activity.requests.len() as u64);
            row(
                f,
                "busy",
                &format!("{busy} while busy; idle {idle} of {intervals} intervals of {interval}"),
            )?;
            row(f, "over time", &activity.bars(64))?;
        }
        for (name, recorded) in [("reads", &self.recorded_read_ns), ("writes", &self.recorded_write_ns)] {
            let Some(times) = recorded else { continue };
            let of = |ns: Option<f64>| ns.map_or_else(|| "-".to_owned(), |ns| span((ns * 1e3) as u128));
            let text = format!(
                "{name} took {} on average, median {}, p99 {}, at most {}",
                of(times.mean),
                of(times.p50),
                of(times.p99),
                of(times.max)
            );
            row(f, "recorded", &text)?;
        }
        let share = |n: u64| percent(n as f64 / self.requests as f64);
        let mut kinds = Vec::new();
        for (name, n, moved) in [
            ("read", self.reads, self.read_bytes),
            ("write", self.writes, self.write_bytes),
            ("trim", self.trims, self.trim_bytes),
        ] {
            if n > 0 {
                kinds.push(format!("{name} {} ({})", share(n), bytes(moved)));
            }
        }
        if self.flushes > 0 {
            kinds.push(format!("flush {}", share(self.flushes)));
        }
        if self.fua > 0 {
            kinds.push(format!("FUA {}", share(self.fua)));
        }
        row(f, "kinds", &kinds.join(", "))?;
        let exact = if self.footprint_exact { "" } else { "about " };
        let addressed = self.address_end - self.address_min;
        row(
            f,
            "footprint",
            &format!("{exact}{} of 4 KiB pages, over {}", bytes(self.footprint_bytes), bytes(addressed)),
        )?;
        let sizes = &self.sizes;
        row(
            f,
            "sizes",
            &format!(
                "min {}, median {}, mean {}, max {}",
                bytes(sizes.min),
                bytes(sizes.median),
                bytes(sizes.mean.round() as u64),
                bytes(sizes.max)
            ),
        )?;
        let top: Vec<String> =
            sizes.top.iter().map(|(size, share)| format!("{} {}", bytes(*size), percent(*share))).collect();
        row(f, "", &top.join(", "))?;
        row(f, "sequential", &percent(self.sequential_share))?;
        let named: Vec<String> =
            self.streams.iter().take(5).map(|s| format!("{} {}", s.name, share(s.requests))).collect();
        let more = if self.stream_count > 5 { ", …" } else { "" };
        row(f, "streams", &format!("{}: {}{more}", count(self.stream_count), named.join(", ")))?;
        if self.unsorted > 0 {
            let late = span((self.lateness_s * 1e12) as u128);
            let text = format!(
                "{} requests, by up to {late}; sort window {}",
                count(self.unsorted),
                count(self.sort_window_needed)
            );
            row(f, "unsorted", &text)?;
        }
        Ok(())
    }
}

fn row(f: &mut fmt::Formatter<'_>, name: &str, text: &str) -> fmt::Result {
    writeln!(f, "  {name:<11} {text}")
}
