//! A metrics recorder for the whole process, which keeps all values.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use metrics::{Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, SharedString, Unit};

/// The metrics of all queues, by queue and name. The names are without `trunkline_`, and include
/// the outcome if there is one.
#[derive(Default)]
pub struct Recorder {
    counters: Mutex<BTreeMap<(String, String), Arc<AtomicU64>>>,
    gauges: Mutex<BTreeMap<(String, String), Arc<AtomicU64>>>,
    histograms: Mutex<BTreeMap<(String, String), Arc<Values>>>,
    /// The registered metrics: the queue, and the name with kind and labels.
    registered: Mutex<BTreeSet<(String, String)>>,
    units: Mutex<BTreeMap<String, &'static str>>,
}

#[derive(Default)]
pub struct Values(Mutex<Vec<f64>>);

impl HistogramFn for Values {
    fn record(&self, value: f64) {
        self.0.lock().expect("no panic").push(value);
    }
}

/// Returns the recorder of this process. It must be installed before the queue is opened.
pub fn recorder() -> &'static Recorder {
    static RECORDER: OnceLock<&'static Recorder> = OnceLock::new();
    RECORDER.get_or_init(|| {
        let recorder: &'static Recorder = Box::leak(Box::default());
        metrics::set_global_recorder(recorder).expect("the only one");
        recorder
    })
}

impl Recorder {
    fn get<V: Clone>(all: &Mutex<BTreeMap<(String, String), V>>, queue: &str, name: &str) -> V {
        let key = (queue.to_owned(), format!("trunkline_{name}"));
        all.lock().expect("no panic").get(&key).unwrap_or_else(|| panic!("no metric {key:?}")).clone()
    }

    pub fn count(&self, queue: &str, name: &str) -> u64 {
        Self::get(&self.counters, queue, name).load(Ordering::Relaxed)
    }

    pub fn level(&self, queue: &str, name: &str) -> f64 {
        f64::from_bits(Self::get(&self.gauges, queue, name).load(Ordering::Relaxed))
    }

    /// Returns the number of values in a histogram.
    pub fn times(&self, queue: &str, name: &str) -> usize {
        Self::get(&self.histograms, queue, name).0.lock().expect("no panic").len()
    }

    pub fn sum(&self, queue: &str, name: &str) -> f64 {
        Self::get(&self.histograms, queue, name).0.lock().expect("no panic").iter().sum()
    }

    /// Returns the metrics of a queue, as `name kind labels unit`.
    pub fn registered(&self, queue: &str) -> BTreeSet<String> {
        let units = self.units.lock().expect("no panic");
        let all = self.registered.lock().expect("no panic");
        all.iter()
            .filter(|(of, _)| of == queue)
            .map(|(_, what)| {
                let name = what.split(' ').next().expect("a name");
                format!("{what} {}", units.get(name).unwrap_or_else(|| panic!("{name} is not described")))
            })
            .collect()
    }

    fn register<V: Default>(&self, all: &Mutex<BTreeMap<(String, String), Arc<V>>>, key: &Key, kind: &str) -> Arc<V> {
        let label = |name: &str| key.labels().find(|label| label.key() == name).map(|label| label.value().to_owned());
        let queue = label("queue").expect("every metric has a queue");
        let labels: Vec<&str> = key.labels().map(metrics::Label::key).collect();
        let what = format!("{} {kind} {}", key.name(), labels.join(" "));
        self.registered.lock().expect("no panic").insert((queue.clone(), what));
        let name = match label("outcome") {
            Some(outcome) => format!("{} {outcome}", key.name()),
            None => key.name().to_owned(),
        };
        all.lock().expect("no panic").entry((queue, name)).or_default().clone()
    }

    fn describe(&self, key: &KeyName, unit: Option<Unit>) {
        let unit = unit.expect("every metric has a unit").as_str();
        self.units.lock().expect("no panic").insert(key.as_str().to_owned(), unit);
    }
}

impl metrics::Recorder for Recorder {
    fn describe_counter(&self, key: KeyName, unit: Option<Unit>, _: SharedString) {
        self.describe(&key, unit);
    }

    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, _: SharedString) {
        self.describe(&key, unit);
    }

    fn describe_histogram(&self, key: KeyName, unit: Option<Unit>, _: SharedString) {
        self.describe(&key, unit);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.register(&self.counters, key, "counter"))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.register(&self.gauges, key, "gauge"))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.register(&self.histograms, key, "histogram"))
    }
}
