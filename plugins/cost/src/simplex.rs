//! A linear program by columns: minimise the cost of columns that together hold every pod at least once.

use alloc::vec;
use alloc::vec::Vec;

use crate::model::PlannedNode;

/// A way to fill a node.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) node: PlannedNode,
    pub(crate) cost: f64,
}

/// Revised primal simplex with a dense inverse of the basis. Rows are parts; every row begins with a column of its own.
#[derive(Clone, Debug)]
pub(crate) struct Simplex {
    rows: usize,
    basis: Vec<Column>,
    /// Inverse of the basis, row by row.
    inverse: Vec<f64>,
    /// How much of each basic column is used.
    level: Vec<f64>,
}

/// Smaller than this is nothing: a rounding error of some hundred pivots.
const NOTHING: f64 = 1e-9;

impl Simplex {
    /// Starts with `columns[i]` holding pods of part `i` alone, of which there are `demand[i]`.
    pub(crate) fn new(columns: Vec<Column>, demand: &[u32]) -> Self {
        let rows = columns.len();
        let mut inverse = vec![0.0; rows * rows];
        let mut level = vec![0.0; rows];
        for (row, column) in columns.iter().enumerate() {
            let pods = column.node.pods.first().map_or(1.0, |(_, pods)| f64::from(*pods));
            inverse[row * rows + row] = 1.0 / pods;
            level[row] = f64::from(demand[row]) / pods;
        }
        Self { rows, basis: columns, inverse, level }
    }

    /// What one pod of each part is worth: the duals.
    pub(crate) fn worth(&self) -> Vec<f64> {
        let mut worth = vec![0.0; self.rows];
        for (row, column) in self.basis.iter().enumerate() {
            let inverse = &self.inverse[row * self.rows..(row + 1) * self.rows];
            for (worth, inverse) in worth.iter_mut().zip(inverse) {
                *worth += column.cost * inverse;
            }
        }
        worth
    }

    /// Brings a column into the basis. False when that is not possible.
    pub(crate) fn enter(&mut self, column: Column) -> bool {
        let rows = self.rows;
        let mut change = vec![0.0; rows];
        for (row, change) in change.iter_mut().enumerate() {
            let inverse = &self.inverse[row * rows..(row + 1) * rows];
            *change = column.node.pods.iter().map(|(part, pods)| inverse[*part as usize] * f64::from(*pods)).sum();
        }
        self.pivot(column, &change)
    }

    /// Lets a part be held more than once over: the surplus of a row whose pods are worth less than nothing.
    pub(crate) fn enter_surplus(&mut self, part: usize) -> bool {
        let rows = self.rows;
        let change: Vec<f64> = (0..rows).map(|row| -self.inverse[row * rows + part]).collect();
        let node = PlannedNode { kind: usize::MAX, pods: Vec::new() };
        self.pivot(Column { node, cost: 0.0 }, &change)
    }

    fn pivot(&mut self, column: Column, change: &[f64]) -> bool {
        let rows = self.rows;
        let mut leaves: Option<(f64, usize)> = None;
        for (row, change) in change.iter().enumerate().filter(|(_, change)| **change > NOTHING) {
            let ratio = self.level[row] / change;
            if leaves.is_none_or(|(least, _)| ratio < least) {
                leaves = Some((ratio, row));
            }
        }
        let Some((ratio, out)) = leaves else { return false };
        let pivot: Vec<f64> =
            self.inverse[out * rows..(out + 1) * rows].iter().map(|value| value / change[out]).collect();
        for (row, factor) in change.iter().copied().enumerate() {
            if row != out && factor != 0.0 {
                for (value, pivot) in self.inverse[row * rows..(row + 1) * rows].iter_mut().zip(&pivot) {
                    *value -= factor * pivot;
                }
                let level = self.level[row] - factor * ratio;
                self.level[row] = if level > 0.0 { level } else { 0.0 };
            }
        }
        self.inverse[out * rows..(out + 1) * rows].copy_from_slice(&pivot);
        self.level[out] = ratio;
        self.basis[out] = column;
        true
    }

    /// Columns of the optimum and how much of each is used.
    pub(crate) fn used(&self) -> impl Iterator<Item = (&PlannedNode, f64)> {
        let real = self.basis.iter().zip(&self.level).filter(|(column, _)| column.node.kind != usize::MAX);
        real.map(|(column, level)| (&column.node, *level))
    }
}
