//! Which behaviours of the reference have a case, and which are missing.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// Cases by id of the reference, `SCH-045` and the like. A case's id may add a word for its clause: `SCH-045-address`.
pub(crate) struct Coverage {
    ids: BTreeMap<String, Entry>,
    /// Cases of other ids: behaviours that the reference does not number.
    others: usize,
}

#[derive(Default)]
struct Entry {
    /// Who else answers for it; none = the engine.
    elsewhere: Option<String>,
    cases: usize,
}

impl Coverage {
    /// From a list with one id a line, and a second word for those that are not the engine's to decide.
    pub(crate) fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).expect("list of ids");
        let mut ids = BTreeMap::new();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (id, word) = line.split_once(' ').map_or((line, None), |(id, word)| (id, Some(word.to_owned())));
            let known = ids.insert(id.to_owned(), Entry { elsewhere: word, cases: 0 });
            assert!(known.is_none(), "{id} is listed twice");
        }
        Self { ids, others: 0 }
    }

    pub(crate) fn count(&mut self, case: &str) {
        let id: String = case.splitn(3, '-').take(2).collect::<Vec<_>>().join("-");
        match self.ids.get_mut(&id) {
            Some(entry) => entry.cases += 1,
            None => self.others += 1,
        }
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut families: BTreeMap<&str, Vec<(&String, &Entry)>> = BTreeMap::new();
        for (id, entry) in &self.ids {
            families.entry(id.split('-').next().unwrap_or_default()).or_default().push((id, entry));
        }
        writeln!(f, "family  ids  elsewhere  covered  cases  missing")?;
        for (family, ids) in families {
            let own = || ids.iter().filter(|(_, entry)| entry.elsewhere.is_none());
            let covered = own().filter(|(_, entry)| entry.cases > 0).count();
            let cases: usize = ids.iter().map(|(_, entry)| entry.cases).sum();
            let missing: Vec<&str> = own().filter(|(_, entry)| entry.cases == 0).map(|(id, _)| id.as_str()).collect();
            let elsewhere = ids.len() - own().count();
            let missing = if missing.is_empty() { "none".to_owned() } else { missing.join(" ") };
            writeln!(f, "{family:<6} {:>4} {elsewhere:>10} {covered:>8} {cases:>6}  {missing}", ids.len())?;
        }
        write!(f, "{} further cases of behaviours without a number", self.others)
    }
}
