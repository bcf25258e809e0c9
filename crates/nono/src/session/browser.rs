//! `BROWSER` inside the sandbox: a script that requests opening an address outside, which the user has to approve.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::folder::SessionFolder;

/// Hidden subcommand of nono that the script calls with the addresses as arguments.
pub const OPEN_URL: &str = "__open-url";

/// Write the script. Some programs take `BROWSER` for a file, some for a command line; a path without spaces is both.
pub(super) fn shim(folder: &SessionFolder, binary: &Path) -> io::Result<(OsString, OsString)> {
    let path: PathBuf = folder.dir.join("open-url");
    nono_sys::fs::make_file(&path, 0o500, &script(binary))?;
    Ok(("BROWSER".into(), path.into()))
}

fn script(binary: &Path) -> Vec<u8> {
    let mut script = b"#!/bin/sh\nexec '".to_vec();
    for byte in binary.as_os_str().as_bytes() {
        match byte {
            b'\'' => script.extend_from_slice(b"'\\''"),
            other => script.push(*other),
        }
    }
    script.extend_from_slice(format!("' {OPEN_URL} \"$@\"\n").as_bytes());
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_of_the_binary_is_one_word() {
        let script = String::from_utf8(script(Path::new("/o'd $(x)/nono"))).unwrap();
        assert_eq!(script, "#!/bin/sh\nexec '/o'\\''d $(x)/nono' __open-url \"$@\"\n");
    }
}
