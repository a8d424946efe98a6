//! Bad blocks against probability theory.

use super::{Factory, Lives};
use crate::page_map::testing::small;
use nand::geometry::{Geometry, Reclaim, Shape};

#[test]
fn factory_bad_blocks_are_binomial() {
    for reclaim in [Reclaim::Block, Reclaim::PlaneSet, Reclaim::Superblock] {
        let geo = Geometry::new(Shape { blocks: 2048, ..small(reclaim) });
        let factory = Factory::draw(&geo, 0.01, 1, "flash");
        // 24 planes of 2048 blocks: mean 491.5, standard deviation 22.
        assert!(factory.blocks.abs_diff(492) < 90, "{}", factory.blocks);
        let mean = 2048.0 * 0.01;
        assert!(
            factory.lost.iter().all(|lost| f64::from(*lost) > mean - 18.0 && f64::from(*lost) < mean + 25.0)
        );
        assert_eq!(factory.lost.len() as u32, geo.groups);
        assert_eq!(Factory::draw(&geo, 0.01, 1, "flash"), factory);
        assert_ne!(Factory::draw(&geo, 0.01, 2, "flash"), factory);
        assert_eq!(Factory::draw(&geo, 0.0, 1, "flash").blocks, 0);
    }
    // Wider groups lack as many units as their worst plane has bad blocks.
    let lost = |reclaim| {
        let geo = Geometry::new(Shape { blocks: 2048, ..small(reclaim) });
        (Factory::draw(&geo, 0.01, 1, "flash").lost, geo)
    };
    let (planes, _) = lost(Reclaim::Block);
    let (pairs, _) = lost(Reclaim::PlaneSet);
    let (all, _) = lost(Reclaim::Superblock);
    let naive: Vec<u32> = planes.chunks(2).map(|pair| pair[0].max(pair[1])).collect();
    assert_eq!(pairs, naive);
    assert_eq!(Some(&all[0]), planes.iter().max());
}

#[test]
fn lives_follow_weibull() {
    for shape in [1.0, 4.0] {
        let lives = Lives { endurance: 3000.0, shape, seed: 5 };
        let mut drawn: Vec<u32> = (0..20_000).map(|block| lives.of(block)).collect();
        drawn.sort_unstable();
        for share in [0.1f64, 0.5, 0.632_120_6, 0.9] {
            // The quantile function: endurance (-ln(1 - p))^(1/shape).
            let expected = 3000.0 * libm::pow(-libm::log(1.0 - share), 1.0 / shape);
            let found = f64::from(drawn[(share * 20_000.0) as usize]);
            assert!((found / expected - 1.0).abs() < 0.08, "shape {shape}, {share}: {found}, not {expected}");
        }
    }
}
