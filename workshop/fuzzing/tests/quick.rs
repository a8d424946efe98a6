//! Every target, for a few seconds, the same cases each time.

use fuzzing::{TARGETS, drive, find};

fn quick(name: &str) {
    let target = find(name).expect("a target");
    drive(target, 1, 0..target.cases, &mut |_| {});
}

macro_rules! targets {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            quick(stringify!($name));
        })*

        #[test]
        fn all_are_here() {
            let here = [$(stringify!($name)),*];
            assert_eq!(TARGETS.iter().map(|target| target.name).collect::<Vec<_>>(), here);
        }
    };
}

targets! { trace fio config graph gpu_trace profile recording state signed_state strace iolog mqsim simplessd fio_json point machine }
