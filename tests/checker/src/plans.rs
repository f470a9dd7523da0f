//! Right plans by hand, which are accepted, and corruptions of them, which are not.

mod corruptions;
mod right;

use mortise_problem::{Answer, Problem};
use serde_json::{Value, json};

use crate::rules::cases::Case;
use crate::violation::Violation;

/// A problem and a right answer to it.
struct Plan {
    name: &'static str,
    case: Case,
    answer: Value,
}

/// What the checker says.
fn judged(problem: &Value, answer: &Value) -> Vec<Violation> {
    let mut answer = answer.clone();
    answer["name"] = json!("case");
    let problem = Problem::read(&problem.to_string()).expect("a problem");
    crate::check(&problem, &Answer::read(&answer.to_string()).expect("an answer"))
}

/// Sets what a JSON pointer points to; a last part of `-` appends, `null` takes away.
fn set(root: &mut Value, pointer: &str, value: &Value) {
    let (parent, last) = pointer.rsplit_once('/').expect("a pointer");
    let last = last.replace("~1", "/");
    let parent = root.pointer_mut(parent).unwrap_or_else(|| panic!("there is no {parent}"));
    match parent {
        Value::Array(list) if last == "-" => list.push(value.clone()),
        Value::Array(list) => {
            let index: usize = last.parse().expect("an index");
            if value.is_null() {
                list.remove(index);
            } else {
                list[index] = value.clone();
            }
        }
        Value::Object(map) if value.is_null() => assert!(map.remove(&last).is_some(), "there is no {pointer}"),
        Value::Object(map) => {
            map.insert(last, value.clone());
        }
        other => panic!("{pointer} is in {other}"),
    }
}
