//! Refuses overlap of the files that a command reads and writes: a file that is both, or two outputs that are one,
//! would be lost.
//!
//! Files are compared by identity, not by spelling: a relative path, a symbolic link and a hard link may be the same
//! file.

use super::Fault;
use config::Diagnostic;
use std::path::{Component, Path, PathBuf};

/// Extensions of text files that may name further files; all others are data.
const TEXTS: [&str; 7] = ["toml", "fio", "ini", "job", "xml", "txt", "lst"];
/// Bytes of a text that are searched.
const MOST_BYTES: u64 = 1 << 20;
/// Maximum nesting of texts that name texts.
const DEPTH: u32 = 4;

/// Identity of the file at a path.
#[derive(Debug, PartialEq, Eq)]
enum Identity {
    /// Existing file: its device and inode, or its canonical path where files have none.
    File(String),
    /// File to be created: its path below the nearest canonical folder.
    Absent(PathBuf),
}

/// Identity of the file at a path; `None` for a pipe or a device such as `/dev/null`, where writing loses nothing.
fn identity(path: &Path) -> Option<Identity> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() => Some(Identity::File(number(path, &found)?)),
        Ok(_) => None,
        Err(_) => absent(path).map(Identity::Absent),
    }
}

#[cfg(unix)]
fn number(_: &Path, found: &std::fs::Metadata) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    Some(format!("{}:{}", found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn number(path: &Path, _: &std::fs::Metadata) -> Option<String> {
    Some(std::fs::canonicalize(path).ok()?.display().to_string())
}

/// Path below the nearest existing folder. A dangling link is the file that it would create.
fn absent(path: &Path) -> Option<PathBuf> {
    let path = match std::fs::read_link(path) {
        Ok(target) => path.parent().unwrap_or(Path::new("")).join(target),
        Err(_) => path.to_owned(),
    };
    let path = std::path::absolute(path).ok()?;
    let there = path.ancestors().find_map(|above| Some((above, std::fs::canonicalize(above).ok()?)));
    let (above, mut whole) = there?;
    for part in path.strip_prefix(above).ok()?.components() {
        match part {
            Component::ParentDir => drop(whole.pop()),
            Component::CurDir => {}
            part => whole.push(part),
        }
    }
    Some(whole)
}

/// Files of a command, each with the argument that names it.
#[derive(Default)]
pub(crate) struct Files {
    read: Vec<(String, PathBuf)>,
    written: Vec<(String, PathBuf)>,
}

impl Files {
    /// Adds a file that is read.
    pub(crate) fn reads(mut self, by: &str, path: &Path) -> Files {
        self.read.push((by.to_owned(), path.to_owned()));
        self
    }

    /// Adds files that an argument names, whole or in part (`A+B`, `@LIST`, `tatp:popularity=FILE`), and files named in
    /// those.
    pub(crate) fn reads_named(mut self, by: &str, argument: &str) -> Files {
        self.find(by, argument, Path::new(""), DEPTH);
        self
    }

    /// Adds a file that is written, if given.
    pub(crate) fn writes(mut self, by: &str, path: Option<&Path>) -> Files {
        self.written.extend(path.map(|path| (by.to_owned(), path.to_owned())));
        self
    }

    /// Adds files that are written into a folder, if given.
    pub(crate) fn writes_in(mut self, by: &str, folder: Option<&Path>, names: &[&str]) -> Files {
        let of = |folder: &Path| names.iter().map(|name| (by.to_owned(), folder.join(name))).collect();
        self.written.extend(folder.map_or_else(Vec::new, of));
        self
    }

    fn find(&mut self, by: &str, text: &str, folder: &Path, depth: u32) {
        let mut words = vec![text];
        words.extend(text.split(|c: char| c.is_whitespace() || "\"'=,+:@<>[]{}();".contains(c)));
        words.retain(|word| word.contains(|c: char| c.is_alphabetic() || c == '/'));
        for word in words {
            let paths = [folder.join(word), PathBuf::from(word)];
            let Some(path) = paths.into_iter().find(|path| path.is_file()) else { continue };
            if self.read.iter().any(|(_, known)| *known == path) {
                continue;
            }
            self.read.push((by.to_owned(), path.clone()));
            self.find_in(by, &path, depth, text.starts_with('@'));
        }
    }

    /// Adds files that a file names.
    fn find_in(&mut self, by: &str, path: &Path, depth: u32, is_list: bool) {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let is_text = is_list || TEXTS.iter().any(|known| known.eq_ignore_ascii_case(ending));
        let is_small = std::fs::metadata(path).is_ok_and(|found| found.len() <= MOST_BYTES);
        if depth == 0 || !is_text || !is_small {
            return;
        }
        let Ok(text) = std::fs::read_to_string(path) else { return };
        let folder = path.parent().unwrap_or(Path::new(""));
        for line in text.lines().filter(|line| !line.trim_start().starts_with(['#', ';'])) {
            self.find(by, line.split(" #").next().unwrap_or_default(), folder, depth - 1);
        }
    }

    /// Refuses files that are both read and written, and two outputs that are the same file.
    ///
    /// # Errors
    /// Such files exist.
    pub(crate) fn apart(&self) -> Result<(), Fault> {
        let of = |files: &[(String, PathBuf)]| -> Vec<Option<Identity>> {
            files.iter().map(|(_, path)| identity(path)).collect()
        };
        let (read, written) = (of(&self.read), of(&self.written));
        for (at, (by, path)) in self.written.iter().enumerate() {
            let Some(own) = &written[at] else { continue };
            let is_same = |other: &Option<Identity>| other.as_ref() == Some(own);
            if let Some(found) = read.iter().position(is_same) {
                let (option, input) = &self.read[found];
                let what = format!(
                    "{by} would replace `{}`, which is read: `{}` of {option}",
                    path.display(),
                    input.display()
                );
                return Err(Diagnostic::new(what).help("write to another file").into());
            }
            if let Some(found) = written[..at].iter().position(is_same) {
                let (option, other) = &self.written[found];
                let what = format!(
                    "{by} and {option} would write the same file: `{}` and `{}`",
                    path.display(),
                    other.display()
                );
                return Err(Diagnostic::new(what).help("give each a file of its own").into());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(files: Files) -> String {
        files.apart().err().map(|fault| fault.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_file_is_the_same_however_it_is_spelled() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("a"), "1").unwrap();
        std::fs::write(at("b"), "1").unwrap();
        std::fs::create_dir(at("in")).unwrap();
        std::fs::hard_link(at("a"), at("hard")).unwrap();
        let mut same = vec![at("a"), at("./a"), at("in/../a"), at("hard")];
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(at("a"), at("soft")).unwrap();
            std::os::unix::fs::symlink(folder.path(), at("in/up")).unwrap();
            same.extend([at("soft"), at("in/up/a")]);
        }
        for path in same {
            let told = refused(Files::default().reads("FILE", &at("a")).writes("-o", Some(&path)));
            assert!(told.contains("-o would replace") && told.contains("of FILE"), "{told}");
        }
        for path in [at("b"), at("c"), PathBuf::from("/dev/null")] {
            assert_eq!(refused(Files::default().reads("FILE", &at("a")).writes("-o", Some(&path))), "");
        }
    }

    #[test]
    fn two_files_that_are_not_there_yet_may_be_one() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let both = |a: &str, b: &str| {
            let files = Files::default().writes("--log", Some(&at(a)));
            refused(files.writes_in("--out", Some(&at(b)), &["spec.toml", "result.json"]))
        };
        assert!(both("o/result.json", "o").contains("--out and --log would write the same file"));
        assert!(both("o/../p/./spec.toml", "p").contains("same file"));
        assert_eq!(both("o/log", "o"), "");
        let null = Path::new("/dev/null");
        assert_eq!(refused(Files::default().writes("--log", Some(null)).writes("-o", Some(null))), "");
    }

    #[test]
    fn texts_name_what_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (name, text) in [
            ("t.trace", "1 2"),
            ("u.trace", "1 2"),
            ("base.toml", ""),
            (
                "spec.toml",
                "inherits = \"base.toml\"\n# t.trace\n[flash]\nprecondition.trace.file = \"u.trace\"",
            ),
            ("list", "t.trace\nu.trace\n"),
        ] {
            std::fs::write(at(name), text).unwrap();
        }
        let reads = |argument: &str, name: &str| {
            !refused(Files::default().reads_named("X", argument).writes("-o", Some(&at(name)))).is_empty()
        };
        let spec = at("spec.toml").display().to_string();
        assert!(reads(&spec, "spec.toml") && reads(&spec, "base.toml") && reads(&spec, "u.trace"));
        assert!(!reads(&spec, "t.trace"), "a comment names nothing");
        let both = format!("{}+{}", at("t.trace").display(), at("u.trace").display());
        assert!(reads(&both, "t.trace") && reads(&both, "u.trace") && !reads(&both, "base.toml"));
        assert!(reads(&format!("@{}", at("list").display()), "u.trace"));
        assert!(reads(&format!("tatp:popularity={}", at("list").display()), "list"));
    }
}
