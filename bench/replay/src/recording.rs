//! Recorded responses of a real server, as templates for other objects.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, ensure};

use crate::{json, protobuf, template::Template};

/// The recordings of pods in both encodings, and of custom resources.
pub(crate) struct Recording {
    pub(crate) protobuf: Templates,
    pub(crate) json: Templates,
    pub(crate) custom: Templates,
}

/// The recording of one encoding. Further objects reuse its templates.
pub(crate) struct Templates {
    /// The items of a list.
    pub(crate) items: Vec<Template>,
    /// The responses to gets.
    pub(crate) standing: Vec<Template>,
    /// The initial events of a watch.
    pub(crate) added: Vec<Template>,
    /// The bookmark after the initial events.
    pub(crate) end: Template,
    /// The changes. Custom resources have none.
    pub(crate) modified: Vec<Template>,
}

impl Recording {
    /// Reads the bodies of a list, of a watch with initial events, and of a watch of changes, in both encodings.
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let body = |name: &str| fs::read(folder.join(name)).with_context(|| folder.join(name).display().to_string());
        let protobuf = Templates::new(&Form::PROTOBUF, &body("list.pb")?, &body("initial.pb")?, &body("events.pb")?);
        let json = Templates::new(&Form::JSON, &body("list.json")?, &body("initial.json")?, &body("events.json")?);
        let custom = Templates::new(
            &Form::JSON,
            &body("list.custom.json")?,
            &body("initial.custom.json")?,
            &body("events.custom.json")?,
        );
        let recording = Self {
            protobuf: protobuf.context("protobuf")?,
            json: json.context("JSON")?,
            custom: custom.context("custom resources")?,
        };
        for (form, templates) in [("protobuf", &recording.protobuf), ("JSON", &recording.json)] {
            ensure!(!templates.modified.is_empty(), "no changes in {form}");
        }
        Ok(recording)
    }
}

impl Templates {
    fn new(form: &Form, list: &[u8], initial: &[u8], changes: &[u8]) -> Result<Self> {
        let items = (form.items)(list)?;
        let (initial, changes) = ((form.events)(initial)?, (form.events)(changes)?);
        let of = |events: &[Vec<u8>], kind| -> Vec<Vec<u8>> {
            events.iter().filter(|event| (form.is_of_type)(event, kind)).cloned().collect()
        };
        let (added, modified) = (of(&initial, "ADDED"), of(&changes, "MODIFIED"));
        let bookmarks = of(&initial, "BOOKMARK");
        let objects = items.len();
        ensure!(objects > 0 && objects == added.len(), "{objects} objects in a list, {} in a watch", added.len());
        let standing: Vec<_> = added.iter().map(|event| (form.object)(event)).collect::<Result<_>>()?;
        let all = |bytes: &[Vec<u8>], make: Make| bytes.iter().map(|bytes| make(bytes)).collect::<Result<Vec<_>>>();
        Ok(Self {
            items: all(&items, form.item)?,
            standing: all(&standing, form.standing)?,
            added: all(&added, form.event)?,
            end: (form.bookmark)(bookmarks.last().context("no bookmark")?)?,
            modified: all(&modified, form.event)?,
        })
    }
}

type Make = fn(&[u8]) -> Result<Template>;

/// The functions that split one encoding.
struct Form {
    items: fn(&[u8]) -> Result<Vec<Vec<u8>>>,
    events: fn(&[u8]) -> Result<Vec<Vec<u8>>>,
    is_of_type: fn(&[u8], &str) -> bool,
    object: fn(&[u8]) -> Result<Vec<u8>>,
    item: Make,
    standing: Make,
    event: Make,
    bookmark: Make,
}

impl Form {
    const PROTOBUF: Self = Self {
        items: protobuf::items,
        events: protobuf::events,
        is_of_type: protobuf::is_of_type,
        object: protobuf::object,
        item: protobuf::item,
        standing: protobuf::standing,
        event: protobuf::event,
        bookmark: protobuf::bookmark,
    };
    const JSON: Self = Self {
        items: json::items,
        events: json::events,
        is_of_type: json::is_of_type,
        object: json::object,
        item: json::template,
        standing: json::template,
        event: json::template,
        bookmark: json::bookmark,
    };
}
