//! Invalid kernel texts: each fault with its place, what is allowed and the nearest spelling; and damaged texts.

use crate::read;
use nest::{Dependence, Kernel, programs};
use proptest::prelude::*;

/// Returns the header of a small kernel: line 12 is the opening of its code.
fn kernel(split: &str, code: &str) -> String {
    format!(
        "name = \"small\"\n[sizes]\nn = 8\nwidth = 4\n[scalars]\nalpha = 1.5\n\
         [arrays]\nA = {{ shape = [\"n\", \"n\"], element = \"f32\", section = \"input\" }}\n\
         y = {{ shape = [\"n\"], element = \"f32\", section = \"output\" }}\n\
         [[microblocks]]\n{split}\ncode = '''\n{code}\n'''\n"
    )
}

fn refused(text: &str) -> String {
    match Kernel::read(text, "small.toml", &[]) {
        Ok(_) => panic!("nothing is wrong with\n{text}"),
        Err(fault) => fault.to_string(),
    }
}

/// Checks that the diagnostic of a code contains all of these.
#[track_caller]
fn says(split: &str, code: &str, parts: &[&str]) {
    let told = refused(&kernel(split, code));
    for part in parts {
        assert!(told.contains(part), "`{part}` is not in\n{told}");
    }
}

#[test]
fn the_small_kernel_is_right() {
    let text = kernel("split = \"i\"", "for i in 0..n { for j in 0..n { y[i] += A[i][j]; } }");
    Kernel::read(&text, "small.toml", &[]).unwrap_or_else(|fault| panic!("{fault}"));
}

#[test]
fn unknown_names() {
    says(
        "",
        "for i in 0..n {\n  y[i] = Aa[i][i];\n}",
        &["small.toml:14:10", "unknown array `Aa`", "did you mean `A`?", "y[i] = Aa[i][i];"],
    );
    says(
        "",
        "for i in 0..n { y[i] = alhpa * A[i][i]; }",
        &["small.toml:13:24", "`alhpa`", "did you mean `alpha`?"],
    );
    says(
        "",
        "for i in 0..n { y[i] = A[i][k]; }",
        &["small.toml:13:29", "`k` is neither a loop variable here nor a size"],
    );
    says("", "for i in 0..widht { y[i] = A[i][i]; }", &["small.toml:13:13", "did you mean `width`?"]);
    says(
        "split = \"k\"",
        "for i in 0..n { y[i] = A[i][i]; }",
        &["small.toml:11:9", "no loop over `k`", "allowed: i"],
    );
}

#[test]
fn unknown_keys_and_sizes() {
    let told = refused(&kernel("splits = \"i\"", "for i in 0..n { y[i] = A[i][i]; }"));
    assert!(told.contains("unknown key `splits`") && told.contains("did you mean `split`?"), "{told}");
    let text = kernel("", "for i in 0..n { y[i] = A[i][i]; }");
    let told =
        Kernel::read(&text, "small.toml", &[("widt".into(), 3)]).expect_err("no such size").to_string();
    assert!(told.contains("no size `widt`") && told.contains("did you mean `width`?"), "{told}");
    let told = refused(&text.replace("\"f32\", section = \"input\"", "\"f16\", section = \"input\""));
    assert!(told.contains("f16") && told.contains("allowed: f32, f64, i32"), "{told}");
}

#[test]
fn subscripts() {
    says(
        "",
        "for i in 0..n { y[i] = A[i]; }",
        &["small.toml:13:24", "`A` has 2 dimensions, but 1 subscripts here"],
    );
    says("", "for i in 0..n { y[i] = A; }", &["`A` has 2 dimensions, but 0 subscripts here"]);
    says(
        "",
        "for i in 0..n { for j in i..n { y[i] += A[i][j + 1]; } }",
        &[
            "small.toml:13:41",
            "`A[i][j + 1]` is outside its array: subscript 2 would be 8",
            "`j` = 7",
            "`A` allows 0 to 7 there",
        ],
    );
    says("", "for i in 0..n { y[i] = A[i - 1][0]; }", &["subscript 1 would be -1 where `i` = 0"]);
    says("", "for i in 0..n { for j in 0..n { y[i] = A[i*j][0]; } }", &["a sum of loop variables and sizes"]);
    says("", "for i in 0..n { y[i] = A[i][y[i]]; }", &["a sum of loop variables and sizes"]);
    // The largest subscript of a triangle occurs while its inner loop still runs, not at its outer loop's end.
    let text = kernel("", "for i in 0..n { for j in i + 1..n { y[i] += A[i + 1][j]; } }");
    Kernel::read(&text, "small.toml", &[]).unwrap_or_else(|fault| panic!("{fault}"));
}

#[test]
fn bounds() {
    says(
        "",
        "for i in 0..n { for j in i + 2..n { y[i] += A[i][j]; } }",
        &["small.toml:13:33", "the loop over `j` would run backwards where `i` = 7"],
    );
    says(
        "",
        "for i in 0..n { for j in i..n step 2 { y[i] += A[i][j]; } }",
        &["the trip count of a loop with step 2"],
    );
    says("", "for i in 0..n { for i in 0..n { y[i] = A[i][i]; } }", &["`i` is already defined"]);
    says("", "for i in 0..n { }", &["is empty"]);
    says(
        "",
        "for i in 0..4 { for j in 0..4 { for k in 0..min(i + j, 3) { y[i] += A[j][k]; } } }",
        &["the arguments of this `min` differ by more than one loop's variable"],
    );
    says(
        "",
        "for i in 0..1000000 { for j in 0..1000000 { for k in 0..1000000000 { y[0] = A[0][0]; } } }",
        &["2^60 times"],
    );
}

#[test]
fn iterations_that_depend_on_each_other() {
    says(
        "split = \"i\"",
        "for i in 0..n {\n  for j in 0..n { y[j] += A[i][j]; }\n}",
        &[
            "small.toml:14:19",
            "iterations of `i` may depend on each other: one writes `y[j]` (line 14), another uses `y[j]` (line 14)",
        ],
    );
    says(
        "split = \"i\"",
        "for i in 1..n {\n  y[i] = A[i][i];\n  y[i] += y[i - 1];\n}",
        &["one writes `y[i]` (line 14), another uses `y[i - 1]` (line 15)"],
    );
    says(
        "split = \"i\"",
        "y[0] = A[0][0];\nfor i in 0..n { y[i] = A[i][0]; }",
        &["small.toml:13:1", "outside the split loop"],
    );
    says("split = \"j\"", "for i in 0..n { for j in 0..i { y[j] = A[i][j]; } }", &["depend on other loops"]);
    says(
        "split = \"i\"",
        "for i in 0..n { y[i] = 0; } for i in 1..n { y[i] += A[i][0]; }",
        &["the loops over `i` have different bounds"],
    );
    // Blocks of four are apart, and so are even and odd elements.
    for code in [
        "for i in 0..n step width { for j in i..min(i + width, n) { y[j] = A[j][j]; } }",
        "for i in 0..4 { y[2*i] = A[i][i]; y[2*i + 1] = A[i][i]; }",
    ] {
        let text = kernel("split = \"i\"", code);
        Kernel::read(&text, "small.toml", &[]).unwrap_or_else(|fault| panic!("{fault}"));
    }
    // Every element is written by one iteration and read by another.
    says(
        "split = \"i\"",
        "for i in 0..4 { y[i] = y[2*i] + A[i][i]; }",
        &["one writes `y[i]`", "another uses `y[2*i]`"],
    );
    // Blocks of five, four apart, overlap.
    let code = "for i in 0..2 { for j in 0..4 { y[3*i + j] = A[j][j]; } }";
    says("split = \"i\"", code, &["may depend on each other"]);
}

#[test]
fn sections_that_do_not_fit() {
    says(
        "",
        "for i in 0..n { A[i][i] = y[i]; }",
        &["small.toml:8:", "`A` is an input, yet it is written", "`section = \"inout\"` fits"],
    );
    says("", "for i in 0..n { y[i] = 0; }", &["`A` is an input, yet nothing reads it"]);
}

#[test]
fn grammar() {
    says("", "for i in 0..n { y[i] = A[i][i] }", &["small.toml:13:32", "expected `;`, found `}`"]);
    says("", "for i in 0..n { y[i] = A[i][i];", &["expected `}`, found the end"]);
    says("", "for i in 0..n { y[i] <= A[i][i]; }", &["expected `=`, `+=`, `-=`, `*=` or `/=`, found `<=`"]);
    says("", "for i in 0..n { y[i] = sqrt(1, 2); }", &["`sqrt` takes 1 arguments, not 2"]);
    says("", "for i in 0..n { y[i] = $; }", &["small.toml:13:24", "unexpected `$`"]);
    says("", &format!("y[0] = {}A[0][0];", "(".repeat(40)), &["more than 32 nested brackets"]);
    says("", &format!("y[0] = A[0][0]{};", " + 1".repeat(200)), &["more than 256 operands and operators"]);
    let seven: String = (0..7).map(|at| format!("for v{at} in 0..2 {{ ")).collect();
    says("", &format!("{seven} y[0] = A[0][0]; {}", "}".repeat(7)), &["more than 6 nested loops"]);
}

#[test]
fn repeated_microblocks() {
    let code = "for i in 0..n { y[i] = A[i][d]; }";
    says(
        "repeat = \"d in 0..n + 1\"",
        code,
        &["small.toml:13:24", "`A[i][d]` is outside its array", "would be 8"],
    );
    says("repeat = \"n in 0..4\"", code, &["small.toml:11:11", "`n` is already defined"]);
    says("repeat = \"d = 0..4\"", code, &["small.toml:11:13", "expected `in`"]);
    says(
        "repeat = \"d in 0..i\"",
        code,
        &["small.toml:11:19", "`i` is neither a loop variable here nor a size"],
    );
    says("repeat = \"d in 4..4\"", code, &["a kernel has 1 to 256 microblocks"]);
    let text = kernel("repeat = \"d in 0..257\"", "for i in 0..n { y[i] = A[i][d/40]; }");
    assert!(refused(&text).contains("a kernel has 1 to 256 microblocks"));
}

/// Two iterations of `b` touch neighbouring blocks: one writes what the next reads in the row below, unless the
/// columns differ.
#[test]
fn blocks_of_a_diagonal_are_independent_and_those_of_a_row_are_not() {
    let text = |column: &str| {
        let body = format!("B[3*b + i + 1][{column} + j + 1] = B[3*b + i][{column} + j];");
        kernel(
            "split = \"b\"",
            &format!("for b in 0..2 {{ for i in 0..3 {{ for j in 0..3 {{ {body} }} }} }}"),
        )
        .replace(
            "y = { shape = [\"n\"], element = \"f32\", section = \"output\" }",
            "B = { shape = [\"n\", \"n\"], element = \"f32\", section = \"inout\" }",
        )
        .replace("section = \"input\"", "section = \"scratch\"")
    };
    Kernel::read(&text("3*(1 - b)"), "small.toml", &[]).unwrap_or_else(|fault| panic!("{fault}"));
    for column in ["3*b", "0"] {
        let told = refused(&text(column));
        assert!(told.contains("iterations of `b` may depend on each other"), "{told}");
    }
}

// Damaged texts: a diagnostic or a kernel, never a panic.

/// Reads a text, and runs everything on the result that does not walk through its iterations.
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

/// Pieces that damage inserts into a text.
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

// Dependences of iterations on earlier ones, worked out by hand.

/// Returns the dependences of the loop with this variable in a microblock; the last of that name.
fn of(kernel: &Kernel, microblock: usize, name: &str) -> Vec<Dependence> {
    let microblock = &kernel.microblocks()[microblock];
    let id = microblock.loops.iter().rposition(|one| one.name == name).expect("a loop");
    microblock.dependences(id)
}

fn shipped(name: &str) -> Kernel {
    read(programs().iter().find(|(own, _)| *own == name).expect("a program").1, name, &[])
}

/// Describes dependences: from statement to statement, the loaded element, and the distance.
fn told(kernel: &Kernel, found: &[Dependence], microblock: usize) -> Vec<(usize, usize, String, u64)> {
    let statements = &kernel.microblocks()[microblock].statements;
    let text = |one: &Dependence| statements[one.to].references[one.load].text.clone();
    found.iter().map(|one| (one.from, one.to, text(one), one.distance)).collect()
}

/// Checks that `C[i][j] += ...` over `k` loads what the previous iteration stored.
#[test]
fn a_sum_depends_on_the_iteration_before() {
    let kernel = shipped("gemm");
    let found = of(&kernel, 0, "k");
    assert_eq!(told(&kernel, &found, 0), [(1, 1, "C[i][j]".to_owned(), 1)]);
}

/// Elimination along a row: `X[i][j]` needs `X[i][j - 1]` and `B[i][j - 1]`, `B[i][j]` needs `B[i][j - 1]`. No other
/// element is both stored and loaded: the loads of `X[i][j]` and `B[i][j]` come before the stores.
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
    // Along columns each row needs the previous one, but columns are independent.
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

/// Returns the dependences of one loop with several statements over `a`.
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
    // In the same iteration, by the previous statement.
    assert_eq!(small("for i in 0..n { a[i] = 1; b[i] = a[i]; }"), [(0, 1, text("a[i]"), 0)]);
    // By the next statement: one iteration later, for an element that the loop does not change.
    assert_eq!(small("for i in 0..n { b[i] = a[3]; a[3] = 2; }"), [(1, 0, text("a[3]"), 1)]);
    // A step of two: four elements are two iterations.
    assert_eq!(small("for i in 4..n step 2 { a[i] = a[i - 4]; b[i] = 1; }"), [(0, 0, text("a[i - 4]"), 2)]);
    // Even elements are never the odd ones.
    assert_eq!(small("for i in 0..n { a[2*i] = a[2*i + 1]; b[i] = 1; }"), []);
    assert_eq!(small("for i in 0..n { a[2*i + 3] = a[2*i]; b[i] = 1; }"), []);
    // An element that the loop does not change, stored before it is loaded: in the same iteration.
    assert_eq!(small("for i in 0..n { a[3] = b[i]; b[i] = a[3]; }"), [(0, 1, text("a[3]"), 0)]);
    // Different elements at a fixed place; and a case that a compiler cannot tell.
    assert_eq!(small("for i in 0..n { a[3] = a[4]; b[i] = 1; }"), []);
    assert_eq!(small("for i in 0..n { a[2*i] = a[i]; b[i] = 1; }"), [(0, 0, text("a[i]"), 1)]);
    // Downwards, the element above is that of the previous iteration.
    assert_eq!(small("for i in 0..n reversed { a[i] = a[i + 1]; b[i] = 1; }"), [(0, 0, text("a[i + 1]"), 1)]);
}
