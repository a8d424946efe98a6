//! Which planes are in which package.

use crate::fastdiv::FastDiv;

/// The packages. Planes are numbered channel first, then package, die, plane of the die.
#[derive(Clone, Debug)]
pub struct Packages {
    packages: FastDiv,
    /// Planes of a package.
    pub package_planes: u32,
}

impl Packages {
    /// So many packages of so many planes.
    pub fn new(packages: u32, package_planes: u32) -> Packages {
        Packages { packages: FastDiv::new(packages.into()), package_planes }
    }

    /// The package of a plane, and which of the package's planes it is.
    #[inline]
    pub fn package(&self, plane: u32) -> (u32, u32) {
        let (within, package) = self.packages.div_rem(plane.into());
        (package as u32, within as u32)
    }

    /// The plane of a package.
    #[inline]
    pub fn plane(&self, package: u32, within: u32) -> u32 {
        within * self.packages.get() as u32 + package
    }

    /// Packages.
    pub fn count(&self) -> u32 {
        self.packages.get() as u32
    }

    /// Planes of all packages.
    pub fn planes(&self) -> u32 {
        self.count() * self.package_planes
    }
}
