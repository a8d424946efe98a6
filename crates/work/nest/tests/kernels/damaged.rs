//! Damaged texts: a diagnostic or a kernel, never a panic.

use nest::{Kernel, programs};
use proptest::prelude::*;

/// Reads a text, and asks whatever comes out for all that costs no walk through its iterations.
fn use_it(text: &str, sizes: &[(String, i64)]) {
    match Kernel::read(text, "damaged.toml", sizes) {
        Err(fault) => assert!(!fault.to_string().is_empty()),
        Ok(kernel) => {
            for at in 0..kernel.microblocks().len() {
                for screen in kernel.screens(at, 5).take(2) {
                    kernel.counts(&screen);
                    for section in kernel.sections(screen, 1 << 20, 65536).take(4) {
                        kernel.counts(&section);
                        kernel.footprint(&section).iter().for_each(|extent| assert!(extent.groups(4096) > 0));
                    }
                }
                for id in 0..kernel.microblocks()[at].loops.len() {
                    kernel.microblocks()[at].dependences(id);
                }
            }
        }
    }
}

/// What damage puts into a text.
const PIECES: [&str; 24] = [
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "..",
    "-",
    "*",
    "/",
    "=",
    "min(",
    "1099511627776",
    "99999999999999999999",
    "0",
    "i",
    "n",
    " step 3",
    " reversed",
    "é",
    "\"",
    ";",
    "for q in 0..n {",
    "2147483648 *",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_shipped_kernel_with_pieces_put_in_taken_out_or_doubled(
        which in 0..14usize,
        damage in prop::collection::vec((0..10_000usize, 0..PIECES.len(), 0..4u8), 1..4),
    ) {
        let mut text = programs()[which].1.to_owned();
        for (at, piece, how) in damage {
            let mut at = at % text.len();
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            let line = text[at..].find('\n').map_or(text.len(), |end| at + end);
            match how {
                0 => text.insert_str(at, PIECES[piece]),
                1 => drop(text.drain(at..line)),
                2 => {
 let doubled = text[at..line].to_owned();
 text.insert_str(line, &doubled);
 }
                _ => text.replace_range(at..at + text[at..].chars().next().map_or(0, char::len_utf8), PIECES[piece]),
            }
        }
        use_it(&text, &[]);
    }

    #[test]
    fn any_sizes(which in 0..14usize, sizes in prop::array::uniform5(0..1i64 << 40), shift in 0..40u32) {
        let (name, text) = programs()[which];
        let kernel = Kernel::read(text, name, &[]).expect("a shipped kernel");
        let sizes: Vec<_> = kernel.sizes().iter().zip(sizes).map(|((name, _), size)| (name.clone(), size >> shift)).collect();
        use_it(text, &sizes);
    }

    #[test]
    fn any_code(code in "[-a-z0-9 \\[\\]{}().;=+*/?:<,]{0,80}") {
        let text = format!("name = \"x\"\n[sizes]\nn = 8\n[arrays.a]\nshape = [\"n\"]\nelement = \"f32\"\nsection = \"output\"\n[[microblocks]]\ncode = '''{code}'''\n");
        use_it(&text, &[]);
    }
}
