//! Words and figures of the demo, the same on the screen and in lines.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use mortise_engine::quantity::MicroUsd;

use super::observe::{Change, NodeView, Stage, View};

/// Dollars per hour.
pub(super) fn dollars(price: MicroUsd) -> String {
    format!("${}.{:04}/h", price.0 / 1_000_000, price.0 % 1_000_000 / 100)
}

fn price(node: &NodeView) -> String {
    node.price.map_or_else(|| "price unknown".to_owned(), dollars)
}

fn machine(node: &NodeView) -> String {
    format!("{:<14} {:<9} {:<10} {:>10}", node.instance_type, node.capacity_type, node.zone, price(node))
}

/// One line for one change.
pub(super) fn change(change: &Change) -> String {
    match change {
        Change::Decided(n) => {
            format!("decide  {}  for {} pods, {} instance types would do", n.claim, n.meant_for, n.candidates)
        }
        Change::Launched(n) => format!("launch  {}  {}", n.claim, machine(n)),
        Change::Ready(n) => format!("ready   {}  {}", n.claim, machine(n)),
        Change::Leaving(n) => format!("empty   {}  {}  is drained and goes", n.claim, machine(n)),
        Change::Gone(n) => format!("gone    {}  {}", n.claim, machine(n)),
    }
}

/// Pods and nodes in one line.
pub(super) fn progress(view: &View) -> String {
    let mut line = format!("pods {} pending, {} starting, {} running", view.pending, view.starting, view.running);
    if view.leaving > 0 {
        let _ = write!(line, ", {} leaving", view.leaving);
    }
    let _ = write!(line, " | nodes {} of {} ready | {}", view.ready_nodes(), view.nodes.len(), dollars(view.price()));
    line
}

/// Nodes that are alike: stage, type, market, zone.
type Alike<'a> = (Stage, &'a str, &'a str, &'a str);

/// One row per type, zone, market and stage: the nodes that are alike.
pub(super) fn node_rows(view: &View) -> Vec<String> {
    let mut rows: BTreeMap<Alike<'_>, (usize, usize, &NodeView)> = BTreeMap::new();
    for node in view.nodes.values() {
        let key = (node.stage, node.instance_type.as_str(), node.capacity_type.as_str(), node.zone.as_str());
        let row = rows.entry(key).or_insert((0, 0, node));
        row.0 += 1;
        row.1 += node.pods;
    }
    rows.into_iter()
        .map(|((stage, ..), (count, pods, node))| {
            let size =
                if node.cpu.is_empty() { String::new() } else { format!("{} CPU, {}", node.cpu, memory(&node.memory)) };
            format!("{count:>4} × {:<50} {:<9} {pods:>5} pods  {size}", machine(node), stage.word())
        })
        .collect()
}

/// Bytes or binary units as GiB.
fn memory(text: &str) -> String {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 = match &text[digits.len()..] {
        "" => 1,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        _ => return text.to_owned(),
    };
    match digits.parse::<u64>().ok().and_then(|n| n.checked_mul(unit)) {
        Some(bytes) => format!("{} GiB", (bytes + (1 << 29)) >> 30),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_well() {
        assert_eq!(dollars(MicroUsd(1_234_567)), "$1.2345/h");
        assert_eq!(dollars(MicroUsd(68_000)), "$0.0680/h");
        assert_eq!(memory("16384Mi"), "16 GiB");
        assert_eq!(memory("15903752Ki"), "15 GiB");
        assert_eq!(memory("1T"), "1T");
    }
}
