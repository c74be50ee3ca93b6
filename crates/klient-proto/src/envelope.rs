//! The envelope around protobuf objects on the wire: four magic bytes, then a `runtime.Unknown` message.

use crate::{
    error::Problem,
    runtime::{Reader, Result, Writer},
};

/// The first bytes of every protobuf body of Kubernetes.
pub(crate) const MAGIC: &[u8; 4] = b"k8s\0";

/// A decoded envelope: the content and its kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// The `apiVersion` of the content.
    pub api_version: &'a str,
    /// The `kind` of the content.
    pub kind: &'a str,
    /// The content: a bare message.
    pub raw: &'a [u8],
    /// The offset of the content, for errors that count from the start of the body.
    pub(crate) raw_offset: usize,
}

impl<'a> Envelope<'a> {
    /// Decodes the envelope of a body.
    ///
    /// # Errors
    ///
    /// Returns an error if the magic bytes are missing, the message is malformed, or the content is not plain protobuf.
    pub fn open(body: &'a [u8]) -> Result<Self> {
        let Some(unknown) = body.strip_prefix(MAGIC) else {
            return Err(crate::DecodeError::new(Problem::NoEnvelope, 0));
        };
        let mut envelope = Self::default();
        let mut has_raw = false;
        let mut content_type = "";
        let mut encoding = "";
        let mut reader = Reader::new(unknown);
        let outcome = reader.each_remaining_field(|number, wire, r| {
            match number {
                1 => (envelope.api_version, envelope.kind) = type_meta(r.bytes(wire)?)?,
                2 => {
                    envelope.raw = r.bytes(wire)?;
                    has_raw = true;
                    envelope.raw_offset = MAGIC.len() + r.offset() - envelope.raw.len();
                }
                3 => encoding = r.str(wire)?,
                4 => content_type = r.str(wire)?,
                _ => r.skip(wire)?,
            }
            Ok(())
        });
        outcome.map_err(|error| error.shifted(MAGIC.len()))?;
        check_content(encoding, content_type)?;
        // Every writer writes the content, even if it is empty; without it, the body was truncated.
        if !has_raw {
            return Err(crate::DecodeError::new(Problem::Truncated, body.len()));
        }
        Ok(envelope)
    }

    /// Wraps a bare message.
    pub fn wrap(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let mut w = Writer::with_capacity(raw.len() + kind.len() + api_version.len() + OVERHEAD);
        // Go writes an empty content encoding and type, too; readers do not need them.
        w.bytes_field(2, raw);
        w.message(1, |w| {
            w.bytes_field(2, kind.as_bytes());
            w.bytes_field(1, api_version.as_bytes());
        });
        w.bytes(MAGIC);
        w.finish()
    }
}

/// The most bytes that an envelope has besides its texts and the message.
const OVERHEAD: usize = 32;

/// Reads a `TypeMeta` message: `apiVersion` and `kind`.
pub(crate) fn type_meta(bytes: &[u8]) -> Result<(&str, &str)> {
    let (mut api_version, mut kind) = ("", "");
    Reader::new(bytes).each_remaining_field(|number, wire, r| {
        match number {
            1 => api_version = r.str(wire)?,
            2 => kind = r.str(wire)?,
            _ => r.skip(wire)?,
        }
        Ok(())
    })?;
    Ok((api_version, kind))
}

/// Rejects content that is compressed or is not protobuf.
pub(crate) fn check_content(encoding: &str, content_type: &str) -> Result<()> {
    if encoding.is_empty() && (content_type.is_empty() || content_type == "application/vnd.kubernetes.protobuf") {
        return Ok(());
    }
    let found = format!("{} {}", shorten(content_type), shorten(encoding));
    Err(crate::DecodeError::new(Problem::WrongKind(found), 0))
}

/// Truncates a foreign text for use in an error.
pub(crate) fn shorten(text: &str) -> String {
    text.chars().take(80).collect()
}
