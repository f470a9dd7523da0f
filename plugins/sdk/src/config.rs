//! A plugin's configuration: a JSON object of texts, whole numbers, booleans, lists and objects.
//!
//! The host has checked it against the plugin's schema, so reading is mostly naming what is wanted. Numbers with a
//! fraction are kept as text: there are no floats in a policy (write permille instead of 0.025).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use crate::types::Diagnostic;

mod parse;

/// Everything wrong with a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Invalid(pub Vec<Diagnostic>);

impl Invalid {
    /// One thing wrong, at a path such as `pools.default.percent`.
    #[must_use]
    pub fn at(path: &str, message: impl Into<String>) -> Self {
        Self(vec![Diagnostic { path: path.to_string(), message: message.into() }])
    }
}

/// A JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// `null`.
    Null,
    /// `true`, `false`.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction or exponent, or beyond 64 bits, as written.
    Decimal(String),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Value>),
    /// An object, in the order written.
    Object(Vec<(String, Value)>),
}

impl Value {
    fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean(_) => "a boolean",
            Self::Integer(_) => "a whole number",
            Self::Decimal(_) => "a number with a fraction",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }
}

/// The configuration of a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    fields: Vec<(String, Value)>,
}

impl Config {
    /// Reads a JSON object.
    ///
    /// # Errors
    /// When it is not JSON, not an object, nested deeper than 32, or names a key twice.
    pub fn parse(json: &str) -> Result<Self, Invalid> {
        match parse::parse(json).map_err(|m| Invalid::at("", m))? {
            Value::Object(fields) => Ok(Self { fields }),
            other => Err(Invalid::at("", format!("expected an object, found {}", other.kind()))),
        }
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.fields.iter().find(|(k, _)| k == key).map(|(_, v)| v)
    }

    /// All keys with their values, in the order written.
    #[must_use]
    pub fn fields(&self) -> &[(String, Value)] {
        &self.fields
    }

    /// A text that must be there.
    ///
    /// # Errors
    /// When it is missing or of another kind.
    pub fn text(&self, key: &str) -> Result<&str, Invalid> {
        match self.get(key) {
            Some(Value::Text(text)) => Ok(text),
            other => Err(wrong(key, "a text", other)),
        }
    }

    /// A whole number that must be there.
    ///
    /// # Errors
    /// When it is missing or of another kind.
    pub fn integer(&self, key: &str) -> Result<i64, Invalid> {
        match self.get(key) {
            Some(Value::Integer(number)) => Ok(*number),
            other => Err(wrong(key, "a whole number", other)),
        }
    }

    /// A whole number, or `default` when the key is absent.
    ///
    /// # Errors
    /// When it is of another kind.
    pub fn integer_or(&self, key: &str, default: i64) -> Result<i64, Invalid> {
        if self.get(key).is_none() { Ok(default) } else { self.integer(key) }
    }

    /// A boolean, or `default` when the key is absent.
    ///
    /// # Errors
    /// When it is of another kind.
    pub fn boolean_or(&self, key: &str, default: bool) -> Result<bool, Invalid> {
        match self.get(key) {
            None => Ok(default),
            Some(Value::Boolean(value)) => Ok(*value),
            other => Err(wrong(key, "true or false", other)),
        }
    }

    /// A list of texts, empty when the key is absent.
    ///
    /// # Errors
    /// When it is of another kind.
    pub fn texts(&self, key: &str) -> Result<Vec<&str>, Invalid> {
        let list = match self.get(key) {
            None => return Ok(Vec::new()),
            Some(Value::List(list)) => list,
            other => return Err(wrong(key, "a list of texts", other)),
        };
        list.iter()
            .enumerate()
            .map(|(i, value)| match value {
                Value::Text(text) => Ok(text.as_str()),
                other => Err(wrong(&format!("{key}[{i}]"), "a text", Some(other))),
            })
            .collect()
    }
}

fn wrong(path: &str, expected: &str, found: Option<&Value>) -> Invalid {
    let found = found.map_or("nothing", Value::kind);
    Invalid::at(path, format!("expected {expected}, found {found}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_was_written() {
        let config =
            Config::parse(r#"{"zone":"a\u00e9\n","percent":-30,"on":true,"list":["x","y"],"sub":{"a":[1.5,null]}}"#);
        let config = config.unwrap();
        assert_eq!(config.text("zone"), Ok("aé\n"));
        assert_eq!(config.integer("percent"), Ok(-30));
        assert_eq!(config.integer_or("absent", 7), Ok(7));
        assert_eq!(config.boolean_or("on", false), Ok(true));
        assert_eq!(config.texts("list"), Ok(vec!["x", "y"]));
        let inner = Value::List(vec![Value::Decimal("1.5".into()), Value::Null]);
        assert_eq!(config.get("sub"), Some(&Value::Object(vec![("a".into(), inner)])));
    }

    #[test]
    fn says_where_and_what() {
        let config = Config::parse(r#"{"percent":"ten","zones":["a",3]}"#).unwrap();
        assert_eq!(config.integer("percent"), Err(Invalid::at("percent", "expected a whole number, found a text")));
        assert_eq!(config.text("zone"), Err(Invalid::at("zone", "expected a text, found nothing")));
        assert_eq!(config.texts("zones"), Err(Invalid::at("zones[1]", "expected a text, found a whole number")));
    }

    #[test]
    fn refuses_what_is_not_an_object_of_json() {
        for bad in [
            "",
            "[]",
            "{",
            "{\"a\":1,}",
            "{\"a\":1}x",
            "{\"a\":01}",
            "{\"a\":1,\"a\":2}",
            "{\"a\":\"\\q\"}",
            "{\"a\":\"\n\"}",
            "nul",
        ] {
            assert!(Config::parse(bad).is_err(), "{bad:?} was read");
        }
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(40), "]".repeat(40));
        assert!(Config::parse(&deep).is_err(), "unbounded nesting was read");
    }
}
