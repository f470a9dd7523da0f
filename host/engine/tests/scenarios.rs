//! Scenarios as data: every file of `tests/scenarios/engine/` holds cases of a snapshot in and decisions out.
//! Ids (`SCH-…`, `PRV-…`, `INS-…`, `DIS-…`) name the behaviours of Karpenter's own suites that a case stands for.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may stop")]

#[path = "scenario/case.rs"]
mod case;
#[path = "scenario/coverage.rs"]
mod coverage;
#[path = "scenario/world.rs"]
mod world;

use std::path::Path;

#[test]
fn every_scenario_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/scenarios/engine");
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let only = std::env::var("SCENARIO").ok();
    let (mut ran, mut failures) = (0, Vec::new());
    let mut coverage = coverage::Coverage::read(&folder.join("../ids.txt"));
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "yaml")) {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(file).unwrap();
        let cases: Vec<case::Case> = serde_norway::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        for case in cases.iter().filter(|case| only.as_ref().is_none_or(|only| case.id.contains(only.as_str()))) {
            ran += 1;
            coverage.count(&case.id);
            failures.extend(
                case.check().into_iter().map(|failure| format!("{name}/{} ({}): {failure}", case.id, case.title)),
            );
        }
    }
    println!("{coverage}");
    assert!(ran > 0, "no scenario was found in {}", folder.display());
    assert!(failures.is_empty(), "{} of {ran} scenarios fail:\n{}", failures.len(), failures.join("\n"));
}
