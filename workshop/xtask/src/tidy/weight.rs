//! The repository stays light: data sets live elsewhere.

use super::Finding;
use super::tree::Tree;

const MOST_BYTES: u64 = 600 * 1024;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let heavy = tree.files.iter().filter(|file| file.bytes > MOST_BYTES);
    heavy
        .map(|file| Finding::fail(&file.path, 0, format!("{} bytes; the limit is {MOST_BYTES}", file.bytes)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::File;

    #[test]
    fn a_heavy_file_fails_text_or_not() {
        let file = |path: &str, bytes| File { path: path.into(), bytes, text: None };
        let found = check(&Tree { files: vec![file("a.bin", MOST_BYTES), file("b.bin", MOST_BYTES + 1)] });
        assert_eq!(found.iter().map(|finding| finding.path.as_str()).collect::<Vec<_>>(), ["b.bin"]);
    }
}
