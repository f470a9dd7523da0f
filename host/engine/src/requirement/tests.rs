use super::*;

fn req(key: &str, operator: Operator, values: &[&str]) -> Requirement {
    Requirement::new(key, operator, values)
}

fn values(operator: Operator, list: &[&str]) -> Values {
    Values::new(&req("k", operator, list))
}

use Operator::{DoesNotExist, Exists, Gt, Gte, In, Lt, Lte, NotIn};

#[test]
fn operators_admit_what_they_say() {
    assert!(values(In, &["a", "b"]).has("a") && !values(In, &["a"]).has("b"));
    assert!(values(NotIn, &["a"]).has("b") && !values(NotIn, &["a"]).has("a"));
    assert!(values(Exists, &[]).has("x") && !values(DoesNotExist, &[]).has("x"));
    assert!(values(Gt, &["8"]).has("9") && !values(Gt, &["8"]).has("8"));
    assert!(values(Lt, &["8"]).has("7") && !values(Lt, &["8"]).has("8"));
    assert!(values(Gte, &["8"]).has("8") && values(Lte, &["8"]).has("8"));
    assert!(!values(Gt, &["8"]).has("many") && !values(Gte, &["8"]).has(""));
    assert!(values(Gt, &["9223372036854775807"]).is_nothing());
    assert!(values(Gt, &["many"]).is_nothing() && values(Lte, &[]).is_nothing());
}

#[test]
fn intersections_follow_set_algebra() {
    let meet = |a: &Values, b: &Values| a.intersection(b).to_string();
    assert_eq!(meet(&values(In, &["a", "b"]), &values(NotIn, &["a"])), "In [b]");
    assert_eq!(meet(&values(NotIn, &["a"]), &values(NotIn, &["b"])), "NotIn [a, b]");
    assert_eq!(meet(&values(Exists, &[]), &values(In, &["a"])), "In [a]");
    assert_eq!(meet(&values(In, &["a"]), &values(In, &["b"])), "no value");
    assert_eq!(meet(&values(Gt, &["1"]), &values(Lt, &["5"])), "Gte 2 and Lte 4");
    assert_eq!(meet(&values(Gt, &["5"]), &values(Lt, &["5"])), "no value");
    assert_eq!(meet(&values(Gt, &["2"]), &values(In, &["1", "3", "x"])), "In [3]");
    let bounded = values(Gt, &["2"]).intersection(&values(In, &["3"]));
    assert_eq!((bounded.gte, bounded.lte), (None, None));
    assert!(!values(Gt, &["5"]).intersects(&values(Lt, &["5"])));
    assert!(values(NotIn, &["a"]).intersects(&values(NotIn, &["b"])));
}

#[test]
fn min_values_take_the_larger() {
    let with = |min| Values { min_values: min, ..values(Exists, &[]) };
    assert_eq!(with(Some(2)).intersection(&with(Some(5))).min_values, Some(5));
    assert_eq!(with(None).intersection(&with(Some(1))).min_values, Some(1));
    assert_eq!(
        values(Gt, &["5"]).intersection(&Values { min_values: Some(3), ..values(Lt, &["5"]) }).min_values,
        Some(3)
    );
}

#[test]
fn undefined_keys_fail_unless_allowed_or_absence_is_asked() {
    let node = Requirements::new(&[req("team", In, &["a"])]);
    let ask = |operator, list: &[&str]| Requirements::new(&[req("zone", operator, list)]);
    for (operator, list) in [(In, &["z"][..]), (Exists, &[]), (Gt, &["1"])] {
        assert_eq!(node.compatible(&ask(operator, list), |_| false).unwrap_err().as_ref(), "zone");
        assert!(node.compatible(&ask(operator, list), |key| key == "zone").is_ok());
    }
    assert!(node.compatible(&ask(NotIn, &["z"]), |_| false).is_ok());
    assert!(node.compatible(&ask(DoesNotExist, &[]), |_| false).is_ok());
}

#[test]
fn both_sides_asking_for_absence_agree() {
    let absent = Requirements::new(&[req("k", DoesNotExist, &[])]);
    let not_a = Requirements::new(&[req("k", NotIn, &["a"])]);
    assert!(absent.compatible(&not_a, |_| false).is_ok());
    assert!(not_a.compatible(&absent, |_| false).is_ok());
    let a = Requirements::new(&[req("k", In, &["a"])]);
    assert!(a.compatible(&absent, |_| false).is_err());
    assert!(a.compatible(&not_a, |_| false).is_err());
}

#[test]
fn presence_survives_what_is_left_of_the_values() {
    let both = values(Exists, &[]).intersection(&values(NotIn, &["a"]));
    assert!(!both.allows_absence() && values(NotIn, &["a"]).allows_absence());
    let key: Arc<str> = "k".into();
    let written = both.to_requirements(&key);
    assert_eq!(Requirements::new(&written).get("k"), Some(&both));
    // Absent here, there with any value: each could be met alone.
    let absent = Requirements::new(&[req("k", DoesNotExist, &[])]);
    assert!(absent.compatible(&Requirements::new(&written), |_| true).is_err());
    let never = Requirements::new(&[req("k", In, &["x"]), req("k", NotIn, &["x"])]);
    assert!(Requirements::default().compatible(&never, |_| true).is_err());
    assert!(Requirements::default().compatible(&absent, |_| false).is_ok());
}

#[test]
fn writes_back_what_it_read() {
    let set = Requirements::new(&[req("k", Gt, &["1"]), req("k", Lt, &["9"]), req("z", In, &["b", "a"])]);
    let shown: Vec<String> = set.to_requirements().iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["k Gte 2", "k Lte 8", "z In [a, b]"]);
    assert_eq!(Requirements::new(&set.to_requirements()), set);
}

#[test]
fn hints_find_typing_errors() {
    let zones = ["us-east-1a", "us-east-1b", "us-east-1c"];
    assert_eq!(similar("us-east-1z", zones), Some("us-east-1a"));
    assert_eq!(similar("us-esat-1b", zones), Some("us-east-1b"));
    assert_eq!(similar("m5.lrage", ["c5.large", "m5.large"]), Some("m5.large"));
    assert_eq!(
        similar("kubernetes.io/zone", ["topology.kubernetes.io/zone", "kubernetes.io/os"]),
        Some("topology.kubernetes.io/zone")
    );
    assert_eq!(similar("zone", ["topology.kubernetes.io/zone"]), Some("topology.kubernetes.io/zone"));
    assert_eq!(similar("gpu-family", ["kubernetes.io/arch"]), None);
}

#[test]
fn long_lists_are_cut_in_messages() {
    let many: Vec<String> = (0..9).map(|n| n.to_string()).collect();
    let shown = Values::new(&Requirement::new("k", In, &many)).to_string();
    assert_eq!(shown, "In [0, 1, 2, 3, 4 and 4 more]");
}

#[test]
fn a_value_is_made_up_only_where_one_is_needed_and_never_an_excluded_one() {
    let value = |requirements: &[(Operator, &[&str])]| {
        let list: Vec<Requirement> =
            requirements.iter().map(|(operator, values)| Requirement::new("k", *operator, values.iter())).collect();
        any_value(Requirements::new(&list).get("k").unwrap()).map(|value| value.to_string())
    };
    let exists: (Operator, &[&str]) = (Operator::Exists, &[]);
    assert_eq!(value(&[(Operator::In, &["b", "a"])]).as_deref(), Some("a"));
    assert_eq!(value(&[exists]).as_deref(), Some("0"));
    assert_eq!(value(&[exists, (Operator::NotIn, &["0", "2"])]).as_deref(), Some("1"));
    assert_eq!(value(&[(Operator::Gt, &["7"]), (Operator::NotIn, &["8"])]).as_deref(), Some("9"));
    assert_eq!(value(&[(Operator::Gte, &["3"]), (Operator::Lte, &["4"]), (Operator::NotIn, &["3", "4"])]), None);
    // Bounds at the ends of the range do not panic and never leave it.
    assert_eq!(value(&[(Operator::Lt, &["0"])]), None);
    assert_eq!(value(&[(Operator::Gte, &["9223372036854775807"])]).as_deref(), Some("9223372036854775807"));
    assert_eq!(value(&[(Operator::NotIn, &["x"])]), None);
    assert_eq!(value(&[(Operator::DoesNotExist, &[])]), None);
}
