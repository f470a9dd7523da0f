//! Just enough MIME to merge parts of user data.

/// Boundary between parts. Slashes are legal in it and do not occur at the start of a line of any config or script.
const BOUNDARY: &str = "//";

/// One part: headers without the blank line, and body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    headers: Vec<String>,
    body: String,
}

impl Part {
    pub(super) fn node_config(yaml: &str) -> Self {
        Self { headers: vec!["Content-Type: application/node.eks.aws".to_owned()], body: yaml.to_owned() }
    }

    fn shell(script: &str) -> Self {
        let header = "Content-Type: text/x-shellscript; charset=\"us-ascii\"".to_owned();
        Self { headers: vec![header], body: script.to_owned() }
    }
}

/// Parts of a user's text: of a multipart message each, of YAML one NodeConfig, of anything else one shell script.
pub(super) fn parts_of(text: &str) -> Result<Vec<Part>, String> {
    let text = text.replace("\r\n", "\n");
    if is_mime(&text) {
        return split(&text);
    }
    let yaml = serde_norway::from_str::<serde_norway::Value>(&text).is_ok_and(|v| v.is_mapping());
    Ok(vec![if yaml { Part::node_config(&text) } else { Part::shell(&text) }])
}

fn is_mime(text: &str) -> bool {
    let first = text.trim_start().lines().next().unwrap_or_default().to_ascii_lowercase();
    first.starts_with("mime-version:") || first.starts_with("content-type:")
}

/// Headers of a block (folded lines joined) and the rest after the blank line.
fn headers(text: &str) -> (Vec<String>, &str) {
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let mut lines: Vec<String> = Vec::new();
    for line in head.lines() {
        match lines.last_mut() {
            Some(last) if line.starts_with([' ', '\t']) => {
                last.push(' ');
                last.push_str(line.trim());
            }
            _ if line.is_empty() => {}
            _ => lines.push(line.to_owned()),
        }
    }
    (lines, body)
}

fn boundary(headers: &[String]) -> Option<String> {
    headers.iter().filter(|h| h.to_ascii_lowercase().starts_with("content-type:")).find_map(|h| {
        let at = h.to_ascii_lowercase().find("boundary=")?;
        let value = h.get(at + "boundary=".len()..)?.trim();
        let value = match value.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next()?,
            None => value.split([';', ' ']).next()?,
        };
        (!value.is_empty()).then(|| value.to_owned())
    })
}

fn split(text: &str) -> Result<Vec<Part>, String> {
    let (top, body) = headers(text.trim_start());
    let Some(boundary) = boundary(&top) else {
        return Err(
            "a MIME message without a boundary in its Content-Type; write multipart/mixed; boundary=\"…\"".to_owned()
        );
    };
    let open = format!("--{boundary}");
    let close = format!("--{boundary}--");
    let mut parts = Vec::new();
    let mut current: Option<String> = None;
    let mut closed = false;
    for line in body.lines() {
        let trimmed = line.trim_end();
        if trimmed == open || trimmed == close {
            if let Some(block) = current.take() {
                let (headers, body) = headers(&block);
                parts.push(Part { headers, body: body.to_owned() });
            }
            if trimmed == close {
                closed = true;
                break;
            }
            current = Some(String::new());
        } else if let Some(block) = &mut current {
            block.push_str(line);
            block.push('\n');
        }
    }
    if !closed {
        return Err(format!("a MIME message that does not end with {close:?}"));
    }
    Ok(parts)
}

/// One multipart message.
pub(super) fn join(parts: &[Part]) -> String {
    let mut out = format!("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"{BOUNDARY}\"\n\n");
    for part in parts {
        out.push_str(&format!("--{BOUNDARY}\n"));
        for header in &part.headers {
            out.push_str(header);
            out.push('\n');
        }
        out.push('\n');
        out.push_str(part.body.trim_end_matches('\n'));
        out.push_str("\n\n");
    }
    out.push_str(&format!("--{BOUNDARY}--\n"));
    out
}
