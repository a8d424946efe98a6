//! A result as it is committed: without what differs from run to run, and with a digest.

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// Fields that say how the run went, or which version made it, and nothing of what was simulated.
const DROPPED: [&str; 2] = ["run", "version"];

pub(super) struct Record {
    document: Value,
}

impl Record {
    /// Drops the volatile fields of a result document.
    pub(super) fn new(mut document: Value) -> Record {
        if let Value::Object(fields) = &mut document {
            for name in DROPPED {
                fields.remove(name);
            }
        }
        Record { document }
    }

    /// Reads a committed file; an error if its digest is not that of its result.
    pub(super) fn parse(text: &str) -> Result<Record> {
        let mut file: Value = serde_json::from_str(text)?;
        let stated = file["digest"].as_str().context("no digest")?.to_string();
        let record = Record { document: file["result"].take() };
        if record.digest() != stated {
            bail!("edited by hand: the digest says {stated}, the result gives {}", record.digest());
        }
        Ok(record)
    }

    pub(super) fn to_text(&self) -> String {
        format!("{:#}\n", json!({ "digest": self.digest(), "result": self.document }))
    }

    pub(super) fn document(&self) -> &Value {
        &self.document
    }

    /// FNV-1a, 64 bit, of the compact text; the keys of an object are in order.
    pub(super) fn digest(&self) -> String {
        format!("{:016x}", fnv1a(self.document.to_string().as_bytes()))
    }
}

/// Parameters from draft-eastlake-fnv, section 5.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test vectors of draft-eastlake-fnv, appendix C.
    #[test]
    fn fnv1a_vectors() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn only_the_simulated_part_counts() {
        let result = |wall: f64, version: &str, seconds: f64, erases: u64| {
            let precondition = json!({ "kind": "steady" });
            let run = json!({ "wall_s": wall, "precondition_cpu_s": seconds });
            Record::new(
                json!({ "run": run, "version": version, "precondition": precondition, "erases": erases }),
            )
        };
        let digest = result(1.0, "0.1.0", 2.0, 3).digest();
        assert_eq!(digest, result(9.0, "0.2.0", 8.0, 3).digest());
        assert_ne!(digest, result(1.0, "0.1.0", 2.0, 4).digest());
    }

    #[test]
    fn the_order_of_keys_does_not_count() {
        let digest = |text| Record::new(serde_json::from_str(text).unwrap()).digest();
        assert_eq!(digest(r#"{"a":1,"b":2}"#), digest(r#"{"b":2,"a":1}"#));
    }

    #[test]
    fn a_file_round_trips_and_an_edit_shows() {
        let record = Record::new(json!({ "mean": 0.1 + 0.2, "p99": null, "reads": u64::MAX }));
        let text = record.to_text();
        assert_eq!(Record::parse(&text).unwrap().digest(), record.digest());
        assert!(Record::parse(&text.replace("null", "1")).is_err());
    }
}
