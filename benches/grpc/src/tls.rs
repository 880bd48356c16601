//! Keys and certificates for both sides, made for one run: gRPC with mutual TLS, as nodes have it.
//!
//! Reference: RFC 5280. The keys are of Ed25519, as those of nodes are.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, PKCS_ED25519};
use tonic::transport::{Certificate, ClientTlsConfig, Identity, ServerTlsConfig};

use crate::Failure;

/// What the server is called.
const NAME: &str = "server.weft.test";

/// What both sides show, and whom they accept.
pub(crate) fn both() -> Result<(ServerTlsConfig, ClientTlsConfig), Failure> {
    let key = KeyPair::generate_for(&PKCS_ED25519)?;
    let mut authority = CertificateParams::new(Vec::new())?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = Certificate::from_pem(authority.self_signed(&key)?.pem());
    let issuer = Issuer::new(authority, key);
    let identity = |name: &str| -> Result<Identity, Failure> {
        let key = KeyPair::generate_for(&PKCS_ED25519)?;
        let params = CertificateParams::new(vec![name.to_owned()])?;
        let certificate = params.signed_by(&key, &issuer)?;
        Ok(Identity::from_pem(certificate.pem(), key.serialize_pem()))
    };
    let server = ServerTlsConfig::new().identity(identity(NAME)?).client_ca_root(root.clone());
    let client = ClientTlsConfig::new()
        .identity(identity("client.weft.test")?)
        .ca_certificate(root)
        .domain_name(NAME);
    Ok((server, client))
}
