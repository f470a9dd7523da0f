use super::*;

fn milli(text: &str) -> i64 {
    text.parse::<Quantity>().unwrap().milli()
}

fn value(text: &str) -> i64 {
    text.parse::<Quantity>().unwrap().value()
}

#[test]
fn parses_every_suffix() {
    for (text, expected) in [
        ("1", 1),
        ("0", 0),
        ("1k", 1_000),
        ("2M", 2_000_000),
        ("3G", 3_000_000_000),
        ("1T", 1_000_000_000_000),
        ("1P", 1_000_000_000_000_000),
        ("1E", 1_000_000_000_000_000_000),
        ("1Ki", 1 << 10),
        ("1Mi", 1 << 20),
        ("1.5Gi", 3 << 29),
        ("1Ti", 1 << 40),
        ("1Pi", 1 << 50),
        ("1Ei", 1 << 60),
        ("1e3", 1_000),
        ("12E2", 1_200),
        ("1.5e3", 1_500),
        ("5e-1", 1),
        ("+7", 7),
        ("-3", -3),
        (".5", 1),
        ("5.", 5),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn rounds_up_to_the_unit() {
    assert_eq!(milli("250m"), 250);
    assert_eq!(milli("0.1"), 100);
    assert_eq!(milli("0.0001"), 1);
    assert_eq!(milli("1n"), 1);
    assert_eq!(milli("1500000u"), 1500);
    assert_eq!(value("100m"), 1);
    assert_eq!(value("0.1Ki"), 103);
    assert_eq!(value("-0.5"), 0);
    assert_eq!(value("0.0000000001"), 1);
}

#[test]
fn huge_values_stop_at_the_largest() {
    assert_eq!(value("100E"), i64::MAX);
    assert_eq!(value("9999999999999999999999999999999999999999"), i64::MAX);
    assert_eq!(value("1e400"), i64::MAX);
    assert_eq!(value("8Ei"), i64::MAX);
    assert_eq!(value("0e999999999"), 0);
    assert_eq!(value("-100E"), -i64::MAX);
}

#[test]
fn refuses_garbage_and_says_how_to_write_it() {
    for text in ["", "m", "1K", "1Kib", "1 Gi", "one", "1.2.3", "1e", "1e1.5", "--1", "1mm", "0x10", "１"] {
        let error = text.parse::<Quantity>().unwrap_err();
        assert!(error.to_string().contains("250m"), "{error}");
    }
    assert!("5K".parse::<Quantity>().unwrap_err().to_string().contains("small k"));
}

#[test]
fn displays_canonically() {
    for (text, shown) in [("1500m", "1500m"), ("2000m", "2"), ("0.000001", "1u"), ("3n", "3n"), ("1Ki", "1024")] {
        assert_eq!(text.parse::<Quantity>().unwrap().to_string(), shown);
    }
    assert_eq!(display_amount("cpu", 1500), "1500m");
    assert_eq!(display_amount("memory", 8 << 30), "8Gi");
    assert_eq!(display_amount("memory", 1000), "1000");
    assert_eq!(display_amount("nvidia.com/gpu", 2), "2");
    assert_eq!(MicroUsd(1_234_567).to_string(), "$1.2345");
}

#[test]
fn resources_add_subtract_and_fit() {
    let a = Resources::parse([("cpu", "1500m"), ("memory", "1Gi"), ("nvidia.com/gpu", "1")]).unwrap();
    let b = Resources::parse([("cpu", "500m"), ("example.com/fpga", "2")]).unwrap();
    let sum = a.saturating_add(&b);
    assert_eq!(sum.cpu_milli, 2000);
    assert_eq!(sum.get("nvidia.com/gpu"), 1);
    assert_eq!(sum.get("example.com/fpga"), 2);
    assert_eq!(sum.saturating_sub(&b), a);
    assert!(a.fits(&sum));
    assert!(!sum.fits(&a));
    assert_eq!(sum.short_of(&a), Some("cpu"));
    assert!(b.fits(&b) && !b.fits(&Resources { cpu_milli: 500, ..Resources::default() }));
    assert_eq!(a.checked_add(&Resources { memory: i64::MAX, ..Resources::default() }), None);
    assert_eq!(a.times(3).get("nvidia.com/gpu"), 3);
    let (name, error) = Resources::parse([("cpu", "lots")]).unwrap_err();
    assert_eq!(name, "cpu");
    assert!(error.to_string().contains("lots"));
}

#[test]
fn a_zero_request_of_an_unknown_resource_fits_anywhere() {
    let zero = Resources::parse([("example.com/none", "0")]).unwrap();
    assert!(zero.is_zero() && zero.fits(&Resources::default()));
}

proptest::proptest! {
    #[test]
    fn never_panics(text in "\\PC{0,24}") {
        let _ = text.parse::<Quantity>();
    }

    #[test]
    fn reads_what_it_writes(milli in -1_000_000_000_000i64..1_000_000_000_000) {
        let quantity = Quantity::from_milli(milli);
        proptest::prop_assert_eq!(quantity.to_string().parse::<Quantity>().unwrap(), quantity);
        proptest::prop_assert_eq!(quantity.milli(), milli);
    }
}
