use super::*;

fn refusals(text: &str) -> Vec<String> {
    parse(text).map(|_| ()).unwrap_err().iter().map(ToString::to_string).collect()
}

const HEAD: &str = "apiVersion: mortise.dev/v1alpha1\n";

#[test]
fn what_is_not_named_is_builtin() {
    assert_eq!(parse(HEAD), Ok(defaults()));
    let spec = parse(&format!("{HEAD}filter: []\ndisruption: paused\n")).unwrap();
    assert!(spec.paused);
    assert_eq!(spec.entries.iter().map(|e| e.name.as_str()).collect::<Vec<_>>(), ["price", "karpenter"]);
}

#[test]
fn reads_every_key_of_an_entry() {
    let sha = "ab".repeat(32);
    let text = format!(
        "{HEAD}score:\n- name: a-1\n  source: {{ inline: a.wasm.gz }}\n  sha256: {sha}\n  onError: skip\n  config: {{ n: 3 }}\n  \
         limits: {{ fuel: 2000000, fuelPerCandidate: 5, deadlineMs: 7, memoryMiB: 8, logLines: 9 }}\n"
    );
    let entry = parse(&text).unwrap().entries.into_iter().find(|e| e.hook == Hook::Score).unwrap();
    assert_eq!((entry.path.as_str(), entry.name.as_str(), entry.sha256), ("score[0]", "a-1", Some(sha)));
    assert_eq!((entry.source, entry.on_error), (Source::Inline("a.wasm.gz".into()), OnError::Skip));
    assert_eq!(entry.config.get("n"), Some(&Value::from(3)));
    let deadline = Some(std::time::Duration::from_millis(7));
    let fuel = Some(2_000_000);
    assert_eq!(entry.limits, Limits { fuel, fuel_per_candidate: 5, deadline, memory_mib: 8, log_lines: 9 });
}

#[test]
fn everything_wrong_is_named_by_its_path() {
    let text = format!(
        "{HEAD}disrupt: paused\nplan: {{ name: default, source: {{ builtin: cost }} }}\nscore:\n- name: Bad_Name\n  \
         source: {{ oci: r.example/a@sha256:00 }}\n  sha256: 12\n  mode: shadow\n  colour: red\n- name: b\n  \
         source: {{ inline: b.wasm }}\n  onError: retry\n  limits: {{ memoryMiB: 0, cpu: 1 }}\n"
    );
    let found = refusals(&text);
    for path in [
        "disrupt",
        "plan",
        "score[0].name",
        "score[0].source.oci",
        "score[0].sha256",
        "score[0].mode",
        "score[0].colour",
        "score[1].sha256",
        "score[1].onError",
        "score[1].limits.memoryMiB",
        "score[1].limits.cpu",
    ] {
        assert!(
            found.iter().any(|f| f.starts_with(&format!("policies.yaml: {path}: "))),
            "{path} is not in {found:#?}"
        );
    }
    assert_eq!(found.len(), 11, "{found:#?}");
}

#[test]
fn not_yaml_not_a_mapping_no_version_a_key_twice() {
    assert!(refusals("a: [").first().unwrap().starts_with("policies.yaml: not YAML"));
    assert!(refusals("- a").first().unwrap().contains("expected a mapping, found a list"));
    assert!(refusals("filter: []").first().unwrap().starts_with("policies.yaml: apiVersion: is missing"));
    assert!(refusals(&format!("{HEAD}filter: []\nfilter: []\n")).first().unwrap().contains("duplicate"));
    assert!(refusals(&format!("{HEAD}filter: 3\n")).first().unwrap().contains("filter: expected a list"));
}

#[test]
fn the_kill_switch_works_in_a_broken_file() {
    assert!(is_paused("disruption: paused\nfilter: [\n"));
    assert!(is_paused("disruption: \"paused\" # now\nfilter: [\n"));
    assert!(is_paused("disruption: paused\nnonsense: 3\n"));
    assert!(!is_paused("filter: [\n  disruption: paused\n"), "only at the top level");
    assert!(!is_paused("disruption: active\n") && !is_paused(""));
}
