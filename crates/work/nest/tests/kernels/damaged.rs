//! Damaged texts: a diagnostic or a kernel, never a panic.

use crate::read;
use nest::{Dependence, Kernel, programs};
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

// What iterations need of earlier ones, worked out by hand.

/// Dependences of the loop with this variable in a microblock; the last of that name.
fn of(kernel: &Kernel, microblock: usize, name: &str) -> Vec<Dependence> {
    let microblock = &kernel.microblocks()[microblock];
    let id = microblock.loops.iter().rposition(|one| one.name == name).expect("a loop");
    microblock.dependences(id)
}

fn shipped(name: &str) -> Kernel {
    read(programs().iter().find(|(own, _)| *own == name).expect("a program").1, name, &[])
}

/// From statement to statement, what is loaded, and the distance.
fn told(kernel: &Kernel, found: &[Dependence], microblock: usize) -> Vec<(usize, usize, String, u64)> {
    let statements = &kernel.microblocks()[microblock].statements;
    let text = |one: &Dependence| statements[one.to].references[one.load].text.clone();
    found.iter().map(|one| (one.from, one.to, text(one), one.distance)).collect()
}

/// `C[i][j] += ...` over `k` loads what the iteration before stored.
#[test]
fn a_sum_depends_on_the_iteration_before() {
    let kernel = shipped("gemm");
    let found = of(&kernel, 0, "k");
    assert_eq!(told(&kernel, &found, 0), [(1, 1, "C[i][j]".to_owned(), 1)]);
}

/// Elimination along a row: `X[i][j]` needs `X[i][j - 1]` and `B[i][j - 1]`, `B[i][j]` needs `B[i][j - 1]`. Nothing else is both stored
/// and loaded: the loads of `X[i][j]` and `B[i][j]` come before the stores.
#[test]
fn elimination_along_a_row_depends_on_the_element_before() {
    let kernel = shipped("adi");
    let found = of(&kernel, 0, "j");
    let text = |text: &str| text.to_owned();
    let expected =
        [(0, 0, text("X[i][j - 1]"), 1), (1, 0, text("B[i][j - 1]"), 1), (1, 1, text("B[i][j - 1]"), 1)];
    assert_eq!(told(&kernel, &found, 0), expected);
    // Substitution back goes the other way: `X[i][j - 1]` is loaded before it is stored.
    assert_eq!(of(&kernel, 1, "j"), []);
    // Along columns each row needs the one before, but no column another one.
    assert_eq!(of(&kernel, 2, "j"), []);
}

#[test]
fn independent_iterations_have_none() {
    for (name, microblock, variable) in
        [("2dcon", 0, "j"), ("fdtd", 1, "j"), ("fdtd", 2, "j"), ("atax", 1, "j")]
    {
        assert_eq!(of(&shipped(name), microblock, variable), [], "{name}");
    }
}

/// One loop with several statements over `a`.
fn small(code: &str) -> Vec<(usize, usize, String, u64)> {
    let text = format!(
        "name = \"x\"\n[sizes]\nn = 8\n[arrays.a]\nshape = [\"40\"]\nelement = \"f32\"\nsection = \"inout\"\n\
         [arrays.b]\nshape = [\"40\"]\nelement = \"f32\"\nsection = \"inout\"\n[[microblocks]]\ncode = '''{code}'''\n"
    );
    let kernel = read(&text, "x.toml", &[]);
    told(&kernel, &of(&kernel, 0, "i"), 0)
}

#[test]
fn distances_are_those_of_the_subscripts() {
    let text = |text: &str| text.to_owned();
    // Stored two iterations before it is loaded.
    assert_eq!(small("for i in 2..n { a[i] = b[i] + a[i - 2]; b[i] = 1; }"), [(0, 0, text("a[i - 2]"), 2)]);
    // In the same iteration, by the statement before.
    assert_eq!(small("for i in 0..n { a[i] = 1; b[i] = a[i]; }"), [(0, 1, text("a[i]"), 0)]);
    // By the statement after: one iteration later, for an element that the loop does not change.
    assert_eq!(small("for i in 0..n { b[i] = a[3]; a[3] = 2; }"), [(1, 0, text("a[3]"), 1)]);
    // A step of two: four elements are two iterations.
    assert_eq!(small("for i in 4..n step 2 { a[i] = a[i - 4]; b[i] = 1; }"), [(0, 0, text("a[i - 4]"), 2)]);
    // Even elements are never the odd ones.
    assert_eq!(small("for i in 0..n { a[2*i] = a[2*i + 1]; b[i] = 1; }"), []);
    assert_eq!(small("for i in 0..n { a[2*i + 3] = a[2*i]; b[i] = 1; }"), []);
    // An element that the loop does not change, stored before it is loaded: in the same iteration.
    assert_eq!(small("for i in 0..n { a[3] = b[i]; b[i] = a[3]; }"), [(0, 1, text("a[3]"), 0)]);
    // Different elements of a fixed place; and what a compiler cannot tell.
    assert_eq!(small("for i in 0..n { a[3] = a[4]; b[i] = 1; }"), []);
    assert_eq!(small("for i in 0..n { a[2*i] = a[i]; b[i] = 1; }"), [(0, 0, text("a[i]"), 1)]);
    // Downwards, the element above is the one of the iteration before.
    assert_eq!(small("for i in 0..n reversed { a[i] = a[i + 1]; b[i] = 1; }"), [(0, 0, text("a[i + 1]"), 1)]);
}
