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

    /// Beyond the largest suffix the exponent is written out, since without either the number would be another one.
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

    /// None where powers of 1024 say it with loss or with confusion: fractions, and numbers below 1024.
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

    /// Digits of a whole number, and the multiple of 3 that is its power of ten.
    fn in_thousands(&self) -> (String, i32) {
        let mut digits = self.mantissa.to_string();
        let padding = self.exponent.rem_euclid(3);
        // Zeros are appended as text, because the product may not fit.
        digits.extend(std::iter::repeat_n('0', padding.unsigned_abs() as usize));
        (digits, self.exponent - padding)
    }
}

/// From `10^-9` on, a thousand apart.
const DECIMAL_SUFFIXES: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];

/// From `1024^1` on.
const BINARY_SUFFIXES: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
