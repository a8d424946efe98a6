//! Options that shape the requests, and how each is read.

use config::Diagnostic;
use engine::Time;

use super::distribution::{parse_bssplit, parse_distribution};
use super::spec::{Engine, JobSpec, Pattern, Rw};
use super::table::{FioOption, honoured};
use super::value::Value;
use crate::synth::{Arrival, Follow};

type Set = Result<(), Diagnostic>;

const SECOND: Time = Time::from_s(1);
const MICROSECOND: Time = Time::from_us(1);

/// Rows of the table.
pub(super) const HONOURED: &[FioOption] = &[
    honoured("name", None, name, "name of the job; names its flow in the result"),
    honoured(
        "kb_base",
        None,
        kb_base,
        "1024 (default): k is 1024 and kib is 1000; 1000: the standard meaning",
    ),
    honoured(
        "rw",
        Some("readwrite"),
        rw,
        "pattern: read write trim rw trimwrite, rand before any; :N as in fio",
    ),
    honoured("rw_sequencer", None, rw_sequencer, "next offset after a random block under rw=rand...:N"),
    honoured("bs", Some("blocksize"), bs, "request size in bytes: read,write,trim").list(),
    honoured("bsrange", Some("blocksize_range"), bsrange, "range of request sizes: low-high per direction")
        .list(),
    honoured("bssplit", None, bssplit, "request sizes by percent: size/percent:size/percent per direction")
        .list(),
    honoured("bs_is_seq_rand", None, bs_is_seq_rand, "read bs as sequential,random instead of read,write"),
    honoured("ba", Some("blockalign"), ba, "alignment of random requests; turns the random map off").list(),
    honoured(
        "ioengine",
        None,
        ioengine,
        "blocking engines have depth 1, asynchronous ones iodepth; mmap loads and stores pages of the host's page cache",
    ),
    honoured(
        "direct",
        None,
        direct,
        "0: through the host's page cache, one request per job at a time; 1: bypasses the cache on a host with a kernel (`host.linux`); absent, or on any other host: straight to the device",
    ),
    honoured("buffered", None, buffered, "the opposite of `direct`"),
    honoured(
        "hipri",
        None,
        hipri,
        "with direct=1 and io_uring on a host with a kernel: the job polls for completions on its core; no effect otherwise",
    ),
    honoured("iodepth", None, iodepth, "maximum outstanding requests"),
    honoured(
        "numjobs",
        None,
        numjobs,
        "clones of the job, each with its own flow, and its own files unless `filename` names them",
    ),
    honoured(
        "size",
        None,
        size,
        "size of the region and of a pass: bytes, or percent of the file or the drive",
    ),
    honoured("io_size", Some("io_limit"), io_size, "bytes to transfer, if other than `size`"),
    honoured(
        "offset",
        Some("fileoffset"),
        offset,
        "start of the region: bytes, or percent of the file or the drive",
    ),
    honoured("offset_align", None, offset_align, "a percentage offset is rounded up to a multiple of this"),
    honoured("offset_increment", None, offset_increment, "added n times to the offset of clone n"),
    honoured(
        "number_ios",
        None,
        number_ios,
        "requests after which the job ends, unless its bytes end it first",
    ),
    honoured("loops", None, loops, "passes over the region"),
    honoured(
        "runtime",
        Some("timeout"),
        runtime,
        "simulated time after which the job ends, not counting the ramp",
    ),
    honoured("time_based", None, time_based, "run until runtime; bytes and number_ios do not end the job"),
    honoured("ramp_time", None, ramp_time, "time at the start excluded from results"),
    honoured("startdelay", None, startdelay, "time or range of times before the job starts"),
    honoured("stonewall", Some("wait_for_previous"), stonewall, "start after all previous jobs have ended"),
    honoured(
        "rwmixread",
        None,
        rwmixread,
        "percent of reads in a mixed job; the last of rwmixread and rwmixwrite wins",
    ),
    honoured(
        "rwmixwrite",
        None,
        rwmixwrite,
        "percent of writes in a mixed job; the last of rwmixread and rwmixwrite wins",
    ),
    honoured("percentage_random", None, percentage_random, "percent of random requests in a random job").list(),
    honoured("random_distribution", None, random_distribution, "random zipf pareto normal zoned zoned_abs")
        .list(),
    honoured("norandommap", None, norandommap, "draw blocks with replacement, not each once in a pass"),
    honoured("randseed", None, randseed, "seed of this job, independent of the run's seed"),
    honoured(
        "randrepeat",
        Some("allrandrepeat"),
        randrepeat,
        "1 (default): each pass repeats the first, as in fio",
    ),
    honoured("rate", None, rate, "cap in bytes per second; latency counts from the due time").list(),
    honoured("rate_iops", None, rate_iops, "cap in requests per second; latency counts from the due time")
        .list(),
    honoured(
        "rate_min",
        Some("ratemin"),
        rate_min,
        "bytes per second in each rate_cycle below which fio ends the job; the result names the cycle",
    )
    .list(),
    honoured(
        "rate_iops_min",
        None,
        rate_iops_min,
        "requests per second in each rate_cycle below which fio ends the job; no effect with rate_min, as in fio",
    )
    .list(),
    honoured(
        "rate_cycle",
        Some("ratecycle"),
        rate_cycle,
        "length of the cycles in which rate_min and rate_iops_min are checked",
    ),
    honoured("max_latency", None, max_latency, "latency above which fio ends the job; the result reports it")
        .list(),
    honoured("rate_process", None, rate_process, "linear: evenly spaced; poisson: exponential gaps"),
    honoured("thinktime", None, thinktime, "pause once the queue is empty; microseconds without a unit"),
    honoured("thinktime_blocks", None, thinktime_blocks, "requests between pauses"),
    honoured("thinktime_blocks_type", None, thinktime_blocks_type, "count complete or issue"),
    honoured("thinktime_iotime", None, thinktime_iotime, "time between pauses; seconds without a unit"),
    honoured("fsync", None, fsync, "number of writes between flushes"),
    honoured("fdatasync", None, fdatasync, "as fsync: a device sees the same flush"),
    honoured("end_fsync", None, end_fsync, "a flush at the end of each pass"),
    honoured(
        "fsync_on_close",
        None,
        fsync_on_close,
        "as end_fsync: fio closes its file at the end of a pass",
    ),
    honoured("sync", None, sync, "none; sync, dsync or 1: writes carry force unit access"),
];

fn name(job: &mut JobSpec, v: Value) -> Set {
    job.name = v.text()?.to_owned();
    Ok(())
}

fn kb_base(job: &mut JobSpec, v: Value) -> Set {
    job.kb_base = v.word(&[("1024", 1024), ("1000", 1000)])?;
    Ok(())
}

fn rw(job: &mut JobSpec, v: Value) -> Set {
    use Pattern::*;
    let text = v.text()?;
    let (word, modifier) = text.split_once(':').map_or((text, None), |(word, rest)| (word, Some(rest)));
    let (pattern, random) = v.with(word).word(&[
        ("read", (Read, false)),
        ("write", (Write, false)),
        ("trim", (Trim, false)),
        ("rw", (Mixed, false)),
        ("readwrite", (Mixed, false)),
        ("trimwrite", (TrimWrite, false)),
        ("randread", (Read, true)),
        ("randwrite", (Write, true)),
        ("randtrim", (Trim, true)),
        ("randrw", (Mixed, true)),
        ("randtrimwrite", (TrimWrite, true)),
    ])?;
    let modifier = match modifier {
        None => None,
        Some(_) if pattern == TrimWrite => {
            return Err(Diagnostic::new(format!("`{word}` takes no number after a colon")));
        }
        Some(number) if random => Some(v.with(number).number(1, u32::MAX as u64)? as i64),
        Some(number) => Some(signed_bytes(v, number)?),
    };
    job.rw = Rw { pattern, random, modifier };
    Ok(())
}

fn signed_bytes(v: Value, text: &str) -> Result<i64, Diagnostic> {
    let (digits, sign) = text.strip_prefix('-').map_or((text, 1), |digits| (digits, -1));
    let bytes = v.with(digits).bytes()?;
    let bytes = i64::try_from(bytes).map_err(|_| Diagnostic::new(format!("`{text}` is too large")))?;
    Ok(sign * bytes)
}

fn rw_sequencer(job: &mut JobSpec, v: Value) -> Set {
    job.follow = v.word(&[("sequential", Follow::Next), ("identical", Follow::Same)])?;
    Ok(())
}

fn bs(job: &mut JobSpec, v: Value) -> Set {
    let text = v.text()?;
    let nearest = match text {
        _ if text.contains('/') => Some(("a split", format!("bssplit={text}"))),
        _ if text.contains(['-', ':']) && !text.starts_with('-') => {
            Some(("a range", format!("bsrange={}", text.replace(':', "-"))))
        }
        _ => None,
    };
    if let Some((noun, nearest)) = nearest {
        let nearest = Some(nearest);
        return Err(Diagnostic { nearest, ..Diagnostic::new(format!("`{text}` is {noun}, not a size")) });
    }
    v.each(&mut job.bs, Value::some_bytes)
}

/// Reads ranges separated by commas, or by slashes (fio's HOWTO, "irange").
fn bsrange(job: &mut JobSpec, v: Value) -> Set {
    let text = v.text()?;
    let plain = |part: &str| v.with(part.trim()).some_bytes().is_ok();
    if text.split(',').all(plain) {
        let (low, high) = text.split_once(',').unwrap_or((text, text));
        let nearest = Some(format!("bsrange={}-{}", low.trim(), high.trim()));
        let help = "write bs=4k for one size, bs=4k,64k for reads and writes";
        let what = format!("`{text}` is not a range such as 4k-64k");
        return Err(Diagnostic { nearest, ..Diagnostic::new(what) }.help(help));
    }
    let text = text.replace('/', ",");
    v.with(&text).each(&mut job.bsrange, |part| {
        let text = part.text()?;
        let (low, high) = text
            .split_once(['-', ':'])
            .ok_or_else(|| Diagnostic::new(format!("`{text}` is not a range such as 4k-64k")))?;
        let (low, high) = (part.with(low.trim()).some_bytes()?, part.with(high.trim()).some_bytes()?);
        Ok(Some((low.min(high), low.max(high))))
    })
}

fn bssplit(job: &mut JobSpec, v: Value) -> Set {
    v.each(&mut job.bssplit, |part| parse_bssplit(part).map(Some))
}

fn bs_is_seq_rand(job: &mut JobSpec, v: Value) -> Set {
    job.bs_is_seq_rand = v.boolean()?;
    Ok(())
}

fn ba(job: &mut JobSpec, v: Value) -> Set {
    v.each(&mut job.blockalign, |part| part.some_bytes().map(Some))
}

/// Engines of fio that do not issue plain requests to a local block device.
const OTHER_ENGINES: &[&str] = &[
    "null",
    "vsync",
    "splice",
    "sg",
    "libzbc",
    "net",
    "netsplice",
    "cpuio",
    "rdma",
    "falloc",
    "ftruncate",
    "e4defrag",
    "rados",
    "rbd",
    "http",
    "gfapi",
    "gfapi_async",
    "libhdfs",
    "mtd",
    "dev-dax",
    "external",
    "exec",
    "filecreate",
    "filestat",
    "filedelete",
    "dircreate",
    "dirstat",
    "dirdelete",
    "nbd",
    "libpmem",
    "pmemblk",
    "libcufile",
    "libhipfile",
    "libiscsi",
    "ime_psync",
    "ime_psyncv",
    "ime_aio",
    "dfs",
    "nfs",
];

fn ioengine(job: &mut JobSpec, v: Value) -> Set {
    let text = v.text()?;
    // Plug-in given by its path: SPDK's are called spdk_nvme and spdk_bdev, or fio_plugin in older versions.
    let is_path = text.contains('/');
    if is_path && (text.contains("spdk") || text.ends_with("fio_plugin")) {
        job.engine = Some(Engine::Passthrough);
        return Ok(());
    }
    if OTHER_ENGINES.contains(&text.split(':').next().unwrap_or(text)) {
        return Err(Diagnostic::new(
            "the engine is not supported: it does not issue requests to a block device",
        )
        .help("libaio or io_uring keep iodepth requests in flight, psync keeps one"));
    }
    job.engine = Some(v.word(&[
        ("sync", Engine::Blocking),
        ("psync", Engine::Blocking),
        ("pvsync", Engine::Blocking),
        ("pvsync2", Engine::Blocking),
        ("mmap", Engine::Mapped),
        ("libaio", Engine::Libaio),
        ("windowsaio", Engine::OtherQueued),
        ("solarisaio", Engine::OtherQueued),
        ("posixaio", Engine::OtherQueuedFlush),
        ("io_uring", Engine::IoUring),
        ("io_uring_cmd", Engine::Passthrough),
        ("spdk", Engine::Passthrough),
        ("spdk_bdev", Engine::Passthrough),
        ("xnvme", Engine::Passthrough),
        ("libblkio", Engine::Passthrough),
    ])?);
    Ok(())
}

fn hipri(job: &mut JobSpec, v: Value) -> Set {
    job.hipri = v.flag()?;
    Ok(())
}

fn iodepth(job: &mut JobSpec, v: Value) -> Set {
    job.iodepth = v.number(1, u32::MAX as u64)? as u32;
    Ok(())
}

fn numjobs(job: &mut JobSpec, v: Value) -> Set {
    // Flows are numbered in 16 bits.
    job.numjobs = v.number(1, 65_535)? as u16;
    Ok(())
}

fn size(job: &mut JobSpec, v: Value) -> Set {
    job.size = Some(v.quantity()?);
    Ok(())
}

fn io_size(job: &mut JobSpec, v: Value) -> Set {
    job.io_size = Some(v.quantity()?);
    Ok(())
}

fn offset(job: &mut JobSpec, v: Value) -> Set {
    job.offset = v.quantity_or_none()?;
    Ok(())
}

fn offset_align(job: &mut JobSpec, v: Value) -> Set {
    job.offset_align = Some(v.bytes()?).filter(|&bytes| bytes > 0);
    Ok(())
}

fn offset_increment(job: &mut JobSpec, v: Value) -> Set {
    job.offset_increment = v.quantity_or_none()?;
    Ok(())
}

fn number_ios(job: &mut JobSpec, v: Value) -> Set {
    job.number_ios = Some(v.bytes()?).filter(|&n| n > 0);
    Ok(())
}

fn loops(job: &mut JobSpec, v: Value) -> Set {
    job.loops = v.number(1, u32::MAX as u64)?;
    Ok(())
}

fn runtime(job: &mut JobSpec, v: Value) -> Set {
    job.runtime = Some(v.time(SECOND)?).filter(|&time| time > Time::ZERO);
    Ok(())
}

fn time_based(job: &mut JobSpec, v: Value) -> Set {
    job.time_based = v.flag()?;
    Ok(())
}

fn ramp_time(job: &mut JobSpec, v: Value) -> Set {
    job.ramp_time = v.time(SECOND)?;
    Ok(())
}

fn startdelay(job: &mut JobSpec, v: Value) -> Set {
    job.start_delay = v.times(SECOND)?;
    Ok(())
}

fn stonewall(job: &mut JobSpec, v: Value) -> Set {
    job.stonewall = v.flag()?;
    Ok(())
}

fn rwmixread(job: &mut JobSpec, v: Value) -> Set {
    job.rwmixread = v.number(0, 100)? as u8;
    Ok(())
}

fn rwmixwrite(job: &mut JobSpec, v: Value) -> Set {
    job.rwmixread = 100 - v.number(0, 100)? as u8;
    Ok(())
}

fn percentage_random(job: &mut JobSpec, v: Value) -> Set {
    v.each(&mut job.percentage_random, |part| Ok(part.number(0, 100)? as u8))
}

fn random_distribution(job: &mut JobSpec, v: Value) -> Set {
    job.distribution = parse_distribution(v)?;
    Ok(())
}

fn norandommap(job: &mut JobSpec, v: Value) -> Set {
    job.norandommap = v.flag()?;
    Ok(())
}

fn randseed(job: &mut JobSpec, v: Value) -> Set {
    job.randseed = Some(v.bytes()?);
    Ok(())
}

fn randrepeat(job: &mut JobSpec, v: Value) -> Set {
    job.randrepeat = v.boolean()?;
    Ok(())
}

fn rate(job: &mut JobSpec, v: Value) -> Set {
    v.each(&mut job.rate, Value::bytes)
}

fn rate_iops(job: &mut JobSpec, v: Value) -> Set {
    v.each(&mut job.rate_iops, Value::bytes)
}

fn rate_min(job: &mut JobSpec, v: Value) -> Set {
    v.each(&mut job.guards.rate_min, Value::bytes)
}

fn rate_iops_min(job: &mut JobSpec, v: Value) -> Set {
    v.each(&mut job.guards.rate_iops_min, Value::bytes)
}

fn rate_cycle(job: &mut JobSpec, v: Value) -> Set {
    job.guards.rate_cycle = v.time(Time::from_ms(1))?;
    Ok(())
}

fn max_latency(job: &mut JobSpec, v: Value) -> Set {
    v.each(&mut job.guards.max_latency, |part| {
        Ok(Some(part.time(MICROSECOND)?).filter(|most| *most > Time::ZERO))
    })
}

fn rate_process(job: &mut JobSpec, v: Value) -> Set {
    job.arrival = v.word(&[("linear", Arrival::Linear), ("poisson", Arrival::Poisson)])?;
    Ok(())
}

fn thinktime(job: &mut JobSpec, v: Value) -> Set {
    job.thinktime = v.time(MICROSECOND)?;
    Ok(())
}

fn thinktime_blocks(job: &mut JobSpec, v: Value) -> Set {
    job.thinktime_blocks = Some(v.number(1, u64::MAX)?);
    Ok(())
}

fn thinktime_blocks_type(job: &mut JobSpec, v: Value) -> Set {
    job.thinktime_on_completion = v.word(&[("complete", true), ("issue", false)])?;
    Ok(())
}

fn thinktime_iotime(job: &mut JobSpec, v: Value) -> Set {
    job.thinktime_iotime = v.time(SECOND)?;
    Ok(())
}

fn fsync(job: &mut JobSpec, v: Value) -> Set {
    job.fsync = v.bytes()?;
    Ok(())
}

fn fdatasync(job: &mut JobSpec, v: Value) -> Set {
    job.fdatasync = v.bytes()?;
    Ok(())
}

fn end_fsync(job: &mut JobSpec, v: Value) -> Set {
    job.end_fsync = v.boolean()?;
    Ok(())
}

fn fsync_on_close(job: &mut JobSpec, v: Value) -> Set {
    job.fsync_on_close = v.boolean()?;
    Ok(())
}

fn sync(job: &mut JobSpec, v: Value) -> Set {
    job.sync = v.word(&[("none", false), ("0", false), ("sync", true), ("dsync", true), ("1", true)])?;
    Ok(())
}

fn direct(job: &mut JobSpec, v: Value) -> Set {
    job.buffered = Some(!v.boolean()?);
    Ok(())
}

fn buffered(job: &mut JobSpec, v: Value) -> Set {
    job.buffered = Some(v.boolean()?);
    Ok(())
}
