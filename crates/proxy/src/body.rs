//! Decoder of message bodies: a pure state machine over bytes that may come in any pieces.
//!
//! Chunks are read strictly: a size is hexadecimal digits, then perhaps an extension (bounded, dropped), then CR LF.
//! Trailers are bounded and dropped.

use std::ops::Range;

use thiserror::Error;

use crate::head::Framing;

/// Maximum size of all chunk extensions and trailers of one body.
const MAX_EXTRA: usize = 8 << 10;
const MAX_SIZE_DIGITS: u32 = 15;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BadBody {
    #[error("malformed chunk in the body")]
    Chunk,
    #[error("chunk extensions or trailers of the body exceed the limit")]
    TooMuch,
    #[error("the body is truncated")]
    Short,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyState {
    Length(u64),
    UntilClose,
    Size { digits: u32 },
    Extension,
    SizeEnd,
    Data(u64),
    DataReturn,
    DataEnd,
    Trailer { empty: bool },
    TrailerEnd { empty: bool },
    Done,
}

#[derive(Clone, Debug)]
pub struct Decoder {
    state: BodyState,
    /// Size of the current chunk.
    size: u64,
    extra: usize,
}

/// Result of decoding some bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyStep {
    /// Number of bytes that belong to the body and its framing.
    pub consumed: usize,
    pub data: Range<usize>,
}

impl Decoder {
    pub fn new(framing: Framing) -> Decoder {
        let state = match framing {
            Framing::Empty | Framing::Length(0) => BodyState::Done,
            Framing::Length(length) => BodyState::Length(length),
            Framing::UntilClose => BodyState::UntilClose,
            Framing::Chunked => BodyState::Size { digits: 0 },
        };
        Decoder { state, size: 0, extra: 0 }
    }

    pub fn is_done(&self) -> bool {
        self.state == BodyState::Done
    }

    /// Number of body bytes that follow without framing between them.
    pub fn plain(&self) -> u64 {
        match self.state {
            BodyState::Length(left) => left,
            BodyState::UntilClose => u64::MAX,
            _ => 0,
        }
    }

    /// Counts body bytes that were forwarded without [`Decoder::step`].
    pub fn passed(&mut self, bytes: u64) {
        if let BodyState::Length(left) = self.state {
            self.state = after(left.saturating_sub(bytes), BodyState::Length, BodyState::Done);
        }
    }

    /// Checks that the body is complete when the sender has ended.
    pub fn end(&mut self) -> Result<(), BadBody> {
        match self.state {
            BodyState::UntilClose | BodyState::Done => {
                self.state = BodyState::Done;
                Ok(())
            }
            _ => Err(BadBody::Short),
        }
    }

    /// Decodes the next bytes, up to the end of the first piece of data in them.
    pub fn step(&mut self, input: &[u8]) -> Result<BodyStep, BadBody> {
        for (at, byte) in input.iter().enumerate() {
            let here = u64::try_from(input.len() - at).unwrap_or(u64::MAX);
            let (length, next) = match self.state {
                BodyState::Done => return Ok(BodyStep { consumed: at, data: at..at }),
                BodyState::UntilClose => (here, BodyState::UntilClose),
                BodyState::Length(left) => {
                    (here.min(left), after(left - here.min(left), BodyState::Length, BodyState::Done))
                }
                BodyState::Data(left) => {
                    (here.min(left), after(left - here.min(left), BodyState::Data, BodyState::DataReturn))
                }
                _ => {
                    self.frame(*byte)?;
                    continue;
                }
            };
            self.state = next;
            // At most the size of the input, so it fits.
            let end = at + usize::try_from(length).unwrap_or(0);
            return Ok(BodyStep { consumed: end, data: at..end });
        }
        Ok(BodyStep { consumed: input.len(), data: input.len()..input.len() })
    }

    fn frame(&mut self, byte: u8) -> Result<(), BadBody> {
        self.state = match (self.state, byte) {
            (BodyState::Size { digits }, _) if byte.is_ascii_hexdigit() && digits < MAX_SIZE_DIGITS => {
                let digit = char::from(byte).to_digit(16).map_or(0, u64::from);
                self.size = if digits == 0 { digit } else { self.size << 4 | digit };
                BodyState::Size { digits: digits + 1 }
            }
            (BodyState::Size { digits: 1.. } | BodyState::Extension, b'\r') => BodyState::SizeEnd,
            (BodyState::Size { digits: 1.. }, b';') => BodyState::Extension,
            (BodyState::Extension, _) if is_text(byte) => self.extra(BodyState::Extension)?,
            (BodyState::SizeEnd, b'\n') if self.size == 0 => BodyState::Trailer { empty: true },
            (BodyState::SizeEnd, b'\n') => BodyState::Data(self.size),
            (BodyState::DataReturn, b'\r') => BodyState::DataEnd,
            (BodyState::DataEnd, b'\n') => BodyState::Size { digits: 0 },
            (BodyState::Trailer { empty }, b'\r') => BodyState::TrailerEnd { empty },
            // A line that starts with a space would continue the one before.
            (BodyState::Trailer { empty: true }, b' ' | b'\t') => return Err(BadBody::Chunk),
            (BodyState::Trailer { .. }, _) if is_text(byte) => {
                self.extra(BodyState::Trailer { empty: false })?
            }
            (BodyState::TrailerEnd { empty: true }, b'\n') => BodyState::Done,
            (BodyState::TrailerEnd { empty: false }, b'\n') => BodyState::Trailer { empty: true },
            _ => return Err(BadBody::Chunk),
        };
        Ok(())
    }

    fn extra(&mut self, next: BodyState) -> Result<BodyState, BadBody> {
        self.extra += 1;
        if self.extra > MAX_EXTRA { Err(BadBody::TooMuch) } else { Ok(next) }
    }
}

fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

fn after(left: u64, more: impl Fn(u64) -> BodyState, done: BodyState) -> BodyState {
    if left == 0 { done } else { more(left) }
}

#[cfg(test)]
mod tests;
