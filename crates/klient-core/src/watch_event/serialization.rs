//! Serialization of a [`WatchEvent`]: `{"type": ..., "object": ...}`.

use std::{collections::BTreeMap, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeOwned, DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor},
    ser::SerializeStruct,
};
use serde_json::Value;

use super::{Bookmark, WatchEvent};
use crate::{ResourceVersion, TypeMeta};

/// The annotation that marks the bookmark at the end of the initial state.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

impl<'de, K: DeserializeOwned> Deserialize<'de> for WatchEvent<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_struct("WatchEvent", &["type", "object"], EventVisitor(PhantomData))
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Field {
    Type,
    Object,
    #[serde(other)]
    Other,
}

struct EventVisitor<K>(PhantomData<fn() -> K>);

impl<'de, K: DeserializeOwned> Visitor<'de> for EventVisitor<K> {
    type Value = WatchEvent<K>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a watch event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WatchEvent<K>, A::Error> {
        let mut event_type = None;
        let mut event = None;
        let mut early_object = None;
        while let Some(field) = map.next_key()? {
            match (field, event_type) {
                (Field::Type, _) => event_type = Some(map.next_value::<EventType>()?),
                (Field::Object, Some(event_type)) => {
                    event = Some(map.next_value_seed(ObjectSeed(event_type, PhantomData))?);
                }
                (Field::Object, None) => early_object = Some(map.next_value::<Value>()?),
                (Field::Other, _) => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        match (event, event_type, early_object) {
            (Some(event), ..) => Ok(event),
            (None, Some(event_type), Some(object)) => {
                ObjectSeed(event_type, PhantomData).deserialize(object).map_err(A::Error::custom)
            }
            (None, None, _) => Err(A::Error::missing_field("type")),
            (None, Some(_), None) => Err(A::Error::missing_field("object")),
        }
    }
}

#[derive(Clone, Copy)]
enum EventType {
    Added,
    Modified,
    Deleted,
    Bookmark,
    Error,
}

impl<'de> Deserialize<'de> for EventType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TypeVisitor;

        impl Visitor<'_> for TypeVisitor {
            type Value = EventType;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a watch event type")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<EventType, E> {
                Ok(match text {
                    "ADDED" => EventType::Added,
                    "MODIFIED" => EventType::Modified,
                    "DELETED" => EventType::Deleted,
                    "BOOKMARK" => EventType::Bookmark,
                    "ERROR" => EventType::Error,
                    _ => return Err(E::custom(format_args!("unknown watch event type {text:?}"))),
                })
            }
        }

        deserializer.deserialize_str(TypeVisitor)
    }
}

/// A seed that reads the object of an event whose type is known.
struct ObjectSeed<K>(EventType, PhantomData<fn() -> K>);

impl<'de, K: Deserialize<'de>> DeserializeSeed<'de> for ObjectSeed<K> {
    type Value = WatchEvent<K>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<WatchEvent<K>, D::Error> {
        match self.0 {
            EventType::Added => K::deserialize(deserializer).map(WatchEvent::Added),
            EventType::Modified => K::deserialize(deserializer).map(WatchEvent::Modified),
            EventType::Deleted => K::deserialize(deserializer).map(WatchEvent::Deleted),
            EventType::Bookmark => BookmarkObject::deserialize(deserializer).map(WatchEvent::from),
            EventType::Error => Deserialize::deserialize(deserializer).map(WatchEvent::Error),
        }
    }
}

/// The relevant part of a bookmark's object. The rest is not read, because it is an empty object of the watched kind,
/// which may not be decodable.
#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct BookmarkObject {
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    metadata: BookmarkMetadata,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct BookmarkMetadata {
    resource_version: ResourceVersion,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<BTreeMap<String, String>>,
}

impl<K> From<BookmarkObject> for WatchEvent<K> {
    fn from(object: BookmarkObject) -> Self {
        let types = TypeMeta::new(object.api_version.unwrap_or_default(), object.kind.unwrap_or_default());
        let annotations = object.metadata.annotations.unwrap_or_default();
        Self::Bookmark(Bookmark {
            resource_version: object.metadata.resource_version,
            initial_events_end: annotations.get(INITIAL_EVENTS_END).is_some_and(|value| value == "true"),
            types: (types != TypeMeta::default()).then_some(types),
        })
    }
}

impl BookmarkObject {
    fn of<K: k8s_openapi::Resource>(bookmark: &Bookmark) -> Self {
        let types = bookmark.types.clone().unwrap_or_else(TypeMeta::of::<K>);
        let text = |text: String| (!text.is_empty()).then_some(text);
        let annotations =
            bookmark.initial_events_end.then(|| BTreeMap::from([(INITIAL_EVENTS_END.to_owned(), "true".to_owned())]));
        Self {
            api_version: text(types.api_version),
            kind: text(types.kind),
            metadata: BookmarkMetadata { resource_version: bookmark.resource_version.clone(), annotations },
        }
    }
}

impl<K: Serialize + k8s_openapi::Resource> Serialize for WatchEvent<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut event = serializer.serialize_struct("WatchEvent", 2)?;
        event.serialize_field("type", self.type_name())?;
        match self {
            Self::Added(object) | Self::Modified(object) | Self::Deleted(object) => {
                event.serialize_field("object", object)?;
            }
            Self::Bookmark(bookmark) => event.serialize_field("object", &BookmarkObject::of::<K>(bookmark))?,
            Self::Error(status) => event.serialize_field("object", status)?,
        }
        event.end()
    }
}
