//! What the supervisor and its helper say to each other, over pipes: a length in four bytes, then JSON.

use std::io::{self, Read, Write};
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The most a service may answer with.
pub(super) const MAX_ANSWER: usize = 64 << 10;
/// The most a frame may hold: an answer, every byte of it escaped, and room for what is around it.
pub(super) const MAX_FRAME: usize = 8 * MAX_ANSWER;

const LENGTH: usize = 4;

/// The first frame to the helper.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Setup {
    pub(super) url: String,
    /// The certificates to believe, instead of the system's.
    pub(super) certificates: Option<FilePath>,
}

/// A path, whatever bytes it holds.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FilePath(#[serde(with = "nono_policy::path_serde")] pub(super) PathBuf);

/// Every other frame to the helper: one question, ready to be sent.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Post {
    pub(super) sequence: u64,
    pub(super) timeout_ms: u64,
    pub(super) timestamp: String,
    pub(super) signature: String,
    pub(super) body: String,
}

/// Frames from the helper.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub(super) enum Said {
    /// Confined, and waiting for questions.
    Ready,
    /// It cannot work.
    Unable { why: String },
    /// What the service answered, unread.
    Reply { sequence: u64, reply: Reply },
    /// There is no answer. `connected`: the service may have seen the question.
    Nothing { sequence: u64, connected: bool, why: String },
}

/// An HTTP response, with the headers that matter.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) content_type: Option<String>,
    pub(super) timestamp: Option<String>,
    pub(super) signature: Option<String>,
    pub(super) body: String,
}

pub(super) fn encode(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let json = serde_json::to_vec(value)?;
    let length = u32::try_from(json.len()).ok().filter(|_| json.len() <= MAX_FRAME);
    let length = length.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the frame is too long"))?;
    Ok([length.to_be_bytes().as_slice(), &json].concat())
}

pub(super) fn write(output: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    output.write_all(&encode(value)?)?;
    output.flush()
}

/// The next frame; none at the end of the stream.
pub(super) fn read<T: DeserializeOwned>(input: &mut impl Read) -> io::Result<Option<T>> {
    let mut buffer = Vec::new();
    loop {
        if let Some(value) = take(&mut buffer)? {
            return Ok(Some(value));
        }
        // Never a byte beyond this frame.
        let missing = match length(&buffer)? {
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

/// Take a whole frame from the front of `buffer`, once it is there.
pub(super) fn take<T: DeserializeOwned>(buffer: &mut Vec<u8>) -> io::Result<Option<T>> {
    let Some(length) = length(buffer)? else { return Ok(None) };
    if buffer.len() < LENGTH + length {
        return Ok(None);
    }
    let frame: Vec<u8> = buffer.drain(..LENGTH + length).skip(LENGTH).collect();
    Ok(Some(serde_json::from_slice(&frame)?))
}

fn length(buffer: &[u8]) -> io::Result<Option<usize>> {
    let Some((length, _)) = buffer.split_first_chunk::<LENGTH>() else { return Ok(None) };
    let length = usize::try_from(u32::from_be_bytes(*length)).ok().filter(|length| *length <= MAX_FRAME);
    length.map(Some).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the frame is too long"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_one_by_one() {
        let mut bytes = encode(&Said::Ready).unwrap();
        bytes.extend(encode(&Said::Unable { why: "x".to_owned() }).unwrap());
        let mut input = bytes.as_slice();
        assert!(matches!(read::<Said>(&mut input), Ok(Some(Said::Ready))));
        assert!(matches!(read::<Said>(&mut input), Ok(Some(Said::Unable { .. }))));
        assert!(matches!(read::<Said>(&mut input), Ok(None)));
    }

    #[test]
    fn what_is_no_frame_is_an_error() {
        for wrong in
            [&[0xff, 0xff, 0xff, 0xff, b'{'] as &[u8], &[0, 0], &[0, 0, 0, 9, b'{'], &[0, 0, 0, 1, b'{']]
        {
            let mut input = wrong;
            assert!(read::<Said>(&mut input).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_path_of_any_bytes_arrives() {
        use std::os::unix::ffi::OsStringExt;
        let path = PathBuf::from(std::ffi::OsString::from_vec(b"/x\xff".to_vec()));
        let setup = Setup { url: "u".to_owned(), certificates: Some(FilePath(path.clone())) };
        let bytes = encode(&setup).unwrap();
        let back: Setup = read(&mut bytes.as_slice()).unwrap().unwrap();
        assert_eq!(back.certificates, Some(FilePath(path)));
    }
}
