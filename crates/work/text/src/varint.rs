//! Integers of seven bits per byte (LEB128).

/// Maps a signed number to an unsigned one that is small if the absolute value is small.
#[inline]
pub fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Reverses [`zigzag`].
#[inline]
pub fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Appends a number.
pub fn put(to: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

/// Appends a difference of two addresses, which may be negative.
pub fn put_difference(to: &mut Vec<u8>, value: u64) {
    put(to, zigzag(value as i64));
}

/// Reads the number at `at`, and moves `at` behind it.
#[inline]
pub fn get(from: &[u8], at: &mut usize) -> u64 {
    let mut value = 0;
    let mut shift = 0;
    loop {
        let byte = from[*at];
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return value;
        }
        shift += 7;
    }
}

/// Reverses [`put_difference`].
#[inline]
pub fn get_difference(from: &[u8], at: &mut usize) -> u64 {
    unzigzag(get(from, at)) as u64
}

#[cfg(test)]
mod tests {
    use super::{get, get_difference, put, put_difference, unzigzag, zigzag};

    #[test]
    fn bytes_are_those_of_the_format() {
        // The example of the DWARF standard: 624485 is E5 8E 26.
        let mut bytes = Vec::new();
        put(&mut bytes, 624_485);
        assert_eq!(bytes, [0xe5, 0x8e, 0x26]);
        assert_eq!([zigzag(0), zigzag(-1), zigzag(1), zigzag(i64::MIN)], [0, 1, 2, u64::MAX]);
    }

    #[test]
    fn extremes_come_back() {
        let values = [0, 1, 127, 128, u64::MAX, 1 << 63];
        let mut bytes = Vec::new();
        for value in values {
            put(&mut bytes, value);
            put_difference(&mut bytes, value);
        }
        let mut at = 0;
        for value in values {
            assert_eq!((get(&bytes, &mut at), get_difference(&bytes, &mut at)), (value, value));
            assert_eq!(zigzag(unzigzag(value)), value);
        }
        assert_eq!(at, bytes.len());
    }
}
