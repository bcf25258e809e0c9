//! Programs that work on files given to them.

use super::Rule::{Always, Last, Operands, Subcommand, Values, With};
use super::{HELP, Program, of, unless, with};

pub(super) const FILES: &[Program] = &[
    // Files removed, moved, overwritten.
    unless(
        &["rm", "grm", "rmdir", "unlink", "srm", "trash", "trash-put", "rimraf", "del"],
        Operands(0),
        &[],
        HELP,
    ),
    with(&["shred", "wipe"], Operands(0), &["-n", "--iterations", "-s", "--size", "--random-source"]),
    with(
        &["mv", "gmv", "rename", "prename", "perl-rename", "mmv"],
        Operands(0),
        &["-t", "--target-directory", "-S", "--suffix"],
    ),
    with(&["cp", "gcp"], Last, &["-t", "--target-directory", "-S", "--suffix"]),
    with(
        &["install", "ginstall"],
        Last,
        &["-t", "--target-directory", "-S", "--suffix", "-m", "--mode", "-o", "--owner", "-g", "--group"],
    ),
    with(&["ln", "gln"], Operands(0), &["-t", "--target-directory", "-S", "--suffix"]),
    with(&["touch", "gtouch"], Operands(0), &["-d", "--date", "-r", "--reference", "-t"]),
    with(&["mkdir", "gmkdir"], Operands(0), &["-m", "--mode"]),
    of(&["mkfifo", "mknod"], Operands(0)),
    with(&["truncate", "gtruncate"], Operands(0), &["-s", "--size", "-r", "--reference"]),
    with(&["fallocate"], Operands(0), &["-l", "--length", "-o", "--offset"]),
    with(&["tee", "gtee", "sponge"], Operands(0), &["--output-error"]),
    with(
        &["split", "csplit", "gsplit"],
        Always,
        &["-a", "-b", "-C", "-l", "-n", "-t", "--lines", "--bytes", "--number"],
    ),
    with(
        &["sort", "gsort"],
        Values(&["-o", "--output"]),
        &["-o", "--output", "-k", "-t", "-S", "-T", "--key"],
    ),
    with(&["uniq"], Operands(1), &["-f", "-s", "-w"]),
    with(&["shuf", "gshuf"], Values(&["-o", "--output"]), &["-o", "--output", "-i", "-n"]),
    with(&["iconv"], Values(&["-o", "--output"]), &["-o", "--output", "-f", "-t"]),
    with(&["tree"], Values(&["-o"]), &["-o", "-L", "-P", "-I"]),
    with(&["xxd"], Operands(1), &["-s", "-l", "-c", "-g", "-o"]),
    with(
        &["rsync"],
        Last,
        &[
            "-e",
            "--rsh",
            "-f",
            "--filter",
            "--exclude",
            "--include",
            "--exclude-from",
            "--files-from",
            "--backup-dir",
            "--log-file",
            "--max-size",
            "--min-size",
        ],
    ),
    with(&["scp"], Last, &["-P", "-i", "-o", "-F", "-l", "-c", "-J", "-S"]),
    of(&["chmod", "chown", "chgrp", "gchmod", "gchown"], Operands(1)),
    with(&["setfacl"], Operands(0), &["-m", "-x", "-M", "-X"]),
    with(&["setfattr"], Operands(0), &["-n", "-v", "-x", "--name", "--value", "--remove"]),
    of(&["chattr"], Operands(1)),
    // Editors of streams and files.
    with(&["perl"], With(&["-i"]), &["-e", "-E", "-M", "-m", "-I", "-F", "-x", "-D", "-C", "-0", "-l"]),
    with(&["ruby"], With(&["-i"]), &["-e", "-r", "-I", "-F", "-x", "-C", "-K", "-E", "-W", "-0"]),
    with(
        &["yq", "gojq", "jaq", "comby", "xmlstarlet", "crudini"],
        With(&["-i", "--inplace", "--in-place", "-L", "--set", "--del"]),
        &[],
    ),
    of(&["sd"], Operands(2)),
    of(&["ast-grep", "sg"], With(&["-U", "--update-all", "-i", "--interactive"])),
    with(
        &["patch", "gpatch"],
        Always,
        &["-i", "--input", "-p", "--strip", "-d", "--directory", "-o", "-r", "-B", "-D", "-F"],
    ),
    of(
        &[
            "ed",
            "red",
            "ex",
            "vi",
            "vim",
            "nvim",
            "nano",
            "emacs",
            "dos2unix",
            "unix2dos",
            "mogrify",
            "nbstripout",
        ],
        Always,
    ),
    // Archives and downloads.
    with(&["unzip"], Always, &["-d", "-x", "-P"]),
    unless(
        &[
            "gzip",
            "gunzip",
            "bzip2",
            "bunzip2",
            "xz",
            "unxz",
            "zstd",
            "unzstd",
            "lz4",
            "compress",
            "uncompress",
        ],
        Operands(0),
        &["-S", "-o"],
        &["-c", "--stdout", "--to-stdout", "-t", "--test", "-l", "--list"],
    ),
    of(&["zip"], Operands(0)),
    of(&["7z", "7za", "7zr", "7zz"], Subcommand(&["x", "e", "a", "d", "u", "rn"])),
    of(&["unrar", "rar"], Subcommand(&["x", "e", "a", "d", "u", "m"])),
    unless(&["cpio"], With(&["-i", "--extract", "-p", "--pass-through"]), &[], &["-t", "--list"]),
    with(&["curl"], Values(CURL_FILES), CURL_VALUES),
];

/// Options whose value `curl` writes to: the first of those that take one, up to `--alt-svc`.
const CURL_FILES: &[&str] = CURL_VALUES.split_at(13).0;
const CURL_VALUES: &[&str] = &[
    "-o",
    "--output",
    "-c",
    "--cookie-jar",
    "-D",
    "--dump-header",
    "--trace",
    "--trace-ascii",
    "--stderr",
    "--etag-save",
    "--libcurl",
    "--hsts",
    "--alt-svc",
    "-H",
    "-d",
    "-X",
    "-u",
    "-A",
    "-b",
    "-e",
    "-F",
    "-m",
    "-T",
    "-w",
    "-x",
    "-E",
];

#[cfg(test)]
mod tests {
    use super::CURL_FILES;

    #[test]
    fn the_files_of_curl_end_where_they_should() {
        assert_eq!((CURL_FILES.first(), CURL_FILES.last()), (Some(&"-o"), Some(&"--alt-svc")));
    }
}
