//! Binary patches as git needs them: object names of both contents, and the bytes in base 85.
//!
//! git checks both names, so a patch never applies to another content. The bytes are a zlib stream.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use nono_sys::hex;
use sha1::{Digest, Sha1};

/// Object name of this content: SHA-1 with a header. Required by the format; not a protection here.
pub(super) fn git_name(content: &[u8]) -> String {
    hex::encode(
        &Sha1::new().chain_update(format!("blob {}\0", content.len())).chain_update(content).finalize(),
    )
}

/// Object name of an absent side.
pub(super) const ABSENT: &str = "0000000000000000000000000000000000000000";

/// Write both directions, as `git diff --binary` does: the new content, then the old one for the reverse.
pub(super) fn write_literals(old: &[u8], new: &[u8], out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"GIT binary patch\n")?;
    for content in [new, old] {
        writeln!(out, "literal {}", content.len())?;
        for line in deflated(content)?.chunks(52) {
            write_line(line, out)?;
        }
        out.write_all(b"\n")?;
    }
    Ok(())
}

const DIGITS: &[u8; 85] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";

/// Write one line: a letter for the length, then five digits for each four bytes.
fn write_line(bytes: &[u8], out: &mut dyn Write) -> io::Result<()> {
    let lengths = (b'A'..=b'Z').chain(b'a'..=b'z');
    let mut line: Vec<u8> = lengths.skip(bytes.len() - 1).take(1).collect();
    for group in bytes.chunks(4) {
        let mut number =
            (0..4).fold(0, |number: u32, at| number << 8 | u32::from(*group.get(at).unwrap_or(&0)));
        let mut digits = [0; 5];
        for digit in digits.iter_mut().rev() {
            *digit = DIGITS[(number % 85) as usize];
            number /= 85;
        }
        line.extend(digits);
    }
    line.push(b'\n');
    out.write_all(&line)
}

fn deflated(content: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = ZlibEncoder::new(Vec::new(), Compression::fast());
    stream.write_all(content)?;
    stream.finish()
}
