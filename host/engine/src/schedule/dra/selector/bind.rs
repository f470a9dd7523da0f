//! `cel.bind(name, value, result)`: a comprehension over nothing whose accumulator is the value.

use cel::IdedExpr;
use cel::common::ast::{ComprehensionExpr, EntryExpr, Expr, ListExpr, LiteralValue};

/// Expands every `cel.bind` of an expression whose depth is known to be small.
pub(super) fn expand(expression: &mut IdedExpr) {
    match &mut expression.expr {
        Expr::Call(call) => {
            call.target.iter_mut().for_each(|target| expand(target));
            call.args.iter_mut().for_each(expand);
            let is_bind = call.func_name == "bind"
                && call.target.as_ref().is_some_and(|target| target.expr == Expr::Ident("cel".to_owned()));
            if let (true, [IdedExpr { expr: Expr::Ident(name), .. }, value, result]) = (is_bind, &mut *call.args) {
                expression.expr = Expr::Comprehension(Box::new(ComprehensionExpr {
                    iter_range: node(Expr::List(ListExpr::new(Vec::new()))),
                    iter_var: "#unused".to_owned(),
                    iter_var2: None,
                    accu_var: name.clone(),
                    accu_init: std::mem::take(value),
                    loop_cond: node(Expr::Literal(LiteralValue::Boolean(false.into()))),
                    loop_step: node(Expr::Ident(name.clone())),
                    result: std::mem::take(result),
                }));
            }
        }
        Expr::Select(select) => expand(&mut select.operand),
        Expr::List(list) => list.elements.iter_mut().for_each(expand),
        Expr::Comprehension(loop_) => {
            let parts = [
                &mut loop_.iter_range,
                &mut loop_.accu_init,
                &mut loop_.loop_cond,
                &mut loop_.loop_step,
                &mut loop_.result,
            ];
            parts.into_iter().for_each(expand);
        }
        Expr::Map(map) => {
            for entry in &mut map.entries {
                if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                    expand(&mut entry.key);
                    expand(&mut entry.value);
                }
            }
        }
        Expr::Ident(_) | Expr::Literal(_) | Expr::Struct(_) | Expr::Unspecified => {}
    }
}

fn node(expr: Expr) -> IdedExpr {
    IdedExpr { id: 0, expr }
}
