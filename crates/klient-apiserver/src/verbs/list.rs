//! Lists: in whole or in pages, at the newest or an earlier revision.

use std::sync::Arc;

use base64::{DecodeError, Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::Response;
use klient_core::{GroupKind, Status, StatusCause};
use serde_json::{Value, json};

use super::{Target, get::parse_version};
use crate::{
    Result,
    body::ResponseBody,
    call::Call,
    response::{self, ListHead},
    selection::Selection,
    server::Core,
    store::{Snapshot, Stored},
};

/// A continue token: the start of the next page.
struct Token {
    /// The revision of the first page. `None` for the newest revision, after the first one has expired.
    revision: Option<u64>,
    /// The last key of the previous page.
    after: String,
}

impl Core {
    pub(super) async fn list(&self, call: &Call, target: &Target) -> Result<Response<ResponseBody>> {
        let wanted = call.collection_format(&target.resource)?;
        let selection = Selection::of_call(&target.resource, call)?;
        check_options(call)?;
        if let Some(computed) = target.resource.hooks.computed {
            let objects = computed().into_iter().filter_map(|object| Stored::computed(&object)).map(Arc::new);
            let objects: Vec<Arc<Stored>> = objects.filter(|object| selection.matches(object)).collect();
            return response::list(&target.resource, &ListHead::default(), &objects, wanted);
        }
        let limit = call.number("limit")?.and_then(|limit| usize::try_from(limit).ok()).filter(|limit| *limit > 0);
        let token = call.param("continue").map(Token::parse).transpose()?;
        let (mut snapshot, after) = self.snapshot(call, target, token).await?;
        if selection.reads_objects() {
            self.convert_all(&target.resource, &mut snapshot.objects).await?;
        }
        let at_any_version = call.param("resourceVersion") == Some("0") && call.param("continue").is_none();
        let limit = if at_any_version { None } else { limit };
        let mut head = ListHead { revision: snapshot.revision, ..ListHead::default() };
        let objects = page(&snapshot, after.as_deref(), target, &selection, limit, &mut head);
        let objects = self.all_stored_in(&target.resource, &objects).await?;
        response::list(&target.resource, &head, &objects, wanted)
    }

    /// Returns the objects at the requested revision, and the key after which the page starts.
    async fn snapshot(&self, call: &Call, target: &Target, token: Option<Token>) -> Result<(Snapshot, Option<String>)> {
        let (table, prefix) = (&target.resource.table, target.prefix());
        if let Some(Token { revision, after }) = token {
            if call.param("resourceVersion").is_some_and(|version| version != "0") {
                let message = "specifying resource version is not allowed when using continue";
                return Err(Box::new(Status::bad_request(message)));
            }
            let Some(revision) = revision else { return Ok((self.store.list(table, &prefix), Some(after))) };
            let snapshot = self.store.list_at(table, &prefix, revision).map_err(|_| {
                let mut status = Status::expired(CONTINUE_EXPIRED);
                status.metadata.get_or_insert_default().continue_ =
                    Some(Token { revision: None, after: after.clone() }.to_string());
                Box::new(status)
            })?;
            return Ok((snapshot, Some(after)));
        }
        let version = call.param("resourceVersion").map(parse_version).transpose()?;
        match (version, call.param("resourceVersionMatch")) {
            (Some(version), Some("Exact")) => {
                let current = self.store.revision();
                if version > current {
                    self.wait_for(version).await?;
                }
                let snapshot = self.store.list_at(table, &prefix, version).map_err(|compacted| {
                    let message = format!(
                        "The resourceVersion for the provided list is too old ({version}, oldest is {}).",
                        compacted.oldest
                    );
                    Box::new(Status::expired(message))
                })?;
                Ok((snapshot, None))
            }
            (Some(version), _) => {
                self.wait_for(version).await?;
                Ok((self.store.list(table, &prefix), None))
            }
            (None, _) => Ok((self.store.list(table, &prefix), None)),
        }
    }
}

/// Returns the objects of one page, and sets the continue token in `head`.
fn page(
    snapshot: &Snapshot,
    after: Option<&str>,
    target: &Target,
    selection: &Selection,
    limit: Option<usize>,
    head: &mut ListHead,
) -> Vec<Arc<Stored>> {
    let resource = &target.resource;
    let key = |stored: &Stored| resource.key(&stored.raw().namespace().unwrap_or_default(), &stored.raw().name());
    let rest = match after {
        Some(after) => &snapshot.objects[snapshot.objects.partition_point(|stored| key(stored).as_str() <= after)..],
        None => &snapshot.objects[..],
    };
    let mut objects = Vec::new();
    for (index, stored) in rest.iter().enumerate() {
        if !selection.matches(stored) {
            continue;
        }
        if limit.is_some_and(|limit| objects.len() == limit) {
            let last = objects.last().map(|stored: &Arc<Stored>| key(stored)).unwrap_or_default();
            head.continue_token = Some(Token { revision: Some(snapshot.revision), after: last }.to_string());
            // The number of remaining objects is known only without selectors.
            head.remaining = selection.is_everything().then_some(rest.len() - index);
            break;
        }
        objects.push(Arc::clone(stored));
    }
    objects
}

/// Refuses options that contradict each other.
fn check_options(call: &Call) -> Result<()> {
    let invalid = |cause: StatusCause| {
        Err(Box::new(Status::invalid(&GroupKind::new("meta.k8s.io", "ListOptions"), "", vec![cause])))
    };
    if call.param("sendInitialEvents").is_some() {
        return invalid(StatusCause::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
    }
    let version = call.param("resourceVersion");
    let Some(how) = call.param("resourceVersionMatch") else { return Ok(()) };
    if call.param("continue").is_some() {
        return invalid(StatusCause::forbidden(
            "resourceVersionMatch",
            "resourceVersionMatch is forbidden when continue is provided",
        ));
    }
    if version.is_none() {
        return invalid(StatusCause::forbidden(
            "resourceVersionMatch",
            "resourceVersionMatch is forbidden unless resourceVersion is provided",
        ));
    }
    match how {
        "NotOlderThan" => Ok(()),
        "Exact" if version == Some("0") => invalid(StatusCause::forbidden(
            "resourceVersionMatch",
            "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
        )),
        "Exact" => Ok(()),
        other => invalid(StatusCause::not_supported("resourceVersionMatch", other, &["Exact", "NotOlderThan", ""])),
    }
}

impl Token {
    fn parse(text: &str) -> Result<Self> {
        let wrong = |why: &str| {
            Box::new(Status::bad_request(format!("invalid continue token: continue key is not valid: {why}")))
        };
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|error| match error {
            DecodeError::InvalidByte(at, _) => wrong(&format!("illegal base64 data at input byte {at}")),
            _ => wrong(&format!("illegal base64 data at input byte {}", text.len() / 4 * 4)),
        })?;
        let value: Value =
            serde_json::from_slice(&bytes).map_err(|error| wrong(&crate::decode::go_json_error(&bytes, &error)))?;
        if value["v"] != "meta.k8s.io/v1" {
            return Err(wrong(&format!(
                "server does not recognize this encoded version {}",
                value["v"].as_str().unwrap_or_default()
            )));
        }
        if !(value["rv"].is_null() || value["rv"].is_number()) {
            let word = crate::decode::type_word(&value["rv"]);
            return Err(wrong(&format!(
                "json: cannot unmarshal {word} into Go struct field continueToken.rv of type int64"
            )));
        }
        let revision = match value["rv"].as_i64() {
            Some(-1) => None,
            Some(revision @ 1..) => Some(revision.cast_unsigned()),
            _ => return Err(wrong("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")),
        };
        let after = value["start"].as_str().filter(|start| !start.is_empty());
        let after = after.ok_or_else(|| wrong("encoded start key empty (version meta.k8s.io/v1)"))?;
        // The real server refuses keys that could leave its prefix.
        if after.split('/').any(|part| part == "..") {
            return Err(wrong(after));
        }
        Ok(Self { revision, after: after.trim_end_matches('\0').to_owned() })
    }
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let revision = self.revision.map_or(-1, u64::cast_signed);
        let token = json!({"v": "meta.k8s.io/v1", "rv": revision, "start": format!("{}\0", self.after)});
        f.write_str(&URL_SAFE_NO_PAD.encode(token.to_string()))
    }
}

const CONTINUE_EXPIRED: &str = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";
