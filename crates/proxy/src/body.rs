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
enum State {
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

/// Decoder of one body.
#[derive(Clone, Debug)]
pub struct Decoder {
    state: State,
    /// Size of the current chunk.
    size: u64,
    extra: usize,
}

/// Result of decoding some bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Number of bytes that belong to the body and its framing.
    pub consumed: usize,
    /// Range of these bytes that is body data.
    pub data: Range<usize>,
}

impl Decoder {
    pub fn new(framing: Framing) -> Decoder {
        let state = match framing {
            Framing::Empty | Framing::Length(0) => State::Done,
            Framing::Length(length) => State::Length(length),
            Framing::UntilClose => State::UntilClose,
            Framing::Chunked => State::Size { digits: 0 },
        };
        Decoder { state, size: 0, extra: 0 }
    }

    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Number of body bytes that follow without framing between them.
    pub fn plain(&self) -> u64 {
        match self.state {
            State::Length(left) => left,
            State::UntilClose => u64::MAX,
            _ => 0,
        }
    }

    /// Counts body bytes that were forwarded without [`Decoder::step`].
    pub fn passed(&mut self, bytes: u64) {
        if let State::Length(left) = self.state {
            self.state = after(left.saturating_sub(bytes), State::Length, State::Done);
        }
    }

    /// Checks that the body is complete when the sender has ended.
    pub fn end(&mut self) -> Result<(), BadBody> {
        match self.state {
            State::UntilClose | State::Done => {
                self.state = State::Done;
                Ok(())
            }
            _ => Err(BadBody::Short),
        }
    }

    /// Decodes the next bytes, up to the end of the first piece of data in them.
    pub fn step(&mut self, input: &[u8]) -> Result<Step, BadBody> {
        for (at, byte) in input.iter().enumerate() {
            let here = u64::try_from(input.len() - at).unwrap_or(u64::MAX);
            let (length, next) = match self.state {
                State::Done => return Ok(Step { consumed: at, data: at..at }),
                State::UntilClose => (here, State::UntilClose),
                State::Length(left) => {
                    (here.min(left), after(left - here.min(left), State::Length, State::Done))
                }
                State::Data(left) => {
                    (here.min(left), after(left - here.min(left), State::Data, State::DataReturn))
                }
                _ => {
                    self.frame(*byte)?;
                    continue;
                }
            };
            self.state = next;
            // At most the size of the input, so it fits.
            let end = at + usize::try_from(length).unwrap_or(0);
            return Ok(Step { consumed: end, data: at..end });
        }
        Ok(Step { consumed: input.len(), data: input.len()..input.len() })
    }

    /// Handles one byte of framing.
    fn frame(&mut self, byte: u8) -> Result<(), BadBody> {
        self.state = match (self.state, byte) {
            (State::Size { digits }, _) if byte.is_ascii_hexdigit() && digits < MAX_SIZE_DIGITS => {
                let digit = char::from(byte).to_digit(16).map_or(0, u64::from);
                self.size = if digits == 0 { digit } else { self.size << 4 | digit };
                State::Size { digits: digits + 1 }
            }
            (State::Size { digits: 1.. } | State::Extension, b'\r') => State::SizeEnd,
            (State::Size { digits: 1.. }, b';') => State::Extension,
            (State::Extension, _) if is_text(byte) => self.extra(State::Extension)?,
            (State::SizeEnd, b'\n') if self.size == 0 => State::Trailer { empty: true },
            (State::SizeEnd, b'\n') => State::Data(self.size),
            (State::DataReturn, b'\r') => State::DataEnd,
            (State::DataEnd, b'\n') => State::Size { digits: 0 },
            (State::Trailer { empty }, b'\r') => State::TrailerEnd { empty },
            // A line that starts with a space would continue the one before.
            (State::Trailer { empty: true }, b' ' | b'\t') => return Err(BadBody::Chunk),
            (State::Trailer { .. }, _) if is_text(byte) => self.extra(State::Trailer { empty: false })?,
            (State::TrailerEnd { empty: true }, b'\n') => State::Done,
            (State::TrailerEnd { empty: false }, b'\n') => State::Trailer { empty: true },
            _ => return Err(BadBody::Chunk),
        };
        Ok(())
    }

    fn extra(&mut self, next: State) -> Result<State, BadBody> {
        self.extra += 1;
        if self.extra > MAX_EXTRA { Err(BadBody::TooMuch) } else { Ok(next) }
    }
}

fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

fn after(left: u64, more: impl Fn(u64) -> State, done: State) -> State {
    if left == 0 { done } else { more(left) }
}

#[cfg(test)]
mod tests;
