//! Test cases of redaction: obvious secrets, ordinary command lines, and texts made to be slow.

use std::ffi::OsString;

use super::*;

fn redactor() -> Redactor {
    Redactor::new(Table::default(), &RedactionKey::from_bytes([7; 32]))
}

fn argv(line: &str) -> String {
    let words: Vec<OsString> = line.split(' ').map(|word| OsString::from(word.replace('␣', " "))).collect();
    redactor().argv(&words).join(" ")
}

/// `␣` is a blank within a word. `S3cret…` must not appear in the result.
#[test]
fn secrets_on_command_lines() {
    for line in [
        "mysql -u root -pS3cret db",
        "/usr/bin/mysqldump -pS3cret --all-databases",
        "sshpass -pS3cret ssh me@host",
        "sshpass -p S3cret ssh me@host",
        "sh -c mysql␣-pS3cret␣db",
        "mongosh -p S3cret",
        "sqlcmd -P S3cret",
        "ssh-keygen -N S3cret -f key",
        "7z a -pS3cret x.7z",
        "plink -pw S3cret host",
        "xfreerdp /u:me /p:S3cret /v:host",
        "nmcli device wifi connect Home password S3cret",
        "keytool -storepass S3cret -list",
        "openssl rsa -passin pass:S3cret",
        "curl -u me:S3cret https://example.org",
        "curl -ume:S3cret https://example.org",
        "curl --cert me.pem:S3cret https://example.org",
        "curl -b session=S3cret https://example.org",
        "curl --oauth2-bearer S3cret https://example.org",
        "wget --user me --password S3cret https://example.org",
        "wget --password=S3cret https://example.org",
        "docker login -u me -p S3cret",
        "docker run -e PGPASSWORD=S3cret -eGH_TOKEN=S3cret image",
        "http --auth me:S3cret example.org",
        "http --auth=S3cret example.org",
        "http -a S3cret example.org",
        "aws configure set aws_secret_access_key S3cret",
        "aws configure set profile.x.aws_session_token S3cret",
        "npm config set //registry.npmjs.org/:_authToken S3cret",
        "npm config set //registry.npmjs.org/:_authToken=S3cret",
        "git config --global gitlab.token S3cret",
        "kubectl create secret generic x --from-literal=a=S3cret",
        "mount -o username=me,password=S3cret,uid=1 //host/share /mnt",
        "mount -o username=me,password=S3cret,more //host/share /mnt",
        "psql host=h␣password=S3cret␣dbname=x",
        "env PGPASSWORD=S3cret psql",
        "nono run --credential gh=cmd:pass␣S3cret -- gh",
        "nono run --credential=gh=cmd:pass␣S3cret -- gh",
        "nono run --credential=gh=cmd:S3cret␣my-secret -- gh",
        "nono run --upstream-proxy me:S3cret@proxy:3128 -- gh",
        "nono run --upstream-proxy=http://me:S3cret@proxy:3128 -- gh",
        "sqlcmd Server=h;Database=d;User=sa;Pwd=S3cret;Encrypt=yes",
        "x Server=h;Password=S3cret;S3cretToo;Encrypt=yes",
        "x DefaultEndpointsProtocol=https;AccountName=a;AccountKey=S3cret==;EndpointSuffix=b",
        "x jdbc:sqlserver://h:1433;databaseName=d;user=sa;password=S3cret",
        "x mongodb+srv://me:S3cret@cluster.example.org/db",
        "x redis://:S3cret@host",
        "x amqp://me:S3cret%2F@host",
    ] {
        let seen = argv(line);
        assert!(seen.contains(OPENING) && !seen.contains("S3cret"), "{line}\n{seen}");
    }
}

#[test]
fn secrets_in_addresses() {
    let long = "S3cretAbcdefGhijklMnopqrStuvwxYz0123456789";
    for url in [
        format!("/bot123:{long}/sendMessage"),
        format!("https://api.telegram.org/bot987654321:{long}/getMe?a=b"),
        format!("https://hooks.slack.com/services/T0AAAAAAA/B0BBBBBBB/{long}"),
        format!("/services/T0AAAAAAA/B0BBBBBBB/{long}"),
        format!("https://discord.com/api/webhooks/1234567890/{long}?wait=true"),
        format!("/api/webhooks/1234567890/{long}/slack"),
        format!("https://x.webhook.office.com/webhookb2/a@b/IncomingWebhook/{long}/{long}"),
        format!("https://hooks.zapier.com/hooks/catch/1234/{long}/"),
        format!("/a;password={long}/b"),
        format!("/a;x=y;pwd={long};z=1?b=c"),
        format!("/a?x=1;token={long}#b"),
        format!("https://a.blob.core.windows.net/c/b?sv=1&sig={long}"),
        format!("/?X-Amz-Credential={long}&X-Amz-Signature={long}&X-Amz-Date=1"),
        format!("/maps?key=AIza{long}"),
        format!("/{long}AIza?next=%2Fbot123%3A{long}"),
    ] {
        let seen = redactor().url(&url);
        let rest = seen.strip_prefix(&format!("/{long}AIza")).unwrap_or(&seen);
        assert!(rest.contains(OPENING) && !rest.contains("S3cret"), "{url}\n{seen}");
    }
}

#[test]
fn tokens_by_their_look() {
    let letters = "Ab3dEf6hIj9lMn2pQr5tUv8xYz1bCd4fGh7j";
    for prefix in [
        "AIza",
        "npm_",
        "glpat-",
        "hf_",
        "sk-ant-api03-",
        "sk-proj-",
        "pypi-AgE",
        "sk_live_",
        "rk_live_",
        "ghp_",
        "github_pat_",
        "xoxb-",
        "ya29.",
        "GOCSPX-",
        "hvs.",
        "dapi",
        "glsa_",
        "gsk_",
        "whsec_",
        "SG.",
        "nvapi-",
        "shpat_",
    ] {
        let secret = format!("{prefix}{letters}");
        for text in
            [secret.clone(), format!("x {secret}, y"), format!("a\\n{secret}"), format!("/p/{secret}?a=b")]
        {
            let seen = redactor().text(&text);
            assert!(seen.contains(OPENING) && !seen.contains(letters), "{text}\n{seen}");
        }
    }
    for key in ["-----BEGIN RSA PRIVATE KEY-----\nS3cret", "PuTTY-User-Key-File-3: ssh-ed25519\nS3cret"] {
        assert!(!redactor().text(&format!("a\n{key}")).contains("S3cret"));
    }
}

/// Ordinary command lines stay unchanged.
#[test]
fn ordinary_command_lines() {
    for line in [
        "ls -la /home/me",
        "mkdir -p src/token/secret",
        "ssh -p 2222 me@example.org",
        "scp -P 2222 a me@example.org:b",
        "mysql -u root -h db -P 3306 --database shop",
        "docker run -it --rm -p 8080:80 -u 1000:1000 -v /a:/b:ro image:latest sh",
        "docker run --user 1000:1000 --mount type=bind,source=/a,target=/b image",
        "docker build -t me/image:1.2.3 --build-arg VERSION=1 .",
        "kubectl get pods -n kube-system -o jsonpath={.items[0].metadata.name}",
        "git clone git@github.com:me/repo.git",
        "git push -u origin main:release",
        "git config --global user.email me@example.org",
        "git config credential.helper store",
        "git log --author=me --since=2.weeks --format=%h:%s",
        "git commit -m Fix␣the␣parser;␣see␣#12",
        "rsync -u host:dir/file other:dir",
        "rsync -avz --exclude=.git ./ me@host:/srv/www/",
        "cargo test -p nono-audit --lib -- --nocapture",
        "cargo build --release --features a,b,c",
        "npm_config_legacy_peer_deps_and_more_settings_too=true npm ci",
        "pip install --user scikit-learn==1.5 -r requirements.txt",
        "pip install pypi-publish-helper-for-workflows",
        "python3 -u -c print('hello');x=1",
        "python3 -m http.server 8000 --bind 127.0.0.1",
        "node --max-old-space-size=4096 index.js",
        "curl -fsSL https://example.org/install.sh?version=1.2&arch=x86_64 -o /tmp/i.sh",
        "curl -H Accept:␣application/json https://example.org/services/status/all",
        "curl https://example.org/T0/B0/services/api/webhooks",
        "wget --user-agent=x --no-check-certificate https://example.org/bot/index.html",
        "make -j8 CC=clang CFLAGS=-O2␣-g PREFIX=/usr/local",
        "env PWD=/home/me OLDPWD=/ HOME=/home/me PATH=/bin:/usr/bin LANG=C.UTF-8 sh",
        "find . -name *.rs -not -path ./target/* -exec grep -l token {} ;",
        "grep -rn password src",
        "sed -i s/a=b;c/d=e,f/ file",
        "awk -F: {print␣$1} /etc/passwd",
        "ffmpeg -i in.mp4 -vf scale=1280:720,fps=30 -c:v libx264 out.mp4",
        "tar --exclude=*.o -czf a.tgz dir",
        "systemctl restart nginx.service",
        "journalctl -u ssh:x --since today",
        "psql -h localhost -p 5432 -U me -d shop -c select␣1",
        "redis-cli -h localhost -p 6379 get counter",
        "aws s3 cp s3://bucket/key=1/part-0.csv . --region eu-west-1",
        "aws configure set region eu-west-1",
        "terraform apply -var region=eu-central-1 -auto-approve",
        "echo it's␣a␣basic␣test",
        "echo ASIA-PACIFIC-AND-EUROPE hf_hub_download_file_metadata sk-learn-and-friends",
        "nono run --upstream-proxy proxy.example.org:3128 --allow-domain example.org -- gh",
        "claude --model opus --permission-mode plan fix␣the␣tests",
        "a=b c=d,e=f;g=h /i;j=k?l=m",
        "x jdbc:postgresql://db.example.org:5432/shop;ssl=true",
        "mail me@example.org,you@example.org -s hello:␣world",
    ] {
        assert_eq!(argv(line), line.replace('␣', " "));
    }
}

#[test]
fn another_command_has_its_own_flags() {
    let seen = redactor().text("mysql -pS3cret; mkdir -p a/b && sshpass -p S3cret x && docker run -p 80:80");
    assert!(!seen.contains("S3cret") && seen.contains("mkdir -p a/b") && seen.contains("-p 80:80"), "{seen}");
}

#[test]
fn the_table_is_written_as_it_is_compared() {
    let table = Table::default();
    let tables =
        [&table.flags, &table.headers, &table.query_keys, &table.env, &table.users, &table.header_flags];
    for name in tables.iter().flat_map(|names| names.known()) {
        assert_eq!(normal(name), name);
    }
}

/// Pieces that a bad implementation would scan again from each of their positions.
const PIECES: &[&str] = &[
    "a",
    "A",
    "-",
    "a-",
    "a ",
    "a\t",
    " ",
    "é",
    "\\",
    "\"",
    "'",
    "`",
    ":",
    "=",
    "a=",
    "a=;",
    "a=,",
    "a;",
    "a#",
    "a#=",
    "?",
    "?a=",
    "&",
    "&a=",
    "@",
    "://",
    "://a:b/",
    "://a:b@",
    "a:b@",
    "\"a\":",
    "\"a\":\"",
    "\\\"a\\\":\\\"",
    "\"token\":",
    "\"token\":\"",
    "token=",
    ";token=",
    ";token=a",
    "--token ",
    "--token=",
    "-H",
    "-H a: ",
    "Cookie ",
    "Cookie: ",
    "bearer ",
    "basic ",
    "basic+",
    "basic+a",
    "eyJ",
    "eyJ-",
    "eyJabcdef-",
    "eyJabcdef.",
    "sk-",
    "sk-a-",
    "AKIA",
    "xAKIA",
    "ghp_",
    "hf_a",
    "-----BEGIN ",
    "-----BEGIN PRIVATE KEY",
    "-----END ",
    "/bot",
    "/bot123",
    "/bot123:",
    "/services/",
    "/services/T/B/",
    "/api/webhooks/1/",
    "/with/key/",
    "%25",
    "%3D",
    "%3F",
    "?a=%3Fa%3D",
    "$(",
    "sh -c '",
    "sh -c \"",
    "mysql -p",
    "set token ",
];

/// Eight times the length takes eight times as many steps if redaction is linear, and sixty-four times if it is quadratic.
#[test]
fn long_texts_take_no_longer_than_their_length() {
    let redactor = redactor();
    let cost = |piece: &str, size: usize| {
        let long = format!("x{}", piece.repeat(size / piece.len()));
        steps::of(|| {
            let _ = (redactor.shapes(&long), redactor.plain(&long, DEPTH), redactor.line(&long, DEPTH));
        })
    };
    for piece in PIECES {
        let (short, long) = (cost(piece, 2 << 10), cost(piece, 16 << 10));
        assert!(long < 12 * short, "{piece:?}: {short} and {long}");
    }
}

/// Many parts in a text do not make the stack grow.
#[test]
fn many_parts() {
    let redactor = redactor();
    for piece in ["a", "a=;", "a;", "a#", "a,", "?", "'"] {
        let long = format!("?{}", piece.repeat(100_000));
        let _ = (redactor.shapes(&long), redactor.plain(&long, DEPTH), redactor.line(&long, DEPTH));
    }
}

#[test]
fn what_is_too_long_is_cut_between_words() {
    let redactor = redactor();
    let whole = "é".repeat(LONGEST / 2);
    assert_eq!(redactor.text(&whole), whole);
    let cut = redactor.text(&format!("{whole}é"));
    assert!(cut.len() <= LONGEST + CUT.len() && cut.ends_with(CUT));
    // The secret continues behind the cut, where the telling `@` is.
    let long = format!("{} https://me:S3cret{}@host", "a ".repeat(LONGEST / 2 - 20), "x".repeat(100));
    let cut = redactor.text(&long);
    assert!(cut.ends_with(CUT) && !cut.contains("S3cret") && cut.len() > LONGEST - LAST_WORD);
    assert_eq!(redactor.argv(&["a".into(), long.into(), "--token=b".into()]).len(), 3);
}
