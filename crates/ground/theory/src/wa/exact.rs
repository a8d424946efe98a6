//! Greedy collection of a drive of few blocks, as a Markov chain without approximation.

use std::collections::BTreeMap;

/// Chains of more states than this are refused.
const MOST_STATES: usize = 20_000;

/// Valid counts of all closed blocks in ascending order.
type State = Vec<u16>;

/// Exact write amplification of greedy collection with `blocks` closed blocks of `units` units and `logical`
/// mapped logical units, under uniform random single-unit overwrites.
///
/// One cycle: the block with the fewest valid units is collected, its valid units open a fresh block, the
/// host fills the rest of it, and it is closed; host writes may invalidate units of the open block too. Ties
/// need no rule, because blocks of equal count are alike. This is the model of W. Bux, I. Iliadis,
/// Performance of greedy garbage collection in flash-based solid-state drives, Performance Evaluation 67(11),
/// 2010, here solved over all joint states rather than in the limit. `None` if there are more than 20 000
/// states: for small drives only (six blocks of eight units have a few hundred).
///
/// # Panics
/// Unless `0 < logical < blocks * units`.
pub fn exact_greedy(blocks: u32, units: u16, logical: u32) -> Option<f64> {
    let physical = blocks * u32::from(units);
    assert!(0 < logical && logical < physical, "{logical} logical of {physical} physical units");
    if partitions(blocks, units, logical) > MOST_STATES as f64 {
        return None;
    }
    let (states, rows) = reachable(blocks, units, logical);
    let stationary = stationary(&rows);
    let victim: f64 = stationary.iter().zip(&states).map(|(p, s)| p * f64::from(s[0])).sum();
    Some(f64::from(units) / (f64::from(units) - victim))
}

/// Ways to divide `total` among `parts` equal blocks of at most `most` each: the number of states.
fn partitions(parts: u32, most: u16, total: u32) -> f64 {
    // ways[p][t]: into at most p parts, with part sizes allowed one by one.
    let total = total as usize;
    let mut ways = vec![vec![0.0; total + 1]; parts as usize + 1];
    ways.iter_mut().for_each(|of| of[0] = 1.0);
    for size in 1..=usize::from(most) {
        for p in 1..=parts as usize {
            for t in size..=total {
                ways[p][t] += ways[p - 1][t - size];
            }
        }
    }
    ways[parts as usize][total]
}

/// Targets and probabilities of the transitions out of one state.
type Row = Vec<(usize, f64)>;

/// All states that can follow from a drive filled in order, and the sparse rows of the transition matrix.
fn reachable(blocks: u32, units: u16, logical: u32) -> (Vec<State>, Vec<Row>) {
    let mut left = logical;
    let mut first: State = (0..blocks)
        .map(|_| {
            let here = left.min(u32::from(units));
            left -= here;
            here as u16
        })
        .collect();
    first.sort_unstable();
    let mut index = BTreeMap::from([(first.clone(), 0)]);
    let (mut states, mut rows) = (vec![first], Vec::new());
    while rows.len() < states.len() {
        let mut row = Vec::new();
        for (next, p) in cycle(&states[rows.len()], units, logical) {
            let at = *index.entry(next).or_insert_with_key(|next| {
                states.push(next.clone());
                states.len() - 1
            });
            row.push((at, p));
        }
        rows.push(row);
    }
    (states, rows)
}

/// Distribution of the state after one collection and the host writes that fill the fresh block.
fn cycle(state: &State, units: u16, logical: u32) -> BTreeMap<State, f64> {
    let victim = state[0];
    // Closed blocks in ascending order, with the open block's valid count at the end.
    let mut open: State = state[1..].to_vec();
    open.push(victim);
    let mut now = BTreeMap::from([(open, 1.0)]);
    for _ in victim..units {
        let mut next = BTreeMap::new();
        for (counts, p) in &now {
            for (i, &valid) in counts.iter().enumerate().filter(|(_, v)| **v > 0) {
                let mut after = counts.clone();
                after[i] -= 1;
                let open = after.len() - 1;
                after[open] += 1;
                after[..open].sort_unstable();
                *next.entry(after).or_insert(0.0) += p * f64::from(valid) / f64::from(logical);
            }
        }
        now = next;
    }
    let mut closed = BTreeMap::new();
    for (mut counts, p) in now {
        counts.sort_unstable();
        *closed.entry(counts).or_insert(0.0) += p;
    }
    closed
}

/// Left eigenvector of eigenvalue one, by powers of the lazy chain (which cannot be periodic).
fn stationary(rows: &[Row]) -> Vec<f64> {
    let mut now = vec![1.0 / rows.len() as f64; rows.len()];
    for _ in 0..100_000 {
        let mut next: Vec<f64> = now.iter().map(|p| 0.5 * p).collect();
        for (row, p) in rows.iter().zip(&now) {
            for (to, q) in row {
                next[*to] += 0.5 * p * q;
            }
        }
        let change: f64 = next.iter().zip(&now).map(|(a, b)| (a - b).abs()).sum();
        now = next;
        if change < 1e-14 {
            break;
        }
    }
    now
}

#[cfg(test)]
mod tests {
    use super::exact_greedy;

    #[test]
    fn two_blocks_of_one_logical_unit() {
        // The one valid unit is in one block; the other is empty and is always the victim.
        assert_eq!(exact_greedy(2, 4, 1), Some(1.0));
    }

    #[test]
    fn one_block_carries_all_data_each_time() {
        // A single closed block of b units with u valid: each collection moves u and frees b - u.
        let wa = exact_greedy(1, 8, 6).unwrap();
        assert!((wa - 8.0 / 2.0).abs() < 1e-12);
    }

    #[test]
    fn two_blocks_by_hand() {
        // b = 2, U = 3: counts at closing are (1, 2) always, since a block holds at most 2. The victim has 1
        // valid unit, and one host write follows: A = 2.
        assert!((exact_greedy(2, 2, 3).unwrap() - 2.0).abs() < 1e-12);
    }

    #[test]
    fn states_are_counted_before_they_are_built() {
        // 6 = 4+2 = 4+1+1 = 3+3 = 3+2+1 = 2+2+2: five ways into at most three parts of at most four.
        assert_eq!(super::partitions(3, 4, 6), 5.0);
        let (states, _) = super::reachable(4, 6, 15);
        assert!(states.len() as f64 <= super::partitions(4, 6, 15));
    }

    #[test]
    fn too_many_states_are_refused() {
        assert_eq!(exact_greedy(40, 32, 1000), None);
    }
}
