//! Scripts of requests, and the normalisation that makes responses of two servers comparable.
//!
//! A script is a JSON list of steps; each has a method, a path, and perhaps headers and a body. `${step.path.to.field}`
//! stands for a field of the response to an earlier step that was saved under that name. `${ns}` is the script's namespace.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::layout::layout;

/// One request of a script.
#[derive(Clone, Debug, Deserialize)]
pub struct Step {
    /// The rule that this step tests.
    pub id: String,
    pub method: String,
    pub path: String,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// JSON, or text that is sent as it is, or `{"repeat": ["x", 1000]}`.
    #[serde(default)]
    pub body: Option<Value>,
    /// The name by which later steps refer to the response.
    #[serde(default)]
    pub save: Option<String>,
    /// Repeat the request until the response has this code, for asynchronous work of servers.
    #[serde(default)]
    pub until: Option<u16>,
    /// Compare the order of keys, too.
    #[serde(default)]
    pub layout: bool,
}

/// A normalised response to one step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparable {
    pub id: String,
    pub code: u16,
    pub content_type: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The headers for caches.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub caching: BTreeMap<String, String>,
    /// The keys of the body in their order, if they are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<String>,
    /// The parsed body, a list of events for a watch, or text if it is not JSON.
    pub body: Value,
}

/// A response as received.
pub struct Raw {
    pub code: u16,
    pub content_type: String,
    pub warnings: Vec<String>,
    pub caching: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

/// The state of a running script.
pub struct Run {
    namespace: String,
    saved: HashMap<String, Value>,
    /// The entity tags of saved responses: `${name#etag}`.
    etags: HashMap<String, String>,
    names: Names,
    peer: Option<Peer>,
}

/// The webhooks that scripts register: `${peer}` and `${ca}`.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The URL without a path.
    pub url: String,
    /// The certificate that it is trusted by, as PEM in base64.
    pub authority: String,
}

/// Replaces values that differ in every run by the order of their first occurrence.
#[derive(Default)]
struct Names {
    uids: HashMap<String, usize>,
    versions: Vec<u64>,
    generated: HashMap<String, usize>,
    /// The text of all requests: times in it are not normalised.
    sent: String,
}

impl Run {
    pub fn new(namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            saved: HashMap::new(),
            etags: HashMap::new(),
            names: Names::default(),
            peer: None,
        }
    }

    /// Sets the webhooks.
    pub fn with_peer(mut self, peer: Option<Peer>) -> Self {
        self.peer = peer;
        self
    }

    /// Returns a text with its placeholders replaced.
    pub fn fill(&self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            out.push_str(before);
            let Some((name, after)) = after.split_once('}') else { break };
            let peer = self.peer.as_ref();
            if name == "ns" {
                out.push_str(&self.namespace);
            } else if name == "peer" {
                out.push_str(peer.map_or("UNKNOWN", |peer| &peer.url));
            } else if name == "ca" {
                out.push_str(peer.map_or("UNKNOWN", |peer| &peer.authority));
            } else if let Some(name) = name.strip_suffix("#etag") {
                out.push_str(self.etags.get(name).map_or("UNKNOWN", String::as_str));
            } else {
                let mut parts = name.split('.');
                let saved = self.saved.get(parts.next().unwrap_or_default()).unwrap_or(&Value::Null);
                let found = parts.try_fold(saved, |value, part| value.get(part));
                out.push_str(found.and_then(Value::as_str).unwrap_or("UNKNOWN"));
            }
            rest = after;
        }
        out + rest
    }

    /// Returns the request of a step without its body.
    pub fn request(&self, step: &Step) -> http::request::Builder {
        let mut request = http::Request::builder().method(step.method.as_str()).uri(self.fill(&step.path));
        for (name, value) in &step.headers {
            // Several groups are several headers, and `none` stands for no credentials.
            for value in self.fill(value).split('|').filter(|value| *value != "none") {
                request = request.header(name, value);
            }
        }
        if step.body.is_some() && !step.headers.keys().any(|name| name.eq_ignore_ascii_case("content-type")) {
            request = request.header("content-type", "application/json");
        }
        request
    }

    /// Returns whether a step has credentials of its own, or wants none.
    pub fn has_credentials(step: &Step) -> bool {
        step.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"))
    }

    /// Returns the body of a step.
    pub fn body(&self, step: &Step) -> Vec<u8> {
        match &step.body {
            None => Vec::new(),
            Some(Value::String(text)) => self.fill(text).into_bytes(),
            Some(Value::Object(fields)) if fields.contains_key("repeat") => {
                let text = fields["repeat"][0].as_str().unwrap_or_default();
                let times = fields["repeat"][1].as_u64().unwrap_or_default();
                text.repeat(usize::try_from(times).unwrap_or_default()).into_bytes()
            }
            Some(value) => self.fill(&value.to_string()).into_bytes(),
        }
    }

    /// Normalises a value that the server has written elsewhere.
    pub fn normalise(&mut self, value: &mut Value) {
        self.names.normalise(value, &self.namespace);
    }

    /// Saves a response, and returns it normalised.
    pub fn note(&mut self, step: &Step, raw: &Raw) -> Comparable {
        let text = String::from_utf8_lossy(&raw.body);
        let text = match &self.peer {
            Some(Peer { url, authority }) => text.replace(url, "https://PEER").replace(authority, "CA").into(),
            None => text,
        };
        let is_watch = step.path.contains("watch=") || step.path.contains("/watch/");
        let events: Option<Vec<Value>> = (is_watch && raw.code == 200)
            .then(|| text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect());
        let mut body = match events {
            Some(events) => Value::Array(events),
            // The layout of YAML is not compared.
            None if raw.content_type == "application/yaml" => serde_saphyr::from_str(&text).unwrap_or_default(),
            None => serde_json::from_str(&text).unwrap_or_else(|_| Value::from(text.as_ref())),
        };
        if let Some(name) = &step.save {
            self.saved.insert(name.clone(), body.clone());
            self.etags.extend(raw.caching.get("etag").map(|etag| (name.clone(), etag.clone())));
        }
        if let Some(body) = &step.body {
            self.names.sent.push_str(&body.to_string());
        }
        self.names.normalise(&mut body, &self.namespace);
        let warnings = raw.warnings.iter().map(|warning| warning.replace(&self.namespace, "NS")).collect();
        let mut caching = raw.caching.clone();
        if let Some(etag) = caching.get_mut("etag") {
            // Entity tags differ between servers.
            *etag = "ETAG".to_owned();
        }
        let layout = step.layout.then(|| layout(&raw.body).map(|layout| layout.replace(&self.namespace, "NS")));
        Comparable {
            id: step.id.clone(),
            code: raw.code,
            content_type: raw.content_type.clone(),
            warnings,
            caching,
            layout: layout.flatten(),
            body,
        }
    }
}

impl Raw {
    pub fn new(parts: &http::response::Parts, body: Vec<u8>) -> Self {
        let text = |value: &http::HeaderValue| value.to_str().unwrap_or_default().to_owned();
        Self {
            code: parts.status.as_u16(),
            content_type: parts.headers.get("content-type").map(text).unwrap_or_default(),
            warnings: parts.headers.get_all("warning").iter().map(text).collect(),
            caching: ["etag", "vary"]
                .iter()
                .filter_map(|name| Some(((*name).to_owned(), parts.headers.get(*name).map(text)?)))
                .collect(),
            body,
        }
    }
}

impl Comparable {
    /// Returns a short form: code, body, and whatever differs from the usual.
    pub fn to_short(&self) -> Value {
        if self.content_type == USUAL && self.warnings.is_empty() {
            return json!([self.code, self.body]);
        }
        json!([self.code, self.body, self.content_type, self.warnings])
    }

    pub fn from_short(id: &str, short: &Value) -> Self {
        let warnings = short[3].as_array().into_iter().flatten().filter_map(Value::as_str);
        Self {
            id: id.to_owned(),
            code: short[0].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or_default(),
            content_type: short[2].as_str().unwrap_or(USUAL).to_owned(),
            warnings: warnings.map(str::to_owned).collect(),
            caching: BTreeMap::new(),
            layout: None,
            body: short[1].clone(),
        }
    }
}

impl Names {
    fn normalise(&mut self, value: &mut Value, namespace: &str) {
        match value {
            Value::Object(fields) => self.object(fields, namespace),
            Value::Array(items) => items.iter_mut().for_each(|item| self.normalise(item, namespace)),
            Value::String(text) => *text = self.text(text, namespace),
            _ => {}
        }
    }

    fn object(&mut self, fields: &mut Map<String, Value>, namespace: &str) {
        if let Some(Value::Array(entries)) = fields.get_mut("managedFields") {
            managed_fields(entries, namespace);
        }
        if let Some(Value::Array(causes)) = fields.get_mut("causes") {
            // The real server repeats some causes, and visits the managers of conflicts in random order.
            let mut seen = std::collections::HashSet::new();
            causes.retain(|cause| seen.insert(cause.to_string()));
            if causes.iter().all(|cause| cause["reason"] == "FieldManagerConflict") {
                causes.sort_by_key(ToString::to_string);
            }
        }
        for name in ["resourceRules", "nonResourceRules"] {
            if let Some(Value::Array(rules)) = fields.get_mut(name) {
                // The real server visits bindings in random order.
                rules.sort_by_key(ToString::to_string);
            }
        }
        // The server's revision depends on unrelated writes.
        let of_all = if fields.get("type") == Some(&json!("BOOKMARK")) {
            let object = fields.get_mut("object");
            object.and_then(|object| match object.get("rows") {
                Some(_) => object.pointer_mut("/rows/0/object/metadata"),
                None => object.get_mut("metadata"),
            })
        } else if fields.contains_key("items") || fields.contains_key("rows") {
            fields.get_mut("metadata")
        } else {
            None
        };
        if let Some(version) = of_all.and_then(|metadata| metadata.get_mut("resourceVersion")) {
            *version = json!("");
        }
        for (name, value) in fields.iter_mut() {
            match (name.as_str(), &*value) {
                ("uid", Value::String(uid)) if uid.len() > 1 => {
                    let count = self.uids.len();
                    *value = json!(format!("UID-{}", self.uids.entry(uid.clone()).or_insert(count)));
                }
                ("resourceVersion", Value::String(version)) if version != "0" && !version.is_empty() => {
                    let version: u64 = version.parse().unwrap_or_default();
                    // Only whether a version is new is compared, not its number.
                    let at = self.versions.iter().position(|known| *known == version).unwrap_or_else(|| {
                        self.versions.push(version);
                        self.versions.len() - 1
                    });
                    *value = json!(format!("RV-{at}"));
                }
                (
                    "creationTimestamp" | "deletionTimestamp" | "lastTransitionTime" | "lastPhaseTransitionTime",
                    Value::String(_),
                ) => {
                    *value = json!("TIME");
                }
                ("cells", Value::Array(cells)) => *value = cells.iter().map(|value| cell(value, namespace)).collect(),
                ("eventTime" | "startTime" | "lastTimestamp" | "firstTimestamp", Value::String(time))
                    if !self.sent.contains(time.get(..SECONDS).unwrap_or(time)) =>
                {
                    *value = json!("TIME");
                }
                ("disruptedPods", Value::Object(pods)) => {
                    *value = pods.keys().map(|name| (name.clone(), json!("TIME"))).collect();
                }
                ("nodePort" | "healthCheckNodePort", Value::Number(port)) if !self.sent.contains(&port.to_string()) => {
                    *value = json!("PORT");
                }
                ("storageVersionHash", Value::String(_)) => *value = json!("HASH"),
                ("token", Value::String(token)) if token.len() > 200 => *value = json!("TOKEN"),
                ("expirationTimestamp", Value::String(_)) => *value = json!("TIME"),
                ("continue", Value::String(token)) if !token.is_empty() => *value = json!("TOKEN"),
                ("clusterIP", Value::String(address)) if address.starts_with("10.") => *value = json!("ADDRESS"),
                ("clusterIPs", Value::Array(_)) => *value = json!(["ADDRESS"]),
                ("name", Value::String(name)) if name.starts_with("generated-") => {
                    let count = self.generated.len();
                    *value = json!(format!("GENERATED-{}", self.generated.entry(name.clone()).or_insert(count)));
                }
                ("name", Value::String(name)) if name.starts_with("kube-api-access-") => {
                    *value = json!("kube-api-access-X");
                }
                ("managedFields", _) => {}
                _ => self.normalise(value, namespace),
            }
        }
    }

    fn text(&self, text: &str, namespace: &str) -> String {
        let mut out = text.replace(namespace, "NS");
        for (uid, at) in &self.uids {
            out = out.replace(uid.as_str(), &format!("UID-{at}"));
        }
        // A refused object has an identifier that no response has, and labels come before the identifier.
        out = without_uids(out, &self.sent);
        // The server's revision depends on unrelated writes.
        if let Some((before, _)) = out.split_once(", current: ") {
            out = format!("{before}, current: RV");
        }
        // The patched object is printed in the order of Go's fields.
        if let Some((before, rest)) = out
            .split_once("patch: Invalid value: ")
            .or_else(|| out.strip_prefix("Invalid value: \"{").map(|rest| ("", rest)))
            && let Some((_, why)) = rest.rsplit_once("}\": ")
        {
            out = format!("{before}patch: Invalid value: PATCHED: {why}");
        }
        if let Some((before, _)) = out.split_once(", ResourceVersion in object meta: ") {
            out = format!("{before}, ResourceVersion in object meta: RV");
        }
        // Changes are printed with Go's types.
        for end in CHANGES {
            if let Some((before, _)) = out.split_once(end) {
                out = before.to_owned();
            }
        }
        // So are the versions of definitions.
        for end in ["]: must have exactly one version marked", "]: must contain unique version names"] {
            if let Some((before, rest)) = out.split_once("Invalid value: [{")
                && let Some((_, after)) = rest.split_once(end)
            {
                out = format!("{before}Invalid value: VERSIONS{end}{after}");
            }
        }
        // So are templates of pods.
        for (start, end) in [("Invalid value: {\"", "}: field is immutable")] {
            if let Some((before, rest)) = out.split_once(start)
                && let Some((shown, after)) = rest.rsplit_once(end)
                && shown.to_lowercase().contains("\"dnspolicy\":")
            {
                out = format!("{before}Invalid value: PODS{end}{after}").replace("PODS}", "PODS");
            }
        }
        // A version in a message: `(1369)`.
        for (at, version) in self.versions.iter().enumerate() {
            out = out.replace(&format!("({version})"), &format!("(RV-{at})"));
        }
        // The version of a record need not be one that a response had.
        if let Some((before, rest)) = out.split_once(" in record (")
            && let Some((version, after)) = rest.split_once(')')
            && version.parse::<u64>().is_ok()
        {
            out = format!("{before} in record (RV){after}");
        }
        out
    }
}

/// Replaces texts in the form of identifiers that no request has.
fn without_uids(text: String, sent: &str) -> String {
    let is_uid = |part: &str| {
        part.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
    };
    let mut at = 0;
    let mut out = text;
    while let Some(part) = out.get(at..at + 36) {
        if is_uid(part) && !sent.contains(part) {
            out.replace_range(at..at + 36, "UID");
        }
        at += 1;
    }
    out
}

/// Normalises the entries of managers: times differ in every run, and the order of entries depends on them.
fn managed_fields(entries: &mut [Value], namespace: &str) {
    for entry in entries.iter_mut() {
        if let Some(time) = entry.get_mut("time") {
            *time = json!("TIME");
        }
        if let Some(version) = entry["apiVersion"].as_str().map(|version| version.replace(namespace, "NS")) {
            entry["apiVersion"] = json!(version);
        }
    }
    entries.sort_by_key(ToString::to_string);
}

/// Normalises a cell of a table: ages, times and addresses differ in every run.
fn cell(value: &Value, namespace: &str) -> Value {
    let Some(text) = value.as_str() else { return value.clone() };
    let is_age = text.starts_with(|c: char| c.is_ascii_digit())
        && text.ends_with(['s', 'm', 'h', 'd', 'y'])
        && text.chars().all(|c| c.is_ascii_digit() || "smhdy".contains(c));
    let is_time = text.len() == 20 && text.ends_with('Z') && text.contains('T');
    match text {
        _ if is_age => json!("AGE"),
        _ if is_time => json!("TIME"),
        _ if text.starts_with("10.") => json!("ADDRESS"),
        _ if text.contains("/TCP") || text.contains("/UDP") => json!(without_node_ports(text)),
        _ => json!(without_uids(text.replace(namespace, "NS"), "")),
    }
}

/// Replaces the allocated ports in the ports of a service: `80:30123/TCP`.
fn without_node_ports(text: &str) -> String {
    let plain = |port: &str| match port.split_once(':').map(|(port, rest)| (port, rest.split_once('/'))) {
        Some((port, Some((node, protocol)))) if node.len() == 5 && node.starts_with('3') => {
            format!("{port}:PORT/{protocol}")
        }
        _ => port.to_owned(),
    };
    text.split(',').map(plain).collect::<Vec<_>>().join(",")
}

/// The ends of messages that print a change.
const CHANGES: [&str; 4] = [
    " (allow it to be set to 1 if it was previously negative)",
    " for bound claims\n",
    "spec.persistentvolumesource is immutable after creation\n",
    " may not be changed\n",
];
const USUAL: &str = "application/json";
/// The length of a time without fractions.
const SECONDS: usize = "2026-01-02T03:04:05".len();
