//! Files of other tools: configurations of MQSim and SimpleSSD, results of fio.

use super::{Target, texts};
use config::Diagnostic;
use fit::{Figures, Point};
use foreign::mqsim::{File, Workloads, import, job_file, read_workloads};
use foreign::{fio, simplessd};
use requests::fio as words;

pub(super) const MQSIM: Target = Target {
    name: "mqsim",
    about: "MQSim's drive, with flows behind it",
    run: run_mqsim,
    examples: || texts(&[&format!("{DRIVE}{FLOWS}"), DRIVE]),
    reads: |bytes| pair(&String::from_utf8_lossy(bytes)).is_ok(),
    cases: 500,
};

pub(super) const SIMPLESSD: Target = Target {
    name: "simplessd",
    about: "SimpleSSD's drive, in sections and as a tree",
    run: run_simplessd,
    examples: || texts(&[SECTIONS, TREE]),
    reads: |bytes| simplessd::import("input", &String::from_utf8_lossy(bytes)).is_ok(),
    cases: 3_500,
};

pub(super) const FIO_JSON: Target = Target {
    name: "fio_json",
    about: "results of fio",
    run: run_fio,
    examples: || texts(&[RESULT]),
    reads: |bytes| fio::read("input", bytes).is_ok(),
    cases: 7_000,
};

pub(super) const POINT: Target = Target {
    name: "point",
    about: "points of a fit by hand",
    run: run_point,
    examples: || {
        texts(&[
            "rw=randread,bs=4k,iodepth=64,numjobs=4,iops=1.5M,p99.9=2ms",
            "rw=write,bs=128k,iodepth=2,bw=1.9GB/s,worn",
        ])
    },
    reads: |bytes| Point::parse("--point", &String::from_utf8_lossy(bytes)).is_ok(),
    cases: 7_000,
};

const DRIVE: &str = "<?xml version=\"1.0\"?>\n<Execution_Parameter_Set><Host_Parameter_Set><PCIe_Lane_Count>4</PCIe_Lane_Count></Host_Parameter_Set><Device_Parameter_Set>
<Flash_Channel_Count>2</Flash_Channel_Count><GC_Exec_Threshold>0.2</GC_Exec_Threshold><Overprovisioning_Ratio>0.3</Overprovisioning_Ratio><Ideal_Mapping_Table>true</Ideal_Mapping_Table>
<Flash_Parameter_Set><Flash_Technology>TLC</Flash_Technology><Block_No_Per_Plane>64</Block_No_Per_Plane><Page_No_Per_Block>12</Page_No_Per_Block></Flash_Parameter_Set>
</Device_Parameter_Set></Execution_Parameter_Set>\n";
const FLOWS: &str = "<MQSim_IO_Scenarios><IO_Scenario><IO_Flow_Parameter_Set_Synthetic><Channel_IDs>0,1</Channel_IDs><Initial_Occupancy_Percentage>50</Initial_Occupancy_Percentage>
<Read_Percentage>40</Read_Percentage><Address_Distribution>RANDOM_HOTCOLD</Address_Distribution><Percentage_of_Hot_Region>20</Percentage_of_Hot_Region>
<Request_Size_Distribution>NORMAL</Request_Size_Distribution><Variance_Request_Size>3</Variance_Request_Size><Synthetic_Generator_Type>BANDWIDTH</Synthetic_Generator_Type>
<Bandwidth>262144</Bandwidth><Stop_Time>1000000</Stop_Time></IO_Flow_Parameter_Set_Synthetic>
<IO_Flow_Parameter_Set_Synthetic><Address_Distribution>STREAMING</Address_Distribution><Total_Requests_To_Generate>9</Total_Requests_To_Generate></IO_Flow_Parameter_Set_Synthetic>
<IO_Flow_Parameter_Set_Trace_Based><File_Path>t</File_Path></IO_Flow_Parameter_Set_Trace_Based></IO_Scenario></MQSim_IO_Scenarios>\n";
const SECTIONS: &str = "[pal]\nChannel = 2\nPlane = 2\nBlock = 64\nNANDType = 2\nDMASpeed = 400\nSuperblockSize = CW\n[ftl]\nGCMode = 1\nFillRatio = 0.5\nFillingMode = 1\nInvalidPageRatio = 0.1\n[icl]\nCacheSize = 1048576\n[nvme]\nPCIELane = 4\n";
const TREE: &str = "<simplessd version=\"2.1\"><section name=\"fil\"><config name=\"Channel\">8</config><section name=\"nand\"><config name=\"DMASpeed\">333m</config><section name=\"timing\"><config name=\"tR\" level=\"0\">65us</config></section></section></section></simplessd>";
const RESULT: &str = r#"{"fio version": "fio-3.33", "global options": {"bs": "4k"}, "jobs": [{"jobname": "a", "groupid": 0, "error": 0, "job options": {"rw": "randread", "iodepth": "1"},
 "usr_cpu": 1.5, "sys_cpu": 2.0, "read": {"io_bytes": 8192, "bw_bytes": 4096, "bw": 4, "iops": 1.5, "runtime": 2000, "total_ios": 2, "slat_ns": {"min": 1, "max": 2, "mean": 1.5, "stddev": 0.7, "N": 2},
 "clat_ns": {"min": 10, "max": 20, "mean": 15.0, "stddev": 7.0, "N": 2, "percentile": {"50.000000": 10, "99.000000": 20}, "bins": {"10": 1, "20": 1}}, "lat_ns": {"min": 11, "max": 22, "mean": 16.5, "stddev": 7.1, "N": 2}},
 "write": {"total_ios": 0, "iops": 0.0}, "sync": {"total_ios": 0}}, {"jobname": "b", "groupid": 1, "job options": {"rw": "randrw", "iodepth": "1"}, "mixed": {"total_ios": 5, "iops": 2, "lat": {"mean": 4, "min": 1, "max": 9}}}]}"#;

/// Drive of a text, for the first of the flows after it if there are any.
fn pair(text: &str) -> Result<foreign::mqsim::Scenario, Diagnostic> {
    let (drive, flows) = text.split_at(text.find("<MQSim_IO_Scenarios").unwrap_or(text.len()));
    let flows: Option<Workloads> =
        if flows.is_empty() { None } else { Some(read_workloads(File { name: "flows", text: flows })?) };
    import(File { name: "drive", text: drive }, flows.as_ref().map(|flows| (flows, 1)))
}

/// Checks that an import gives a spec that parses, and jobs that fio's reader accepts.
fn run_mqsim(bytes: &[u8]) {
    match pair(&String::from_utf8_lossy(bytes)) {
        Ok(scenario) => {
            builds_or_is_refused(&scenario.system.toml());
            assert!(!scenario.system.report(true).is_empty());
            let count = scenario.works.len();
            if let Some(text) = job_file(&scenario.works) {
                let jobs = words::parse_text("jobs", &text).expect("jobs are in fio's words");
                assert!(jobs.jobs.len() <= count);
            }
            for work in scenario.works.iter().filter(|work| work.workload().starts_with("fio:name=")) {
                words::parse_inline(&work.workload()).expect("a job is in fio's words");
            }
        }
        Err(fault) => assert!(!fault.what.is_empty()),
    }
}

fn run_simplessd(bytes: &[u8]) {
    match simplessd::import("input", &String::from_utf8_lossy(bytes)) {
        Ok(system) => builds_or_is_refused(&system.toml()),
        Err(fault) => assert!(!fault.what.is_empty()),
    }
}

/// Checks that the text is TOML: its faults can only be in values.
fn builds_or_is_refused(text: &str) {
    text.parse::<toml::Table>().unwrap_or_else(|fault| panic!("{fault}\n{text}"));
    // Large ones take memory to check.
    if text.len() < 1 << 16 && !text.lines().any(|line| line.starts_with("blocks = ") && line.len() > 40) {
        let small = |key: &str| {
            !text.lines().any(|line| {
                line.starts_with(key) && line.split_whitespace().nth(2).is_some_and(|n| n.len() > 3)
            })
        };
        if ["channels", "ways", "dies", "planes", "blocks"].iter().all(|key| small(key)) {
            let _ = machine::from_text("input", text, &[]);
        }
    }
}

/// Checks that a result gives a document that reports accept and that prints as fio's again, and points of a fit or a
/// reason.
fn run_fio(bytes: &[u8]) {
    match fio::measured(&[("input".to_owned(), bytes.to_vec())]) {
        Ok(jobs) => jobs.iter().for_each(point_or_reason),
        Err(fault) => assert!(!fault.what.is_empty()),
    }
    match fio::read("input", bytes) {
        Ok(document) => {
            assert!(document["io"]["all"]["requests"].is_u64());
            let printed = fio::print(&document, &[]);
            fio::read("again", printed.to_string().as_bytes()).expect("what is printed reads back");
        }
        Err(fault) => assert!(!fault.what.is_empty()),
    }
}

fn point_or_reason(job: &fio::Measured) {
    assert!(job.requests > 0 && job.busy.is_none_or(|busy| busy > 0.0));
    let figures = Figures { iops: Some(job.iops), mean: job.mean, ..Figures::default() };
    match Point::of_fio(&job.options, job.write, figures, job.busy, &job.place) {
        Ok(Ok(point)) => assert!(point.job.write == job.write && point.job.block > 0 && point.job.depth > 0),
        Ok(Err(why)) => assert!(why.starts_with(&job.place)),
        Err(fault) => assert!(!fault.what.is_empty()),
    }
}

fn run_point(bytes: &[u8]) {
    match Point::parse("--point", &String::from_utf8_lossy(bytes)) {
        Ok(point) => {
            let Figures { iops, mean, .. } = point.figures;
            assert!([iops, mean].into_iter().flatten().all(|figure| figure > 0.0 && figure.is_finite()));
        }
        Err(fault) => assert!(!fault.what.is_empty()),
    }
}
