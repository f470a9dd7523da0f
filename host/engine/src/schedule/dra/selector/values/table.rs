//! A map whose order is that of its keys, so that no answer depends on a hash.

use std::any::Any;
use std::collections::BTreeMap;

use cel::ExecutionError;
use cel::common::traits::{Container, Indexer, Iterable, Iterator, Sizer};
use cel::common::types::{CelInt, CelString, MAP_TYPE, Type};
use cel::common::value::{CowVal, StaticVal, Val};

/// A map from text.
#[derive(Debug)]
pub(crate) struct Table {
    entries: BTreeMap<String, Box<dyn Val>>,
    keys: Vec<CelString<'static>>,
    /// What a key that is not there is looked up as: an empty table.
    missing: Option<Box<Table>>,
}

impl Table {
    /// `open`: a key that is not there has an empty table.
    pub(crate) fn new(entries: impl std::iter::Iterator<Item = (String, Box<dyn Val>)>, open: bool) -> Self {
        let entries: BTreeMap<String, Box<dyn Val>> = entries.collect();
        let keys = entries.keys().map(|key| CelString::from(key.clone())).collect();
        Self { entries, keys, missing: open.then(|| Box::new(Self::new(std::iter::empty(), false))) }
    }

    fn key(index: &dyn Val) -> Result<&str, ExecutionError> {
        let unexpected =
            || ExecutionError::UnexpectedType { got: index.get_type().name().to_owned(), want: "string".to_owned() };
        index.downcast_ref::<CelString<'_>>().map(|key| key.inner()).ok_or_else(unexpected)
    }
}

impl Val for Table {
    fn get_type(&self) -> &Type {
        <Self as Val>::cel_type()
    }

    fn cel_type() -> &'static Type {
        &MAP_TYPE
    }

    fn as_container(&self) -> Option<&dyn Container> {
        Some(self)
    }

    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn as_iterable<'b, 'v>(&'b self) -> Option<&'b (dyn Iterable + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn as_sizer(&self) -> Option<&dyn Sizer> {
        Some(self)
    }

    fn equals(&self, other: &dyn Val) -> bool {
        other.downcast_ref::<Self>().is_some_and(|other| {
            self.entries.len() == other.entries.len()
                && self.entries.iter().zip(&other.entries).all(|(a, b)| a.0 == b.0 && a.1.equals(&**b.1))
        })
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
    where
        Self: 'v,
    {
        let entries = self.entries.iter().map(|(key, value)| {
            let value: Box<dyn Val> = value.clone_as_boxed();
            (key.clone(), value)
        });
        Box::new(Self::new(entries, self.missing.is_some()))
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for Table {}

impl Container for Table {
    fn contains(&self, value: &dyn Val) -> Result<bool, ExecutionError> {
        Ok(self.entries.contains_key(Self::key(value)?))
    }
}

impl Indexer for Table {
    fn get<'b, 'v>(&'b self, index: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let key = Self::key(index)?;
        if let Some(value) = self.entries.get(key) {
            return Ok(CowVal::Borrowed(&**value));
        }
        match &self.missing {
            Some(empty) => Ok(CowVal::Borrowed(&**empty)),
            None => Err(ExecutionError::no_such_key(key)),
        }
    }

    fn steal<'v>(self: Box<Self>, index: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.get(index).map(CowVal::into_owned)
    }
}

impl Iterable for Table {
    fn iter<'b, 'v>(&'b self) -> Box<dyn Iterator<'b, 'v> + 'b>
    where
        Self: 'v,
    {
        Box::new(Keys(self.keys.iter()))
    }
}

struct Keys<'b>(std::slice::Iter<'b, CelString<'static>>);

impl<'b, 'v> Iterator<'b, 'v> for Keys<'b> {
    fn next(&mut self) -> Option<&'b (dyn Val + 'v)> {
        let key: &'b (dyn Val + 'static) = std::iter::Iterator::next(&mut self.0)?;
        Some(key)
    }
}

impl Sizer for Table {
    fn size(&self) -> CelInt {
        CelInt::from(i64::try_from(self.entries.len()).unwrap_or(i64::MAX))
    }
}
