//! TLS for channels between machines: the one place that knows the library.
//!
//! TLS 1.3 (RFC 8446) without resumption. Both sides show a raw public key (RFC 7250) of Ed25519 (RFC
//! 8410) instead of a certificate: there is no authority, names and dates have no meaning, and who is
//! accepted is a set of key hashes. A [`Session`] turns bytes into bytes; sockets are its caller's.
//!
//! Signatures are made and checked by `weft_keys`, so that the private key is in memory once.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{BufRead, Write};
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ResolvesClientCert, Resumption};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::{CertifiedKey, Signer, SigningKey};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, Connection, DigitallySignedStruct,
    DistinguishedName, Error, OtherError, ServerConfig, ServerConnection, SignatureAlgorithm,
    SignatureScheme,
};
use weft_keys::{KeyHash, PrivateKey, PublicKey, Signature};
use weft_port::datagrams::Sent;

use super::DriverDrop;
use super::bytestream::PIECE;
use crate::Keys;

/// What is agreed on as the protocol inside (RFC 7301).
const PROTOCOL: &[u8] = b"weft/1";
/// What the side that accepts says first. In TLS 1.3 who connects is done before its own key was
/// looked at; this is how it learns that it was accepted.
pub(super) const WELCOME: &[u8; 4] = b"weft";
/// Memory that an empty buffer keeps, in bytes.
const KEPT: usize = 64 << 10;

/// One side of an encrypted connection.
pub(super) struct Session {
    connection: Connection,
    /// Encrypted, and how much of it has left.
    out: Vec<u8>,
    sent: usize,
    said_goodbye: bool,
}

impl Session {
    /// The side that connects to `ip`. Only a peer with the key `wanted` is accepted or, without that,
    /// one of those that `keys` names.
    ///
    /// # Errors
    /// The library does not work on this machine.
    pub(super) fn connect(
        keys: &Keys,
        wanted: Option<KeyHash>,
        ip: IpAddr,
    ) -> Result<Self, String> {
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(unusable)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Accepted::new(keys, wanted)))
            .with_client_cert_resolver(Arc::new(Shown::new(&keys.own)));
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        config.resumption = Resumption::disabled();
        config.enable_sni = false;
        let name = ServerName::IpAddress(ip.into());
        let connection = ClientConnection::new(Arc::new(config), name).map_err(unusable)?;
        Ok(Self::new(Connection::from(connection)))
    }

    /// The side that accepts.
    ///
    /// # Errors
    /// As [`Session::connect`].
    pub(super) fn accept(keys: &Keys, wanted: Option<KeyHash>) -> Result<Self, String> {
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(unusable)?
            .with_client_cert_verifier(Arc::new(Accepted::new(keys, wanted)))
            .with_cert_resolver(Arc::new(Shown::new(&keys.own)));
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        config.send_tls13_tickets = 0;
        let connection = ServerConnection::new(Arc::new(config)).map_err(unusable)?;
        Ok(Self::new(Connection::from(connection)))
    }

    fn new(mut connection: Connection) -> Self {
        connection.set_buffer_limit(Some(PIECE));
        Self { connection, out: Vec::new(), sent: 0, said_goodbye: false }
    }

    /// Whether the keys are not agreed on yet.
    pub(super) fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// The key that the other side has proved to have.
    pub(super) fn peer(&self) -> Option<KeyHash> {
        let shown = self.connection.peer_certificates()?.first()?;
        (!self.is_handshaking()).then(|| KeyHash::of_spki_der(shown))
    }

    /// Takes bytes that came in, and gives what they say to `plain`. Says whether the other side has
    /// announced its end.
    ///
    /// # Errors
    /// The connection is of no use any more. [`Session::flush`] tells the other side why.
    pub(super) fn take(
        &mut self,
        mut bytes: &[u8],
        mut plain: impl FnMut(&[u8]),
    ) -> Result<bool, Error> {
        let mut end = false;
        while !bytes.is_empty() && !end {
            if let Err(error) = self.connection.read_tls(&mut bytes) {
                return Err(Error::General(error.to_string()));
            }
            let state = self.connection.process_new_packets();
            let mut reader = self.connection.reader();
            while let Ok(chunk) = reader.fill_buf() {
                let len = chunk.len();
                if len == 0 {
                    break;
                }
                plain(chunk);
                reader.consume(len);
            }
            end = state?.peer_has_closed();
        }
        Ok(end)
    }

    /// Encrypts the front of `plain`, and says how many bytes that were. If none, flush first.
    pub(super) fn give(&mut self, plain: &[u8]) -> usize {
        // What is written goes into memory, which cannot fail.
        self.connection.writer().write(plain).unwrap_or(0)
    }

    /// Announces that nothing more is sent. Said once.
    pub(super) fn say_goodbye(&mut self) {
        if !self.said_goodbye {
            self.said_goodbye = true;
            self.connection.send_close_notify();
        }
    }

    /// Whether nothing waits to be sent.
    pub(super) fn is_flushed(&self) -> bool {
        self.sent == self.out.len() && !self.connection.wants_write()
    }

    /// Hands what is encrypted to the kernel.
    ///
    /// # Errors
    /// Those of send(2) that last.
    pub(super) fn flush(&mut self, socket: BorrowedFd<'_>) -> Result<Sent, Errno> {
        loop {
            if self.sent == self.out.len() {
                self.out.clear();
                self.out.shrink_to(KEPT);
                self.sent = 0;
                while self.connection.wants_write() && self.out.len() < PIECE {
                    // A vector takes everything.
                    let _ = self.connection.write_tls(&mut self.out);
                }
                if self.out.is_empty() {
                    return Ok(Sent::All);
                }
            }
            match send(socket, &self.out[self.sent..], SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(count) => self.sent += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(Sent::Blocked),
                Err(errno) => return Err(errno),
            }
        }
    }
}

/// Why a handshake failed: as what it is counted, and a clause about the other side.
pub(super) fn explain(error: &Error, own: KeyHash) -> (DriverDrop, String) {
    match error {
        Error::InvalidCertificate(CertificateError::Other(other)) => {
            (DriverDrop::TlsKey, other.to_string())
        }
        Error::NoCertificatesPresented => (DriverDrop::TlsKey, "showed no key".to_owned()),
        Error::AlertReceived(alert) => (
            DriverDrop::TlsHandshake,
            format!(
                "refused this side, whose key is {own} (TLS alert {alert:?}): see who is accepted there"
            ),
        ),
        error => (
            DriverDrop::TlsHandshake,
            format!("does not speak TLS 1.3 with raw public keys as nodes do ({error})"),
        ),
    }
}

/// Algorithms: those of the library's own choice.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn unusable(error: Error) -> String {
    format!("TLS does not work here: {error}")
}

/// Whom this side accepts.
#[derive(Debug)]
struct Accepted(BTreeSet<KeyHash>);

/// A key was shown that is not accepted.
#[derive(Debug)]
struct WrongKey {
    shown: KeyHash,
    accepted: BTreeSet<KeyHash>,
}

impl Accepted {
    fn new(keys: &Keys, wanted: Option<KeyHash>) -> Self {
        Self(wanted.map_or_else(|| keys.peers.clone(), |wanted| BTreeSet::from([wanted])))
    }

    fn check(&self, shown: &CertificateDer<'_>) -> Result<(), Error> {
        let key = public(shown)?.hash();
        if self.0.contains(&key) {
            return Ok(());
        }
        let wrong = WrongKey { shown: key, accepted: self.0.clone() };
        Err(CertificateError::Other(OtherError(Arc::new(wrong))).into())
    }
}

impl fmt::Display for WrongKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "showed the key {}, ", self.shown)?;
        match (self.accepted.len(), self.accepted.first()) {
            (1, Some(key)) => write!(f, "expected {key}"),
            (0, _) => write!(f, "and no key is accepted"),
            (count, _) => write!(f, "which is none of the {count} that are accepted"),
        }
    }
}

impl std::error::Error for WrongKey {}

/// The key in what was shown.
fn public(shown: &CertificateDer<'_>) -> Result<PublicKey, Error> {
    PublicKey::from_spki_der(shown).map_err(|_| CertificateError::BadEncoding.into())
}

/// Checks the signature of the handshake.
fn verify(
    message: &[u8],
    shown: &CertificateDer<'_>,
    signed: &DigitallySignedStruct,
) -> Result<HandshakeSignatureValid, Error> {
    let bad = || Error::from(CertificateError::BadSignature);
    let bytes = signed.signature().try_into().map_err(|_| bad())?;
    if signed.scheme != SignatureScheme::ED25519 {
        return Err(bad());
    }
    let signature = Signature::from_bytes(bytes);
    public(shown)?.verify(message, &signature).map_err(|_| bad())?;
    Ok(HandshakeSignatureValid::assertion())
}

/// Only TLS 1.2 asks for it, which is not spoken.
fn too_old() -> Result<HandshakeSignatureValid, Error> {
    Err(Error::General("TLS 1.2 is not spoken".to_owned()))
}

impl ServerCertVerifier for Accepted {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(shown).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        too_old()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify(message, shown, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for Accepted {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(shown).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        too_old()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify(message, shown, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

/// The key that this side shows.
#[derive(Debug)]
struct Shown(Arc<CertifiedKey>);

impl Shown {
    fn new(own: &PrivateKey) -> Self {
        let public = CertificateDer::from(own.public_key().to_spki_der().to_vec());
        Self(Arc::new(CertifiedKey::new(vec![public], Arc::new(Own(own.clone())))))
    }
}

impl ResolvesClientCert for Shown {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }

    fn only_raw_public_keys(&self) -> bool {
        true
    }

    fn has_certs(&self) -> bool {
        true
    }
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }

    fn only_raw_public_keys(&self) -> bool {
        true
    }
}

/// The private key, as what signs.
#[derive(Clone, Debug)]
struct Own(PrivateKey);

impl SigningKey for Own {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        offered.contains(&SignatureScheme::ED25519).then(|| Box::new(self.clone()) as Box<_>)
    }

    fn public_key(&self) -> Option<SubjectPublicKeyInfoDer<'_>> {
        Some(self.0.public_key().to_spki_der().to_vec().into())
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        SignatureAlgorithm::ED25519
    }
}

impl Signer for Own {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        Ok(self.0.sign(message).to_bytes().to_vec())
    }

    fn scheme(&self) -> SignatureScheme {
        SignatureScheme::ED25519
    }
}

#[cfg(test)]
pub(super) mod testing {
    //! Sides that do not behave.

    use super::*;

    /// Says that it has a key and shows none.
    #[derive(Debug)]
    struct Nothing;

    impl ResolvesClientCert for Nothing {
        fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
            None
        }

        fn only_raw_public_keys(&self) -> bool {
            true
        }

        fn has_certs(&self) -> bool {
            true
        }
    }

    /// A side that connects and shows no key.
    pub(in crate::real) fn without_key(own: &PrivateKey, wanted: KeyHash) -> ClientConnection {
        let keys = Keys { own: own.clone(), peers: BTreeSet::new() };
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Accepted::new(&keys, Some(wanted))))
            .with_client_cert_resolver(Arc::new(Nothing));
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        let name = ServerName::IpAddress(IpAddr::from([127, 0, 0, 1]).into());
        ClientConnection::new(Arc::new(config), name).unwrap()
    }
}
