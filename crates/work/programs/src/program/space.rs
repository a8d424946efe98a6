//! The arrays of an application in its virtual address space.

/// How `cudaMalloc` aligns: CUDA C++ programming guide, "any address of a variable residing in global memory or
/// returned by one of the memory allocation routines is always aligned to at least 256 bytes".
const ALIGNMENT: u64 = 256;

/// An array: where it begins, what an element takes, how many there are. The values live in the program's own vectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Array {
    base: u64,
    len: u64,
    width: u8,
}

impl Array {
    /// Virtual address of element `n`.
    #[inline]
    pub fn address(&self, n: usize) -> u64 {
        debug_assert!((n as u64) < self.len, "element {n} of an array of {}", self.len);
        self.base + n as u64 * u64::from(self.width)
    }
    /// Bytes of an element.
    #[inline]
    pub fn width(&self) -> u8 {
        self.width
    }
    /// Elements.
    pub fn len(&self) -> u64 {
        self.len
    }
    /// The same bytes as elements of another width: fields of a structure that are accessed so.
    pub fn as_words(&self, width: u8) -> Array {
        Array { base: self.base, len: self.len * u64::from(self.width) / u64::from(width), width }
    }
    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// A named piece of the address space, for reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allocation {
    /// What the program calls it.
    pub name: &'static str,
    /// First byte, virtual.
    pub base: u64,
    /// Bytes asked for.
    pub bytes: u64,
}

/// An address space from zero up, in which arrays are laid one behind the other.
#[derive(Clone, Debug, Default)]
pub struct Space {
    allocations: Vec<Allocation>,
    end: u64,
}

impl Space {
    /// Lays out `len` elements of `width` bytes each.
    pub fn array(&mut self, name: &'static str, width: u8, len: usize) -> Array {
        let base = self.end;
        let bytes = len as u64 * u64::from(width);
        self.allocations.push(Allocation { name, base, bytes });
        self.end = (base + bytes).next_multiple_of(ALIGNMENT);
        Array { base, len: len as u64, width }
    }
    /// All arrays, lowest first.
    pub fn allocations(&self) -> &[Allocation] {
        &self.allocations
    }
    /// Bytes of the space, a multiple of the page: every address is below it.
    pub fn footprint(&self) -> u64 {
        self.end.next_multiple_of(proto::memory::PAGE)
    }
}

#[cfg(test)]
mod tests {
    use super::Space;

    #[test]
    fn arrays_are_aligned_and_do_not_overlap() {
        let mut space = Space::default();
        let a = space.array("a", 8, 33);
        let b = space.array("b", 1, 1);
        let c = space.array("c", 4, 1025);
        assert_eq!((a.address(0), a.address(32)), (0, 256));
        assert_eq!((b.address(0), c.address(0), c.address(1024)), (512, 768, 768 + 4096));
        assert_eq!((space.footprint(), space.allocations()[2].bytes), (8192, 4100));
        assert_eq!((c.len(), c.width(), b.is_empty()), (1025, 4, false));
        let words = c.as_words(8);
        assert_eq!((words.len(), words.width(), words.address(3)), (512, 8, c.address(6)));
    }
}
