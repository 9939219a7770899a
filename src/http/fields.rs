//! Header fields of a response, checked and printed when they are added, so that sending them copies one block.

use super::response::write_field;

/// Header fields as they are sent, a line each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fields {
    lines: Vec<u8>,
    count: usize,
    has_cache_control: bool,
    flaw: Option<&'static str>,
}

impl Fields {
    /// No fields yet, and space for this many bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self { lines: Vec::with_capacity(bytes), ..Self::default() }
    }

    /// Adds a field. One that may not be sent is a flaw instead.
    pub fn add(&mut self, name: &'static str, value: &[u8]) {
        if !is_text(value) {
            self.flaw = Some("a header field is not printable ASCII");
        } else {
            write_field(&mut self.lines, name, value);
            self.count += 1;
            self.has_cache_control |= name.eq_ignore_ascii_case("Cache-Control");
        }
    }

    /// Adds all fields of another block.
    pub fn append(&mut self, other: &Self) {
        self.lines.extend_from_slice(&other.lines);
        self.count += other.count;
        self.has_cache_control |= other.has_cache_control;
        self.flaw = self.flaw.or(other.flaw);
    }

    /// Removes the first field of this name.
    pub fn remove(&mut self, name: &str) {
        let mut end = 0;
        let found = lines_of(&self.lines).find(|line| {
            end += line.len();
            value_in(line, name).is_some()
        });
        if let Some(length) = found.map(<[u8]>::len) {
            self.lines.drain(end - length..end);
            self.count -= 1;
        }
    }

    /// The lines, each with its end.
    pub fn lines(&self) -> &[u8] {
        &self.lines
    }

    /// The number of fields.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether they include Cache-Control.
    pub fn has_cache_control(&self) -> bool {
        self.has_cache_control
    }

    /// Why the response may not be sent.
    pub fn flaw(&self) -> Option<&'static str> {
        self.flaw
    }
}

/// The value of a field in a block of lines; the name is case-sensitive here.
pub fn find_field<'a>(lines: &'a [u8], name: &str) -> Option<&'a [u8]> {
    lines_of(lines).find_map(|line| value_in(line, name))
}

fn lines_of(lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    lines.split_inclusive(|byte| *byte == b'\n')
}

fn value_in<'a>(line: &'a [u8], name: &str) -> Option<&'a [u8]> {
    line.strip_prefix(name.as_bytes())?.strip_prefix(b": ")?.strip_suffix(b"\r\n")
}

/// Whether a value is printable ASCII (RFC 9110, section 5.5).
fn is_text(value: &[u8]) -> bool {
    value.iter().fold(true, |is_text, b| is_text & (*b == b'\t' || (0x20..0x7f).contains(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_added_and_removed_by_name() {
        let mut fields = Fields::default();
        for (name, value) in [("A", "1"), ("AB", "2: 3"), ("C", ""), ("A", "4")] {
            fields.add(name, value.as_bytes());
        }
        assert_eq!(fields.lines(), b"A: 1\r\nAB: 2: 3\r\nC: \r\nA: 4\r\n");
        let found = ["A", "AB", "C", "B", "a"].map(|name| find_field(fields.lines(), name));
        assert_eq!(found, [Some(&b"1"[..]), Some(b"2: 3"), Some(b""), None, None]);
        fields.remove("A");
        let mut all = Fields::default();
        all.add("cache-control", b"x");
        all.append(&fields);
        assert_eq!(all.lines(), b"cache-control: x\r\nAB: 2: 3\r\nC: \r\nA: 4\r\n");
        assert_eq!((all.count(), all.has_cache_control(), fields.has_cache_control()), (4, true, false));
    }

    #[test]
    fn flaw_of_a_block_stays_with_what_it_is_added_to() {
        let mut flawed = Fields::default();
        flawed.add("X", b"\n");
        assert_eq!(flawed.lines(), b"");
        let mut fields = Fields::default();
        fields.append(&flawed);
        fields.add("Y", b"z");
        assert!(fields.flaw().is_some());
    }
}
