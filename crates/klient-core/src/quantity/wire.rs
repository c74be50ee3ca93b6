//! Quantities in JSON and YAML: written as a string, read from a string or a number.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::Quantity;

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrNumber)
    }
}

struct TextOrNumber;

impl de::Visitor<'_> for TextOrNumber {
    type Value = Quantity;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quantity such as \"500m\" or 2")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
        // The API server tolerates blanks here, but nowhere else.
        text.trim().parse().map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Quantity, E> {
        Ok(Quantity::from_i64(number, super::QuantityFormat::DecimalSi))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Quantity, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Quantity, E> {
        // The shortest text of this float is the intended number: 0.1 is 100m.
        self.visit_str(&number.to_string())
    }

    fn visit_unit<E: de::Error>(self) -> Result<Quantity, E> {
        Ok(Quantity::ZERO)
    }
}
