// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Identity of a server, and its verification by a client: certificates and fingerprints for TLS 1.3.

use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::NoServerSessionStorage;
use rustls::version::TLS13;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, ServerConfig, SignatureScheme};

use crate::error::Error;
use crate::options::{Fingerprint, TlsIdentity, TlsTrust};

/// TLS configuration of a server.
#[derive(Debug, Clone)]
pub(super) struct TlsServer {
    pub(super) config: Arc<ServerConfig>,
    /// Of its certificate.
    pub(super) fingerprint: Fingerprint,
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn tls_error(action: &'static str, cause: impl std::fmt::Display) -> Error {
    Error::System { action, cause: std::io::Error::other(cause.to_string()) }
}

fn pem_error(action: &'static str, path: &Path, cause: rustls::pki_types::pem::Error) -> Error {
    use rustls::pki_types::pem::Error as Pem;
    let cause = match cause {
        Pem::Io(cause) => cause,
        other => std::io::Error::other(format!("not the PEM that is expected: {other}")),
    };
    Error::file(action, path, cause)
}

fn fingerprint(certificate: &CertificateDer<'_>) -> Fingerprint {
    let digest = ring::digest::digest(&ring::digest::SHA256, certificate);
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest.as_ref());
    Fingerprint(bytes)
}

impl TlsServer {
    /// Errors: files are missing or do not match, or there is no randomness.
    pub(super) fn new(identity: &TlsIdentity) -> Result<TlsServer, Error> {
        let (chain, key) = match identity {
            TlsIdentity::Generated => generated()?,
            TlsIdentity::Files { certificate, key } => from_files(certificate, key)?,
        };
        let action = "use the certificate";
        let own = chain.first().ok_or_else(|| tls_error(action, "there is none in its file"))?;
        let fingerprint = fingerprint(own);
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .map_err(|cause| tls_error(action, cause))?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|cause| tls_error(action, cause))?;
        // No state is kept of disconnected clients.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(TlsServer { config: Arc::new(config), fingerprint })
    }
}

type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// A self-signed certificate for one recording; its key is only in memory.
fn generated() -> Result<Identity, Error> {
    let error = |cause| tls_error("make a certificate", cause);
    let key = rcgen::KeyPair::generate().map_err(error)?;
    let mut params = rcgen::CertificateParams::new(["lateralis".to_owned()]).map_err(error)?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::CommonName, "Lateralis recording");
    let certificate = params.self_signed(&key).map_err(error)?;
    let key = PrivatePkcs8KeyDer::from(key.serialize_der());
    Ok((vec![certificate.der().clone()], PrivateKeyDer::Pkcs8(key)))
}

fn from_files(certificate: &Path, key: &Path) -> Result<Identity, Error> {
    let action = "read certificate";
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|cause| pem_error(action, certificate, cause))?;
    if chain.is_empty() {
        let none = rustls::pki_types::pem::Error::NoItemsFound;
        return Err(pem_error(action, certificate, none));
    }
    let key_der = PrivateKeyDer::from_pem_file(key)
        .map_err(|cause| pem_error("read private key", key, cause))?;
    Ok((chain, key_der))
}

/// TLS configuration of a client, which verifies its server.
///
/// Errors: the file of authorities is missing or empty.
pub(super) fn client(trust: &TlsTrust) -> Result<Arc<ClientConfig>, Error> {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(|cause| tls_error("use TLS", cause))?;
    let mut config = match trust {
        TlsTrust::Fingerprint(expected) => {
            let verifier = OneCertificate { expected: *expected, provider: provider() };
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(verifier))
                .with_no_client_auth()
        }
        TlsTrust::Authorities(path) => {
            let action = "read certificates";
            let mut roots = RootCertStore::empty();
            let all = CertificateDer::pem_file_iter(path)
                .and_then(Iterator::collect::<Result<Vec<_>, _>>)
                .map_err(|cause| pem_error(action, path, cause))?;
            for one in all {
                let other = |cause| Error::file(action, path, std::io::Error::other(cause));
                roots.add(one).map_err(other)?;
            }
            let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider())
                .build()
                .map_err(|cause| Error::file(action, path, std::io::Error::other(cause)))?;
            builder.with_webpki_verifier(verifier).with_no_client_auth()
        }
    };
    config.resumption = rustls::client::Resumption::disabled();
    config.enable_sni = false;
    Ok(Arc::new(config))
}

/// The name that a certificate must match: the host in `HOST:PORT`.
pub(super) fn server_name(address: &str, trust: &TlsTrust) -> Option<ServerName<'static>> {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    match (ServerName::try_from(host.to_owned()), trust) {
        (Ok(name), _) => Some(name),
        // The fingerprint identifies the server, whatever its name.
        (Err(_), TlsTrust::Fingerprint(_)) => ServerName::try_from("lateralis").ok(),
        (Err(_), TlsTrust::Authorities(_)) => None,
    }
}

/// Accepts the server with this certificate, as ssh accepts a known host: name and date
/// add no information. That the server has the key as well is verified by its signature of the handshake.
#[derive(Debug)]
struct OneCertificate {
    expected: Fingerprint,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for OneCertificate {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let found = fingerprint(end_entity);
        if found == self.expected {
            return Ok(ServerCertVerified::assertion());
        }
        Err(rustls::Error::General(format!(
            "its certificate is not the one of --fingerprint: another server answers, or another \
             recording (found {found})"
        )))
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        // Not supported.
        Err(rustls::PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
