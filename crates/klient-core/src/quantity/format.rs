//! The canonical text of a quantity: no fraction, and the largest suffix that keeps the number whole.

use std::fmt;

use super::{Quantity, QuantityFormat, arith};

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.pad("0");
        }
        let text = match self.format {
            QuantityFormat::DecimalExponent => self.exponential(),
            QuantityFormat::DecimalSi => self.decimal(),
            QuantityFormat::BinarySi => self.binary().unwrap_or_else(|| self.decimal()),
        };
        f.pad(&text)
    }
}

impl Quantity {
    fn exponential(&self) -> String {
        match self.in_thousands() {
            (digits, 0) => digits,
            (digits, exponent) => format!("{digits}e{exponent}"),
        }
    }

    /// Formats with a decimal suffix. Beyond the largest suffix, the exponent is written out.
    fn decimal(&self) -> String {
        let (mut digits, exponent) = self.in_thousands();
        let step = usize::try_from((exponent - super::NANO) / 3).ok();
        match step.and_then(|step| DECIMAL_SUFFIXES.get(step)) {
            Some(suffix) => {
                digits.push_str(suffix);
                digits
            }
            None => self.exponential(),
        }
    }

    /// Formats with a binary suffix, or returns `None` for fractions and for numbers below 1024.
    fn binary(&self) -> Option<String> {
        let places = u64::try_from(self.exponent).ok()?;
        let mut number = arith::times_power_of_ten(self.mantissa, places)?;
        if number.unsigned_abs() < 1024 {
            return None;
        }
        let mut suffix = "";
        for larger in BINARY_SUFFIXES {
            if number % 1024 != 0 {
                break;
            }
            number /= 1024;
            suffix = larger;
        }
        Some(format!("{number}{suffix}"))
    }

    /// Returns the digits of a whole number, and its power of ten, a multiple of 3.
    fn in_thousands(&self) -> (String, i32) {
        let mut digits = self.mantissa.to_string();
        let padding = self.exponent.rem_euclid(3);
        // Zeros are appended as text, because the product may overflow.
        digits.extend(std::iter::repeat_n('0', padding.unsigned_abs() as usize));
        (digits, self.exponent - padding)
    }
}

/// The suffixes from `10^-9` in steps of 1000.
const DECIMAL_SUFFIXES: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];

/// The suffixes from `1024^1`.
const BINARY_SUFFIXES: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
