//! Binary patches as git needs them: object names of both contents, and the bytes in base 85.
//!
//! git checks both names, so a patch never applies to another content. The bytes are a zlib stream of stored blocks:
//! valid for every reader, and no compressor is needed to write it.

use std::io::{self, Write};

/// Object name of this content: SHA-1 with a header. Required by the format; not a protection here.
pub(super) fn git_name(content: &[u8]) -> String {
    let header = format!("blob {}\0", content.len());
    let digest = sha1(&[header.as_bytes(), content]);
    let bytes = digest.iter().flat_map(|word| word.to_be_bytes());
    bytes
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

/// Object name of an absent side.
pub(super) const ABSENT: &str = "0000000000000000000000000000000000000000";

/// Write both directions, as `git diff --binary` does: the new content, then the old one for the reverse.
pub(super) fn write_literals(old: &[u8], new: &[u8], out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"GIT binary patch\n")?;
    for content in [new, old] {
        writeln!(out, "literal {}", content.len())?;
        for line in stored(content).chunks(52) {
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

/// Zlib stream that contains these bytes uncompressed.
fn stored(content: &[u8]) -> Vec<u8> {
    const BLOCK: usize = 0xffff;
    let mut stream = vec![0x78, 0x01];
    let blocks = content.len().div_ceil(BLOCK).max(1);
    for number in 0..blocks {
        let block = &content[number * BLOCK..content.len().min((number + 1) * BLOCK)];
        let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
        stream.push(u8::from(number + 1 == blocks));
        stream.extend(length.to_le_bytes());
        stream.extend((!length).to_le_bytes());
        stream.extend(block);
    }
    stream.extend(adler32(content).to_be_bytes());
    stream
}

fn adler32(bytes: &[u8]) -> u32 {
    const MODULUS: u32 = 65521;
    // Number of bytes that can be added before a sum has to be reduced.
    let (a, b) = bytes.chunks(5552).fold((1, 0), |sums: (u32, u32), chunk| {
        let (a, b) = chunk.iter().fold(sums, |(a, b), byte| {
            let a = a + u32::from(*byte);
            (a, b + a)
        });
        (a % MODULUS, b % MODULUS)
    });
    b << 16 | a
}

fn sha1(parts: &[&[u8]]) -> [u32; 5] {
    let mut state = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    let length: u64 = parts.iter().map(|part| part.len() as u64).sum();
    let mut block = Vec::with_capacity(64);
    let mut feed = |mut bytes: &[u8]| {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(64 - block.len()));
            block.extend_from_slice(now);
            bytes = later;
            if block.len() == 64 {
                compress(&mut state, &block);
                block.clear();
            }
        }
    };
    for part in parts {
        feed(part);
    }
    // Padding: one bit, zeros and the length, up to a whole block.
    let used = usize::try_from(length % 64).unwrap_or(0);
    let zeros = if used < 56 { 55 - used } else { 119 - used };
    feed(&[0x80]);
    feed(&[0; 64][..zeros]);
    feed(&(length * 8).to_be_bytes());
    state
}

#[allow(clippy::many_single_char_names, reason = "the letters of the standard")]
fn compress(state: &mut [u32; 5], block: &[u8]) {
    let mut words = [0u32; 80];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = bytes.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
    }
    for at in 16..80 {
        words[at] = (words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16]).rotate_left(1);
    }
    let [mut a, mut b, mut c, mut d, mut e] = *state;
    for (at, word) in words.into_iter().enumerate() {
        let (mixed, constant) = match at / 20 {
            0 => ((b & c) | (!b & d), 0x5a82_7999),
            1 => (b ^ c ^ d, 0x6ed9_eba1),
            2 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
            _ => (b ^ c ^ d, 0xca62_c1d6),
        };
        let next = a.rotate_left(5).wrapping_add(mixed).wrapping_add(e);
        let next = next.wrapping_add(constant).wrapping_add(word);
        (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next);
    }
    for (sum, value) in state.iter_mut().zip([a, b, c, d, e]) {
        *sum = sum.wrapping_add(value);
    }
}
