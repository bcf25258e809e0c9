//! Table of the names of secrets.

use super::names::Names;

/// Flags whose value is a secret: `--flag value`, `--flag=value`, `-flag value`.
const FLAGS: &[&str] = &[
    "*token",
    "*password",
    "*passwd",
    "*passphrase",
    "*secret",
    "*secret-key",
    "*secretkey",
    "*api-key",
    "*apikey",
    "*access-key",
    "*accesskey",
    "*auth-key",
    "*account-key",
    "*accountkey",
    "*master-key",
    "*shared-key",
    "*signing-key",
    "*encryption-key",
    "*bearer",
    "*jwt",
    "*-pat",
    "*-pass",
    "*-pwd",
    "pass",
    "passin",
    "passout",
    "pwd",
    "otp",
    "cookie",
    "set-cookie",
    "credential",
    "credentials",
    "storepass",
    "keypass",
    "psk",
    "*-psk",
    "from-literal",
];
/// Flags without a value, such as `--no-password`.
const NO_FLAGS: &[&str] = &["no-*", "ask-*", "prompt-*"];

/// Flags whose value is `user:password`.
const USERS: &[&str] = &["u", "user", "auth", "proxy-user", "cert", "proxy-cert"];

/// Programs whose `-u` has another meaning.
const NO_USERS: &[&str] =
    &["rsync", "git", "cp", "mv", "sort", "diff", "date", "ls", "journalctl", "python", "python3"];

const HEADER_FLAGS: &[&str] = &["h", "header", "proxy-header", "add-header"];

/// Words that announce a password after these programs (and `docker login` and the like) only. The password is the next
/// word; it may be joined to a single letter (`-pSECRET`), and to others with a `=`.
const PROGRAMS: &[(&[&str], &[&str])] = &[
    (
        &["mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlshow", "mysqlcheck", "mysqlsh", "mycli"],
        &["-p"],
    ),
    (&["mariadb", "mariadb-dump", "mariadb-admin", "mariadb-import"], &["-p"]),
    (&["mongo", "mongosh", "mongodump", "mongorestore", "mongoimport", "mongoexport"], &["-p"]),
    (
        &[
            "sshpass",
            "login",
            "twine",
            "yt-dlp",
            "youtube-dl",
            "rabbitmqadmin",
            "useradd",
            "usermod",
            "rdesktop",
        ],
        &["-p"],
    ),
    (&["7z", "7za", "7zr", "7zz", "rar", "unrar"], &["-p"]),
    (&["zip", "unzip", "sqlcmd", "bcp", "ipmitool"], &["-P"]),
    (&["ssh-keygen"], &["-N", "-P"]),
    (&["redis-cli"], &["-a"]),
    (&["ldapsearch", "ldapmodify", "ldapadd", "ldapdelete", "ldappasswd"], &["-w"]),
    (&["smbclient", "rpcclient"], &["-U"]),
    (&["lftp"], &["-u"]),
    (&["snmpget", "snmpwalk", "snmpset"], &["-A", "-X", "-c"]),
    (&["curl"], &["-b"]),
    (&["http", "https", "xh", "xhs"], &["-a", "--auth"]),
    (&["plink", "pscp", "psftp"], &["-pw"]),
    (&["xfreerdp", "wlfreerdp"], &["/p:"]),
    (&["nmcli"], &["password"]),
];

const HEADERS: &[&str] = &[
    "authorization",
    "proxy-authorization",
    "*-authorization",
    "cookie",
    "cookie2",
    "set-cookie",
    "set-cookie2",
    "x-api-key",
    "*api-key",
    "*apikey",
    "*-token",
    "*-secret",
    "*-signature",
    "x-auth",
    "x-auth-*",
    "x-csrf*",
    "x-xsrf*",
    "x-amz-security-token",
    "x-goog-api-key",
    "ocp-apim-subscription-key",
    "authentication",
];

const QUERY_KEYS: &[&str] = &[
    "*token",
    "*password",
    "*passwd",
    "*secret",
    "*signature",
    "*api-key",
    "*apikey",
    "*access-key",
    "*accesskey",
    "*accesskeyid",
    "*credential",
    "*sessionid",
    "*session-id",
    "key",
    "sig",
    "pass",
    "pwd",
    "auth",
    "authorization",
    "code",
    "code-verifier",
    "assertion",
    "client-assertion",
    "samlresponse",
    "session",
    "sid",
    "jwt",
    "otp",
    "ticket",
    "hmac",
];

const ENV: &[&str] = &[
    "*token",
    "*-key",
    "*apikey",
    "*secret*",
    "*password*",
    "*passwd*",
    "*passphrase*",
    "*credential*",
    "*access-key*",
    "*private-key*",
    "*-pass",
    "*-pwd",
    "*-auth",
    "*cookie*",
    "*-dsn",
    "*connection-string*",
    "*-pat",
    "*jwt*",
    "authorization",
    "mysql-pwd",
    "pgpassword",
];

/// Additions to the table and removals from it by the user. Names in any spelling, `*` for anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    pub flags: Vec<String>,
    pub headers: Vec<String>,
    pub query_keys: Vec<String>,
    pub env: Vec<String>,
    pub not_flags: Vec<String>,
    pub not_headers: Vec<String>,
    pub not_query_keys: Vec<String>,
    pub not_env: Vec<String>,
}

/// Names whose values are secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    pub(super) flags: Names,
    pub(super) headers: Names,
    pub(super) query_keys: Names,
    pub(super) env: Names,
    pub(super) users: Names,
    pub(super) header_flags: Names,
}

impl Default for Table {
    fn default() -> Table {
        Table {
            flags: Names::new(FLAGS, NO_FLAGS),
            headers: Names::new(HEADERS, &[]),
            query_keys: Names::new(QUERY_KEYS, &[]),
            env: Names::new(ENV, &[]),
            users: Names::new(USERS, &[]),
            header_flags: Names::new(HEADER_FLAGS, &[]),
        }
    }
}

impl Table {
    /// Built-in table with the user's changes.
    pub fn with(changes: &Changes) -> Table {
        fn change(names: &mut Names, add: &[String], remove: &[String]) {
            names.add(add.iter().map(String::as_str));
            names.remove(remove.iter().map(String::as_str));
        }
        let mut table = Table::default();
        change(&mut table.flags, &changes.flags, &changes.not_flags);
        change(&mut table.headers, &changes.headers, &changes.not_headers);
        change(&mut table.query_keys, &changes.query_keys, &changes.not_query_keys);
        change(&mut table.env, &changes.env, &changes.not_env);
        table
    }
}

/// Whether this word names one of the programs with flags of their own.
pub(super) fn is_program(word: &str) -> bool {
    NO_USERS.contains(&word) || PROGRAMS.iter().any(|(programs, _)| programs.contains(&word))
}

/// Whether `-u` can be a user with a password.
pub(super) fn takes_user(programs: &[String]) -> bool {
    !programs.first().is_some_and(|program| NO_USERS.contains(&&**program))
}

/// The password flag of one of these programs, and what is joined to it.
pub(super) fn password_flag<'a>(programs: &[String], word: &'a str) -> Option<(&'a str, &'a str)> {
    if programs.is_empty() {
        return None;
    }
    let is_seen = |names: &[&str]| programs.iter().any(|seen| names.contains(&&**seen));
    let fits = |flag: &&str| {
        let joined = word.strip_prefix(flag)?;
        let end = match joined.chars().next() {
            Some('=') if flag.len() > 2 => flag.len() + 1,
            Some(_) if flag.len() > 2 && !flag.ends_with(':') => return None,
            _ => flag.len(),
        };
        Some(word.split_at(end))
    };
    PROGRAMS.iter().filter(|(names, _)| is_seen(names)).find_map(|(_, flags)| flags.iter().find_map(fits))
}
