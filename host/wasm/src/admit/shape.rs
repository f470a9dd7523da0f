//! What a component imports and exports, read before anything of it is compiled.

use wasmparser::{Parser, Payload};

use crate::plugin::{CONSOLIDATE, FILTER, LIFECYCLE, PLAN, SCORE};

/// Package of the contract.
const PACKAGE: &str = "mortise:policy/";
/// Minor versions that this host speaks.
const VERSIONS: [&str; 1] = ["0.1"];
/// Interfaces that a plugin may import: no clock, no files, no network, no randomness.
const IMPORTS: [&str; 3] = ["types", "host-log", "host-metrics"];

/// Reads the outermost imports and exports and refuses what a policy may not have.
pub(crate) fn check(component: &[u8]) -> Result<(), String> {
    let (imports, exports) = outline(component)?;
    for import in &imports {
        check_import(import)?;
    }
    for export in exports.iter().filter(|e| e.starts_with(PACKAGE)) {
        check_version(export)?;
    }
    let has = |name: &str| exports.iter().any(|export| same_track(export, name));
    if !has(LIFECYCLE) {
        return Err(format!("does not export {LIFECYCLE}: not a policy plugin"));
    }
    if ![FILTER, SCORE, PLAN, CONSOLIDATE].into_iter().any(has) {
        return Err(format!("exports no hook; a policy exports {FILTER}, {SCORE} or {CONSOLIDATE}"));
    }
    Ok(())
}

fn check_import(name: &str) -> Result<(), String> {
    if name.starts_with("wasi:") {
        return Err(format!(
            "imports {name}: this version links no wasi; build without std, as plugins/sdk does for wasm32-unknown-unknown"
        ));
    }
    let interface = name.strip_prefix(PACKAGE).and_then(|rest| rest.split('@').next());
    if !interface.is_some_and(|interface| IMPORTS.contains(&interface)) {
        return Err(format!("imports {name}: a policy may import only {PACKAGE}{{{}}}", IMPORTS.join(", ")));
    }
    check_version(name)
}

fn check_version(name: &str) -> Result<(), String> {
    let version = name.split_once('@').map_or("", |(_, version)| version);
    let minor = version.rsplit_once('.').map_or("", |(minor, _)| minor);
    if VERSIONS.contains(&minor) {
        return Ok(());
    }
    let version = if version.is_empty() { "no version" } else { version };
    Err(format!("{name}: made for {version} of the contract; this host speaks {}", VERSIONS.join(", ")))
}

/// Equal but for the patch version.
fn same_track(found: &str, wanted: &str) -> bool {
    let track = |name: &str| name.rsplit_once('.').map(|(track, _)| track.to_owned());
    track(found).is_some() && track(found) == track(wanted)
}

/// Names of the outermost imports and exports.
fn outline(component: &[u8]) -> Result<(Vec<String>, Vec<String>), String> {
    let (mut imports, mut exports) = (Vec::new(), Vec::new());
    let broken = |error: wasmparser::BinaryReaderError| format!("broken component: {error}");
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(component) {
        match payload.map_err(broken)? {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(section) if depth == 0 => {
                for import in section {
                    imports.push(import.map_err(broken)?.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) if depth == 0 => {
                for export in section {
                    exports.push(export.map_err(broken)?.name.name.to_owned());
                }
            }
            _ => {}
        }
    }
    Ok((imports, exports))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_contracts_own_interfaces_may_be_imported() {
        assert_eq!(check_import("mortise:policy/host-log@0.1.0"), Ok(()));
        assert_eq!(check_import("mortise:policy/types@0.1.7"), Ok(()));
        for (import, word) in [
            ("wasi:sockets/tcp@0.2.0", "links no wasi"),
            ("acme:net/http", "may import only"),
            ("mortise:policy/secrets@0.1.0", "may import only"),
            ("mortise:policy/types@0.2.0", "speaks 0.1"),
            ("mortise:policy/types", "no version"),
        ] {
            assert!(check_import(import).unwrap_err().contains(word), "{import}");
        }
    }
}
