//! Few combinations that cover all pairs of choices.

use super::combination::{Combination, Row, levels};
use config::units::{Bytes, Duration, Share};
use engine::{Rng, Time};
use ftl::buffer::destage::{DestagePolicy, two_speed};
use ftl::page_map::pages::{PageOrder, by_type, write_point};

/// Combinations that cover every possible pair of values, found greedily; and eight of them with registers that gather
/// writes, each network twice; and twelve of them with buffers whose data leaves by another rule than their
/// own, half of which choose pages by their type.
pub fn combinations(seed: u64) -> Vec<Combination> {
    let levels = levels();
    let mut rng = Rng::stream(seed, "soak/combinations");
    let mut rows: Vec<Row> = Vec::new();
    while let Some(missing) = first_missing(&rows, &levels) {
        let draw = |rng: &mut Rng| -> Row {
            let mut row = levels.map(|n| rng.below(n as u64) as usize);
            missing.iter().for_each(|(field, value)| row[*field] = *value);
            row
        };
        let candidates: Vec<Row> =
            std::iter::repeat_with(|| draw(&mut rng)).filter(Combination::is_possible).take(50).collect();
        let gain = |row: &Row| pairs(row).filter(|pair| !is_covered(&rows, pair)).count();
        if let Some(best) = candidates.into_iter().max_by_key(gain) {
            rows.push(best);
        }
    }
    let mut all: Vec<Combination> = rows.iter().map(Combination::from_row).collect();
    for n in 0..8 {
        let (copy_back, suspend) = (n & 1 == 1, n & 2 == 2);
        all.push(Combination { copy_back, suspend, ..all[3 * n].clone() }.with_registers(n & 4 == 4));
    }
    for n in 0..12 {
        let policy = match n % 3 {
            0 => DestagePolicy::when_full,
            1 => two_speed(Time::ZERO),
            _ => two_speed(Time::from_us(700)),
        };
        let changed = all[2 * n].clone().with_destage(policy);
        all.push(if n < 6 { changed } else { changed.with_pages(pages(n)) });
    }
    all
}

/// Little at once to dies that are idle now or were on average.
fn two_speed(window: Time) -> DestagePolicy {
    DestagePolicy::two_speed(two_speed::Params {
        at_once: Bytes::from_kib(64),
        window: Duration::new(window),
        busy: Share::percent(30),
    })
}

/// Few open blocks, and some that may lose pages.
fn pages(n: usize) -> PageOrder {
    let region = Bytes::from_kib(1 << 12);
    match n % 2 {
        0 => PageOrder::by_type(by_type::Params { open: 2, region }),
        _ => PageOrder::write_point(write_point::Params { region }),
    }
}

/// Two fields with a value each.
type Pair = [(usize, usize); 2];

fn pairs(row: &Row) -> impl Iterator<Item = Pair> + '_ {
    (0..row.len()).flat_map(move |a| (0..a).map(move |b| [(a, row[a]), (b, row[b])]))
}

fn is_covered(rows: &[Row], [(a, x), (b, y)]: &Pair) -> bool {
    rows.iter().any(|row| row[*a] == *x && row[*b] == *y)
}

fn first_missing(rows: &[Row], levels: &Row) -> Option<Pair> {
    let values =
        |a: usize, b: usize| (0..levels[a]).flat_map(move |x| (0..levels[b]).map(move |y| [(a, x), (b, y)]));
    (0..levels.len())
        .flat_map(|a| (0..a).flat_map(move |b| values(a, b)))
        .find(|pair| !is_covered(rows, pair) && is_possible_pair(pair))
}

/// The one impossible pair: see [`Combination::is_possible`].
fn is_possible_pair(pair: &Pair) -> bool {
    let largest = pair.contains(&(0, 3));
    let one_shot = pair.contains(&(3, 1));
    !(largest && one_shot)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ftl::page_map::gc::VictimPolicy;
    use nand::dies::sched::Scheduling;

    #[test]
    fn every_possible_pair_is_covered_by_few() {
        let all = combinations(1);
        assert!(all.len() < 80, "{} combinations", all.len());
        let covered = |f: &dyn Fn(&Combination) -> bool| all.iter().any(f);
        for victim in VictimPolicy::all_defaults() {
            for scheduler in Scheduling::all_defaults() {
                let both = |c: &Combination| {
                    c.victim.name() == victim.name() && c.scheduler.name() == scheduler.name()
                };
                assert!(covered(&both), "{} with {}", victim.name(), scheduler.name());
            }
        }
        assert!(covered(&|c| c.map_unit == 16384 && c.one_shot && c.page == 16384));
        assert!(!covered(&|c| c.map_unit > c.page && c.one_shot));
        all.iter().for_each(|c| drop(c.build(1).unwrap_or_else(|e| panic!("{c}: {}", e.what))));
    }
}
