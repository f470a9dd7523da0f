//! A little proxy before moto that loses replies, answers itself, and keeps client tokens as EC2 does (moto does not).

use std::collections::{BTreeMap, VecDeque};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What to do with the next CreateFleet.
pub(crate) enum Fault {
    /// Let it happen, then cut the connection.
    LoseReply,
    /// Do not let it happen; answer this.
    Answer(u16, String),
}

#[derive(Default)]
struct State {
    faults: VecDeque<Fault>,
    /// Body and answer by client token.
    tokens: BTreeMap<String, (Vec<u8>, Vec<u8>)>,
    /// CreateFleet requests seen, and those that reached moto.
    seen: usize,
    forwarded: usize,
}

pub(crate) struct Proxy {
    pub(crate) url: String,
    state: Arc<Mutex<State>>,
}

impl Proxy {
    pub(crate) fn start(upstream: &str) -> Self {
        let upstream = upstream.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        // Ends with the test's process.
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (state, upstream) = (Arc::clone(&shared), upstream.clone());
                std::thread::spawn(move || serve(client, &upstream, &state));
            }
        });
        Self { url, state }
    }

    pub(crate) fn inject(&self, faults: impl IntoIterator<Item = Fault>) {
        self.state.lock().unwrap().faults.extend(faults);
    }

    /// CreateFleet requests seen, and those that reached moto.
    pub(crate) fn fleets(&self) -> (usize, usize) {
        let state = self.state.lock().unwrap();
        (state.seen, state.forwarded)
    }
}

/// One request per connection.
fn serve(mut client: TcpStream, upstream: &str, state: &Mutex<State>) {
    let Some((head, body)) = read_request(&mut client) else { return };
    let text = String::from_utf8_lossy(&body);
    if !text.contains("Action=CreateFleet&") {
        let _ = client.write_all(&forward(upstream, &head, &body));
        return;
    }
    let token = text.split('&').find_map(|p| p.strip_prefix("ClientToken=")).unwrap_or_default().to_owned();
    let mut state = state.lock().unwrap();
    state.seen += 1;
    let fault = state.faults.pop_front();
    if let Some(Fault::Answer(status, answer)) = &fault {
        let _ = client.write_all(&response(*status, answer));
        return;
    }
    let answer = match state.tokens.get(&token) {
        Some((first, answer)) if *first == body => answer.clone(),
        Some(_) => response(400, &error("IdempotentParameterMismatch", "same token, other parameters")),
        None => {
            state.forwarded += 1;
            let answer = forward(upstream, &head, &body);
            state.tokens.insert(token, (body, answer.clone()));
            answer
        }
    };
    if !matches!(fault, Some(Fault::LoseReply)) {
        let _ = client.write_all(&answer);
    }
}

fn read_request(client: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut data = Vec::new();
    let mut buffer = [0; 8192];
    loop {
        let end = data.windows(4).position(|w| w == b"\r\n\r\n");
        if let Some(end) = end {
            let head = String::from_utf8_lossy(&data[..end]).into_owned();
            let length = head
                .lines()
                .find_map(|l| l.to_ascii_lowercase().strip_prefix("content-length:").map(|n| n.trim().to_owned()))
                .and_then(|n| n.parse::<usize>().ok())
                .unwrap_or(0);
            if data.len() >= end + 4 + length {
                return Some((head, data[end + 4..end + 4 + length].to_vec()));
            }
        }
        match client.read(&mut buffer) {
            Ok(n) if n > 0 => data.extend_from_slice(&buffer[..n]),
            _ => return None,
        }
    }
}

fn forward(upstream: &str, head: &str, body: &[u8]) -> Vec<u8> {
    let mut server = TcpStream::connect(upstream).unwrap();
    let kept = head.lines().filter(|l| !l.to_ascii_lowercase().starts_with("connection:"));
    let head: String = kept.map(|l| format!("{l}\r\n")).collect();
    server.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes()).unwrap();
    server.write_all(body).unwrap();
    let mut answer = Vec::new();
    server.read_to_end(&mut answer).unwrap();
    answer
}

fn response(status: u16, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} X\r\nContent-Type: text/xml\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

/// EC2's error body.
pub(crate) fn error(code: &str, message: &str) -> String {
    format!(
        "<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message></Error></Errors><RequestID>r</RequestID></Response>"
    )
}

/// A fleet's answer without instances: one error per offering.
pub(crate) fn no_instances(errors: &[(&str, &str, &str)]) -> String {
    let items: String = errors
        .iter()
        .map(|(code, name, zone)| {
            format!("<item><launchTemplateAndOverrides><overrides><instanceType>{name}</instanceType><availabilityZone>{zone}</availabilityZone></overrides></launchTemplateAndOverrides><lifecycle>on-demand</lifecycle><errorCode>{code}</errorCode><errorMessage>as injected</errorMessage></item>")
        })
        .collect();
    format!(
        "<CreateFleetResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\"><requestId>r</requestId><fleetId>fleet-1</fleetId><errorSet>{items}</errorSet><fleetInstanceSet/></CreateFleetResponse>"
    )
}
