//! What a kernel must not say: each fault with its place, what is allowed, and the nearest spelling.

use nest::Kernel;

/// The header of a small kernel: line 12 is the opening of its code.
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

/// The diagnostic of a code has all of these in it.
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
        &["small.toml:14:10", "no array `Aa`", "did you mean `A`?", "y[i] = Aa[i][i];"],
    );
    says(
        "",
        "for i in 0..n { y[i] = alhpa * A[i][i]; }",
        &["small.toml:13:24", "`alhpa`", "did you mean `alpha`?"],
    );
    says(
        "",
        "for i in 0..n { y[i] = A[i][k]; }",
        &["small.toml:13:29", "`k` is no loop variable here and no size"],
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
        &["small.toml:13:24", "`A` has 2 dimensions, and 1 subscripts here"],
    );
    says("", "for i in 0..n { y[i] = A; }", &["`A` has 2 dimensions, and 0 subscripts here"]);
    says(
        "",
        "for i in 0..n { for j in i..n { y[i] += A[i][j + 1]; } }",
        &[
            "small.toml:13:41",
            "`A[i][j + 1]` is outside its array: subscript 2 would be 8",
            "`j` = 7",
            "`A` has 0 to 7 there",
        ],
    );
    says("", "for i in 0..n { y[i] = A[i - 1][0]; }", &["subscript 1 would be -1 where `i` = 0"]);
    says("", "for i in 0..n { for j in 0..n { y[i] = A[i*j][0]; } }", &["a sum of loop variables and sizes"]);
    says("", "for i in 0..n { y[i] = A[i][y[i]]; }", &["a sum of loop variables and sizes"]);
    // The largest subscript of a triangle is where its inner loop still runs, not at its outer loop's end.
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
        &["how often a loop with step 2 runs"],
    );
    says("", "for i in 0..n { for i in 0..n { y[i] = A[i][i]; } }", &["`i` has another meaning already"]);
    says("", "for i in 0..n { }", &["nothing in it"]);
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
            "iterations of `i` may depend on each other: one writes `y[j]` (line 14), another has `y[j]` (line 14)",
        ],
    );
    says(
        "split = \"i\"",
        "for i in 1..n {\n  y[i] = A[i][i];\n  y[i] += y[i - 1];\n}",
        &["one writes `y[i]` (line 14), another has `y[i - 1]` (line 15)"],
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
        &["one writes `y[i]`", "another has `y[2*i]`"],
    );
    // Blocks of five, four apart, are not.
    let code = "for i in 0..2 { for j in 0..4 { y[3*i + j] = A[j][j]; } }";
    says("split = \"i\"", code, &["may depend on each other"]);
}

#[test]
fn sections_that_do_not_fit() {
    says(
        "",
        "for i in 0..n { A[i][i] = y[i]; }",
        &["small.toml:8:", "`A` is an input, yet it is written", "`section = \"inout\"` would fit"],
    );
    says("", "for i in 0..n { y[i] = 0; }", &["`A` is an input, yet nothing reads it"]);
}

#[test]
fn grammar() {
    says("", "for i in 0..n { y[i] = A[i][i] }", &["small.toml:13:32", "expected `;`, found `}`"]);
    says("", "for i in 0..n { y[i] = A[i][i];", &["expected `}`, found the end"]);
    says("", "for i in 0..n { y[i] <= A[i][i]; }", &["expected `=`, `+=`, `-=`, `*=` or `/=`, found `<=`"]);
    says("", "for i in 0..n { y[i] = sqrt(1, 2); }", &["`sqrt` has 1 arguments, not 2"]);
    says("", "for i in 0..n { y[i] = $; }", &["small.toml:13:24", "`$` has no meaning here"]);
    says("", &format!("y[0] = {}A[0][0];", "(".repeat(40)), &["more than 32 brackets"]);
    says("", &format!("y[0] = A[0][0]{};", " + 1".repeat(200)), &["more than 256 operands and operators"]);
    let seven: String = (0..7).map(|at| format!("for v{at} in 0..2 {{ ")).collect();
    says(
        "",
        &format!("{seven} y[0] = A[0][0]; {}", "}".repeat(7)),
        &["more than 6 loops inside one another"],
    );
}

#[test]
fn repeated_microblocks() {
    let code = "for i in 0..n { y[i] = A[i][d]; }";
    says(
        "repeat = \"d in 0..n + 1\"",
        code,
        &["small.toml:13:24", "`A[i][d]` is outside its array", "would be 8"],
    );
    says("repeat = \"n in 0..4\"", code, &["small.toml:11:11", "`n` has another meaning already"]);
    says("repeat = \"d = 0..4\"", code, &["small.toml:11:13", "expected `in`"]);
    says("repeat = \"d in 0..i\"", code, &["small.toml:11:19", "`i` is no loop variable here and no size"]);
    says("repeat = \"d in 4..4\"", code, &["a kernel has 1 to 256 microblocks"]);
    let text = kernel("repeat = \"d in 0..257\"", "for i in 0..n { y[i] = A[i][d/40]; }");
    assert!(refused(&text).contains("a kernel has 1 to 256 microblocks"));
}

/// Two iterations of `b` touch neighbouring blocks: what one writes the next reads in the row below, unless the columns are others.
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
