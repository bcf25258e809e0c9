//! Where a body ends: a pure machine over bytes that may come in any pieces.
//!
//! Chunks are read strictly: a size is hexadecimal digits, then perhaps an extension (bounded, dropped), then CR LF.
//! Trailers are bounded and dropped.

use std::ops::Range;

use thiserror::Error;

use crate::head::Framing;

/// All extensions and trailers of one body.
const MAX_EXTRA: usize = 8 << 10;
const MAX_SIZE_DIGITS: u32 = 15;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BadBody {
    #[error("a chunk of the body is malformed")]
    Chunk,
    #[error("the body's chunk extensions or trailers are larger than the limit")]
    TooMuch,
    #[error("the body ends before its end")]
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

/// Reads one body.
#[derive(Clone, Debug)]
pub struct Decoder {
    state: State,
    /// Of the current chunk.
    size: u64,
    extra: usize,
}

/// What a look at some bytes found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// So many bytes belong to the body and its framing.
    pub consumed: usize,
    /// These of them are the body.
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

    /// How many plain bytes follow without anything between them.
    pub fn plain(&self) -> u64 {
        match self.state {
            State::Length(left) => left,
            State::UntilClose => u64::MAX,
            _ => 0,
        }
    }

    /// So many plain bytes went by without [`Decoder::step`].
    pub fn passed(&mut self, bytes: u64) {
        if let State::Length(left) = self.state {
            self.state = after(left.saturating_sub(bytes), State::Length, State::Done);
        }
    }

    /// The sender has ended: was that the end?
    pub fn end(&mut self) -> Result<(), BadBody> {
        match self.state {
            State::UntilClose | State::Done => {
                self.state = State::Done;
                Ok(())
            }
            _ => Err(BadBody::Short),
        }
    }

    /// Look at the next bytes, up to the end of the first piece of data in them.
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
            // Not more than there are bytes in the input.
            let end = at + usize::try_from(length).unwrap_or(0);
            return Ok(Step { consumed: end, data: at..end });
        }
        Ok(Step { consumed: input.len(), data: input.len()..input.len() })
    }

    /// One byte between the data.
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
            // A line that starts with a space would go on with the one before.
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
