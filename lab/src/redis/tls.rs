//! Certificates for servers on 127.0.0.1: made anew for each, or for all nodes of a cluster.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;
use p256::{
    ecdsa::{Signature, SigningKey, signature::Signer as _},
    elliptic_curve::rand_core::OsRng,
    pkcs8::{EncodePrivateKey as _, LineEnding},
};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyIdMethod, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PublicKeyData, SanType, SerialNumber,
    SignatureAlgorithm, date_time_ymd,
};

/// A certificate for 127.0.0.1 and `localhost`, its key, and the authority that signed it, in files.
#[derive(Clone, Debug)]
pub(super) struct Certificates {
    authority: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
}

impl Certificates {
    /// Makes all three, and writes them to a folder.
    pub(super) fn create(folder: &Path) -> Result<Self> {
        let files = Self {
            authority: folder.join("ca.pem"),
            certificate: folder.join("redis.pem"),
            key: folder.join("redis.key"),
        };
        let authority_key = Key::generate();
        let authority = authority(&authority_key)?;
        fs::write(&files.authority, authority.self_signed(&authority_key)?.pem())?;
        let key = Key::generate();
        let issuer = Issuer::new(authority, authority_key);
        fs::write(&files.certificate, server(&key)?.signed_by(&key, &issuer)?.pem())?;
        fs::write(&files.key, key.secret.to_pkcs8_pem(LineEnding::LF)?.as_bytes())?;
        Ok(files)
    }
}

/// The TLS side of a server.
#[derive(Clone, Debug)]
pub struct Tls {
    address: SocketAddr,
    files: Certificates,
}

impl Tls {
    /// The name that the certificate is for, beside 127.0.0.1.
    pub const NAME: &str = "localhost";

    pub(super) const fn new(address: SocketAddr, files: Certificates) -> Self {
        Self { address, files }
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The file, in PEM, with the certificate of the authority that a client has to trust.
    #[must_use]
    pub fn authority(&self) -> &Path {
        &self.files.authority
    }

    pub(super) fn add_to(&self, command: &mut Command) {
        command.args(["--tls-port", &self.address.port().to_string()]);
        command.args(["--tls-auth-clients", "no"]);
        command.arg("--tls-cert-file").arg(&self.files.certificate);
        command.arg("--tls-key-file").arg(&self.files.key);
        command.arg("--tls-ca-cert-file").arg(&self.files.authority);
    }
}

fn authority(key: &Key) -> Result<CertificateParams> {
    let mut params = params("Weir lab authority", key, 1)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(params)
}

fn server(key: &Key) -> Result<CertificateParams> {
    let mut params = params("Weir lab Redis", key, 2)?;
    params.subject_alt_names = vec![
        SanType::IpAddress(Ipv4Addr::LOCALHOST.into()),
        SanType::DnsName(Tls::NAME.try_into()?),
    ];
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    // Of two nodes of a cluster one is the client, and the other asks for its certificate.
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}

fn params(name: &str, key: &Key, number: u64) -> Result<CertificateParams> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.push(DnType::CommonName, name);
    params.serial_number = Some(SerialNumber::from(number));
    // Any identifier will do that differs from key to key: the first bytes of its coordinate.
    let identifier = key.public.iter().skip(1).take(20).copied().collect();
    params.key_identifier_method = KeyIdMethod::PreSpecified(identifier);
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2099, 1, 1);
    Ok(params)
}

/// A key pair of the system's randomness.
struct Key {
    secret: SigningKey,
    /// The point, uncompressed.
    public: Vec<u8>,
}

impl Key {
    fn generate() -> Self {
        let secret = SigningKey::random(&mut OsRng);
        let public = secret.verifying_key().to_encoded_point(false).as_bytes().to_vec();
        Self { secret, public }
    }
}

impl PublicKeyData for Key {
    fn der_bytes(&self) -> &[u8] {
        &self.public
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ECDSA_P256_SHA256
    }
}

impl rcgen::SigningKey for Key {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        let signature: Signature =
            self.secret.try_sign(message).map_err(|_| rcgen::Error::RemoteKeyError)?;
        Ok(signature.to_der().as_bytes().to_vec())
    }
}
