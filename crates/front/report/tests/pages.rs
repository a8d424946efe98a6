//! What pages are made of.

mod common;

use common::{CHANNELS, DIES, document};
use report::{Run, Shipped, Sweep};
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn run_of(document: Value) -> Run {
    Run { name: "a.json".into(), document }
}

fn page(document: Value) -> String {
    report::run(&run_of(document), None)
}

/// Texts between two texts, again and again.
fn between<'p>(page: &'p str, from: &'p str, to: &'p str) -> impl Iterator<Item = &'p str> {
    page.split(from).skip(1).filter_map(move |rest| rest.split(to).next())
}

fn charts(page: &str) -> Vec<Value> {
    let texts = between(page, "<script type=\"application/json\">", "</script>");
    texts.map(|text| serde_json::from_str(text).expect("data is JSON")).collect()
}

/// The page without its scripts, style and licences.
fn words(page: &str) -> &str {
    let body = page.split("<body>").nth(1).unwrap();
    body.split("<footer>").next().unwrap()
}

#[test]
fn a_page_loads_nothing_and_runs_no_script_but_its_own() {
    let page = page(document(1000));
    let policy = between(&page, "Content-Security-Policy\" content=\"", "\"").next().unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"), "{policy}");
    assert!(!policy.contains("http") && !policy.contains("eval") && !policy.contains('*'), "{policy}");
    let script = policy.split(';').nth(1).unwrap();
    assert!(!script.contains("unsafe"), "{script}");
    for loads in ["<link", "<img", "<iframe", "src=\"", "@import", "url("] {
        assert!(!words(&page).contains(loads), "{loads}");
    }
}

#[test]
fn behind_every_picture_is_a_table_and_each_has_a_name_to_be_read_out() {
    let page = page(document(100_000));
    let figures: Vec<&str> = between(&page, "<figure>", "</figure>").collect();
    assert!(figures.len() >= 12, "{}", figures.len());
    for figure in figures {
        assert!(figure.contains("<figcaption><b>") && figure.contains("role=\"img\""), "{figure}");
        let table = figure.split("<details>").nth(1).unwrap();
        assert!(table.contains("<caption>") && table.matches("<tr>").count() > 1, "{table}");
        assert!(table.contains("scope=\"col\"") && table.contains("scope=\"row\""));
    }
}

#[test]
fn hostile_names_stay_text() {
    let hostile = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'<!--";
    let mut document = document(1000);
    document["system"] = hostile.into();
    document["workload"] = json!([hostile]);
    document["warnings"] = json!([hostile]);
    document["spec"]["description"] = hostile.into();
    document["spec"]["flash"][hostile] = hostile.into();
    document["spec"]["host"]["kind"] = "host".into();
    document["flash"][0]["name"] = hostile.into();
    document["breakdown_ns"] = json!({ hostile: { hostile: 3.0 } });
    document["gpu"] =
        json!([{ "name": hostile, "applications": [{ "name": hostile, "begun_ns": 0.0, "ended_ns": 4.0 }] }]);
    document["energy"] = json!({ "parts": [{ "name": hostile, "energy_j": 1.0, "activities": [{ "activity": hostile, "energy_j": 1.0 }] }] });
    let run = Run { name: hostile.into(), document: document.clone() };
    let mut other = run.clone();
    other.document["io"]["read"]["iops"] = 3.0.into();
    other.document["spec"]["flash"][hostile] = "b".into();
    let shipped = Shipped {
        spec: json!({ hostile: 1 }),
        sources: BTreeMap::from([(hostile.to_owned(), hostile.to_owned())]),
    };
    let column = |name: &str, values: Value| (name.to_owned(), values.as_array().unwrap().clone());
    let sweep = Sweep::new(
        hostile,
        vec![
            column("run", json!([0, 1])),
            column(hostile, json!([hostile, "b"])),
            column("state", json!(["ok", hostile])),
            column("io.all.iops", json!([1.0, 2.0])),
            column("message", json!([null, hostile])),
        ],
    )
    .unwrap();
    let rows = [
        json!({ "id": hostile, "where": hostile, "unit": hostile, "kind": hostile, "paper": 1.0, "measured": 2.0, "tolerance": "5 %", "within": false,
        "evidence": hostile, "note": hostile }),
    ];
    let pages = [
        report::run(&run, Some(&shipped)),
        report::pair(&run, &other),
        report::many(&[run.clone(), other.clone(), run.clone()]),
        report::sweep(&sweep),
        report::rows(&[(hostile, &rows)], hostile),
    ];
    let own = page(common::document(1000)).matches("<script>").count();
    for page in pages {
        assert_eq!(page.matches("<script>").count(), own, "a script that is not the page's");
        assert!(!page.contains("<img") && !page.contains("alert(1)</script>"));
        assert!(page.contains("&lt;/script&gt;"), "the name is not there at all");
        // Data are read back as they were.
        charts(&page);
    }
}

#[test]
fn the_share_of_slower_requests_is_that_of_the_histogram() {
    let mut document = document(1000);
    for kind in ["all", "write"] {
        document["io"].as_object_mut().unwrap().remove(kind);
    }
    document["io"]["read"]["histogram_ns"] =
        json!({ "from": [100, 200, 800], "to": [101, 202, 808], "requests": [90, 9, 1] });
    let chart = charts(&page(document)).into_iter().find(|chart| chart["y"]["tail"] == true).unwrap();
    let curve = &chart["curves"][0];
    // 100 requests: after the first bucket 10 are left, after the second 1, after the third none, which no logarithm
    // shows.
    assert_eq!(curve["x"], json!([100, 101, 200, 202, 800, 808]));
    assert_eq!(curve["y"], json!([1, 0.1, 0.1, 0.01, 0.01, null]));
}

#[test]
fn a_heat_map_has_each_die_in_its_channel() {
    let charts = charts(&page(document(1000)));
    let heat = charts.iter().find(|chart| chart["kind"] == "heat").unwrap();
    let cells = heat["cells"].as_array().unwrap();
    assert_eq!(cells.len(), CHANNELS * DIES);
    // Die 13 is the sixth of the second channel: 0.4 + 0.5 * 2 / 11.
    let found = cells.iter().find(|cell| cell[0] == 1 && cell[1] == 5).unwrap();
    assert!((found[2].as_f64().unwrap() - (0.4 + 1.0 / 11.0)).abs() < 1e-6, "{found}");
}

#[test]
fn what_a_document_lacks_is_said_where_it_would_be() {
    let mut old = document(1000);
    for kind in ["all", "read", "write"] {
        for field in ["histogram_ns", "tail"] {
            old["io"][kind].as_object_mut().unwrap().remove(field);
        }
    }
    for field in ["series", "dies", "channels"] {
        old["flash"][0].as_object_mut().unwrap().remove(field);
    }
    old["flash"][0]["erase_count"].as_object_mut().unwrap().remove("histogram");
    let text = page(old);
    for lacking in ["io.*.histogram_ns", "io.read.tail", "flash.*.series", "flash.*.erase_count.histogram"] {
        assert!(words(&text).contains(&format!("<code>{lacking}</code>")), "{lacking}");
    }
    // The older fields are drawn all the same.
    assert!(charts(&text).iter().any(|chart| chart["kind"] == "heat"));
    assert!(charts(&text).iter().any(|chart| chart["y"]["tail"] == true));
}

#[test]
fn an_empty_document_makes_a_page() {
    let text = page(json!({ "schema": "nandscape.result/2" }));
    assert!(text.ends_with("</html>\n") && words(&text).contains("lacking"));
}

#[test]
fn what_is_not_well_comes_first() {
    let mut bad = document(1000);
    bad["ok"] = false.into();
    bad["checks"][0]["ok"] = false.into();
    bad["checks"][0]["detail"] = "3 issued, 2 completed".into();
    let text = page(bad);
    let first = words(&text).split("<h2").nth(1).unwrap();
    assert!(first.contains("Attention") && first.contains("3 issued, 2 completed"), "{first}");
    assert!(!words(&page(document(1000))).contains("Attention"));
}

#[test]
fn a_run_is_repeated_by_what_was_set_for_it() {
    let run = run_of(document(1000));
    let mut shipped = Shipped { spec: run.document["spec"].clone(), sources: BTreeMap::new() };
    let command = |shipped: &Shipped| {
        let page = report::run(&run, Some(shipped));
        between(&page, "<pre class=\"command\">", "</pre>").next().unwrap().to_owned()
    };
    let workload = "--workload fio:rw=randrw,bs=4k,iodepth=32 --seed 1";
    assert_eq!(command(&shipped), format!("nandscape run d16 {workload}"));
    shipped.spec["flash"]["geometry"]["ways"] = 4.into();
    assert_eq!(command(&shipped), format!("nandscape run d16 --set flash.geometry.ways=8 {workload}"));
    // A key that the run has not cannot be set away.
    shipped.spec["flash"]["other"] = 4.into();
    assert_eq!(command(&shipped), format!("nandscape run spec.toml {workload}"));
}

#[test]
fn figures_that_differ_stand_by_their_ratio() {
    let a = run_of(document(1000));
    let mut b = a.clone();
    b.document["io"]["read"]["iops"] = 250_000.0.into();
    b.document["flash"][0]["erases"] = 8000.into();
    b.document["simulated_ns"] = 2.2e10.into();
    let text = report::pair(&a, &b);
    let table = between(&text, "<table class=\"figures\">", "</table>").next().unwrap();
    let keys: Vec<&str> = between(table, "<th scope=\"row\">", "</th>").collect();
    assert_eq!(keys, ["flash.0.erases", "io.read.iops", "simulated_ns"]);
    assert!(table.contains("× 8") && table.contains("× 0.5") && table.contains("× 1.1"), "{table}");
}

#[test]
fn a_page_of_ten_million_requests_is_below_three_megabytes() {
    let text = page(document(10_000_000));
    assert!(text.len() < 3_000_000, "{}", text.len());
}
