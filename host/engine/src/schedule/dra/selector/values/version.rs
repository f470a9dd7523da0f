//! Semantic versions (semver.org; `semver("1.2.3")`, version attributes of devices) in CEL.

use std::any::Any;
use std::cmp::Ordering;

use cel::common::types::{CelBool, CelInt, CelString, Type};
use cel::common::value::{StaticVal, Val};
use cel::{DeclarationError, Env, ExecutionError, add_member_overload, add_overload};

use super::amount::order;

static VERSION: Type = Type::new_unspecified_type("kubernetes.Semver");

/// A semantic version; the build does not count in any comparison.
#[derive(Clone, Debug)]
pub(crate) struct Version(semver::Version);

impl Version {
    /// `None` if it is none.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        semver::Version::parse(text).ok().map(Self)
    }

    fn compare(&self, other: &Self) -> Ordering {
        self.0.cmp_precedence(&other.0)
    }
}

impl Val for Version {
    fn get_type(&self) -> &Type {
        <Self as Val>::cel_type()
    }

    fn cel_type() -> &'static Type {
        &VERSION
    }

    fn equals(&self, other: &dyn Val) -> bool {
        other.downcast_ref::<Self>().is_some_and(|other| self.compare(other).is_eq())
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
    where
        Self: 'v,
    {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for Version {}

fn semver(text: &CelString<'_>) -> Result<Version, ExecutionError> {
    Version::parse(text.inner()).ok_or_else(|| ExecutionError::function_error("semver", "it is no semantic version"))
}

fn is_semver(text: &CelString<'_>) -> CelBool {
    CelBool::from(Version::parse(text.inner()).is_some())
}

fn compare_to(this: &Version, other: &Version) -> CelInt {
    order(this.compare(other))
}

fn is_greater_than(this: &Version, other: &Version) -> CelBool {
    CelBool::from(this.compare(other).is_gt())
}

fn is_less_than(this: &Version, other: &Version) -> CelBool {
    CelBool::from(this.compare(other).is_lt())
}

fn major(this: &Version) -> CelInt {
    whole(this.0.major)
}

fn minor(this: &Version) -> CelInt {
    whole(this.0.minor)
}

fn patch(this: &Version) -> CelInt {
    whole(this.0.patch)
}

fn whole(number: u64) -> CelInt {
    CelInt::from(i64::try_from(number).unwrap_or(i64::MAX))
}

/// Adds the functions to an environment.
pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    add_overload!(env, fn semver: (CelString<'_>) -> Result<Version>)?;
    add_overload!(env, fn is_semver: (CelString<'_>) -> CelBool)?;
    add_member_overload!(env, fn compare_to: (Version, Version) -> CelInt)?;
    add_member_overload!(env, fn is_greater_than: (Version, Version) -> CelBool)?;
    add_member_overload!(env, fn is_less_than: (Version, Version) -> CelBool)?;
    add_member_overload!(env, fn major: (Version) -> CelInt)?;
    add_member_overload!(env, fn minor: (Version) -> CelInt)?;
    add_member_overload!(env, fn patch: (Version) -> CelInt)
}
