//! Building a filter's answer.

use alloc::string::String;
use alloc::vec::Vec;

use crate::types::{Groups, Verdict};

/// Collects what a filter drops, row by row.
#[derive(Clone, Debug)]
pub struct Drops {
    explain: bool,
    verdict: Verdict,
}

impl Drops {
    /// Starts; reasons are kept only when `explain`.
    #[must_use]
    pub fn new(explain: bool) -> Self {
        let dropped = Groups { end: Vec::new(), member: Vec::new() };
        Self { explain, verdict: Verdict { dropped, reason: Vec::new(), reasons: Vec::new() } }
    }

    /// Drops nothing of any of `rows` rows.
    #[must_use]
    pub fn nothing(rows: usize) -> Verdict {
        let dropped = Groups { end: alloc::vec![0; rows], member: Vec::new() };
        Verdict { dropped, reason: Vec::new(), reasons: Vec::new() }
    }

    /// Drops one offering of the current row.
    pub fn drop(&mut self, offering: u32, reason: &str) {
        self.verdict.dropped.member.push(offering);
        if self.explain {
            let known = self.verdict.reasons.iter().position(|r| r == reason);
            let index = known.unwrap_or_else(|| {
                self.verdict.reasons.push(String::from(reason));
                self.verdict.reasons.len() - 1
            });
            self.verdict.reason.push(u32::try_from(index).unwrap_or(u32::MAX));
        }
    }

    /// Ends the current row.
    pub fn end_row(&mut self) {
        self.verdict.dropped.end.push(u32::try_from(self.verdict.dropped.member.len()).unwrap_or(u32::MAX));
    }

    /// Repeats row `index`, for rows that ask the same question.
    pub fn repeat_row(&mut self, index: usize) {
        let end = &self.verdict.dropped.end;
        let start = if index == 0 { 0 } else { end.get(index - 1).copied().unwrap_or(0) as usize };
        let stop = end.get(index).copied().unwrap_or(0) as usize;
        self.verdict.dropped.member.extend_from_within(start..stop);
        if self.explain {
            self.verdict.reason.extend_from_within(start..stop);
        }
        self.end_row();
    }

    /// The answer.
    #[must_use]
    pub fn finish(self) -> Verdict {
        self.verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_kept_once_and_only_when_asked() {
        let build = |explain| {
            let mut drops = Drops::new(explain);
            drops.drop(3, "gpu");
            drops.drop(4, "gpu");
            drops.end_row();
            drops.end_row();
            drops.repeat_row(0);
            drops.finish()
        };
        let silent = build(false);
        assert_eq!(
            (silent.dropped.end.as_slice(), silent.dropped.member.as_slice()),
            (&[2, 2, 4][..], &[3, 4, 3, 4][..])
        );
        assert!(silent.reason.is_empty() && silent.reasons.is_empty());
        let spoken = build(true);
        assert_eq!(
            (spoken.reason.as_slice(), spoken.reasons.as_slice()),
            (&[0, 0, 0, 0][..], &[String::from("gpu")][..])
        );
    }
}
