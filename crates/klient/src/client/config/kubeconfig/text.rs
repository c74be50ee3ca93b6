//! Decoding and encoding of files: Unicode, YAML and JSON.
//!
//! JSON is written back as JSON, anything else as YAML in UTF-8. Errors name the position and never the content,
//! because the line may contain a secret.

use serde_json::Value;
use serde_saphyr::options::DuplicateKeyPolicy;

use super::problem::Problem;

/// The format of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Format {
    #[default]
    Yaml,
    Json,
}

/// Parses a file. An empty file is null.
pub(super) fn read(bytes: &[u8]) -> Result<(Value, Format), Problem> {
    let text = decode(bytes)?;
    // Text that looks like JSON is parsed as JSON first, because not all JSON is YAML: tabs, for example.
    if text.trim_start().starts_with('{')
        && let Ok(value) = serde_json::from_str(&text)
    {
        return Ok((value, Format::Json));
    }
    let options = serde_saphyr::options! {
        // Enough for tens of thousands of contexts. The expansion of aliases has its own limit.
        budget: serde_saphyr::budget! { max_events: 20_000_000, max_nodes: 10_000_000 },
        // The last duplicate wins, as in client-go.
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        strict_booleans: true,
        with_snippet: false,
    };
    let value = serde_saphyr::from_str_with_options(&text, options).map_err(|error| {
        let place = error.location().map(|at| format!("line {}, column {}", at.line(), at.column()));
        Problem::new(place.unwrap_or_default(), "is neither YAML nor JSON")
    })?;
    Ok((value, Format::Yaml))
}

/// Encodes a value, with a line end after the last line.
pub(super) fn write(value: &Value, format: Format) -> Result<String, Problem> {
    let mut text = String::new();
    let fail = |error: crate::BoxError| Problem::new("", "cannot be encoded as YAML or JSON").with_source(error);
    match format {
        // No block scalars, because folded strings make keys hard to compare and copy.
        Format::Yaml => {
            let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
            serde_saphyr::to_fmt_writer_with_options(&mut text, value, options).map_err(|error| fail(error.into()))?;
        }
        Format::Json => text = serde_json::to_string_pretty(value).map_err(|error| fail(error.into()))?,
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

fn decode(bytes: &[u8]) -> Result<String, Problem> {
    let utf16 = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
        bytes.len().is_multiple_of(2).then(|| char::decode_utf16(units).collect::<Result<String, _>>().ok()).flatten()
    };
    let text = match bytes {
        [0xef, 0xbb, 0xbf, rest @ ..] => str::from_utf8(rest).ok().map(str::to_owned),
        // The output of PowerShell's redirection, with or without a byte order mark.
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [first, 0, ..] if *first != 0 => utf16(bytes, u16::from_le_bytes),
        [0, second, ..] if *second != 0 => utf16(bytes, u16::from_be_bytes),
        _ => str::from_utf8(bytes).ok().map(str::to_owned),
    };
    text.ok_or_else(|| Problem::new("", "is neither UTF-8 nor UTF-16"))
}
