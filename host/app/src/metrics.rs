//! Metrics: one table ([`table::TABLE`]) is the source of names, help, labels and buckets, for the code and the
//! documentation alike. A small registry of our own: three kinds, series that can be dropped again, and values that
//! are only computed when somebody scrapes.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

mod table;
#[cfg(test)]
mod tests;

pub use table::{Id, Metric, TABLE, markdown};

/// Kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts observations at most as large as each bound.
    Histogram(&'static [f64]),
}

enum Series {
    Value(f64),
    Histogram { counts: Vec<u64>, sum: f64, count: u64 },
}

type Labels = Box<[Box<str>]>;
type Collector = Box<dyn Fn(&mut Page) + Send + Sync>;

/// All metrics of one controller.
pub struct Registry {
    families: Vec<Mutex<BTreeMap<Labels, Series>>>,
    collectors: RwLock<Vec<Collector>>,
}

impl Default for Registry {
    fn default() -> Self {
        let families = TABLE.iter().map(|_| Mutex::default()).collect();
        Self { families, collectors: RwLock::default() }
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry").field("families", &self.families.len()).finish_non_exhaustive()
    }
}

impl Registry {
    /// A registry with no series but the pre-set ones.
    #[must_use]
    pub fn new() -> Arc<Self> {
        let registry = Arc::new(Self::default());
        let arch = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        // `goversion` is kept because dashboards select on the full label set.
        registry.set(Id::BuildInfo, &[env!("CARGO_PKG_VERSION"), "none", arch, crate::telemetry::COMMIT], 1.0);
        for kind in ["multi", "single"] {
            registry.add(Id::VoluntaryDisruptionConsolidationTimeoutsTotal, &[kind], 0.0);
        }
        registry
    }

    fn with<R>(
        &self,
        id: Id,
        labels: &[&str],
        new: impl FnOnce() -> Series,
        f: impl FnOnce(&mut Series) -> R,
    ) -> Option<R> {
        debug_assert_eq!(id.metric().labels.len(), labels.len(), "{}", id.metric().name);
        let mut family = self.families.get(id as usize)?.lock().unwrap_or_else(PoisonError::into_inner);
        let key: Labels = labels.iter().map(|l| Box::from(*l)).collect();
        Some(f(family.entry(key).or_insert_with(new)))
    }

    /// Adds one to a counter.
    pub fn inc(&self, id: Id, labels: &[&str]) {
        self.add(id, labels, 1.0);
    }

    /// Adds to a counter or gauge.
    pub fn add(&self, id: Id, labels: &[&str], by: f64) {
        self.with(
            id,
            labels,
            || Series::Value(0.0),
            |s| {
                if let Series::Value(v) = s {
                    *v += by;
                }
            },
        );
    }

    /// Sets a gauge.
    pub fn set(&self, id: Id, labels: &[&str], to: f64) {
        self.with(id, labels, || Series::Value(0.0), |s| *s = Series::Value(to));
    }

    /// Observes a value of a histogram.
    pub fn observe(&self, id: Id, labels: &[&str], value: f64) {
        let Kind::Histogram(bounds) = id.metric().kind else { return };
        let new = || Series::Histogram { counts: vec![0; bounds.len()], sum: 0.0, count: 0 };
        self.with(id, labels, new, |s| {
            if let Series::Histogram { counts, sum, count } = s {
                let at = bounds.partition_point(|b| *b < value);
                if let Some(c) = counts.get_mut(at) {
                    *c += 1;
                }
                *sum += value;
                *count += 1;
            }
        });
    }

    /// Observes a duration in seconds.
    pub fn observe_duration(&self, id: Id, labels: &[&str], duration: Duration) {
        self.observe(id, labels, duration.as_secs_f64());
    }

    /// Drops every series whose labels the function refuses.
    pub fn retain(&self, id: Id, keep: impl Fn(&[Box<str>]) -> bool) {
        if let Some(family) = self.families.get(id as usize) {
            family.lock().unwrap_or_else(PoisonError::into_inner).retain(|labels, _| keep(labels));
        }
    }

    /// Value of a counter or gauge, for tests and reports.
    #[must_use]
    pub fn value(&self, id: Id, labels: &[&str]) -> Option<f64> {
        let family = self.families.get(id as usize)?.lock().unwrap_or_else(PoisonError::into_inner);
        let key: Labels = labels.iter().map(|l| Box::from(*l)).collect();
        match family.get(&key)? {
            Series::Value(v) => Some(*v),
            Series::Histogram { count, .. } => Some(*count as f64),
        }
    }

    /// Adds a function that fills in values whenever the metrics are read. It must be quick and must not block.
    pub fn on_scrape(&self, collector: impl Fn(&mut Page) + Send + Sync + 'static) {
        self.collectors.write().unwrap_or_else(PoisonError::into_inner).push(Box::new(collector));
    }

    /// The text format of Prometheus.
    #[must_use]
    pub fn render(&self) -> String {
        let mut page = Page { rows: TABLE.iter().map(|_| String::new()).collect() };
        for (metric, family) in TABLE.iter().zip(&self.families) {
            let family = family.lock().unwrap_or_else(PoisonError::into_inner);
            for (labels, series) in family.iter() {
                page.series(metric, labels, series);
            }
        }
        for collector in self.collectors.read().unwrap_or_else(PoisonError::into_inner).iter() {
            collector(&mut page);
        }
        let mut out = String::with_capacity(page.rows.iter().map(String::len).sum::<usize>() + 16 * 1024);
        for (metric, rows) in TABLE.iter().zip(&page.rows).filter(|(_, rows)| !rows.is_empty()) {
            let kind = match metric.kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
                Kind::Histogram(_) => "histogram",
            };
            let (name, help) = (metric.name, metric.help);
            let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n{rows}");
        }
        out
    }
}

/// A page being rendered; collectors add gauges to it.
pub struct Page {
    rows: Vec<String>,
}

impl Page {
    /// Adds the value of a gauge or counter.
    pub fn put(&mut self, id: Id, labels: &[&str], value: f64) {
        debug_assert_eq!(id.metric().labels.len(), labels.len(), "{}", id.metric().name);
        self.row(id.metric(), "", labels.iter().copied(), None, value);
    }

    fn series(&mut self, metric: &'static Metric, labels: &[Box<str>], series: &Series) {
        let names = || labels.iter().map(|l| &**l);
        match series {
            Series::Value(v) => self.row(metric, "", names(), None, *v),
            Series::Histogram { counts, sum, count } => {
                let Kind::Histogram(bounds) = metric.kind else { return };
                let mut total = 0;
                for (bound, n) in bounds.iter().zip(counts) {
                    total += n;
                    self.row(metric, "_bucket", names(), Some(*bound), total as f64);
                }
                self.row(metric, "_bucket", names(), Some(f64::INFINITY), *count as f64);
                self.row(metric, "_sum", names(), None, *sum);
                self.row(metric, "_count", names(), None, *count as f64);
            }
        }
    }

    fn row<'a>(
        &mut self,
        metric: &'static Metric,
        suffix: &str,
        labels: impl Iterator<Item = &'a str>,
        le: Option<f64>,
        value: f64,
    ) {
        let Some(at) = TABLE.iter().position(|m| std::ptr::eq(m, metric)) else { return };
        let Some(out) = self.rows.get_mut(at) else { return };
        out.push_str(metric.name);
        out.push_str(suffix);
        let mut separator = '{';
        for (key, value) in metric.labels.iter().zip(labels) {
            let _ = write!(out, "{separator}{key}=\"");
            for c in value.chars() {
                match c {
                    '\\' => out.push_str("\\\\"),
                    '"' => out.push_str("\\\""),
                    '\n' => out.push_str("\\n"),
                    c => out.push(c),
                }
            }
            out.push('"');
            separator = ',';
        }
        if let Some(le) = le {
            let _ = match le {
                f64::INFINITY => write!(out, "{separator}le=\"+Inf\""),
                le => write!(out, "{separator}le=\"{le}\""),
            };
            separator = ',';
        }
        if separator == ',' {
            out.push('}');
        }
        let _ = writeln!(out, " {value}");
    }
}
