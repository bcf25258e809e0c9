//! Certificates that this system trusts. They are read before a helper confines itself.

use std::io::Read;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Files in which distributions keep the certificates they trust.
const BUNDLES: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];
const MAX_BUNDLE: u64 = 8 << 20;

#[derive(Debug, Error)]
pub enum CertificatesError {
    #[error("{} cannot be used: {why}", .path.display())]
    Unusable { path: PathBuf, why: String },
    #[error("this system has no certificates in any of the usual places")]
    None,
}

/// A file of certificates, unparsed.
#[derive(Debug)]
pub struct Bundle {
    pub path: PathBuf,
    pub pem: Vec<u8>,
}

impl Bundle {
    /// Read the named file, else the system's.
    pub fn read(named: Option<&Path>) -> Result<Bundle, CertificatesError> {
        let usual = || BUNDLES.iter().map(Path::new).find(|path| path.is_file());
        let path = named.or_else(usual).ok_or(CertificatesError::None)?;
        let mut bundle = Bundle { path: path.to_owned(), pem: Vec::new() };
        std::fs::File::open(path)
            .and_then(|file| file.take(MAX_BUNDLE).read_to_end(&mut bundle.pem))
            .map_err(|error| bundle.unusable(nono_sys::errno::describe(&error)))?;
        Ok(bundle)
    }

    pub fn text(self) -> Result<String, CertificatesError> {
        let not_text = |_| CertificatesError::Unusable { path: self.path, why: "it is not text".to_owned() };
        String::from_utf8(self.pem).map_err(not_text)
    }

    pub fn unusable(&self, why: impl Into<String>) -> CertificatesError {
        CertificatesError::Unusable { path: self.path.clone(), why: why.into() }
    }
}
