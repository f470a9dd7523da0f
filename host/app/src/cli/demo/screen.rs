//! Where progress goes: a screen that updates in place, lines, or JSON.

use std::collections::VecDeque;
use std::io::Write as _;

use serde_json::json;

use super::Output;
use super::observe::{Change, View};
use super::text;

/// Decisions that stay on the screen.
const KEPT: usize = 9;
/// Rows of nodes that the screen shows.
const ROWS: usize = 10;
/// Cluster seconds between two progress lines when nothing else happens.
const EVERY: f64 = 5.0;

/// The display.
pub(super) struct Display {
    output: Output,
    title: String,
    happenings: VecDeque<String>,
    /// Lines drawn last time, to be drawn over.
    drawn: usize,
    last: Option<(f64, String)>,
}

impl Display {
    pub(super) fn new(output: Output) -> Self {
        Self { output, title: String::new(), happenings: VecDeque::new(), drawn: 0, last: None }
    }

    /// A new chapter. `key` is its name for programs.
    pub(super) fn chapter(&mut self, at: f64, key: &str, title: &str) {
        self.title = title.to_owned();
        match self.output {
            Output::Screen => self.happen(format!("{at:>7.1}s  {title}")),
            Output::Lines => line(&format!("{at:>7.1}s  == {title}")),
            Output::Json => {
                line(&json!({"event": "chapter", "at": round(at), "chapter": key, "message": title}).to_string())
            }
        }
    }

    /// Something that stays, whatever the screen does: an object for JSON, text elsewhere.
    pub(super) fn record(&mut self, value: serde_json::Value, text: &str) {
        match self.output {
            Output::Json => line(&value.to_string()),
            Output::Screen => {
                self.erase();
                line(text);
            }
            Output::Lines => line(text),
        }
    }

    /// The present state and what changed.
    pub(super) fn update(&mut self, view: &View, changes: &[Change]) {
        for change in changes {
            match self.output {
                Output::Screen => self.happen(format!("{:>7.1}s  {}", view.at, text::change(change))),
                Output::Lines => line(&format!("{:>7.1}s  {}", view.at, text::change(change))),
                Output::Json => line(&change_json(view.at, change).to_string()),
            }
        }
        if self.output == Output::Screen {
            self.draw(view);
            return;
        }
        let progress = text::progress(view);
        let due = self
            .last
            .as_ref()
            .is_none_or(|(at, said)| *said != progress && (view.at - at >= EVERY || !changes.is_empty()));
        if due {
            match self.output {
                Output::Json => line(&progress_json(view).to_string()),
                _ => line(&format!("{:>7.1}s  {progress}", view.at)),
            }
            self.last = Some((view.at, progress));
        }
    }

    /// Leaves the last picture standing.
    pub(super) fn finish(&mut self) {
        self.drawn = 0;
        self.last = None;
    }

    fn happen(&mut self, text: String) {
        self.happenings.push_back(text);
        while self.happenings.len() > KEPT {
            self.happenings.pop_front();
        }
    }

    fn draw(&mut self, view: &View) {
        let mut lines = vec![
            format!("mortise demo  {:>7.1}s  {}", view.at, self.title),
            String::new(),
            format!("  pods   {}", bar(view)),
            format!(
                "         {} pending  {} starting  {} running  {} leaving",
                view.pending, view.starting, view.running, view.leaving
            ),
            format!(
                "  nodes  {} of {} ready   {} (on demand it would be {})",
                view.ready_nodes(),
                view.nodes.len(),
                text::dollars(view.price()),
                text::dollars(view.on_demand())
            ),
            String::new(),
        ];
        let rows = text::node_rows(view);
        let more = rows.len().saturating_sub(ROWS);
        lines.extend(rows.into_iter().take(ROWS));
        if more > 0 {
            lines.push(format!("       and {more} more kinds"));
        }
        lines.push(String::new());
        lines.extend(self.happenings.iter().cloned());
        self.erase();
        let mut out = String::new();
        for line in &lines {
            // Cut to what nearly every terminal holds: a wrapped line would spoil the next picture.
            out.extend(line.chars().take(118));
            out.push_str("\x1b[K\n");
        }
        self.drawn = lines.len();
        write(&out);
    }

    fn erase(&mut self) {
        if self.drawn > 0 {
            write(&format!("\x1b[{}A\x1b[J", self.drawn));
            self.drawn = 0;
        }
    }
}

fn bar(view: &View) -> String {
    const WIDTH: usize = 50;
    let all = view.pods().max(1);
    let part = |n: usize| n * WIDTH / all;
    let (running, starting) = (part(view.running), part(view.starting));
    let rest = WIDTH.saturating_sub(running + starting);
    format!(
        "[{}{}{}]",
        "#".repeat(running),
        "+".repeat(starting),
        (if view.pods() == 0 { " " } else { "." }).repeat(rest)
    )
}

fn change_json(at: f64, change: &Change) -> serde_json::Value {
    let (event, node) = match change {
        Change::Decided(n) => ("nodeclaim-created", n),
        Change::Launched(n) => ("launched", n),
        Change::Ready(n) => ("ready", n),
        Change::Leaving(n) => ("leaving", n),
        Change::Gone(n) => ("gone", n),
    };
    let mut out = json!({"event": event, "at": round(at), "nodeClaim": node.claim});
    if event == "nodeclaim-created" {
        out["pods"] = node.meant_for.into();
        out["instanceTypes"] = node.candidates.into();
    } else {
        out["instanceType"] = node.instance_type.clone().into();
        out["zone"] = node.zone.clone().into();
        out["capacityType"] = node.capacity_type.clone().into();
        out["microUsdPerHour"] = node.price.map(|p| p.0).into();
    }
    out
}

fn progress_json(view: &View) -> serde_json::Value {
    json!({
        "event": "progress", "at": round(view.at),
        "pods": {"pending": view.pending, "starting": view.starting, "running": view.running, "leaving": view.leaving},
        "nodes": {"ready": view.ready_nodes(), "total": view.nodes.len()}, "microUsdPerHour": view.price().0,
    })
}

pub(super) fn round(seconds: f64) -> f64 {
    (seconds * 10.0).round() / 10.0
}

fn line(text: &str) {
    write(&format!("{text}\n"));
}

/// A reader that went away (a closed pipe) does not end the demo: its exit code still tells.
fn write(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}
