//! Which part of a run a timeline shows, as it is asked for.

use super::Show;
use config::units::Duration;
use engine::Time;

/// Reads `all`, `slowest`, or `window=1ms..2ms`.
///
/// # Errors
/// It is something else; in words.
pub fn show(text: &str) -> Result<Show, String> {
    match text.split_once('=') {
        None if text == "all" => Ok(Show::All),
        None if text == "slowest" => Ok(Show::Slowest),
        Some(("window", value)) => window(value).map(|(from, to)| Show::Window(from, to)),
        _ => {
            let word = text.split('=').next().unwrap_or_default();
            Err(match config::diag::nearest(word, ["all", "slowest", "window"]) {
                Some("window") if word == "window" => "`window` takes two times".to_owned(),
                Some(near) if near == word => format!("`{word}` takes no value"),
                Some(near) => format!("nothing is called `{word}`; did you mean `{near}`?"),
                None => format!("nothing is called `{word}`"),
            })
        }
    }
}

/// Reads a span of time such as `1ms..2ms`.
///
/// # Errors
/// It is none, in words.
pub fn window(text: &str) -> Result<(Time, Time), String> {
    let time = |text: &str| {
        text.parse::<Duration>()
            .map(|time| time.time())
            .map_err(|_| format!("`{text}` is no time with a unit, as in `1ms`"))
    };
    let (from, to) =
        text.split_once("..").ok_or("`window` takes two times, as in `window=1ms..2ms`".to_owned())?;
    let (from, to) = (time(from)?, time(to)?);
    if from < to {
        Ok((from, to))
    } else {
        Err(format!("the window ends at {to}, which is not after {from}"))
    }
}
