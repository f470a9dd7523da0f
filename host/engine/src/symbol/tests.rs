use proptest::prelude::*;

use super::*;
use crate::requirement::{Operator, Requirement, Requirements, Values};

fn requirement() -> impl Strategy<Value = Requirement> {
    let operator = prop_oneof![
        Just(Operator::In),
        Just(Operator::NotIn),
        Just(Operator::Exists),
        Just(Operator::DoesNotExist),
        Just(Operator::Gt),
        Just(Operator::Lt),
        Just(Operator::Gte),
        Just(Operator::Lte),
    ];
    let value = prop_oneof![(0..5u8).prop_map(|n| n.to_string()), Just("x".to_owned()), Just("y".to_owned())];
    (0..3u8, operator, prop::collection::vec(value, 1..4), prop::option::of(1..4u32)).prop_map(
        |(key, operator, values, min_values)| {
            let values = match operator {
                Operator::Exists | Operator::DoesNotExist => Vec::new(),
                Operator::In | Operator::NotIn => values,
                _ => values.into_iter().take(1).collect(),
            };
            Requirement { min_values, ..Requirement::new(&format!("k{key}"), operator, values) }
        },
    )
}

fn to_text(set: &SymbolSet, symbols: &Symbols) -> Requirements {
    Requirements {
        keys: set.iter().map(|(key, values)| (symbols.key_name(key), values.to_values(key, symbols))).collect(),
    }
}

proptest! {
    #[test]
    fn symbols_and_strings_agree(
        left in prop::collection::vec(requirement(), 0..5),
        right in prop::collection::vec(requirement(), 0..5),
    ) {
        let mut symbols = Symbols::default();
        let (a, b) = (SymbolSet::new(&left, &mut symbols), SymbolSet::new(&right, &mut symbols));
        let (ta, tb) = (Requirements::new(&left), Requirements::new(&right));
        prop_assert_eq!(&to_text(&a, &symbols), &ta);
        let well_known: Bits = symbols.find_key("k0").into_iter().collect();
        prop_assert_eq!(
            a.compatible(&b, &well_known, &symbols).is_ok(),
            ta.compatible(&tb, |key| key == "k0").is_ok()
        );
        let mut both = a.clone();
        both.extend(&b, &symbols);
        let mut text = ta;
        text.extend(&tb);
        prop_assert_eq!(both.contradiction().is_some(), text.contradiction().is_some());
        prop_assert_eq!(to_text(&both, &symbols), text);
        for (key, values) in a.iter() {
            let named: Values = values.to_values(key, &symbols);
            for (id, value) in symbols.values(key).iter().enumerate() {
                prop_assert_eq!(values.has(id_of(id), symbols.integers(key)), named.has(value));
            }
        }
    }

    #[test]
    fn implication_is_containment(left in requirement(), right in requirement()) {
        let mut symbols = Symbols::default();
        let key = symbols.key(&Arc::from("k"));
        for value in ["-1", "0", "1", "2", "3", "4", "5", "x", "y", "z"] {
            symbols.value(key, &Arc::from(value));
        }
        let (a, b) = (ValueSet::new(&left, key, &mut symbols), ValueSet::new(&right, key, &mut symbols));
        let integers = symbols.integers(key);
        if a.implies(&b, integers) {
            for value in 0..id_of(symbols.values(key).len()) {
                prop_assert!(!a.has(value, integers) || b.has(value, integers));
            }
        }
    }

    #[test]
    fn bits_are_a_set(left in prop::collection::btree_set(0..200u32, 0..40), right in prop::collection::btree_set(0..200u32, 0..40)) {
        let (a, b): (Bits, Bits) = (left.iter().copied().collect(), right.iter().copied().collect());
        let check = |op: fn(&mut Bits, &Bits), expected: Vec<u32>| {
            let mut out = a.clone();
            op(&mut out, &b);
            out.iter().collect::<Vec<_>>() == expected
        };
        prop_assert!(check(Bits::and, left.intersection(&right).copied().collect()));
        prop_assert!(check(Bits::or, left.union(&right).copied().collect()));
        prop_assert!(check(Bits::and_not, left.difference(&right).copied().collect()));
        prop_assert_eq!(a.intersects(&b), !left.is_disjoint(&right));
        prop_assert_eq!(a.is_subset(&b), left.is_subset(&right));
        prop_assert_eq!(a.len(), left.len());
        prop_assert_eq!(Bits::all(200).len(), 200);
    }
}
