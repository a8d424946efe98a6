//! Writes of a trace, without their times.

use super::report::Report;
use super::session::Session;
use config::Diagnostic;
use flash::ftl::Ftl;
use flash::spec::FlashSpec;

/// Writes extents `(first unit, units)` of the logical space one after another onto the device, which may have been
/// written to before: what a trace leaves behind. A drive write is the whole logical space.
///
/// # Errors
/// An extent beyond the logical space, or no space to reclaim.
pub fn apply_writes(
    flash: &FlashSpec,
    ftl: &mut Ftl,
    writes: impl IntoIterator<Item = (u64, u64)>,
) -> Result<Report, Diagnostic> {
    let logical = ftl.logical();
    let mut beyond = None;
    let mut session = Session::new(flash, ftl, 0);
    session.share(config::units::Share::ONE)?;
    let inside = writes.into_iter().map_while(|(first, units)| match first.checked_add(units) {
        Some(end) if end <= logical => Some(first..end),
        _ => {
            beyond = Some((first, units));
            None
        }
    });
    let before = session.done();
    session.write(inside.flatten())?;
    session.finish()?;
    session.amplified_since(before);
    if let Some((first, units)) = beyond {
        let what = format!("a write of {units} map units at {first} ends beyond the {logical} of the device");
        return Err(Diagnostic::new(what));
    }
    session.report("trace")
}
