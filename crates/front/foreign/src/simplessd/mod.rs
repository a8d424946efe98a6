//! SimpleSSD (Jung et al., IEEE CAL 2018; Gouk et al., MICRO 2018): its configuration as a system, as far as flash, translation, buffer and link go.

mod drive;
mod settings;
mod tree;

use crate::notes::Imported;
use crate::values::{Values, unless};
use config::{Diagnostic, Place};

/// Says a configuration here: sections and keys (branch 2.0), or XML (branch 2.1).
///
/// # Errors
/// A file that is not SimpleSSD's, a setting that is none, a value that a setting cannot have.
pub fn import(name: &str, text: &str) -> Result<Imported, Diagnostic> {
    let mut values = Values::new(&[settings::ALL]);
    let mut remarks = Vec::new();
    if text.trim_start_matches('\u{feff}').trim_start().starts_with('<') {
        tree::read(name, text, &mut values, &mut remarks)?;
    } else {
        read(name, text, &mut values)?;
    }
    let keys = drive::keys(&values, &mut remarks);
    let mut system = Imported {
        tool: "SimpleSSD",
        file: name.to_owned(),
        inherits: "d16",
        description: format!("The drive of SimpleSSD's {name}"),
        keys,
        told: Vec::new(),
        remarks,
        usage: Vec::new(),
        defaulted: Vec::new(),
        places: Vec::new(),
    };
    system.tell(&values);
    Ok(system)
}

/// The sections that there are.
const SECTIONS: [&str; 8] = ["cpu", "nvme", "ufs", "sata", "pal", "ftl", "icl", "dram"];
/// Sections of the file of SimpleSSD-Standalone, which names this one.
const STANDALONE: [&str; 3] = ["global", "generator", "trace"];

fn read(name: &str, text: &str, values: &mut Values) -> Result<(), Diagnostic> {
    let mut section: Option<&str> = None;
    let mut faults = Vec::new();
    for (number, raw) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
        let line = raw.split(['#', ';']).next().unwrap_or_default().trim();
        let place = Place { source: name.to_owned(), line: number, text: raw.to_owned(), ..Place::default() };
        if line.is_empty() {
            continue;
        }
        if let Some(title) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let found = SECTIONS.iter().find(|known| **known == title);
            if found.is_none() {
                faults.push(no_section(title, place));
            }
            section = found.copied();
            continue;
        }
        let Some((key, value)) = line.split_once('=') else {
            let help = "a line is a [section], `Name = value`, or a comment behind # or ;";
            return Err(Diagnostic::new(format!(
                "{name} is no configuration of SimpleSSD: `{line}` is nothing of it"
            ))
            .at(place)
            .help(help));
        };
        // An empty value leaves the default, but for what a superblock spans.
        let (key, value) = (key.trim(), value.trim());
        match section {
            Some(section) if !value.is_empty() => {
                if let Err(fault) = values.take("SimpleSSD", &full_name(section, key), value, &place) {
                    faults.push(fault);
                }
            }
            // Those of a section that was refused are not refused again.
            _ => {}
        }
    }
    if section.is_none() && faults.is_empty() {
        let help = format!("it has sections: {}", SECTIONS.map(|one| format!("[{one}]")).join(" "));
        return Err(Diagnostic::new(format!(
            "{name} is no configuration of SimpleSSD: it has none of its sections"
        ))
        .help(help));
    }
    unless((), faults)
}

/// The name of a setting with its section; images of disks are counted through by namespaces.
fn full_name(section: &str, key: &str) -> String {
    let image = "DiskImageFile";
    let counted = key.strip_prefix(image).is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
    format!("{section}.{}", if counted { image } else { key })
}

fn no_section(title: &str, place: Place) -> Diagnostic {
    let fault = Diagnostic::new(format!("[{title}] is no section of SimpleSSD's drive"))
        .at(place)
        .allowed(title, SECTIONS);
    if STANDALONE.contains(&title) {
        return fault.help("this is the file of SimpleSSD-Standalone: its workload is said in fio's words here (fio:rw=randread,...), and the drive's own file is imported");
    }
    fault
}

#[cfg(test)]
mod tests;
