//! CEL selectors of devices, each compiled once a round.
//!
//! Users write these expressions, so they are judged before any of them runs ([`cost`]): one that could take long, or
//! whose answer could depend on the order of a hash map, is refused. Regular expressions and times are not linked in.

mod bind;
mod cost;
mod values;

use std::collections::BTreeMap;
use std::sync::Arc;

use cel::common::value::Val as _;
use cel::parser::PrattParser;
use cel::{Context, Env, IdedExpr, Value};

use crate::device::{Device, Selector};

/// Longest expression, in bytes: what the API server admits.
const LONGEST: usize = 10 * 1024;

/// What a selector says of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    Yes,
    No,
    /// The expression failed, as on an attribute that the device does not have.
    Failed,
}

/// The distinct selectors of a round.
#[derive(Clone, Default)]
pub(crate) struct Selectors {
    env: Option<Arc<Env>>,
    ids: BTreeMap<Selector, u32>,
    compiled: Vec<Result<IdedExpr, Arc<str>>>,
}

impl std::fmt::Debug for Selectors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Selectors").field("ids", &self.ids).finish_non_exhaustive()
    }
}

impl Selectors {
    /// Id of a selector, compiled if new.
    ///
    /// # Errors
    /// Why nothing can be selected with it, in words.
    pub(crate) fn intern(&mut self, selector: &Selector) -> Result<u32, Arc<str>> {
        let id = match self.ids.get(selector) {
            Some(id) => *id,
            None => {
                let id = crate::symbol::id_of(self.compiled.len());
                let compiled = self.compile(selector);
                self.compiled.push(compiled);
                self.ids.insert(selector.clone(), id);
                id
            }
        };
        match self.compiled.get(id as usize) {
            Some(Err(problem)) => Err(Arc::clone(problem)),
            _ => Ok(id),
        }
    }

    fn compile(&mut self, selector: &Selector) -> Result<IdedExpr, Arc<str>> {
        let text = match selector {
            Selector::Cel(text) => text,
            Selector::Unknown(kind) => return Err(format!("selectors of kind {kind} are not known").into()),
        };
        let shown: String = text.chars().take(80).collect();
        if text.len() > LONGEST {
            return Err(format!("the expression {shown}… has {} bytes, {LONGEST} are allowed", text.len()).into());
        }
        // Of the two parsers of the crate the one that bounds its own recursion; the other one overflows the stack on
        // a few dozen parentheses.
        let parser = PrattParser::new().max_recursion_depth(cost::PARSER_DEPTH).enable_optional_syntax(true);
        let parsed = parser.parse(text).map_err(|errors| {
            let first = errors.errors.first().map_or_else(String::new, |error| error.msg.clone());
            format!("the expression {shown} is not CEL: {first}")
        })?;
        let mut expression = parsed;
        cost::check_depth(&expression)
            .and_then(|()| {
                bind::expand(&mut expression);
                cost::check(&expression)
            })
            .map_err(|problem| format!("the expression {shown}: {problem}"))?;
        self.env.get_or_insert_with(|| Arc::new(values::environment()));
        Ok(expression)
    }

    /// Whether a device of this driver is selected.
    pub(crate) fn matches(&self, id: u32, driver: &Arc<str>, device: &Device) -> Match {
        let (Some(Ok(expression)), Some(env)) = (self.compiled.get(id as usize), &self.env) else {
            return Match::Failed;
        };
        let mut context = Context::with_env(Arc::clone(env));
        context.add_variable_as_val("device", values::device(driver, device).clone_as_boxed());
        match Value::resolve(expression, &context) {
            Ok(Value::Bool(true)) => Match::Yes,
            Ok(Value::Bool(false)) => Match::No,
            _ => Match::Failed,
        }
    }
}

#[cfg(test)]
mod tests;
