//! What the command writes: columns, objects, complaints.

use std::{
    error::Error,
    io::{self, IsTerminal as _, Write},
};

/// Writes rows in columns that are as wide as their widest cell.
pub(crate) fn columns(out: &mut impl Write, rows: &[Vec<String>]) -> io::Result<()> {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        widths.resize(widths.len().max(row.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', width + 3 - cell.chars().count()));
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Whether colours are welcome.
pub(crate) fn in_colour() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// Says what went wrong, and why.
pub(crate) fn complain(error: &dyn Error) {
    let mut text = format!("error: {error}");
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(&format!(": {cause}"));
        next = cause.source();
    }
    // There is nowhere left to complain to.
    let _ = writeln!(io::stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_they_need_and_lines_have_no_blanks_at_their_end() {
        let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>();
        let mut out = Vec::new();
        columns(&mut out, &[row(&["NAME", "AGE"]), row(&["größe", ""]), row(&["a", "5d"])]).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "NAME    AGE\ngröße\na       5d\n");
    }
}
