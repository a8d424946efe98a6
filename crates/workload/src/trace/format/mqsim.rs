//! MQSim's ASCII traces.

use crate::trace::fault::Fault;
use crate::trace::field::Fields;
use crate::trace::format::{Format, FormatInfo, LineParser, Settings, any_request, ops};
use crate::trace::options::TimeUnit;
use crate::trace::record::{Extent, Sheet};

pub(crate) static FORMAT: Format = Format {
    info: FormatInfo {
        name: "mqsim",
        title: "MQSim ASCII",
        record: "time device start_sector sectors type",
        units: "time in whole ns; sectors of 512 B; type 1 = read, 0 = write",
        example: "938513000 4 264719034 16 0\n938828000 3 197570570 16 1\n",
        source: "CMU-SAFARI/MQSim, ASCII_Trace_Definition.h and README",
        time_unit: Some(TimeUnit::Nanosecond),
        sector: Some(512),
        whole_seconds: false,
        one_device: true,
    },
    parser: |settings| Box::new(Parser::new(settings)),
    plausible: any_request,
};

struct Parser {
    exponent: u32,
    sector: u64,
}

impl Parser {
    fn new(settings: &Settings<'_>) -> Parser {
        Parser { exponent: settings.exponent, sector: settings.sector }
    }
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8], sheet: &mut Sheet) -> Result<(), Fault> {
        let mut fields = Fields::blanks(line);
        let at = fields.next("time")?.whole_time(self.exponent)?;
        let device = fields.next("device")?;
        device.integer()?;
        let start = fields.next("start sector")?;
        let sectors = fields.next("number of sectors")?;
        let op = ops::one_is_read(fields.next("type")?)?;
        fields.end()?;
        let extent = Extent::read(op, start, self.sector, sectors, self.sector)?;
        let flow = sheet.flow(device)?;
        sheet.request(at, op, extent, flow, false);
        Ok(())
    }
}
