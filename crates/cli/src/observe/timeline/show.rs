//! Which part of a run a timeline shows, as it is asked for.

use super::Show;
use crate::output::Fault;
use crate::trace_args::{at, window};
use config::Diagnostic;

/// What `--timeline-show` asks for.
///
/// # Errors
/// Anything but `all`, `slowest` and a window.
pub(crate) fn show(text: &str) -> Result<Show, Fault> {
    let fault = |what: String| {
        let help = "`all`, `window=1ms..2ms`, or `slowest`: what was going on around the slowest request";
        Fault::Input(at("--timeline-show", text, Diagnostic::new(what).help(help)))
    };
    match text.split_once('=') {
        None if text == "all" => Ok(Show::All),
        None if text == "slowest" => Ok(Show::Slowest),
        Some(("window", value)) => window(value).map(|(from, to)| Show::Window(from, to)).map_err(fault),
        _ => {
            let word = text.split('=').next().unwrap_or_default();
            Err(fault(match config::diag::nearest(word, ["all", "slowest", "window"]) {
                Some("window") if word == "window" => "`window` takes two times".to_owned(),
                Some(near) if near == word => format!("`{word}` takes no value"),
                Some(near) => format!("nothing is called `{word}`; did you mean `{near}`?"),
                None => format!("nothing is called `{word}`"),
            }))
        }
    }
}
