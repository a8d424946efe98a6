//! Where the parts of a complex stand on its network. Requesters are at the endpoints of their own numbers.

/// Endpoints of a crossbar, or routers of a mesh.
#[derive(Clone, Debug)]
pub(crate) struct Ends {
    /// Endpoint of the first bank of the shared cache; the others follow.
    first_bank: u32,
    /// Endpoints of the controllers of memory; none where memory is beside the banks.
    pub(crate) controllers: Option<Vec<u32>>,
}

impl Ends {
    /// On a crossbar: multiprocessors, the memory management unit, banks, and so many controllers of memory.
    pub(crate) fn crossbar(multiprocessors: u16, banks: u16, controllers: Option<u16>) -> Ends {
        let first_bank = u32::from(multiprocessors) + 1;
        let first = first_bank + u32::from(banks);
        let at = |count| (first..first + u32::from(count)).collect();
        Ends { first_bank, controllers: controllers.map(at) }
    }

    /// On a mesh: a core and a bank at each router, controllers where they are said to be.
    pub(crate) fn mesh(controllers: Vec<u32>) -> Ends {
        Ends { first_bank: 0, controllers: Some(controllers) }
    }

    /// Endpoints of a crossbar.
    pub(crate) fn count(&self, banks: u16) -> u16 {
        let controllers = self.controllers.as_ref().map_or(0, Vec::len);
        (self.first_bank + u32::from(banks)) as u16 + controllers as u16
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
    fn a_crossbar_has_multiprocessors_translation_banks_and_controllers_in_turn() {
        let ends = Ends::crossbar(16, 6, Some(4));
        assert_eq!((ends.bank(0), ends.bank(5), ends.bank_at(22)), (17, 22, 5));
        assert_eq!(ends.controllers, Some(vec![23, 24, 25, 26]));
        assert_eq!((ends.count(6), Ends::crossbar(16, 6, None).count(6)), (27, 23));
    }
}
