use std::sync::Arc;

use super::*;

/// Runs `log` under our JSON format and returns the lines, parsed.
fn lines(log: impl FnOnce()) -> Vec<serde_json::Value> {
    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);
    impl Write for Buffer {
        fn write(&mut self, b: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(b);
            Ok(b.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let buffer = Buffer::default();
    let sink = buffer.clone();
    let subscriber = tracing_subscriber::fmt().event_format(Json).with_writer(move || sink.clone()).finish();
    tracing::subscriber::with_default(subscriber, log);
    let text = String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap();
    text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

#[test]
fn shape() {
    let lines = lines(|| {
        tracing::info!(NodeClaim = "default-abcde", "provider-id" = %"aws:///a/i-1", count = 3, "launched nodeclaim");
        tracing::error!(Pod = "ns/name", error = "a \"quoted\"\nline", "failed");
    });
    let first = &lines[0];
    assert_eq!(first["level"], "INFO");
    assert_eq!(first["logger"], "controller");
    assert_eq!(first["message"], "launched nodeclaim");
    assert_eq!(first["NodeClaim"]["name"], "default-abcde");
    assert_eq!(first["provider-id"], "aws:///a/i-1");
    assert_eq!(first["count"], 3);
    assert_eq!(first["commit"], COMMIT);
    let time = first["time"].as_str().unwrap();
    assert!(time.parse::<jiff::Timestamp>().is_ok() && time.len() == "2026-01-31T12:00:00.000Z".len(), "{time}");
    assert_eq!(lines[1]["Pod"], serde_json::json!({"namespace": "ns", "name": "name"}));
    assert_eq!(lines[1]["error"], "a \"quoted\"\nline");
}

#[test]
fn unopenable_path_is_named() {
    let error = Sinks::open(&["/nonexistent/dir/log".into()]).err().unwrap();
    assert!(error.contains("LOG_OUTPUT_PATHS") && error.contains("/nonexistent/dir/log"), "{error}");
}
