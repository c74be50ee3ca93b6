//! Writes the real API server's OpenAPI documents in the folded form of `src/openapi/folded.rs`: `cargo xtask registry` runs this.
//!
//! Besides the documents of built-in kinds, it records those of two custom kinds, one of each scope. Their names are placeholders
//! that the embedded server replaces with the names of a custom kind.

#![allow(clippy::print_stdout)]

use std::{
    collections::{BTreeMap, HashMap},
    error::Error,
    io::Write as _,
    time::Duration,
};

use klient::{Client, client::RestClient, request::media_type};
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let output = std::env::args().nth(1).ok_or("usage: openapi <file>")?;
    let rest = Client::infer()?.rest();
    let mut documents = vec![(Document::named("v2"), text(&rest, "/openapi/v2").await?)];
    for (name, etag) in index(&rest).await? {
        let text = text(&rest, &format!("/openapi/v3/{name}")).await?;
        documents.push((Document { name, etag }, text));
    }
    for (scope, name) in [("Namespaced", "namespaced"), ("Cluster", "cluster")] {
        documents.extend(template(&rest, scope, name).await?);
    }
    let whole: usize = documents.iter().map(|(_, text)| text.len()).sum();
    let folded = fold(&documents)?;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(folded.as_bytes())?;
    let compressed = encoder.finish()?;
    std::fs::write(&output, &compressed)?;
    println!(
        "{output}: {} documents, {whole} bytes, {} folded, {} compressed",
        documents.len(),
        folded.len(),
        compressed.len()
    );
    Ok(())
}

/// The name and entity tag of a document.
struct Document {
    name: String,
    etag: String,
}

impl Document {
    /// Returns a document whose entity tag is computed when it is served.
    fn named(name: &str) -> Self {
        Self { name: name.to_owned(), etag: String::new() }
    }
}

async fn text(rest: &RestClient, path: &str) -> Result<String, Box<dyn Error>> {
    let bytes = rest.get().path(path).accept(media_type::JSON).bytes().await?;
    Ok(String::from_utf8(bytes.to_vec())?)
}

/// Returns the names and hashes of the documents of version 3.
async fn index(rest: &RestClient) -> Result<BTreeMap<String, String>, Box<dyn Error>> {
    let index: Value = serde_json::from_str(&text(rest, "/openapi/v3").await?)?;
    let entry = |(name, entry): (&String, &Value)| {
        let hash = entry["serverRelativeURL"].as_str()?.split_once("hash=")?.1;
        Some((name.clone(), hash.to_owned()))
    };
    Ok(index["paths"].as_object().into_iter().flatten().filter_map(entry).collect())
}

/// Returns the documents of a custom kind with every subresource: version 3, and its part of version 2.
async fn template(rest: &RestClient, scope: &str, name: &str) -> Result<Vec<(Document, String)>, Box<dyn Error>> {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "zplurals.zgroup.invalid"},
        "spec": {
            "group": "zgroup.invalid", "scope": scope,
            "names": {"plural": "zplurals", "singular": "zsingular", "kind": "Zkind", "listKind": "Zlist"},
            "versions": [{"name": "vzversion", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {
                        "replicas": {"type": "integer"},
                        "embedded": {"type": "object", "x-kubernetes-embedded-resource": true,
                            "properties": {"zfield": {"type": "string"}}}}},
                    "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}}}}},
                "subresources": {"status": {}, "scale": {
                    "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}}}],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let _: Value = rest.post().path(definitions).json(&definition).value().await?;
    // Documents are updated some time after the definition, and there is no event to wait for.
    let (three, two) = loop {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let Ok(three) = text(rest, "/openapi/v3/apis/zgroup.invalid/vzversion").await else { continue };
        let two: Value = serde_json::from_str(&text(rest, "/openapi/v2").await?)?;
        if three.contains("Zkind") && two["definitions"].get("invalid.zgroup.vzversion.Zkind").is_some() {
            break (three, two);
        }
    };
    let part = |section: &str, own: &str| -> BTreeMap<String, Value> {
        let entries = two[section].as_object().into_iter().flatten();
        entries.filter(|(key, _)| key.contains(own)).map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    let two = json!({"paths": part("paths", "zgroup"), "definitions": part("definitions", "zgroup")});
    let _: Value = rest.delete().path(format!("{definitions}/zplurals.zgroup.invalid")).value().await?;
    while text(rest, "/openapi/v2").await?.contains("zgroup")
        || index(rest).await?.contains_key("apis/zgroup.invalid/vzversion")
    {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Ok(vec![
        (Document::named(&format!("custom/{name}/v3")), three),
        (Document::named(&format!("custom/{name}/v2")), two.to_string()),
    ])
}

/// Returns documents with repeated values as numbered pieces.
fn fold(documents: &[(Document, String)]) -> Result<String, Box<dyn Error>> {
    let mut counts = HashMap::new();
    for (_, text) in documents {
        Fold { text, counts: &mut counts, pieces: None }.value(0)?;
    }
    let mut pieces = Pieces::default();
    let mut lines = String::new();
    for (document, text) in documents {
        let (folded, _) = Fold { text, counts: &mut counts, pieces: Some(&mut pieces) }.value(0)?;
        lines.push_str(&format!("{}\t{}\t{folded}\n", document.name, document.etag));
    }
    Ok(format!("{}\n\n{lines}", pieces.texts.join("\n")))
}

/// The pieces, and the number of each by the text that it stands for.
#[derive(Default)]
struct Pieces<'a> {
    texts: Vec<String>,
    numbers: HashMap<&'a str, usize>,
}

/// A pass over a document: the first counts values, the second replaces repeated ones.
struct Fold<'a, 'b> {
    text: &'a str,
    counts: &'b mut HashMap<&'a str, usize>,
    pieces: Option<&'b mut Pieces<'a>>,
}

impl<'a> Fold<'a, '_> {
    /// Returns the folded form of the compact JSON value at `start`, and its end.
    fn value(&mut self, start: usize) -> Result<(String, usize), Box<dyn Error>> {
        let bytes = self.text.as_bytes();
        let mut folded = String::new();
        let end = match bytes.get(start) {
            Some(open @ (b'{' | b'[')) => {
                folded.push(char::from(*open));
                let mut at = start + 1;
                while !matches!(bytes.get(at), Some(b'}' | b']') | None) {
                    if matches!(bytes[at], b',' | b':') {
                        folded.push(char::from(bytes[at]));
                        at += 1;
                        continue;
                    }
                    // The key of a member is not folded.
                    let is_key = *open == b'{' && !folded.ends_with(':');
                    let end = if is_key { self.scalar(at)? } else { 0 };
                    if is_key {
                        folded.push_str(&self.text[at..end]);
                        at = end;
                    } else {
                        let (inner, end) = self.value(at)?;
                        folded.push_str(&inner);
                        at = end;
                    }
                }
                folded.push(char::from(*bytes.get(at).ok_or("the document is not complete")?));
                at + 1
            }
            _ => {
                let end = self.scalar(start)?;
                folded.push_str(&self.text[start..end]);
                end
            }
        };
        let value = &self.text[start..end];
        if value.len() < SHORTEST {
            return Ok((folded, end));
        }
        match &mut self.pieces {
            None => *self.counts.entry(value).or_default() += 1,
            Some(pieces) if self.counts.get(value).is_some_and(|count| *count > 1) => {
                let number = *pieces.numbers.entry(value).or_insert_with(|| {
                    pieces.texts.push(std::mem::take(&mut folded));
                    pieces.texts.len() - 1
                });
                folded = format!("\u{1}{number}\u{2}");
            }
            Some(_) => {}
        }
        Ok((folded, end))
    }

    /// Returns the end of the text, number or word at `start`.
    fn scalar(&self, start: usize) -> Result<usize, Box<dyn Error>> {
        let bytes = self.text.as_bytes();
        if bytes.get(start) != Some(&b'"') {
            let length = bytes[start..].iter().position(|byte| b",:]}".contains(byte));
            return Ok(length.map_or(bytes.len(), |length| start + length));
        }
        let mut at = start + 1;
        while *bytes.get(at).ok_or("a text does not end")? != b'"' {
            at += if bytes[at] == b'\\' { 2 } else { 1 };
        }
        Ok(at + 1)
    }
}

/// The length of the shortest value that is worth a piece.
const SHORTEST: usize = 40;
