//! Frames between the supervisor and its helper: a length in four bytes, then JSON.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

const LENGTH: usize = 4;

/// Frames up to a size. The reader refuses longer ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frames {
    /// Maximum number of bytes of JSON.
    pub(crate) most: usize,
}

impl Frames {
    pub(crate) fn encode(self, value: &impl Serialize) -> io::Result<Vec<u8>> {
        let json = serde_json::to_vec(value)?;
        let length = u32::try_from(json.len()).ok().filter(|_| json.len() <= self.most);
        Ok([length.ok_or_else(too_long)?.to_be_bytes().as_slice(), &json].concat())
    }

    pub(crate) fn write(self, output: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
        output.write_all(&self.encode(value)?)?;
        output.flush()
    }

    /// Next frame; None at the end of the stream.
    pub(crate) fn read<T: DeserializeOwned>(self, input: &mut impl Read) -> io::Result<Option<T>> {
        let mut buffer = Vec::new();
        loop {
            if let Some(value) = self.take(&mut buffer)? {
                return Ok(Some(value));
            }
            // Never reads a byte beyond this frame.
            let missing = match self.length(&buffer)? {
                Some(length) => LENGTH + length - buffer.len(),
                None => LENGTH - buffer.len(),
            };
            let got = input.take(missing as u64).read_to_end(&mut buffer)?;
            if got < missing {
                let nothing = buffer.is_empty();
                return if nothing { Ok(None) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
            }
        }
    }

    /// Take a whole frame from the front of `buffer`, once it is complete.
    pub(crate) fn take<T: DeserializeOwned>(self, buffer: &mut Vec<u8>) -> io::Result<Option<T>> {
        let Some(length) = self.length(buffer)? else { return Ok(None) };
        if buffer.len() < LENGTH + length {
            return Ok(None);
        }
        let frame: Vec<u8> = buffer.drain(..LENGTH + length).skip(LENGTH).collect();
        Ok(Some(serde_json::from_slice(&frame)?))
    }

    fn length(self, buffer: &[u8]) -> io::Result<Option<usize>> {
        let Some((length, _)) = buffer.split_first_chunk::<LENGTH>() else { return Ok(None) };
        let length = usize::try_from(u32::from_be_bytes(*length)).ok().filter(|length| *length <= self.most);
        length.map(Some).ok_or_else(too_long)
    }
}

fn too_long() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the frame is too long")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAMES: Frames = Frames { most: 1000 };

    #[test]
    fn frames_come_back_one_by_one() {
        let mut bytes = FRAMES.encode(&"one").unwrap();
        bytes.extend(FRAMES.encode(&["two"]).unwrap());
        let mut input = bytes.as_slice();
        assert_eq!(FRAMES.read::<String>(&mut input).unwrap().unwrap(), "one");
        assert_eq!(FRAMES.read::<Vec<String>>(&mut input).unwrap().unwrap(), ["two"]);
        assert!(FRAMES.read::<String>(&mut input).unwrap().is_none());
    }

    #[test]
    fn what_is_no_frame_is_an_error() {
        for wrong in
            [&[0xff, 0xff, 0xff, 0xff, b'{'] as &[u8], &[0, 0], &[0, 0, 0, 9, b'{'], &[0, 0, 0, 1, b'{']]
        {
            let mut input = wrong;
            assert!(FRAMES.read::<String>(&mut input).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_frame_that_is_too_long_is_neither_sent_nor_read() {
        let long = "x".repeat(FRAMES.most);
        assert!(FRAMES.encode(&long).is_err());
        let bytes = Frames { most: 10_000 }.encode(&long).unwrap();
        assert!(FRAMES.take::<String>(&mut bytes.clone()).is_err());
        // The length alone is refused, without waiting for the data.
        assert!(FRAMES.take::<String>(&mut bytes[..LENGTH].to_vec()).is_err());
    }
}
