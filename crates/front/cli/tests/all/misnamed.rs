//! Files that a program takes by its name, given as if they were traces: what they are, and what to type.

use crate::common::{file, nandscape, refused};

const LOG: &str = "7 1700000000.000000 openat(AT_FDCWD, \"a\", O_RDONLY) = 3 <0.000010>\n7 1700000000.001000 close(3) = 0 <0.000010>\n";

/// The first bytes of a model: version 8 and a graph that begins with a node.
const MODEL: &str = "\u{8}\u{8}:\u{5}\n\u{3}\n\u{1}x";

#[test]
fn a_model_and_a_log_are_named_with_what_to_type() {
    let folder = tempfile::tempdir().unwrap();
    let log = file(folder.path(), "t.strace", LOG);
    let model = file(folder.path(), "m.onnx", MODEL);
    for system in ["pm9a3", "zng"] {
        refused(
            &["run", system, "--workload", &log],
            &["a log of strace", &format!("`--workload strace:file={log}`"), "drive behind a host"],
        );
        refused(
            &["run", system, "--workload", &model],
            &["an ONNX model", &format!("`--workload onnx:file={model}`"), "system with a GPU"],
        );
    }
    refused(&["trace", "inspect", &log], &["a log of strace", "strace:file="]);
    refused(&["explain", &model], &["an ONNX model", "onnx:file="]);
    // What is said is what works.
    let run = ["run", "pm9a3", "--workload", &format!("strace:file={log}"), "--json"];
    assert_eq!(nandscape(&run).code, Some(0));
}
