//! Where memory controllers stand on a mesh.

/// The router of each of `count` controllers on a mesh of `rows` by `columns` routers: evenly around its edge, clockwise from
/// the corner of router 0. With `P` routers on the edge, controller `m` is at the one number `m P / count`: on a square
/// mesh four controllers are at the corners.
pub(super) fn controllers(rows: u32, columns: u32, count: u16) -> Vec<u32> {
    let edge = edge(rows, columns);
    let at = |m: u16| edge[usize::from(m) * edge.len() / usize::from(count)];
    (0..count).map(at).collect()
}

/// The routers of the edge, clockwise.
fn edge(rows: u32, columns: u32) -> Vec<u32> {
    let router = |row: u32, column: u32| row * columns + column;
    if rows == 1 || columns == 1 {
        return (0..rows * columns).collect();
    }
    let (last_row, last_column) = (rows - 1, columns - 1);
    let top = (0..last_column).map(|column| router(0, column));
    let right = (0..last_row).map(|row| router(row, last_column));
    let bottom = (1..columns).rev().map(|column| router(last_row, column));
    let left = (1..rows).rev().map(|row| router(row, 0));
    top.chain(right).chain(bottom).chain(left).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_controllers_of_a_square_are_at_its_corners() {
        assert_eq!(controllers(4, 4, 4), [0, 3, 15, 12]);
        assert_eq!(controllers(2, 2, 4), [0, 1, 3, 2]);
        assert_eq!(controllers(8, 8, 4), [0, 7, 63, 56]);
    }

    #[test]
    fn others_are_spread_over_the_edge() {
        // The edge of 3 x 4, clockwise: 0 1 2 3 7 11 10 9 8 4.
        assert_eq!(controllers(3, 4, 10), [0, 1, 2, 3, 7, 11, 10, 9, 8, 4]);
        assert_eq!(controllers(3, 4, 2), [0, 11]);
        assert_eq!(controllers(3, 4, 1), [0]);
        assert_eq!(controllers(1, 6, 3), [0, 2, 4]);
        assert_eq!(controllers(1, 1, 4), [0, 0, 0, 0]);
        // More than routers of the edge share some.
        assert_eq!(controllers(2, 1, 4), [0, 0, 1, 1]);
    }
}
