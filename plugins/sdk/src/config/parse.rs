//! A small JSON reader: no floats, bounded depth, nothing but `alloc`.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::Value;

const MAX_DEPTH: usize = 32;

pub(super) fn parse(text: &str) -> Result<Value, String> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(0)?;
    reader.space();
    if reader.at < text.len() { Err(reader.error("the end")) } else { Ok(value) }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn error(&self, expected: &str) -> String {
        format!("not JSON: expected {expected} at byte {}", self.at)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.text.get(self.at..).is_some_and(|rest| rest.starts_with(token));
        if found {
            self.at += token.len();
        }
        found
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        if depth > MAX_DEPTH {
            return Err("nested too deep".to_string());
        }
        self.space();
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => self.string().map(Value::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ if self.take("true") => Ok(Value::Boolean(true)),
            _ if self.take("false") => Ok(Value::Boolean(false)),
            _ if self.take("null") => Ok(Value::Null),
            _ => Err(self.error("a value")),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, String> {
        self.at += 1;
        let mut fields: Vec<(String, Value)> = Vec::new();
        self.space();
        if self.take("}") {
            return Ok(Value::Object(fields));
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return Err(self.error("a key"));
            }
            let key = self.string()?;
            if fields.iter().any(|(k, _)| *k == key) {
                return Err(format!("key {key:?} is there twice"));
            }
            self.space();
            if !self.take(":") {
                return Err(self.error("':'"));
            }
            let value = self.value(depth + 1)?;
            fields.push((key, value));
            self.space();
            if self.take("}") {
                return Ok(Value::Object(fields));
            }
            if !self.take(",") {
                return Err(self.error("',' or '}'"));
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<Value, String> {
        self.at += 1;
        let mut items = Vec::new();
        self.space();
        if self.take("]") {
            return Ok(Value::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.space();
            if self.take("]") {
                return Ok(Value::List(items));
            }
            if !self.take(",") {
                return Err(self.error("',' or ']'"));
            }
        }
    }

    fn number(&mut self) -> Result<Value, String> {
        let start = self.at;
        self.take("-");
        let digits = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        let whole = self.at - digits;
        if whole == 0 || (whole > 1 && self.text.as_bytes().get(digits) == Some(&b'0')) {
            return Err(self.error("a number"));
        }
        let integer = !matches!(self.peek(), Some(b'.' | b'e' | b'E'));
        while matches!(self.peek(), Some(b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')) {
            self.at += 1;
        }
        let text = self.text.get(start..self.at).unwrap_or("");
        match text.parse::<i64>() {
            Ok(number) if integer => Ok(Value::Integer(number)),
            _ => Ok(Value::Decimal(text.to_string())),
        }
    }

    fn string(&mut self) -> Result<String, String> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = self.text.get(self.at..).unwrap_or("");
            let Some(c) = rest.chars().next() else { return Err(self.error("'\"'")) };
            self.at += c.len_utf8();
            match c {
                '"' => return Ok(out),
                '\\' => out.push(self.escape()?),
                c if (c as u32) < 0x20 => return Err(self.error("an escaped control character")),
                c => out.push(c),
            }
        }
    }

    fn escape(&mut self) -> Result<char, String> {
        let Some(c) = self.peek() else { return Err(self.error("an escape")) };
        self.at += 1;
        Ok(match c {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode(),
            _ => return Err(self.error("an escape")),
        })
    }

    fn unicode(&mut self) -> Result<char, String> {
        let high = self.hex()?;
        let code = if (0xd800..0xdc00).contains(&high) {
            if !self.take("\\u") {
                return Err(self.error("a low surrogate"));
            }
            let low = self.hex()?;
            if !(0xdc00..0xe000).contains(&low) {
                return Err(self.error("a low surrogate"));
            }
            0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)
        } else {
            high
        };
        char::from_u32(code).ok_or_else(|| self.error("a character"))
    }

    fn hex(&mut self) -> Result<u32, String> {
        let digits = self.text.get(self.at..self.at + 4).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        let code = digits.and_then(|d| u32::from_str_radix(d, 16).ok()).ok_or_else(|| self.error("four hex digits"))?;
        self.at += 4;
        Ok(code)
    }
}
