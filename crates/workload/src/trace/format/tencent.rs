//! The traces of Tencent's cloud block storage.

use crate::trace::fault::Fault;
use crate::trace::field::Fields;
use crate::trace::format::{Format, FormatInfo, LineParser, Settings, any_request, is_header, ops};
use crate::trace::options::TimeUnit;
use crate::trace::record::{Extent, Sheet};

pub(crate) static FORMAT: Format = Format {
    info: FormatInfo {
        name: "tencent",
        title: "Tencent CBS CSV",
        record: "Timestamp,Offset,Size,IOType,VolumeID",
        units: "time in whole s since 1970; offset and size in sectors of 512 B; type 0 = read, 1 = write; not sorted",
        example: "1538323200,4247200,128,1,1058\n1538323199,13896880,128,0,1063\n",
        source: "SNIA IOTTA trace set 28064",
        time_unit: Some(TimeUnit::Second),
        sector: Some(512),
        whole_seconds: true,
        one_device: false,
    },
    parser: |settings| Box::new(Parser::new(settings)),
    plausible: any_request,
};

struct Parser {
    exponent: u32,
    sector: u64,
    first: bool,
}

impl Parser {
    fn new(settings: &Settings<'_>) -> Parser {
        Parser { exponent: settings.exponent, sector: settings.sector, first: true }
    }
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8], sheet: &mut Sheet) -> Result<(), Fault> {
        if std::mem::take(&mut self.first) && is_header(line, "Timestamp") {
            return Ok(());
        }
        let mut fields = Fields::commas(line);
        let at = fields.next("timestamp")?.whole_time(self.exponent)?;
        let offset = fields.next("offset")?;
        let size = fields.next("size")?;
        let op = ops::zero_is_read(fields.next("type")?)?;
        let volume = fields.next("volume")?;
        volume.integer()?;
        fields.end()?;
        let extent = Extent::read(op, offset, self.sector, size, self.sector)?;
        let flow = sheet.flow(volume)?;
        sheet.request(at, op, extent, flow, false);
        Ok(())
    }
}
