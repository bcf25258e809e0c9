//! Random numbers of the kernel.

use std::io;

/// `COUNT` random bytes, at most 256: the kernel returns these in one call that signals do not interrupt.
pub fn bytes<const COUNT: usize>() -> io::Result<[u8; COUNT]> {
    const { assert!(COUNT <= 256) };
    let mut bytes = [0; COUNT];
    // SAFETY: the buffer is valid for writes of its length.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), COUNT, 0) };
    if got < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(bytes)
}

/// `BYTES` random bytes as hexadecimal digits: a unique id.
pub fn id<const BYTES: usize>() -> io::Result<String> {
    bytes::<BYTES>().map(|bytes| crate::hex::encode(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_ids_differ() {
        let (a, b) = (id::<16>().unwrap(), id::<16>().unwrap());
        assert!(a != b && a.len() == 32);
        assert_ne!(bytes::<256>().unwrap(), bytes::<256>().unwrap());
    }
}
