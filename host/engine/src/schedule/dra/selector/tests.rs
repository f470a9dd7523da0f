use super::*;
use crate::device::{Attribute, Capacity};

fn gpu() -> Device {
    let attributes = [
        ("model", Attribute::String("a100".into())),
        ("gpu.example.com/index", Attribute::Int(3)),
        ("healthy", Attribute::Bool(true)),
        ("vendor.example/driver", Attribute::Version("550.54.15-rc.2".into())),
    ];
    let memory = Capacity { value: "40Gi".parse().unwrap(), policy: None };
    Device {
        name: "gpu-0".into(),
        attributes: attributes.into_iter().map(|(name, value)| (Arc::from(name), value)).collect(),
        capacity: BTreeMap::from([(Arc::from("memory"), memory)]),
        ..Device::default()
    }
}

fn judged(text: &str) -> Result<Match, Arc<str>> {
    let mut selectors = Selectors::default();
    let id = selectors.intern(&Selector::Cel(text.into()))?;
    Ok(selectors.matches(id, &Arc::from("gpu.example.com"), &gpu()))
}

#[test]
fn what_selectors_are_written_with() {
    for (text, expected) in [
        ("device.driver == 'gpu.example.com'", Match::Yes),
        ("device.driver == 'other'", Match::No),
        ("device.attributes['gpu.example.com'].model == 'a100'", Match::Yes),
        (
            "device.attributes[\"gpu.example.com\"].index >= 3 && device.attributes['gpu.example.com'].healthy",
            Match::Yes,
        ),
        ("device.attributes['gpu.example.com'].model.startsWith('h')", Match::No),
        ("'model' in device.attributes['gpu.example.com']", Match::Yes),
        ("'model' in device.attributes['elsewhere']", Match::No),
        ("has(device.attributes['gpu.example.com'].serial)", Match::No),
        ("device.attributes['gpu.example.com'].serial == 'x'", Match::Failed),
        ("device.attributes['gpu.example.com'].?serial.orValue('none') == 'none'", Match::Yes),
        ("device.attributes['gpu.example.com'].model in ['h100', 'a100']", Match::Yes),
        ("['h100', 'a100'].exists(m, m == device.attributes['gpu.example.com'].model)", Match::Yes),
        ("device.attributes['gpu.example.com'].exists(name, name == 'model')", Match::Yes),
        ("size(device.attributes) == 2", Match::Yes),
        ("device.capacity['gpu.example.com'].memory.compareTo(quantity('40Gi')) == 0", Match::Yes),
        ("device.capacity['gpu.example.com'].memory.isGreaterThan(quantity('39.5Gi'))", Match::Yes),
        ("device.capacity['gpu.example.com'].memory.isLessThan(quantity('1Gi').add(quantity('39Gi')))", Match::No),
        ("device.capacity['gpu.example.com'].memory == quantity('40960Mi')", Match::Yes),
        ("device.capacity['gpu.example.com'].memory.asInteger() == 42949672960", Match::Yes),
        ("device.attributes['vendor.example'].driver.isLessThan(semver('550.54.15'))", Match::Yes),
        ("device.attributes['vendor.example'].driver.isGreaterThan(semver('550.54.15-rc.1'))", Match::Yes),
        ("device.attributes['vendor.example'].driver.major() == 550", Match::Yes),
        ("cel.bind(a, device.attributes['gpu.example.com'], a.healthy && a.index == 3)", Match::Yes),
        ("!device.allowMultipleAllocations", Match::Yes),
        ("device.attributes['gpu.example.com'].model", Match::Failed),
        ("1 / 0 == 1", Match::Failed),
    ] {
        assert_eq!(judged(text), Ok(expected), "{text}");
    }
}

#[test]
fn what_is_refused_says_why() {
    let looped = |depth: usize| {
        let mut text = "device.driver == 'x'".to_owned();
        for at in 0..depth {
            text = format!("[1, 2, 3].exists(v{at}, {text})");
        }
        text
    };
    let long_list = format!("[{}]", vec!["1"; 400].join(", "));
    for (text, expected) in [
        ("device.driver ==".to_owned(), "is not CEL"),
        ("device.driver.matches('g.*')".to_owned(), "the function matches is not supported"),
        ("timestamp('2026-01-01T00:00:00Z') > 0".to_owned(), "the function timestamp is not supported"),
        ("{'a': 1}.map(k, k)[0] == 'a'".to_owned(), "map literals are not supported"),
        (looped(5), "comprehensions are nested"),
        (format!("{long_list}.exists(a, {long_list}.exists(b, a == b + 1))"), "steps"),
        (format!("device{}", ".a".repeat(4000)), "nested too deep"),
        (format!("1{} == 1", " + 1".repeat(1000)), "nested too deep"),
        (format!("1{} == 1", " + 1".repeat(2400)), "nested too deep"),
        (format!("'{}'", "x".repeat(20_000)), "bytes"),
    ] {
        let problem = judged(&text).expect_err("it must be refused");
        assert!(problem.contains(expected), "{problem}");
    }
    // What text grows to is counted as well.
    let mut text = format!("'{}'", "z".repeat(900));
    for at in 0..4 {
        text = format!("[{text}].map(v{at}, {})[0]", vec![format!("v{at}"); 20].join(" + "));
    }
    assert!(judged(&format!("{text} == 'z'")).is_err_and(|problem| problem.contains("steps")));
    let unknown = Selectors::default().intern(&Selector::Unknown("future".into()));
    assert!(unknown.is_err_and(|problem| problem.contains("future")));
}

#[test]
fn no_expression_overflows_the_stack() {
    for n in [48, 500, 2000] {
        let around = |open: &str, close: &str| format!("{}1{}", open.repeat(n), close.repeat(n));
        for text in [
            around("(", ")"),
            around("[", "]"),
            around("f(!", ")"),
            around("true ? (", ") : 1"),
            around("-", ""),
            around("!", ""),
            around("", " + 1"),
            around("", " in device"),
            around("true ? 1 : ", ""),
            around("", "[0]"),
            around("{1: ", "}"),
            format!("device{}", ".a".repeat(n)),
            format!("true{}", " || true".repeat(n)),
            "(".repeat(n),
        ] {
            // Refused or answered, it ends.
            let start = std::time::Instant::now();
            let _ = judged(&text);
            assert!(start.elapsed().as_secs() < 2, "{n} {}", text.chars().take(40).collect::<String>());
        }
    }
}

#[test]
fn one_expression_is_compiled_once() {
    let mut selectors = Selectors::default();
    let text = Selector::Cel("device.driver == 'x'".into());
    assert_eq!(selectors.intern(&text), Ok(0));
    assert_eq!(selectors.intern(&text), Ok(0));
    assert_eq!(selectors.compiled.len(), 1);
}
