//! Binary encoding of nodes, caches and journals: numbers as base-128 varints, byte strings with their length. Decoding
//! never trusts its input: a length beyond the end, a padded number or trailing bytes are errors.

use crate::node::{Name, Time};

/// Decoding error; the text names the malformed part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed: {0}")]
pub struct Malformed(pub &'static str);

#[derive(Clone, Debug, Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn new() -> Writer {
        Writer::default()
    }

    /// Continue writing after existing bytes.
    pub(crate) fn onto(bytes: Vec<u8>) -> Writer {
        Writer(bytes)
    }

    pub(crate) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        self.0.push(number.to_le_bytes()[0]);
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.raw(bytes);
    }

    pub(crate) fn time(&mut self, time: Time) {
        // Zigzag: times before 1970 are rare but possible.
        self.number((time.seconds << 1 ^ time.seconds >> 63).cast_unsigned());
        self.number(u64::from(time.nanos));
    }

    pub(crate) fn tagged_text(&mut self, tag: u8, text: &str) {
        self.byte(tag);
        self.bytes(text.as_bytes());
    }

    pub(crate) fn tagged_number(&mut self, tag: u8, number: u64) {
        self.byte(tag);
        self.number(number);
    }

    pub(crate) fn list<T>(&mut self, items: &[T], item: impl Fn(&T, &mut Self)) {
        self.number(items.len() as u64);
        for one in items {
            item(one, self);
        }
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader(bytes)
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.0
    }

    pub(crate) fn left(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn end(&self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed("bytes behind the end")) }
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Malformed> {
        let (first, rest) = self.0.split_first().ok_or(Malformed("cut short"))?;
        self.0 = rest;
        Ok(*first)
    }

    pub(crate) fn raw(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (now, rest) = self.0.split_at_checked(len).ok_or(Malformed("cut short"))?;
        self.0 = rest;
        Ok(now)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (now, rest) = self.0.split_first_chunk().ok_or(Malformed("cut short"))?;
        self.0 = rest;
        Ok(*now)
    }

    pub(crate) fn number(&mut self) -> Result<u64, Malformed> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            // Each number has one encoding: no padding, no bits beyond the 64th.
            if bits << shift >> shift != bits || (byte == 0 && shift > 0) {
                break;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Malformed("a number"))
    }

    pub(crate) fn small(&mut self, what: &'static str) -> Result<u32, Malformed> {
        u32::try_from(self.number()?).map_err(|_| Malformed(what))
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let len = usize::try_from(self.number()?).map_err(|_| Malformed("cut short"))?;
        self.raw(len)
    }

    pub(crate) fn text(&mut self) -> Result<String, Malformed> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|_| Malformed("a text that is not UTF-8"))
    }

    pub(crate) fn name(&mut self) -> Result<Name, Malformed> {
        Name::new(self.bytes()?).ok_or(Malformed("a name"))
    }

    pub(crate) fn time(&mut self) -> Result<Time, Malformed> {
        let folded = self.number()?;
        let seconds = (folded >> 1).cast_signed() ^ -(folded & 1).cast_signed();
        let nanos = self.small("a time")?;
        if nanos >= 1_000_000_000 {
            return Err(Malformed("a time"));
        }
        Ok(Time { seconds, nanos })
    }

    pub(crate) fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let len = self.number()?;
        // Each item takes at least one byte, so a forged length cannot reserve more memory than the input has.
        if len > self.left() as u64 {
            return Err(Malformed("the length of a list"));
        }
        (0..len).map(|_| item(self)).collect()
    }
}
