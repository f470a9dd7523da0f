//! What an expression may do at most, worked out from its text alone.

use cel::IdedExpr;
use cel::common::ast::{EntryExpr, Expr, LiteralValue};

/// Deepest nesting of an expression; the interpreter goes down as deep.
const DEEPEST: usize = 64;

/// Deepest recursion of the parser.
pub(super) const PARSER_DEPTH: u16 = 48;

/// Deepest nesting of comprehensions (`exists`, `filter`, …).
const LOOPS: usize = 4;

/// Characters that are handled in the time of one step.
const PER_STEP: u64 = 8;

/// Most that an expression may cost. Real selectors cost tens; Kubernetes itself allows more, but evaluates fewer.
const MOST: u64 = 20_000;

/// What is taken for the size of anything that a device says: a device has at most 32 attributes and capacities, a text
/// 64 characters.
const OF_DEVICE: u64 = 128;

/// Functions beside the operators. Whatever is not here is refused when it is read, not when it runs.
const FUNCTIONS: [&str; 34] = [
    "size",
    "startsWith",
    "endsWith",
    "contains",
    "int",
    "uint",
    "double",
    "string",
    "bool",
    "type",
    "dyn",
    "quantity",
    "isQuantity",
    "semver",
    "isSemver",
    "compareTo",
    "isGreaterThan",
    "isLessThan",
    "asInteger",
    "isInteger",
    "asApproximateFloat",
    "sign",
    "add",
    "sub",
    "major",
    "minor",
    "patch",
    "orValue",
    "hasValue",
    "value",
    "or",
    "optional.of",
    "optional.none",
    "optional.ofNonZeroValue",
];

/// Operators that only look at truth values.
const LOGICAL: [&str; 4] = ["_&&_", "_||_", "!_", "@not_strictly_false"];

/// Functions and operators whose result is a truth value or a number.
const TRUTHS: [&str; 25] = [
    "_&&_",
    "_||_",
    "!_",
    "@not_strictly_false",
    "_==_",
    "_!=_",
    "_<_",
    "_<=_",
    "_>_",
    "_>=_",
    "@in",
    "size",
    "startsWith",
    "endsWith",
    "contains",
    "int",
    "uint",
    "double",
    "bool",
    "isQuantity",
    "isSemver",
    "compareTo",
    "isGreaterThan",
    "isLessThan",
    "hasValue",
];

/// Refuses an expression that is nested too deep, without going deeper itself.
///
/// # Errors
/// What is wrong, in words.
pub(super) fn check_depth(expression: &IdedExpr) -> Result<(), String> {
    let mut level = vec![expression];
    for _ in 0..=DEEPEST {
        level = level.into_iter().flat_map(parts).collect();
        if level.is_empty() {
            return Ok(());
        }
    }
    Err("it is nested too deep".to_owned())
}

/// The expressions that one is made of.
fn parts(expression: &IdedExpr) -> Vec<&IdedExpr> {
    match &expression.expr {
        Expr::Call(call) => call.target.iter().map(|target| &**target).chain(&call.args).collect(),
        Expr::Select(select) => vec![&select.operand],
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Comprehension(loop_) => {
            vec![&loop_.iter_range, &loop_.accu_init, &loop_.loop_cond, &loop_.loop_step, &loop_.result]
        }
        Expr::Map(map) => {
            let entries = map.entries.iter().filter_map(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => Some([&entry.key, &entry.value]),
                EntryExpr::StructField(_) => None,
            });
            entries.flatten().collect()
        }
        Expr::Struct(_) | Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => Vec::new(),
    }
}

/// Refuses an expression that is too deep, too costly, or whose answer could differ from run to run.
///
/// # Errors
/// What is wrong, in words.
pub(super) fn check(expression: &IdedExpr) -> Result<(), String> {
    let mut bounds = Bounds { variables: Vec::new(), loops: 0 };
    let bound = bounds.of(expression, 0)?;
    if bound.cost > MOST {
        return Err(format!("it could take {} steps, {MOST} are allowed", bound.cost));
    }
    Ok(())
}

/// Upper bounds: steps to work a value out, and its size (elements or characters, at every depth).
#[derive(Clone, Copy, Debug)]
struct Bound {
    cost: u64,
    size: u64,
}

struct Bounds {
    /// Sizes of the variables of comprehensions, innermost last.
    variables: Vec<(String, u64)>,
    loops: usize,
}

impl Bounds {
    fn of(&mut self, expression: &IdedExpr, depth: usize) -> Result<Bound, String> {
        if depth > DEEPEST {
            return Err("it is nested too deep".to_owned());
        }
        Ok(match &expression.expr {
            Expr::Literal(literal) => Bound { cost: 1, size: literal_size(literal) },
            Expr::Ident(name) => {
                let known = self.variables.iter().rev().find(|(variable, _)| variable == name);
                Bound { cost: 1, size: known.map_or(OF_DEVICE, |(_, size)| *size) }
            }
            Expr::Select(select) => {
                let operand = self.of(&select.operand, depth + 1)?;
                Bound { cost: operand.cost.saturating_add(1), size: operand.size }
            }
            Expr::List(list) => self.sum(&list.elements, depth)?,
            Expr::Call(call) => {
                if call.func_name.starts_with(|c: char| c.is_ascii_alphabetic())
                    && !FUNCTIONS.contains(&call.func_name.as_str())
                {
                    return Err(format!("the function {} is not supported", call.func_name));
                }
                let arguments = self.sum(&call.args, depth)?;
                let target = match &call.target {
                    Some(target) => self.of(target, depth + 1)?,
                    None => Bound { cost: 0, size: 0 },
                };
                let handled = arguments.size.saturating_add(target.size);
                let own = if LOGICAL.contains(&call.func_name.as_str()) { 1 } else { handled / PER_STEP + 1 };
                let size = if TRUTHS.contains(&call.func_name.as_str()) { 1 } else { handled };
                Bound { cost: arguments.cost.saturating_add(target.cost).saturating_add(own), size }
            }
            Expr::Comprehension(loop_) => {
                self.loops += 1;
                if self.loops > LOOPS {
                    return Err(format!("more than {LOOPS} comprehensions are nested"));
                }
                let range = self.of(&loop_.iter_range, depth + 1)?;
                let start = self.of(&loop_.accu_init, depth + 1)?;
                let before = self.variables.len();
                self.variables.push((loop_.iter_var.clone(), range.size));
                if let Some(second) = &loop_.iter_var2 {
                    self.variables.push((second.clone(), range.size));
                }
                // What one round adds, then what all of them make of it.
                self.variables.push((loop_.accu_var.clone(), 0));
                let adds = self.of(&loop_.loop_step, depth + 1)?.size;
                let whole = start.size.saturating_add(range.size.saturating_mul(adds));
                if let Some(accumulator) = self.variables.last_mut() {
                    accumulator.1 = whole;
                }
                let step = self.of(&loop_.loop_step, depth + 1)?.cost;
                let condition = self.of(&loop_.loop_cond, depth + 1)?.cost;
                let result = self.of(&loop_.result, depth + 1)?;
                self.variables.truncate(before);
                self.loops -= 1;
                let rounds = range.size.saturating_mul(step.saturating_add(condition).saturating_add(1));
                let cost = range.cost.saturating_add(start.cost).saturating_add(rounds).saturating_add(result.cost);
                Bound { cost, size: result.size.max(1) }
            }
            // The interpreter walks map literals in the order of a hash map.
            Expr::Map(_) => return Err("map literals are not supported".to_owned()),
            Expr::Struct(_) | Expr::Unspecified => return Err("messages are not supported".to_owned()),
        })
    }

    fn sum(&mut self, expressions: &[IdedExpr], depth: usize) -> Result<Bound, String> {
        let mut sum = Bound { cost: 1, size: 1 };
        for expression in expressions {
            let one = self.of(expression, depth + 1)?;
            sum.cost = sum.cost.saturating_add(one.cost);
            sum.size = sum.size.saturating_add(one.size);
        }
        Ok(sum)
    }
}

fn literal_size(literal: &LiteralValue) -> u64 {
    let len = match literal {
        LiteralValue::String(text) => text.inner().len(),
        LiteralValue::Bytes(bytes) => bytes.inner().len(),
        _ => 1,
    };
    u64::try_from(len).unwrap_or(u64::MAX).max(1)
}
