//! Quantities (`quantity("40Gi")`, capacities of devices) in CEL.

use std::any::Any;
use std::cmp::Ordering;

use cel::common::types::{CelBool, CelInt, CelString, Type};
use cel::common::value::{StaticVal, Val};
use cel::{DeclarationError, Env, ExecutionError, add_member_overload, add_overload};

use crate::quantity::Quantity;

static AMOUNT: Type = Type::new_unspecified_type("kubernetes.Quantity");

/// A quantity as a CEL value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Amount(pub(crate) Quantity);

impl Val for Amount {
    fn get_type(&self) -> &Type {
        <Self as Val>::cel_type()
    }

    fn cel_type() -> &'static Type {
        &AMOUNT
    }

    fn equals(&self, other: &dyn Val) -> bool {
        other.downcast_ref::<Self>().is_some_and(|other| self.0 == other.0)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
    where
        Self: 'v,
    {
        Box::new(*self)
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for Amount {}

fn quantity(text: &CelString<'_>) -> Result<Amount, ExecutionError> {
    text.inner().parse().map(Amount).map_err(|error| ExecutionError::function_error("quantity", error))
}

fn is_quantity(text: &CelString<'_>) -> CelBool {
    CelBool::from(text.inner().parse::<Quantity>().is_ok())
}

fn compare_to(this: &Amount, other: &Amount) -> CelInt {
    order(this.0.cmp(&other.0))
}

/// -1, 0 or 1.
pub(super) fn order(order: Ordering) -> CelInt {
    CelInt::from(match order {
        Ordering::Less => -1_i64,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    })
}

fn is_greater_than(this: &Amount, other: &Amount) -> CelBool {
    CelBool::from(this.0 > other.0)
}

fn is_less_than(this: &Amount, other: &Amount) -> CelBool {
    CelBool::from(this.0 < other.0)
}

fn sign(this: &Amount) -> CelInt {
    order(this.0.cmp(&Quantity::default()))
}

fn is_integer(this: &Amount) -> CelBool {
    CelBool::from(this.0.as_integer().is_some())
}

fn as_integer(this: &Amount) -> Result<CelInt, ExecutionError> {
    let whole = this.0.as_integer().map(CelInt::from);
    whole.ok_or_else(|| ExecutionError::function_error("asInteger", "the quantity is no integer"))
}

fn add(this: &Amount, other: &Amount) -> Amount {
    Amount(this.0.saturating_add(other.0))
}

fn add_integer(this: &Amount, other: &CelInt) -> Amount {
    Amount(this.0.saturating_add(Quantity::from_value(*other.inner())))
}

fn sub(this: &Amount, other: &Amount) -> Amount {
    Amount(this.0.saturating_sub(other.0))
}

fn sub_integer(this: &Amount, other: &CelInt) -> Amount {
    Amount(this.0.saturating_sub(Quantity::from_value(*other.inner())))
}

/// Adds the functions to an environment.
pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    add_overload!(env, fn quantity: (CelString<'_>) -> Result<Amount>)?;
    add_overload!(env, fn is_quantity: (CelString<'_>) -> CelBool)?;
    add_member_overload!(env, fn compare_to: (Amount, Amount) -> CelInt)?;
    add_member_overload!(env, fn is_greater_than: (Amount, Amount) -> CelBool)?;
    add_member_overload!(env, fn is_less_than: (Amount, Amount) -> CelBool)?;
    add_member_overload!(env, fn sign: (Amount) -> CelInt)?;
    add_member_overload!(env, fn is_integer: (Amount) -> CelBool)?;
    add_member_overload!(env, fn as_integer: (Amount) -> Result<CelInt>)?;
    add_member_overload!(env, fn add: (Amount, Amount) -> Amount)?;
    add_member_overload!(env, fn add_integer: (Amount, CelInt) -> Amount, name = "add")?;
    add_member_overload!(env, fn sub: (Amount, Amount) -> Amount)?;
    add_member_overload!(env, fn sub_integer: (Amount, CelInt) -> Amount, name = "sub")
}
