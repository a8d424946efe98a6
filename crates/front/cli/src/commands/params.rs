//! `nandscape params`.

use crate::output::{Fault, print, wrapped};
use config::Layers;
use config::schema::Param;
use spec::systems::Shipped;
use std::fmt::Write as _;

/// Arguments of `params`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only keys below this one, such as flash.ftl
    prefix: Option<String>,
    /// Also show the values in this system: a shipped name or a TOML file
    #[arg(long)]
    system: Option<String>,
}

/// Prints the keys. The code has no defaults for specs: values are those of a system.
///
/// # Errors
/// An unknown prefix or system.
pub(crate) fn run(args: &Args) -> Result<bool, Fault> {
    let params = config::schema::params(spec::document(), args.prefix.as_deref().unwrap_or_default())?;
    let values = args.system.as_deref().map(|name| Layers::load(name, &Shipped)).transpose()?;
    let values = values.map(|resolved| toml::Value::Table(resolved.table()));
    let mut text = String::new();
    for param in &params {
        let value = values.as_ref().map(|table| value(table, &param.key));
        text.push_str(&shown(param, value.as_deref()));
    }
    print(&wrapped(text.trim_end()))?;
    Ok(true)
}

/// Formats a parameter over a few lines.
pub(crate) fn shown(param: &Param, value: Option<&str>) -> String {
    let mut text = match value {
        Some(value) => format!("{} = {value}\n", param.key),
        None => format!("{}\n", param.key),
    };
    let _ = writeln!(text, "    {}", param.kind_and_default());
    for line in param.doc.lines() {
        let _ = writeln!(text, "    {line}");
    }
    text
}

/// Value of a key as in a file; for a choice with parameters, its name.
fn value(table: &toml::Value, key: &str) -> String {
    let found = key.split('.').try_fold(table, |at, name| at.get(name));
    match found {
        None => "(not set)".to_owned(),
        Some(toml::Value::Table(choice)) => choice.keys().cloned().collect::<Vec<_>>().join(", "),
        Some(value) => value.to_string(),
    }
}
