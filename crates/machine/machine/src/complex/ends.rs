//! Where the parts of a complex stand on its network. Requesters are at the endpoints of their own numbers.

/// Endpoints of a network on a chip, or routers of a mesh. Controllers of memory stand behind the banks, or anywhere on a mesh.
#[derive(Clone, Debug)]
pub(crate) struct Ends {
    /// Endpoint of the first bank of the shared cache; the others follow.
    first_bank: u32,
}

impl Ends {
    /// One after the other: multiprocessors, the memory management unit, banks.
    pub(crate) fn endpoints(multiprocessors: u16) -> Ends {
        Ends { first_bank: u32::from(multiprocessors) + 1 }
    }

    /// On a mesh: a core and a bank at each router.
    pub(crate) fn mesh() -> Ends {
        Ends { first_bank: 0 }
    }

    /// The endpoint of a bank.
    #[inline]
    pub(crate) fn bank(&self, bank: u16) -> u32 {
        self.first_bank + u32::from(bank)
    }

    /// The bank at an endpoint.
    #[inline]
    pub(crate) fn bank_at(&self, endpoint: u32) -> u16 {
        (endpoint - self.first_bank) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::Ends;

    #[test]
    fn there_are_multiprocessors_translation_and_banks_in_turn() {
        let ends = Ends::endpoints(16);
        assert_eq!((ends.bank(0), ends.bank(5), ends.bank_at(22)), (17, 22, 5));
    }
}
