//! Sequences of launches, whole and in part.

use std::collections::BTreeMap;

use crate::program::{Kernel, census, census_within, launches, open};

fn refused(text: &str) -> String {
    open(&[text]).err().unwrap_or_else(|| panic!("{text} is taken")).to_string()
}

#[test]
fn the_iterator_says_what_is_launched() {
    for text in ["bert:pairs=2,size=tiny,sequence=20", "gpt2:tokens=3,sentences=2", "resnet50:side=32"] {
        let expected: Vec<(u64, Kernel)> = launches(text).unwrap().collect();
        let mut program = open(&[text]).unwrap().remove(0);
        let mut number = 0;
        while let Some(kernel) = program.launch() {
            assert_eq!(expected[number], (number as u64, kernel), "{text}");
            number += 1;
        }
        assert_eq!(number, expected.len(), "{text}");
    }
}

#[test]
fn whole_workloads_are_counted_without_being_run() {
    for (text, of_input, inputs) in [
        ("bert:pairs=10000", 148, 10_000),
        ("gpt2:sentences=1000,tokens=100", 33_876, 1_000),
        ("resnet50:images=13400", 174, 13_400),
    ] {
        let mut groups: BTreeMap<(&str, u32, u32), u64> = BTreeMap::new();
        for (_, kernel) in launches(text).unwrap() {
            *groups.entry((kernel.name, kernel.blocks, kernel.threads)).or_default() += 1;
        }
        assert_eq!(groups.values().sum::<u64>(), of_input * inputs, "{text}");
        assert!(groups.values().all(|count| count.is_multiple_of(inputs)));
    }
}

#[test]
fn a_part_of_the_sequence_is_that_part() {
    let text = "bert:pairs=3,size=tiny,sequence=20";
    let run = |text: String| census(open(&[text]).unwrap()[0].as_mut());
    let whole = run(text.to_owned());
    let ends = whole.kernels.len();
    let (first, second) = (ends / 3, ends / 2);
    let part = run(format!("{text},launches={first}..{second}"));
    assert_eq!(part.kernels, whole.kernels[first..second]);
    // Parts add up to the whole.
    let before = run(format!("{text},launches=0..{first}"));
    let after = run(format!("{text},launches={second}..{ends}"));
    let sum = |of: fn(&crate::program::Census) -> u64| [&before, &part, &after].map(of).iter().sum::<u64>();
    assert_eq!(sum(|c| c.warp_instructions), whole.warp_instructions);
    assert_eq!(sum(|c| c.loads.bytes), whole.loads.bytes);
    assert_eq!(part.footprint, whole.footprint);
}

#[test]
fn samples_are_executed_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kernels.toml");
    let text = "error = 0.05\n[[group]]\nname = \"a\"\nsamples = [150, 3]\n[[group]]\nsamples = [7, 3]\n";
    std::fs::write(&path, text).unwrap();
    let program = format!("bert:pairs=2,size=medium,sequence=16,kernels={}", path.display());
    let sampled = census(open(&[program]).unwrap()[0].as_mut()).kernels;
    let all: Vec<Kernel> =
        launches("bert:pairs=2,size=medium,sequence=16").unwrap().map(|(_, k)| k).collect();
    assert_eq!(sampled, [3, 7, 150].map(|n: usize| all[n]));
    let outside = refused(&format!("bert:sequence=16,kernels={}", path.display()));
    assert!(outside.contains("sample 150 of a program with 148 launches"), "{outside}");
    std::fs::write(&path, "kernels = 60\n[[group]]\nsamples = [3]\n").unwrap();
    let other = refused(&format!("bert:kernels={}", path.display()));
    assert!(other.contains("a run with 60 kernels, for a program with 148 launches"), "{other}");
    std::fs::write(&path, "groups = 3\n").unwrap();
    assert!(refused(&format!("bert:kernels={}", path.display())).contains("without samples"));
    std::fs::write(&path, "[[group]\n").unwrap();
    assert!(refused(&format!("bert:kernels={}", path.display())).contains("no file of sampled kernels"));
    assert!(refused("bert:kernels=no-such.toml").contains("no-such.toml"));
}

#[test]
fn what_cannot_be_meant_is_refused() {
    assert!(refused("bert:launches=3..3").contains("within 0..148"));
    assert!(refused("bert:launches=0..149").contains("within 0..148"));
    assert!(refused("bert:size=mediun").contains("did you mean `medium`?"));
    assert!(refused("bert:sequence=513").contains("from 1 to 512"));
    assert!(refused("gpt2:prompt=1000,tokens=100").contains("from 1 to 24"));
    assert!(refused("resnet50:images=3,batch=2").contains("a multiple of the batch, 2"));
    assert!(refused("resnet50:type=fp8").contains("fp32, fp16"));
    assert!(refused("onnx").contains("onnx:file="));
    assert!(launches("betw").err().unwrap().to_string().contains("bert"));
}

#[test]
fn runs_are_equal_and_inputs_differ() {
    let run = |text: &str| census(open(&[text]).unwrap()[0].as_mut());
    let text = "bert:pairs=2,size=tiny,sequence=24";
    assert_eq!(run(text), run(text));
    // The gather of words is the fourth launch of a pair; tiny has 46.
    let of = |number: u64| run(&format!("{text},launches={number}..{}", number + 1));
    let (first, second) = (of(3), of(3 + 46));
    assert_eq!(first.kernels, second.kernels);
    assert_ne!(first.digest, second.digest);
}

#[test]
fn weights_are_read_once_by_a_token() {
    // With one row every product reads its weights once: 124 M parameters, less positions and words that are not looked at.
    let counted = census(open(&["gpt2:tokens=1"]).unwrap()[0].as_mut());
    let (layers, hidden) = (12_u64, 768_u64);
    let products = layers * 12 * hidden * hidden + 50_257 * hidden;
    assert!(counted.loads.bytes > 4 * products);
    // The vectors that they are multiplied with are read once for each result, from the first-level cache mostly.
    let touched = 4 * (products + layers * 13 * hidden);
    assert!(counted.touched() > touched && counted.touched() < touched + (16 << 20), "{}", counted.touched());
}

#[test]
fn halves_take_half_the_memory_and_arithmetic() {
    let run =
        |kind: &str| census(open(&[format!("bert:size=tiny,sequence=64,type={kind}")]).unwrap()[0].as_mut());
    let (single, half) = (run("fp32"), run("fp16"));
    assert_eq!(single.kernels.len(), half.kernels.len());
    assert!(half.footprint * 100 < single.footprint * 52);
    let share = half.loads.bytes as f64 / single.loads.bytes as f64;
    assert!((0.48..0.52).contains(&share), "{share}");
    assert!(half.arithmetic * 10 < single.arithmetic * 7);
}

/// A count that is bounded is the beginning of the whole one, and is told of while it goes on.
#[test]
fn a_long_program_is_counted_up_to_a_bound() {
    let run = |most: u64| {
        let mut looks = 0;
        let (census, ended) =
            census_within(open(&["resnet50:side=64"]).unwrap()[0].as_mut(), most, |_| looks += 1);
        (census, ended, looks)
    };
    let (whole, ended, looks) = run(u64::MAX);
    assert!(ended && looks > 3, "{looks}");
    let (part, ended, fewer) = run(whole.entries / 2);
    assert!(!ended && fewer < looks);
    assert!(part.entries >= whole.entries / 2 && part.entries < whole.entries);
    assert!(part.kernels.len() < whole.kernels.len());
    assert_eq!(part.kernels, whole.kernels[..part.kernels.len()]);
    assert_eq!(part.footprint, whole.footprint);
}
