//! Comparison, addition and multiplication of quantities.
//!
//! The result has the left operand's format, unless that operand is zero: `0 + 1Gi` prints as `1Gi`.

use std::{
    cmp::Ordering,
    hash::{Hash, Hasher},
    iter::Sum,
    ops::{Add, AddAssign, Mul, Neg, Sub, SubAssign},
};

use super::Quantity;

impl Add for Quantity {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let format = if self.is_zero() { other.format } else { self.format };
        if self.is_zero() || other.is_zero() {
            let sum = if self.is_zero() { other } else { self };
            return sum.with_format(format);
        }
        let (coarse, fine) = if self.exponent >= other.exponent { (self, other) } else { (other, self) };
        let (mantissa, exponent) = add_aligned(coarse, fine);
        Self::normalised(mantissa, exponent, format)
    }
}

impl Sub for Quantity {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Neg for Quantity {
    type Output = Self;

    fn neg(self) -> Self {
        // Saturating because `i128::MIN` has no opposite; a mantissa of 38 digits never reaches it.
        Self { mantissa: self.mantissa.saturating_neg(), ..self }
    }
}

impl Mul<i64> for Quantity {
    type Output = Self;

    fn mul(self, factor: i64) -> Self {
        let (mut mantissa, mut exponent) = (self.mantissa, self.exponent);
        loop {
            if let Some(product) = mantissa.checked_mul(factor.into()) {
                return Self::normalised(product, exponent, self.format);
            }
            mantissa = divide_away_from_zero(mantissa, 1);
            exponent = exponent.saturating_add(1);
        }
    }
}

impl AddAssign for Quantity {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Quantity {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Sum for Quantity {
    fn sum<I: Iterator<Item = Self>>(quantities: I) -> Self {
        quantities.fold(Self::ZERO, Add::add)
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        // Both are normalized, so equal numbers have equal parts. The format is not compared.
        (self.mantissa, self.exponent) == (other.mantissa, other.exponent)
    }
}

impl Eq for Quantity {}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.mantissa, self.exponent).hash(state);
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        let signs = self.mantissa.signum().cmp(&other.mantissa.signum());
        let magnitudes = || if self.mantissa < 0 { cmp_magnitude(other, self) } else { cmp_magnitude(self, other) };
        signs.then_with(magnitudes)
    }
}

/// Compares the absolute numbers of two quantities of the same sign.
fn cmp_magnitude(left: &Quantity, right: &Quantity) -> Ordering {
    if left.mantissa == 0 {
        return Ordering::Equal;
    }
    // The position of the first digit decides, unless it is equal.
    let leading = |q: &Quantity| i64::from(q.mantissa.unsigned_abs().ilog10()) + i64::from(q.exponent);
    leading(left).cmp(&leading(right)).then_with(|| {
        let (left_digits, right_digits) = (left.mantissa.unsigned_abs(), right.mantissa.unsigned_abs());
        let shift = i64::from(left.exponent) - i64::from(right.exponent);
        let raise = |digits: u128| {
            let power = u32::try_from(shift.unsigned_abs()).ok().and_then(|shift| 10_u128.checked_pow(shift));
            power.and_then(|power| digits.checked_mul(power))
        };
        // A number that overflows is larger than any mantissa.
        if shift >= 0 {
            raise(left_digits).map_or(Ordering::Greater, |left_digits| left_digits.cmp(&right_digits))
        } else {
            raise(right_digits).map_or(Ordering::Less, |right_digits| left_digits.cmp(&right_digits))
        }
    })
}

/// Adds two numbers, of which `coarse` has the larger exponent, as exactly as 38 digits allow.
fn add_aligned(coarse: Quantity, fine: Quantity) -> (i128, i32) {
    let mut left = coarse.mantissa;
    let mut exponent = coarse.exponent;
    while exponent > fine.exponent
        && let Some(finer) = left.checked_mul(10)
    {
        left = finer;
        exponent -= 1;
    }
    let dropped = exponent.abs_diff(fine.exponent).into();
    let mut right = divide_away_from_zero(fine.mantissa, dropped);
    loop {
        if let Some(sum) = left.checked_add(right) {
            return (sum, exponent);
        }
        left = divide_away_from_zero(left, 1);
        right = divide_away_from_zero(right, 1);
        exponent = exponent.saturating_add(1);
    }
}

/// Returns `number / 10^places`, rounded away from zero.
pub(super) fn divide_away_from_zero(number: i128, places: u64) -> i128 {
    match u32::try_from(places).ok().and_then(|places| 10_i128.checked_pow(places)) {
        Some(divisor) => {
            let (quotient, remainder) = (number / divisor, number % divisor);
            quotient + remainder.signum()
        }
        None => number.signum(),
    }
}

/// Returns `number * 10^places`, or `None` if it overflows.
pub(super) fn times_power_of_ten(number: i128, places: u64) -> Option<i128> {
    if number == 0 {
        return Some(0);
    }
    number.checked_mul(10_i128.checked_pow(u32::try_from(places).ok()?)?)
}
