//! Random values that fit a structural schema, for round trips. The same seed gives the same values.

use serde_json::{Map, Value, json};

/// A source of random values (SplitMix64).
pub(super) struct Random {
    state: u64,
}

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Returns a number below the limit, which must not be 0.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit.max(1)
    }

    /// Returns a value that fits the schema, as far as the keywords below tell.
    pub(super) fn value(&mut self, schema: &Value) -> Value {
        if let Some(values) = schema["enum"].as_array().filter(|values| !values.is_empty()) {
            return values[self.index(values.len())].clone();
        }
        if schema["x-kubernetes-int-or-string"] == Value::Bool(true) {
            return if self.below(2) == 0 { json!(self.below(100)) } else { json!(format!("{}", self.below(100))) };
        }
        match schema["type"].as_str() {
            Some("object") => self.object(schema),
            Some("array") => {
                let (least, most) = (schema["minItems"].as_u64().unwrap_or(0), schema["maxItems"].as_u64());
                let count = least + self.below(most.unwrap_or(least + 3).saturating_sub(least).min(3) + 1);
                Value::Array((0..count).map(|_| self.value(&schema["items"])).collect())
            }
            Some("string") => self.text(schema),
            Some("integer") => json!(self.integer(schema)),
            // Binary fractions, which every float type holds exactly.
            Some("number") => json!(self.integer(schema) as f64 + 0.5),
            Some("boolean") => json!(self.below(2) == 0),
            _ => json!({"any": self.below(100)}),
        }
    }

    fn object(&mut self, schema: &Value) -> Value {
        let mut object = Map::new();
        if schema["additionalProperties"].is_object() {
            for index in 0..self.below(3) {
                object.insert(format!("key{index}"), self.value(&schema["additionalProperties"]));
            }
        }
        let branches = ["oneOf", "anyOf"].iter().find_map(|keyword| schema[*keyword].as_array());
        let branch = branches.filter(|all| !all.is_empty()).map(|all| &all[self.index(all.len())]);
        let null = Value::Null;
        let branch = branch.unwrap_or(&null);
        let requires = |schema: &Value, name: &str| {
            schema["required"].as_array().is_some_and(|required| required.iter().any(|one| one == name))
        };
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let is_required = requires(schema, name) || requires(branch, name);
            let of_other = branches.is_some_and(|all| all.iter().any(|other| requires(other, name)));
            if !is_required && (of_other || self.below(2) == 0) {
                continue;
            }
            // A branch narrows a field, as the tag of an enum.
            let narrowed = &branch["properties"][name];
            let schema = if narrowed["enum"].is_array() { narrowed } else { property };
            object.insert(name.clone(), self.value(schema));
        }
        Value::Object(object)
    }

    fn text(&mut self, schema: &Value) -> Value {
        let number = self.below(1000);
        match schema["format"].as_str() {
            Some("date-time") => json!(format!("2024-05-{:02}T10:00:00Z", 1 + number % 28)),
            Some("date") => json!(format!("2024-05-{:02}", 1 + number % 28)),
            Some("uuid") => json!(format!("{number:08x}-0000-4000-8000-000000000000")),
            Some("uri") => json!(format!("https://example.com/{number}")),
            Some("ip" | "ipv4") => json!(format!("10.0.0.{}", number % 256)),
            Some("ipv6") => json!(format!("fd00::{number}")),
            Some("byte") => json!("AQID"),
            _ => {
                let (least, most) = (schema["minLength"].as_u64().unwrap_or(0), schema["maxLength"].as_u64());
                let most = most.unwrap_or(least + 8);
                let length = least + self.below(most.saturating_sub(least).min(8) + 1);
                let letters: Vec<char> = ('a'..='z').chain(['é', '-', ' ', '"']).collect();
                json!((0..length).map(|_| letters[self.index(letters.len())]).collect::<String>())
            }
        }
    }

    fn integer(&mut self, schema: &Value) -> i64 {
        let bound = |keyword: &str| schema[keyword].as_f64();
        let unsigned = schema["format"].as_str().is_some_and(|format| format.starts_with("uint"));
        let least = bound("minimum").unwrap_or(if unsigned { 0.0 } else { -100.0 }) as i64;
        let most = bound("maximum").map_or(least.saturating_add(200), |most| most as i64);
        let range = u64::try_from(most.saturating_sub(least).clamp(0, 1 << 32)).unwrap_or_default();
        least.saturating_add(i64::try_from(self.below(range + 1)).unwrap_or_default())
    }

    fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or_default()
    }
}
