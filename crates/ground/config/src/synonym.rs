//! Common words for things that have a different name here.

/// Word, its name here, and a hint where that name is not a choice.
const SYNONYMS: &[(&str, &str, &str)] = &[
    ("waf", "write_amplification", "`flash.0.write_amplification` of a result"),
    ("wa", "write_amplification", "`flash.0.write_amplification` of a result"),
    ("op", "over_provisioning", "the key `flash.ftl.over_provisioning`"),
    ("overprovisioning", "over_provisioning", "the key `flash.ftl.over_provisioning`"),
    ("spare", "over_provisioning", "the key `flash.ftl.over_provisioning`"),
    ("qd", "iodepth", QUEUE_DEPTH),
    ("queue_depth", "iodepth", QUEUE_DEPTH),
    ("queuedepth", "iodepth", QUEUE_DEPTH),
    ("lat", "latency_ns", "`io.read.latency_ns` and `io.write.latency_ns` of a result"),
    ("latency", "latency_ns", "`io.read.latency_ns` and `io.write.latency_ns` of a result"),
    ("avg", "mean", "such as `io.read.latency_ns.mean` of a result"),
    ("average", "mean", "such as `io.read.latency_ns.mean` of a result"),
    ("median", "p50", "such as `io.read.latency_ns.p50` of a result"),
    ("p999", "p99_9", "such as `io.read.latency_ns.p99_9` of a result"),
    ("p99.9", "p99_9", "such as `io.read.latency_ns.p99_9` of a result"),
    ("p9999", "p99_99", "such as `io.read.latency_ns.p99_99` of a result"),
    ("p99.99", "p99_99", "such as `io.read.latency_ns.p99_99` of a result"),
    ("bw", "bandwidth_bytes_per_s", "such as `io.all.bandwidth_bytes_per_s` of a result"),
    ("throughput", "bandwidth_bytes_per_s", "such as `io.all.bandwidth_bytes_per_s` of a result"),
    ("luns", "dies", "the key `flash.geometry.dies`"),
    ("chips", "ways", "the key `flash.geometry.ways`"),
    ("pagesize", "page_size", "the key `flash.geometry.page_size`"),
    ("blocks_per_plane", "blocks", "the key `flash.geometry.blocks`"),
    ("pages_per_block", "pages", "the key `flash.geometry.pages`"),
    ("tr", "read", "the key `flash.cell.read`"),
    ("tprog", "program", "the key `flash.cell.program`"),
    ("tbers", "erase", "the key `flash.cell.erase`"),
];

const QUEUE_DEPTH: &str = "`iodepth` of a job (fio:rw=randread,bs=4k,iodepth=32), --queue-depth of a trace, \
                           `flash.host.nvme.depth` of a drive";

/// Returns the name that `word` has here, and where to find it.
pub fn meant(word: &str) -> Option<(&'static str, &'static str)> {
    let word = word.to_ascii_lowercase().replace([' ', '-'], "_");
    SYNONYMS.iter().find(|(typed, ..)| *typed == word).map(|(_, name, place)| (*name, *place))
}

/// Returns the candidate whose last segment is `given`, or the name that `given` means; `given` may be a key path.
/// Among several, the one that shares the most tables with it wins, then the one in the fewest tables.
pub(crate) fn ends_in<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A percentile may be written with a decimal point.
    let table = match meant(given) {
        Some(_) => "",
        None => given.rsplit_once('.').map_or("", |(table, _)| table),
    };
    let last = given.strip_prefix(table).map_or(given, |name| name.trim_start_matches('.'));
    let candidates: Vec<&str> = candidates.into_iter().filter(|candidate| *candidate != given).collect();
    let is_called =
        |name: &str| candidates.iter().any(|candidate| candidate.rsplit('.').next() == Some(name));
    let name = if is_called(last) { last } else { meant(last)?.0 };
    let shared = |candidate: &str| {
        let tables = candidate.rsplit_once('.').map_or("", |(table, _)| table);
        tables.split('.').zip(table.split('.')).take_while(|(a, b)| a == b && !a.is_empty()).count()
    };
    let called = candidates.into_iter().filter(|candidate| candidate.rsplit('.').next() == Some(name));
    // Among equals, the least deeply nested; among these, the first.
    called.min_by_key(|candidate| (std::cmp::Reverse(shared(candidate)), candidate.matches('.').count()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_lead_to_names() {
        assert_eq!(meant("WAF").map(|(name, _)| name), Some("write_amplification"));
        assert_eq!(meant("greedy"), None);
        let keys = ["flash.ftl.over_provisioning", "flash.cell.read", "memory.dram.read", "iodepth"];
        for (given, key) in [
            ("op", keys[0]),
            ("flash.ftl.op", keys[0]),
            ("over_provisioning", keys[0]),
            ("tr", keys[1]),
            ("memory.dram.tr", keys[2]),
            ("QD", keys[3]),
        ] {
            assert_eq!(ends_in(given, keys), Some(key), "{given}");
        }
        assert_eq!(ends_in("waf", keys), None);
        assert_eq!(ends_in("p99.9", ["io.p99", "io.p99_9"]), Some("io.p99_9"));
    }

    #[test]
    fn no_word_stands_twice() {
        for (n, (word, ..)) in SYNONYMS.iter().enumerate() {
            assert!(SYNONYMS[..n].iter().all(|(other, ..)| other != word), "{word}");
        }
    }
}
