//! TLS of the proxy itself: as the server for a host whose credential it holds, and as the client of that host.
//!
//! The proxy has certificates for hosts of routes only. They are signed once, at the start, by an authority made for
//! this proxy alone. Its key is dropped right after, so nothing can be signed later, and its certificate is limited to
//! exactly these hosts by name constraints, so a client that trusts it trusts it for no other host.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use nono_policy::host_rule::Host;
use rcgen::{
    BasicConstraints, CertificateParams, CidrSubnet, DnType, ExtendedKeyUsagePurpose, GeneralSubtree, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, NameConstraints, PKCS_ECDSA_P256_SHA256, SanType,
};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, InvalidDnsNameError, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use thiserror::Error;

use crate::config::ClientTls;

/// The only application protocol supported.
const PROTOCOL: &[u8] = b"http/1.1";
/// Time by which certificates are backdated, because clocks differ.
const BACKDATED: Duration = Duration::from_secs(24 * 60 * 60);
/// Validity of certificates; some programs refuse more than about a year.
const GOOD_FOR: Duration = Duration::from_secs(390 * 24 * 60 * 60);

#[derive(Debug, Error)]
pub enum TlsError {
    #[error("cannot create a certificate for {host}: {source}")]
    Sign { host: String, source: rcgen::Error },
    #[error("cannot create the session's certificate authority: {0}")]
    Authority(#[source] rcgen::Error),
    #[error("cannot set up TLS: {0}")]
    Setup(#[from] rustls::Error),
    #[error("its authorities are not PEM certificates")]
    Authorities,
    #[error("its client certificate or key cannot be used: both must be PEM, and belong together")]
    Identity,
    #[error("no trusted certificates to check servers with")]
    NoCertificates,
    #[error("{host} is not a valid TLS server name")]
    Name { host: String, source: InvalidDnsNameError },
}

/// Certificate authority of one session, and the identities it has signed.
#[derive(Debug)]
pub struct SessionCa {
    pem: String,
    identities: HashMap<Host, Arc<ServerConfig>>,
}

impl SessionCa {
    pub fn new(hosts: &[Host]) -> Result<SessionCa, TlsError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(TlsError::Authority)?;
        let params = authority(hosts);
        let pem = params.self_signed(&key).map_err(TlsError::Authority)?.pem();
        let issuer = Issuer::new(params, key);
        let mut identities = HashMap::new();
        for host in hosts {
            identities.insert(host.clone(), Arc::new(identity(host, &issuer)?));
        }
        Ok(SessionCa { pem, identities })
    }

    /// Certificate that the command has to trust, as PEM.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// TLS settings to act as `host`; `None` for a host it was not made for.
    pub fn identity(&self, host: &Host) -> Option<Arc<ServerConfig>> {
        self.identities.get(host).cloned()
    }
}

fn authority(hosts: &[Host]) -> CertificateParams {
    let mut params = CertificateParams::default();
    name(&mut params, "nono session");
    valid(&mut params);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.name_constraints =
        Some(NameConstraints { permitted_subtrees: permitted(hosts), excluded_subtrees: excluded(hosts) });
    params
}

fn permitted(hosts: &[Host]) -> Vec<GeneralSubtree> {
    let subtree = |host: &Host| match host {
        Host::Name(name) => GeneralSubtree::DnsName(name.to_string()),
        Host::Address(address) => GeneralSubtree::IpAddress(only(*address)),
    };
    hosts.iter().map(subtree).collect()
}

/// Excluded name types. Permitted subtrees do not restrict types that are not listed, so those are excluded as a whole.
fn excluded(hosts: &[Host]) -> Vec<GeneralSubtree> {
    let any = |kind: fn(&Host) -> bool| hosts.iter().any(kind);
    let mut excluded = Vec::new();
    if !any(|host| matches!(host, Host::Name(_))) {
        excluded.push(GeneralSubtree::DnsName(String::new()));
    }
    if !any(|host| matches!(host, Host::Address(_))) {
        excluded.push(GeneralSubtree::IpAddress(CidrSubnet::from_v4_prefix([0; 4], 0)));
        excluded.push(GeneralSubtree::IpAddress(CidrSubnet::from_v6_prefix([0; 16], 0)));
    }
    excluded
}

fn only(address: IpAddr) -> CidrSubnet {
    let bits = if address.is_ipv4() { 32 } else { 128 };
    CidrSubnet::from_addr_prefix(address, bits)
}

fn identity(host: &Host, issuer: &Issuer<'_, KeyPair>) -> Result<ServerConfig, TlsError> {
    let failed = |source| TlsError::Sign { host: host.to_string(), source };
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
    let mut params = CertificateParams::default();
    name(&mut params, "nono");
    valid(&mut params);
    params.subject_alt_names = vec![match host {
        Host::Name(name) => SanType::DnsName(name.as_str().try_into().map_err(failed)?),
        Host::Address(address) => SanType::IpAddress(*address),
    }];
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let certificate = params.signed_by(&key, issuer).map_err(failed)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)?;
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(config)
}

fn name(params: &mut CertificateParams, common: &str) {
    params.distinguished_name.push(DnType::OrganizationName, "nono");
    params.distinguished_name.push(DnType::CommonName, common);
}

fn valid(params: &mut CertificateParams) {
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    // A clock before 1970 counts as 1970.
    let now = epoch + SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    params.not_before = now - BACKDATED;
    params.not_after = now + GOOD_FOR;
}

/// TLS settings to connect to a server, whose certificate has to come from one of the authorities in `pem`.
pub fn client_config(pem: &str, tls: &ClientTls) -> Result<ClientConfig, TlsError> {
    let mut roots = RootCertStore::empty();
    // A system's bundle may hold a certificate this library cannot read; servers under it are then not trusted.
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(pem.as_bytes()).filter_map(Result::ok));
    // The authorities for this server have to be valid without exception.
    for certificate in CertificateDer::pem_slice_iter(tls.authorities.as_bytes()) {
        roots.add(certificate.map_err(|_| TlsError::Authorities)?)?;
    }
    if roots.is_empty() {
        return Err(TlsError::NoCertificates);
    }
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    let mut config = match &tls.identity {
        None => builder.with_no_client_auth(),
        Some((certificates, key)) => {
            let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificates.as_bytes()).collect();
            let chain = chain.ok().filter(|chain| !chain.is_empty()).ok_or(TlsError::Identity)?;
            // The error's text is dropped: it could contain parts of the key.
            let key =
                PrivateKeyDer::from_pem_slice(key.reveal().as_bytes()).map_err(|_| TlsError::Identity)?;
            builder.with_client_auth_cert(chain, key).map_err(|_| TlsError::Identity)?
        }
    };
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(config)
}

/// Name that a server's certificate has to be for.
pub fn server_name(host: &Host) -> Result<ServerName<'static>, TlsError> {
    match host {
        Host::Address(address) => Ok(ServerName::IpAddress((*address).into())),
        Host::Name(name) => ServerName::try_from(name.to_string())
            .map_err(|source| TlsError::Name { host: name.to_string(), source }),
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

#[cfg(test)]
mod tests;
