//! Devices as CEL values, and the functions on quantities and versions that Kubernetes adds to CEL.

mod amount;
mod table;
mod version;

use std::collections::BTreeMap;
use std::sync::Arc;

use cel::Env;
use cel::common::types::{CelBool, CelInt, CelString};
use cel::common::value::Val;

use crate::device::{Attribute, Device};
use amount::Amount;
use table::Table;
use version::Version;

/// Functions that selectors may use.
pub(super) fn environment() -> Env {
    let mut env = Env::stdlib();
    // These fail only when a name is declared twice, which a test would see as a selector that does not compile.
    let _ = amount::declare(&mut env).and_then(|()| version::declare(&mut env));
    env
}

/// The variable `device`: `driver`, `attributes` and `capacity` by domain, `allowMultipleAllocations`.
pub(super) fn device(driver: &Arc<str>, device: &Device) -> Table {
    let attributes = device.attributes.iter().map(|(name, attribute)| {
        let value: Box<dyn Val> = match attribute {
            Attribute::Int(int) => Box::new(CelInt::from(*int)),
            Attribute::Bool(truth) => Box::new(CelBool::from(*truth)),
            Attribute::String(text) => Box::new(CelString::from(text.to_string())),
            Attribute::Version(text) => match Version::parse(text) {
                Some(version) => Box::new(version),
                None => Box::new(CelString::from(text.to_string())),
            },
        };
        (name, value)
    });
    let capacity = device.capacity.iter().map(|(name, capacity)| {
        let value: Box<dyn Val> = Box::new(Amount(capacity.value));
        (name, value)
    });
    let fields: [(&str, Box<dyn Val>); 4] = [
        ("driver", Box::new(CelString::from(driver.to_string()))),
        ("attributes", Box::new(by_domain(driver, attributes))),
        ("capacity", Box::new(by_domain(driver, capacity))),
        ("allowMultipleAllocations", Box::new(CelBool::from(device.shareable))),
    ];
    Table::new(fields.into_iter().map(|(name, value)| (name.to_owned(), value)), false)
}

/// A name and its value.
type Named = (String, Box<dyn Val>);

/// By domain, then by name. A domain that the device does not have is empty, so that it can be asked what is in it.
fn by_domain<'a>(driver: &str, named: impl Iterator<Item = (&'a Arc<str>, Box<dyn Val>)>) -> Table {
    let mut domains: BTreeMap<String, Vec<Named>> = BTreeMap::new();
    for (name, value) in named {
        let (domain, name) = name.split_once('/').unwrap_or((driver, name));
        domains.entry(domain.to_owned()).or_default().push((name.to_owned(), value));
    }
    let tables = domains.into_iter().map(|(domain, named)| {
        let table: Box<dyn Val> = Box::new(Table::new(named.into_iter(), false));
        (domain, table)
    });
    Table::new(tables, true)
}
