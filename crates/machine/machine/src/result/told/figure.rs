//! The figure that says how well a run went.

use super::{list, number};
use serde_json::Value;

/// Which values of a figure are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Smaller ones.
    Less,
    /// Larger ones.
    More,
}

/// The figure of a run that a key is to move.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Figure {
    /// Its name, as `nandscape list metrics` has it.
    pub name: String,
    /// Which values are better.
    pub better: Better,
    /// Its value in the run.
    pub value: f64,
}

/// Figures that say how well a run went, the first that it has: the kernels of what executes them, instructions or jobs, calls of programs, requests.
const FIGURES: [(&str, Better); 6] = [
    ("coprocessor.0.makespan_ns", Better::Less),
    ("accelerator.0.makespan_ns", Better::Less),
    ("gpu.0.ipc", Better::More),
    ("cpu.0.latency_ns.mean", Better::Less),
    ("cpu.0.throughput_per_s", Better::More),
    ("io.all.latency_ns.mean", Better::Less),
];

impl Figure {
    /// The figure of a run; none where it has done nothing.
    pub fn of(document: &Value) -> Option<Figure> {
        // Jobs that come by themselves are as many as come, and in a closed loop each core has one at once.
        let is_closed = document.pointer("/cpu/0/offered_per_s").is_none_or(Value::is_null);
        let applies = |name: &str| match name {
            "cpu.0.latency_ns.mean" => !is_closed,
            "cpu.0.throughput_per_s" => is_closed,
            _ => true,
        };
        let of = |(name, better): (&str, Better)| {
            let value = number(document, &format!("/{}", name.replace('.', "/")))?;
            (value > 0.0).then(|| Figure { name: name.to_owned(), better, value })
        };
        let found = FIGURES.into_iter().filter(|(name, _)| applies(name)).find_map(of);
        found.or_else(|| calls(document))
    }

    /// The same figure of another run.
    pub fn again(&self, document: &Value) -> Option<f64> {
        number(document, &format!("/{}", self.name.replace('.', "/")))
    }

    /// By what share another value is better; negative if it is worse.
    pub fn gain(&self, other: f64) -> f64 {
        match self.better {
            Better::Less => 1.0 - other / self.value,
            Better::More => other / self.value - 1.0,
        }
    }
}

/// The mean latency of those requests of a host's programs that take the longest in all.
fn calls(document: &Value) -> Option<Figure> {
    let mut most: Option<(f64, Figure)> = None;
    for (h, host) in list(document, "/host").enumerate() {
        for (p, program) in list(host, "/programs").enumerate() {
            for (name, of) in program.get("requests").and_then(Value::as_object)? {
                let latency = number(of, "/latency_ns/mean");
                let Some((value, count)) = latency.zip(number(of, "/requests")) else { continue };
                if most.as_ref().is_none_or(|(time, _)| value * count > *time) {
                    let name = format!("host.{h}.programs.{p}.requests.{name}.latency_ns.mean");
                    most = Some((value * count, Figure { name, better: Better::Less, value }));
                }
            }
        }
    }
    most.map(|(_, figure)| figure)
}

#[cfg(test)]
mod tests {
    use super::{Better, Figure};
    use serde_json::json;

    #[test]
    fn a_run_is_told_by_what_it_does() {
        let name = |document| Figure::of(&document).map(|figure| figure.name);
        let io = json!({"all": {"latency_ns": {"mean": 5.0}}});
        assert_eq!(name(json!({"io": io})).as_deref(), Some("io.all.latency_ns.mean"));
        assert_eq!(name(json!({"io": io, "gpu": [{"ipc": 2.0}]})).as_deref(), Some("gpu.0.ipc"));
        let cpu = |offered| json!([{"throughput_per_s": 9.0, "offered_per_s": offered, "latency_ns": {"mean": 3.0}}]);
        assert_eq!(name(json!({"cpu": cpu(json!(null))})).as_deref(), Some("cpu.0.throughput_per_s"));
        assert_eq!(name(json!({"cpu": cpu(json!(8.0))})).as_deref(), Some("cpu.0.latency_ns.mean"));
        let requests = json!({"short": {"latency_ns": {"mean": 9.0}, "requests": 1}, "long": {"latency_ns": {"mean": 3.0}, "requests": 4}});
        let host = json!([{"programs": [{"requests": requests}]}]);
        let found = name(json!({"host": host}));
        assert_eq!(found.as_deref(), Some("host.0.programs.0.requests.long.latency_ns.mean"));
        assert_eq!(name(json!({"io": {"all": {"latency_ns": {"mean": null}}}})), None);
    }

    #[test]
    fn a_gain_is_less_time_or_more_work() {
        let figure = |better| Figure { name: String::new(), better, value: 4.0 };
        assert_eq!((figure(Better::Less).gain(3.0), figure(Better::More).gain(5.0)), (0.25, 0.25));
        assert!(figure(Better::Less).gain(5.0) < 0.0);
    }
}
