//! Content negotiation: the encoding of request bodies, and the format of responses.

use http::{
    HeaderMap,
    header::{ACCEPT, CONTENT_TYPE, USER_AGENT},
};
use klient_core::{Status, media_type};

use crate::Result;

/// The encoding of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Json,
    Yaml,
    Protobuf,
}

/// The part of objects that a response contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Projection {
    Object,
    /// Table rows for people to read.
    Table(Include),
    /// Only the metadata.
    Metadata,
}

/// The objects that table rows contain besides their cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Include {
    Nothing,
    #[default]
    Metadata,
    Object,
}

/// The format of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResponseFormat {
    pub(crate) encoding: Encoding,
    pub(crate) projection: Projection,
    /// Whether JSON is indented for people.
    pub(crate) pretty: bool,
}

/// The formats that an endpoint offers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offered {
    pub(crate) protobuf: bool,
    /// Whether tables and metadata-only responses are offered.
    pub(crate) projections: bool,
    /// Whether errors name the streaming media types.
    pub(crate) streams: bool,
}

impl Encoding {
    /// Returns the media type of a response.
    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Json => media_type::JSON,
            Self::Yaml => media_type::YAML,
            Self::Protobuf => media_type::PROTOBUF,
        }
    }

    /// Returns the encoding of a request body. The default is JSON.
    pub(crate) fn of_body(headers: &HeaderMap) -> Result<Self> {
        let Some(value) = headers.get(CONTENT_TYPE) else { return Ok(Self::Json) };
        let essence = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
        match essence.to_ascii_lowercase().as_str() {
            "" | media_type::JSON => Ok(Self::Json),
            media_type::YAML => Ok(Self::Yaml),
            media_type::PROTOBUF => Ok(Self::Protobuf),
            _ => Err(Box::new(Status::unsupported_media_type(&ALL))),
        }
    }
}

impl Include {
    /// Parses the parameter `includeObject`.
    pub(crate) fn parse(text: Option<&str>) -> Result<Self> {
        match text {
            None | Some("Metadata") => Ok(Self::Metadata),
            Some("None") => Ok(Self::Nothing),
            Some("Object") => Ok(Self::Object),
            Some(other) => Err(Box::new(Status::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: \
                 must be 'Metadata', 'Object', 'None', or empty"
            )))),
        }
    }
}

impl ResponseFormat {
    /// Plain JSON.
    pub(crate) const JSON: Self = Self { encoding: Encoding::Json, projection: Projection::Object, pretty: false };

    /// Negotiates the best offered format.
    pub(crate) fn of_request(headers: &HeaderMap, query_pretty: Option<&str>, offered: Offered) -> Result<Self> {
        let pretty = match query_pretty {
            Some(value) => value != "0" && value != "false",
            None => is_for_people(headers),
        };
        let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let mut clauses: Vec<Clause<'_>> = accept.split(',').filter_map(Clause::parse).collect();
        if clauses.is_empty() {
            return Ok(Self { pretty, ..Self::JSON });
        }
        // The sort is stable: the first of equal clauses wins.
        clauses.sort_by(|a, b| b.rank().total_cmp(&a.rank()));
        for clause in &clauses {
            if let Some((encoding, projection)) = clause.choose(offered) {
                return Ok(Self { encoding, projection, pretty: clause.pretty.unwrap_or(pretty) });
            }
        }
        let supported: &[&str] = if offered.protobuf { &ALL } else { &ALL[..2] };
        let streams = ["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];
        let streams = match (offered.streams, offered.protobuf) {
            (false, _) => &streams[..0],
            (true, true) => &streams[..],
            (true, false) => &streams[..1],
        };
        let mut status = Status::not_acceptable(supported);
        let all = [supported, streams].concat().join(", ");
        status.message = format!("406: Not Acceptable\n\nAvailable representations: {all}");
        status.details = Some(Box::default());
        Err(Box::new(status))
    }
}

/// One alternative of an `Accept` header.
struct Clause<'a> {
    kind: &'a str,
    quality: f32,
    target: Option<&'a str>,
    group: Option<&'a str>,
    version: Option<&'a str>,
    pretty: Option<bool>,
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let kind = parts.next().filter(|kind| kind.contains('/') || *kind == "*")?;
        let mut clause = Self { kind, quality: 1.0, target: None, group: None, version: None, pretty: None };
        for part in parts {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            match name {
                "q" => clause.quality = value.parse().unwrap_or(1.0),
                "as" => clause.target = Some(value),
                "g" => clause.group = Some(value),
                "v" => clause.version = Some(value),
                "pretty" => clause.pretty = Some(value == "1"),
                _ => {}
            }
        }
        Some(clause)
    }

    /// Returns the sort key: higher quality first, then more specific clauses.
    fn rank(&self) -> f32 {
        let vague = match self.kind {
            "*/*" | "*" => 0.0002,
            kind if kind.ends_with("/*") => 0.0001,
            _ => 0.0,
        };
        self.quality - vague
    }

    fn choose(&self, offered: Offered) -> Option<(Encoding, Projection)> {
        let encoding = match self.kind {
            media_type::JSON | "*/*" | "*" | "application/*" => Encoding::Json,
            media_type::YAML => Encoding::Yaml,
            media_type::PROTOBUF => Encoding::Protobuf,
            _ => return None,
        };
        let projection = match self.target {
            None => Projection::Object,
            Some(_) if !offered.projections => return None,
            Some(_) if self.group != Some("meta.k8s.io") => return None,
            Some("Table") if matches!(self.version, Some("v1" | "v1beta1")) && encoding != Encoding::Protobuf => {
                Projection::Table(Include::default())
            }
            Some("PartialObjectMetadata" | "PartialObjectMetadataList")
                if matches!(self.version, Some("v1" | "v1beta1")) =>
            {
                Projection::Metadata
            }
            Some(_) => return None,
        };
        // Metadata-only objects are a built-in kind, even those of custom kinds.
        let has_form = encoding != Encoding::Protobuf || offered.protobuf || projection == Projection::Metadata;
        has_form.then_some((encoding, projection))
    }
}

/// Returns whether the client is a browser or the like, which gets indented JSON.
fn is_for_people(headers: &HeaderMap) -> bool {
    let agent = headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    ["curl", "Wget", "Mozilla/5.0"].iter().any(|name| agent.starts_with(name))
}

/// The media types of bodies and responses.
pub(crate) const ALL: [&str; 3] = [media_type::JSON, media_type::YAML, media_type::PROTOBUF];

#[cfg(test)]
mod tests {
    use super::*;

    fn response_format(accept: &str) -> Result<ResponseFormat> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, accept.parse().unwrap());
        ResponseFormat::of_request(&headers, None, Offered { protobuf: true, projections: true, streams: true })
    }

    fn of(encoding: Encoding, projection: Projection) -> ResponseFormat {
        ResponseFormat { encoding, projection, pretty: false }
    }

    #[test]
    fn negotiation_chooses_best_offered_format() {
        for (accept, encoding) in [
            ("*/*", Encoding::Json),
            ("application/*", Encoding::Json),
            ("application/yaml", Encoding::Yaml),
            ("application/vnd.kubernetes.protobuf,application/json", Encoding::Protobuf),
            ("application/json;q=0.8,application/vnd.kubernetes.protobuf", Encoding::Protobuf),
            ("application/vnd.kubernetes.protobuf;q=0.1, */*;q=0.5", Encoding::Json),
            ("text/html,application/yaml;q=0.9", Encoding::Yaml),
        ] {
            assert_eq!(response_format(accept).unwrap(), of(encoding, Projection::Object), "{accept}");
        }
    }

    #[test]
    fn negotiation_matches_tables_by_name_and_group() {
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(response_format(kubectl).unwrap(), of(Encoding::Json, Projection::Table(Include::Metadata)));
        let metadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
        assert_eq!(response_format(metadata).unwrap(), of(Encoding::Protobuf, Projection::Metadata));
        assert_eq!(
            response_format("application/json;as=Table;g=other;v=v1,application/json").unwrap(),
            of(Encoding::Json, Projection::Object)
        );
    }

    #[test]
    fn negotiation_error_lists_offered_types() {
        let status = response_format("text/html").unwrap_err();
        assert!(status.is_not_acceptable());
        assert!(status.message.contains("application/vnd.kubernetes.protobuf"), "{}", status.message);
        assert!(response_format("application/json;as=Table;g=meta.k8s.io;v=v9").is_err());
    }

    #[test]
    fn body_encoding_follows_content_type() {
        let mut headers = HeaderMap::new();
        assert_eq!(Encoding::of_body(&headers).unwrap(), Encoding::Json);
        headers.insert(CONTENT_TYPE, "application/json; charset=utf-8".parse().unwrap());
        assert_eq!(Encoding::of_body(&headers).unwrap(), Encoding::Json);
        headers.insert(CONTENT_TYPE, "text/plain".parse().unwrap());
        assert!(Encoding::of_body(&headers).unwrap_err().is_unsupported_media_type());
    }
}
