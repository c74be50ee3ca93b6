//! Amounts of resources, such as `500m` of CPU or `1536Mi` of memory.
//!
//! A quantity is an exact decimal number and the family of suffixes that it was written with. Two quantities are equal
//! if their numbers are, whatever their format: `1000m == 1`. In client-go: `k8s.io/apimachinery/pkg/api/resource`.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;

mod arith;
mod format;
mod parse;
mod wire;

#[cfg(test)]
mod tests;

pub use parse::ParseQuantityError;

/// An amount of a resource: an exact decimal number and a suffix family.
///
/// It prints in Kubernetes' canonical form: no fraction, and the largest suffix that keeps the number whole.
///
/// ```
/// use klient_core::Quantity;
///
/// let cpu: Quantity = "1.5".parse()?;
/// assert_eq!(cpu.to_string(), "1500m");
/// assert_eq!(cpu + "500m".parse()?, "2".parse()?);
///
/// let memory: Quantity = "1.5Gi".parse()?;
/// assert_eq!(memory.to_string(), "1536Mi");
/// assert_eq!(memory.value(), 1_610_612_736);
/// # Ok::<(), klient_core::ParseQuantityError>(())
/// ```
///
/// The number is exact up to 38 significant digits, twice as many as in an `i64`. Beyond that, the last digit is
/// rounded away from zero. The finest unit is a billionth (`1n`). Finer amounts are rounded away from zero, too, so
/// that a small request does not become zero.
#[doc(alias = "resource.Quantity")]
#[doc(alias = "MustParse")]
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    // The number is `mantissa * 10^exponent`. It is normalized, so that equal numbers have equal fields: no trailing
    // zero in the mantissa, and zero has exponent 0.
    mantissa: i128,
    // Never below `NANO`.
    exponent: i32,
    format: QuantityFormat,
}

/// The suffix families that a [`Quantity`] can be printed with.
#[doc(alias = "resource.Format")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum QuantityFormat {
    /// Powers of 1000: `n u m k M G T P E`, as in `12M`.
    #[default]
    DecimalSi,
    /// Powers of 1024: `Ki Mi Gi Ti Pi Ei`, as in `12Mi`.
    ///
    /// Numbers below 1024, and those that are not exact in powers of 1024, are printed as
    /// [`DecimalSi`](Self::DecimalSi).
    BinarySi,
    /// Powers of ten as an exponent, as in `12e6`.
    DecimalExponent,
}

impl Quantity {
    /// The quantity zero.
    pub const ZERO: Self = Self { mantissa: 0, exponent: 0, format: QuantityFormat::DecimalSi };

    /// Creates a whole number of units.
    #[doc(alias = "NewQuantity")]
    pub fn from_i64(value: i64, format: QuantityFormat) -> Self {
        Self::normalised(value.into(), 0, format)
    }

    /// Creates a number of thousandths.
    ///
    /// ```
    /// use klient_core::{Quantity, QuantityFormat};
    ///
    /// assert_eq!(Quantity::from_milli(1500, QuantityFormat::DecimalSi).to_string(), "1500m");
    /// ```
    #[doc(alias = "NewMilliQuantity")]
    pub fn from_milli(value: i64, format: QuantityFormat) -> Self {
        Self::normalised(value.into(), -3, format)
    }

    /// Returns the suffix family that it is printed with.
    pub fn format(&self) -> QuantityFormat {
        self.format
    }

    /// Returns the same number with another suffix family.
    #[must_use]
    pub fn with_format(self, format: QuantityFormat) -> Self {
        Self { format, ..self }
    }

    /// Returns whether the number is zero.
    pub fn is_zero(&self) -> bool {
        self.mantissa == 0
    }

    /// Returns whether the number is below zero.
    pub fn is_negative(&self) -> bool {
        self.mantissa < 0
    }

    /// Returns the number in whole units, rounded away from zero.
    ///
    /// A number outside the range of `i64` is capped.
    ///
    /// ```
    /// use klient_core::Quantity;
    ///
    /// assert_eq!("100m".parse::<Quantity>()?.value(), 1);
    /// assert_eq!("-1.5".parse::<Quantity>()?.value(), -2);
    /// # Ok::<(), klient_core::ParseQuantityError>(())
    /// ```
    #[doc(alias = "Value")]
    pub fn value(&self) -> i64 {
        self.scaled_value(0)
    }

    /// Returns the number in thousandths, rounded and capped like [`value`](Self::value).
    #[doc(alias = "MilliValue")]
    pub fn milli_value(&self) -> i64 {
        self.scaled_value(-3)
    }

    /// Returns the number in units of `10^scale`, rounded and capped like [`value`](Self::value).
    #[doc(alias = "ScaledValue")]
    pub fn scaled_value(&self, scale: i32) -> i64 {
        let shift = i64::from(self.exponent) - i64::from(scale);
        let scaled = if shift < 0 {
            arith::divide_away_from_zero(self.mantissa, shift.unsigned_abs())
        } else {
            arith::times_power_of_ten(self.mantissa, shift.unsigned_abs()).unwrap_or(self.mantissa.signum() * i128::MAX)
        };
        i64::try_from(scaled).unwrap_or(if scaled < 0 { i64::MIN } else { i64::MAX })
    }

    /// Returns the number in whole units, if it is whole and in the range of `i64`.
    #[doc(alias = "AsInt64")]
    pub fn as_i64(&self) -> Option<i64> {
        if self.exponent < 0 {
            return None;
        }
        arith::times_power_of_ten(self.mantissa, self.exponent.unsigned_abs().into())?.try_into().ok()
    }

    /// Returns the nearest `f64`, infinite if the number is out of range.
    #[doc(alias = "AsApproximateFloat64")]
    pub fn as_f64_approximate(&self) -> f64 {
        // The standard parser rounds correctly, unlike a product of two floats.
        format!("{}e{}", self.mantissa, self.exponent).parse().unwrap_or(f64::NAN)
    }

    /// Builds the normalized form. The exponent must not be below [`NANO`], unless trailing zeros compensate for it.
    fn normalised(mut mantissa: i128, mut exponent: i32, format: QuantityFormat) -> Self {
        if mantissa == 0 {
            return Self { format, ..Self::ZERO };
        }
        if mantissa.unsigned_abs() >= 10_u128.pow(SIGNIFICANT_DIGITS) {
            mantissa = arith::divide_away_from_zero(mantissa, 1);
            exponent = exponent.saturating_add(1);
        }
        while mantissa % 10 == 0 {
            mantissa /= 10;
            exponent = exponent.saturating_add(1);
        }
        Self { mantissa, exponent, format }
    }
}

impl Default for Quantity {
    fn default() -> Self {
        Self::ZERO
    }
}

impl TryFrom<&ApiQuantity> for Quantity {
    type Error = ParseQuantityError;

    fn try_from(quantity: &ApiQuantity) -> Result<Self, Self::Error> {
        quantity.0.parse()
    }
}

impl From<Quantity> for ApiQuantity {
    fn from(quantity: Quantity) -> Self {
        Self(quantity.to_string())
    }
}

/// The exponent of the finest unit, `1n`.
const NANO: i32 = -9;

/// The number of decimal digits that always fit in a mantissa.
const SIGNIFICANT_DIGITS: u32 = 38;
