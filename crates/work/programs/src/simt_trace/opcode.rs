//! SASS opcodes: their effect, as far as it matters for a multiprocessor's timing.
//!
//! The list is that of Accel-Sim (`gpu-simulator/ISA_Def`, Kepler to Hopper). Tensor and double-precision arithmetic,
//! conversions, warp votes and shuffles, fences, and loads from constant memory count as arithmetic, as there.

use std::sync::LazyLock;

use proto::simt::InstKind;

/// Address space that an instruction names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Window {
    /// Global memory.
    Global,
    /// The block's shared memory.
    Shared,
    /// The thread's local memory.
    Local,
    /// Any of the three, by address.
    Generic,
}

/// Effect of an opcode.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Class {
    /// Arithmetic, and everything with the same cost.
    Alu,
    /// Special functions.
    Sfu,
    /// Load.
    Load(Window),
    /// Store.
    Store(Window),
    /// Atomic operation.
    Atomic(Window),
    /// Copy from global to shared memory; the tracer writes one line for each of its two addresses.
    Copy,
    /// Waits for the block.
    Barrier,
    /// Accesses memory at addresses that a trace does not record in a known form.
    Unreadable(&'static str),
}

impl Class {
    /// Returns true if it accesses memory.
    pub(super) fn is_access(self) -> bool {
        matches!(self, Class::Load(_) | Class::Store(_) | Class::Atomic(_) | Class::Copy)
    }

    /// Returns the address space that it names, if it accesses memory.
    pub(super) fn window(self) -> Option<Window> {
        match self {
            Class::Load(window) | Class::Store(window) | Class::Atomic(window) => Some(window),
            Class::Copy => Some(Window::Generic),
            _ => None,
        }
    }

    /// Returns the instruction kind, by whether its addresses are in shared memory.
    pub(super) fn kind(self, shared: bool) -> InstKind {
        match (self, shared) {
            (Class::Alu | Class::Unreadable(_), _) => InstKind::Alu,
            (Class::Sfu, _) => InstKind::Sfu,
            (Class::Barrier, _) => InstKind::Barrier,
            (Class::Load(_) | Class::Copy, false) => InstKind::Load,
            (Class::Store(_), false) => InstKind::Store,
            (Class::Atomic(_), false) => InstKind::Atomic,
            // An atomic on shared memory returns a value after one pass over the banks, as a load does.
            (Class::Load(_) | Class::Atomic(_), true) => InstKind::SharedLoad,
            (Class::Store(_) | Class::Copy, true) => InstKind::SharedStore,
        }
    }
}

const NO_TEXTURES: &str =
    "reads or writes through the texture or surface unit, whose addresses a trace does not have";
const NO_TMA: &str = "is a bulk copy of the tensor memory accelerator, which is not modelled";

/// Opcodes by effect.
const TABLE: &[(Class, &str)] = &[
    (Class::Load(Window::Generic), "LD"),
    (Class::Load(Window::Global), "LDG"),
    (Class::Load(Window::Local), "LDL"),
    (Class::Load(Window::Shared), "LDS LDSM LDSLK"),
    (Class::Store(Window::Generic), "ST"),
    (Class::Store(Window::Global), "STG"),
    (Class::Store(Window::Local), "STL"),
    (Class::Store(Window::Shared), "STS STSCUL"),
    (Class::Atomic(Window::Generic), "ATOM"),
    (Class::Atomic(Window::Global), "ATOMG RED REDG"),
    (Class::Atomic(Window::Shared), "ATOMS"),
    (Class::Copy, "LDGSTS"),
    (Class::Barrier, "BAR"),
    (Class::Sfu, "MUFU"),
    (Class::Unreadable(NO_TEXTURES), "TEX TEXS TLD TLDS TLD4 TLD4S TXD SUATOM SULD SULDGA SURED SUST SUSTGA"),
    (Class::Unreadable(NO_TMA), "UBLKCP UBLKPF UBLKRED UTMALDG UTMAPF UTMAREDG UTMASTG"),
    (
        // Floating point: single, half, tensor, double.
        Class::Alu,
        "FADD FADD32I FCHK FCMP FFMA FFMA32I FMNMX FMUL FMUL32I FSEL FSET FSETP FSWZ FSWZADD RRO \
         HADD2 HADD2_32I HFMA2 HFMA2_32I HMUL2 HMUL2_32I HSET2 HSETP2 HMNMX2 HMMA DMMA BMMA IMMA \
         QGMMA HGMMA WARPGROUP DADD DFMA DMNMX DMUL DSET DSETP",
    ),
    (
        // Integers.
        Class::Alu,
        "BFE BFI BMSK BREV FLO IABS IADD IADD3 IADD32I ICMP IDP IDP4A IMAD IMADSP IMNMX IMUL IMUL32I \
         ISAD ISCADD ISCADD32I ISET ISETP ISUB LEA LOP LOP3 LOP32I POPC SHF SHL SHR VABSDIFF \
         VABSDIFF4 VADD VIADD VIADDMNMX VIMNMX VIMNMX3 VMNMX XMAD",
    ),
    (
        // Conversion, movement, predicates, constant loads.
        Class::Alu,
        "F2F F2FP F2I F2IP FRND I2F I2FP I2I I2IP MOV MOV32I MOVM PRMT SEL SGXT SHFL CSET CSETP P2R \
         PLOP3 PSET PSETP R2P LDC MATCH QSPC TMML TXQ SUQUERY SUBFM SUCLAMP SUEAU",
    ),
    (
        // Caches and fences.
        Class::Alu,
        "CCTL CCTLL CCTLT ERRBAR CGAERRBAR MEMBAR FENCE LDGDEPBAR DEPBAR UTMACCTL UTMACMDFLUSH SYNCS \
         ARRIVES UCGABAR_ARV UCGABAR_WAIT",
    ),
    (
        // The uniform datapath.
        Class::Alu,
        "R2UR REDUX S2UR UBMSK UBREV UCLEA UF2FP UFLO UIADD3 UIADD3_64 UIMAD UISETP ULDC ULEA ULOP \
         ULOP3 ULOP32I UMOV UP2UR UPLOP3 UPOPC UPRMT UPSETP UR2UP USEL USGXT USHF USHL USHR VOTEU",
    ),
    (
        // Control.
        Class::Alu,
        "BMOV BPT BRA BREAK BRK BRX BRXU BSSY BSYNC CAL CALL CONT ELECT EXIT JCAL JMP JMX JMXU KILL \
         NANOSLEEP PBK PCNT PEXIT PRET RET RPCMOV RTT SSY SYNC WARPSYNC YIELD",
    ),
    (
        // The rest.
        Class::Alu,
        "B2R CS2R CSMTEST GETLMEMBASE LEPC NOP PMTRIG R2B S2R SETCTAID SETLMEMBASE USETMAXREG VOTE \
         VOTE_VTG",
    ),
];

/// Returns all opcodes.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().flat_map(|(_, names)| names.split_ascii_whitespace())
}

/// Returns the class of an opcode with its modifiers (`LDG.E.64`); none if the table does not have it.
pub(super) fn class(opcode: &str) -> Option<Class> {
    let mut words = opcode.split('.');
    let stem = words.next()?;
    let (class, _) =
        TABLE.iter().find(|(_, names)| names.split_ascii_whitespace().any(|name| name == stem))?;
    // `BAR.ARV` reports the warp's arrival, and does not wait.
    if *class == Class::Barrier && words.any(|word| word == "ARV") {
        return Some(Class::Alu);
    }
    Some(*class)
}

/// Returns the bytes that a lane accesses, from the modifiers; four without any.
///
/// The tracer's own value takes `S8`, `S16` and `F64` as four bytes, so it is not used.
pub(super) fn width(opcode: &str) -> u8 {
    // Each lane gives the address of a row of eight 16-bit values.
    if opcode.starts_with("LDSM") {
        return 16;
    }
    for word in opcode.split('.').skip(1) {
        let bits = match word {
            "U8" | "S8" | "8" => 8,
            "U16" | "S16" | "16" => 16,
            "U64" | "S64" | "F64" | "64" => 64,
            "128" => 128,
            _ => continue,
        };
        return bits / 8;
    }
    4
}

/// MacSim's opcode numbers for NVBit traces: the order of `NVBIT_OPCODE_` in its `trace_read.h`.
const MACSIM: &str = "FADD FADD32I FCHK FFMA32I FFMA FMNMX FMUL FMUL32I FSEL FSET FSETP FSWZADD MUFU HADD2 HADD2_32I \
    HFMA2 HFMA2_32I HMMA HMUL2 HMUL2_32I HSET2 HSETP2 DADD DFMA DMUL DSETP BMMA BMSK BREV FLO IABS \
    IADD IADD3 IADD32I IDP IDP4A IMAD IMMA IMNMX IMUL IMUL32I ISCADD ISCADD32I ISETP LEA LOP LOP3 \
    LOP32I POPC SHF SHL SHR VABSDIFF VABSDIFF4 F2F F2I I2F I2I I2IP FRND MOV MOV32I MOVM PRMT SEL \
    SGXT SHFL PLOP3 PSETP P2R R2P LD LDC LDG LDL LDS LDSM ST STG STL STS MATCH QSPC ATOM ATOMS ATOMG \
    RED CCTL CCTLL ERRBAR MEMBAR CCTLT R2UR S2UR UBMSK UBREV UCLEA UFLO UIADD3 UIADD3_64 UIMAD \
    UISETP ULDC ULEA ULOP ULOP3 ULOP32I UMOV UP2UR UPLOP3 UPOPC UPRMT UPSETP UR2UP USEL USGXT USHF \
    USHL USHR VOTEU TEX TLD TLD4 TMML TXD TXQ SUATOM SULD SURED SUST BMOV BPT BRA BREAK BRX BRXU \
    BSSY BSYNC CALL EXIT JMP JMX JMXU KILL NANOSLEEP RET RPCMOV RTT WARPSYNC YIELD B2R BAR CS2R \
    DEPBAR GETLMEMBASE LEPC NOP PMTRIG R2B S2R SETCTAID SETLMEMBASE VOTE";

/// Returns MacSim's opcodes by number: name and class.
pub(super) fn macsim() -> &'static [(&'static str, Class)] {
    static ALL: LazyLock<Vec<(&'static str, Class)>> = LazyLock::new(|| {
        let known = |name| (name, class(name).expect("the table has all of MacSim's opcodes"));
        MACSIM.split_ascii_whitespace().map(known).collect()
    });
    &ALL
}

#[cfg(test)]
mod tests {
    use super::{Class, Window, class, macsim, names, width};

    #[test]
    fn no_opcode_stands_twice() {
        let mut all: Vec<&str> = names().collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn macsims_numbers_are_those_of_its_header() {
        // Numbers that MacSim's documentation and its traces show.
        let known =
            [(0, "FADD"), (36, "IMAD"), (60, "MOV"), (73, "LDG"), (78, "STG"), (139, "EXIT"), (159, "S2R")];
        for (number, name) in known {
            assert_eq!(macsim()[number].0, name);
        }
        assert_eq!(macsim().len(), 163);
    }

    #[test]
    fn modifiers_say_the_width() {
        let known = [
            ("LDG.E", 4),
            ("LDG.E.64.CONSTANT", 8),
            ("LDG.E.LTC128B.128", 16),
            ("LD.E.U8", 1),
            ("LDS.S16", 2),
            ("RED.E.ADD.F64.RN.STRONG.GPU", 8),
            ("LDSM.16.M88.4", 16),
            ("STG.E.U16", 2),
        ];
        for (opcode, bytes) in known {
            assert_eq!(width(opcode), bytes, "{opcode}");
        }
    }

    #[test]
    fn the_stem_says_what_it_does() {
        assert_eq!(class("LDG.E.64"), Some(Class::Load(Window::Global)));
        assert_eq!(class("BAR.SYNC.DEFER_BLOCKING"), Some(Class::Barrier));
        assert_eq!(class("BAR.ARV"), Some(Class::Alu));
        assert_eq!(class("HFMA2.MMA"), Some(Class::Alu));
        assert_eq!(class("LDQ"), None);
    }
}
