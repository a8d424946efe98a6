//! States on the command line.

use super::Precondition;
use config::{Diagnostic, Layers};
use serde::Deserialize;
use std::fmt::Write;

/// Name of the option.
const OPTION: &str = "--precondition";

/// Reads `NAME` or `NAME:KEY=VALUE,KEY=VALUE`, such as `steady:share=80%,tolerance=1%` or
/// `steady:distribution.zipf.theta=0.9`. Values are TOML, or else text.
///
/// # Errors
/// An unknown name, key or value, with the nearest known one.
pub fn parse(text: &str) -> Result<Precondition, Diagnostic> {
    #[derive(Deserialize)]
    struct Option {
        precondition: Precondition,
    }
    let (name, parameters) = match text.split_once(':') {
        Some((name, parameters)) => (name.trim(), parameters),
        None => (text.trim(), ""),
    };
    let toml = write(name, parameters).map_err(|fault| at(fault, text))?;
    let mut resolved = Layers::from_text(OPTION, &toml, &NoPresets).map_err(|fault| at(fault, text))?;
    resolved.parse::<Option>().map(|option| option.precondition).map_err(|fault| at(fault, text))
}

/// Converts the option to TOML.
fn write(name: &str, parameters: &str) -> Result<String, Diagnostic> {
    let mut toml = String::new();
    if parameters.trim().is_empty() {
        let _ = write!(toml, "precondition = {}", toml::Value::from(name));
        return Ok(toml);
    }
    let _ = writeln!(toml, "[precondition.{}]", toml::Value::from(name));
    for parameter in split(parameters) {
        let Some((key, value)) = parameter.split_once('=') else {
            let what = format!("`{}` is not a parameter", parameter.trim());
            return Err(Diagnostic::new(what).help("a parameter has the form `key=value`"));
        };
        let (key, value) = (key.trim(), value.trim());
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-' || c == '.';
        if key.is_empty() || !key.chars().all(plain) {
            return Err(Diagnostic::new(format!("`{key}` is not a key")));
        }
        let is_toml = format!("x = {value}").parse::<toml::Table>().is_ok_and(|table| table.len() == 1);
        let value = if is_toml { value.to_owned() } else { toml::Value::from(value).to_string() };
        let _ = writeln!(toml, "{key} = {value}");
    }
    Ok(toml)
}

/// Splits at commas outside brackets.
fn split(parameters: &str) -> Vec<&str> {
    let mut depth = 0;
    parameters
        .split(|c| {
            match c {
                '{' | '[' => depth += 1,
                '}' | ']' => depth -= 1,
                _ => {}
            }
            c == ',' && depth == 0
        })
        .collect()
}

/// Places a diagnostic at the option as the user wrote it, not at the TOML made of it.
fn at(mut fault: Diagnostic, text: &str) -> Diagnostic {
    if let Some(place) = &mut fault.place {
        place.source = OPTION.to_owned();
        place.text = text.to_owned();
        (place.line, place.column) = (0, 0);
    }
    fault.also = std::mem::take(&mut fault.also).into_iter().map(|further| at(further, text)).collect();
    fault
}

/// Presets of the option: none.
struct NoPresets;

impl config::Presets for NoPresets {
    fn find(&self, _: &str) -> Option<(String, String)> {
        None
    }
    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Fill, steady, uniform, zipf};
    use super::*;
    use config::units::Share;

    #[test]
    fn names_parameters_and_choices_within_them() {
        assert_eq!(parse("none"), Ok(Precondition::none));
        assert_eq!(parse(" sequential "), Ok(Precondition::sequential(Fill::default())));
        let half = Share::percent(50);
        assert_eq!(parse("analytic:share=50%"), Ok(Precondition::analytic(Fill { share: half })));
        let params = uniform::Params { share: half, invalid: Share::percent(7) };
        assert_eq!(parse("uniform: share = 0.5, invalid = 7%"), Ok(Precondition::uniform(params)));
        let params = zipf::Params { theta: 1.2, writes: 3.0, ..zipf::Params::default() };
        assert_eq!(parse("zipf:theta=1.2,writes=3"), Ok(Precondition::zipf(params)));
        let by = |theta| steady::Params {
            share: Share::percent(80),
            distribution: steady::Distribution::zipf(steady::ZipfParams { theta }),
            ..steady::Params::default()
        };
        for text in [
            "steady:share=80%,distribution.zipf.theta=0.9",
            "steady:distribution={ zipf = { theta = 0.9 } },share=\"80%\"",
        ] {
            assert_eq!(parse(text), Ok(Precondition::steady(by(0.9))), "{text}");
        }
        assert_eq!(parse("steady:distribution=zipf,share=80%"), Ok(Precondition::steady(by(0.99))));
        let params = steady::Params { tolerance: Share::percent(2), ..steady::Params::default() };
        assert_eq!(parse("steady:tolerance=2%"), Ok(Precondition::steady(params)));
    }

    #[test]
    fn what_is_misspelt_has_a_nearest_name() {
        for (text, nearest) in [
            ("stedy", "steady"),
            ("sequencial:share=10%", "sequential"),
            ("steady:shar=10%", "share"),
            ("steady:distribution=zipv", "zipf"),
        ] {
            let fault = parse(text).expect_err(text);
            assert_eq!(fault.nearest.as_deref(), Some(nearest), "{fault}");
            assert!(
                fault.to_string().contains(&format!("--precondition\n      | {text}"))
                    || fault.to_string().contains(text),
                "{fault}"
            );
        }
    }

    #[test]
    fn what_is_no_value_is_refused() {
        for text in [
            "",
            "steady:",
            ":share=1%",
            "steady:share",
            "steady:share=120%",
            "steady:share=80",
            "steady:sh are=1%",
            "steady:=1%",
            "none:share=1%",
            "zipf:theta=high",
            "steady:share=50%\nx=1",
            "steady:share=1%,share=2%",
            "uniform,share=1%",
        ] {
            if text == "steady:" {
                assert!(parse(text).is_ok());
                continue;
            }
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
