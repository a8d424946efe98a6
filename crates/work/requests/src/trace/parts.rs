//! The files of a trace: one, `-` for standard input, or several that are its parts: `A+B`, or `@LIST`, a text file with the name of a part on each line.

use std::path::{Path, PathBuf};

use config::{Diagnostic, Place};

use crate::trace::scan::cannot_read;

/// Standard input as a file.
const STDIN: &str = "/dev/stdin";

/// The files of a trace in their order: one if the name is that of a file or says nothing else.
///
/// A file of the whole name goes before parts. Names in a list are relative to its folder.
///
/// # Errors
/// A part that is not there while others are, a list that cannot be read or is empty.
pub fn parts(name: &Path) -> Result<Vec<PathBuf>, Diagnostic> {
    let whole = || Ok(vec![name.to_owned()]);
    if name == Path::new("-") {
        return Ok(vec![PathBuf::from(STDIN)]);
    }
    let Some(text) = name.to_str().filter(|_| !name.exists()) else { return whole() };
    if let Some(list) = text.strip_prefix('@') {
        return listed(Path::new(list));
    }
    let pieces: Vec<&str> = text.split('+').collect();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < pieces.len() {
        // A name may have a `+` of its own: the shortest that is there.
        let ends = at + 1..=pieces.len();
        let there = |end: &usize| Path::new(&pieces[at..*end].join("+")).exists();
        let end = ends.into_iter().find(there);
        found.push((PathBuf::from(pieces[at..end.unwrap_or(at + 1)].join("+")), end.is_some()));
        at = end.unwrap_or(at + 1);
    }
    match found.iter().find(|(_, there)| !there) {
        None => Ok(found.into_iter().map(|(part, _)| part).collect()),
        Some(_) if found.iter().all(|(_, there)| !there) => whole(),
        Some((missing, _)) => {
            let what = format!("the part {} of the trace is not there", missing.display());
            Err(Diagnostic::new(what)
                .help("`A+B` reads A, then B, as one trace; `@LIST` takes the names from a file"))
        }
    }
}

fn listed(list: &Path) -> Result<Vec<PathBuf>, Diagnostic> {
    let source = list.display().to_string();
    let text = std::fs::read_to_string(list).map_err(|error| cannot_read(&source, &error))?;
    let folder = list.parent().unwrap_or(Path::new(""));
    let names = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let parts: Vec<PathBuf> = names.map(|name| folder.join(name)).collect();
    if parts.is_empty() {
        return Err(Diagnostic::new("the list names no part of a trace")
            .at(Place { source, ..Place::default() })
            .help("a list has the name of a file on each line, relative to its own folder"));
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_by_what_is_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        for name in ["a", "b", "c+d", "e+f", "e"] {
            std::fs::write(at(name), "").expect("a file");
        }
        std::fs::write(at("list"), "# parts\na\n\n b \n").expect("a file");
        let of = |text: &str| {
            let parts = parts(&at(text)).expect("parts");
            parts.iter().map(|part| part.display().to_string()).collect::<Vec<_>>()
        };
        let name = |name: &str| at(name).display().to_string();
        assert_eq!(of("a"), [name("a")]);
        assert_eq!(of("c+d"), [name("c+d")]);
        assert_eq!(of(&format!("a+{}", name("b"))), [name("a"), name("b")]);
        assert_eq!(of(&format!("c+d+{}+{}", name("e"), name("a"))), [name("c+d"), name("e"), name("a")]);
        // A file of the whole name goes first.
        assert_eq!(of("e+f"), [name("e+f")]);
        assert_eq!(of("none+nothing"), [name("none+nothing")]);
        let missing = parts(&at("a+nothing")).expect_err("a part is missing").to_string();
        assert!(missing.contains("the part nothing"), "{missing}");
        assert_eq!(parts(Path::new("-")).expect("parts"), [PathBuf::from("/dev/stdin")]);
        let list = PathBuf::from(format!("@{}", name("list")));
        assert_eq!(parts(&list).expect("parts"), [at("a"), at("b")]);
        assert!(parts(Path::new("@nowhere/list")).is_err());
    }
}
