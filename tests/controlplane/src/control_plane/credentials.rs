//! Keys, tokens and kubeconfigs of a control plane that lives for one test run.

use anyhow::{Context, Result, anyhow};
use aws_lc_rs::encoding::{AsDer, EcPrivateKeyRfc5915Der, PublicKeyX509Der};
use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use std::fmt::Write as _;

/// The key pair that signs ServiceAccount tokens, in the PEM forms that the API server reads.
#[derive(Debug)]
pub(super) struct SigningKey {
    pub private_pem: String,
    pub public_pem: String,
}

impl SigningKey {
    pub(super) fn generate() -> Result<Self> {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING)
            .map_err(|_| anyhow!("generating the key that signs ServiceAccount tokens"))?;
        let private: EcPrivateKeyRfc5915Der<'_> =
            pair.private_key().as_der().map_err(|_| anyhow!("encoding the signing key"))?;
        let public: PublicKeyX509Der<'_> =
            pair.public_key().as_der().map_err(|_| anyhow!("encoding the signing key"))?;
        Ok(Self {
            private_pem: pem("EC PRIVATE KEY", private.as_ref()),
            public_pem: pem("PUBLIC KEY", public.as_ref()),
        })
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    let body = STANDARD.encode(der);
    let mut text = format!("-----BEGIN {label}-----\n");
    for line in body.as_bytes().chunks(64) {
        writeln!(text, "{}", String::from_utf8_lossy(line)).ok();
    }
    writeln!(text, "-----END {label}-----").ok();
    text
}

/// A bearer token of 192 random bits.
pub(super) fn token() -> Result<String> {
    let mut bytes = [0_u8; 24];
    SystemRandom::new().fill(&mut bytes).map_err(|_| anyhow!("no randomness for a token"))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// A kubeconfig for `server` with the certificate authority in PEM and a bearer token.
///
/// # Errors
/// Serialisation fails.
pub fn kubeconfig(server: &str, ca_pem: &str, user: &str, token: &str) -> Result<String> {
    serde_json::to_string_pretty(&serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {
            "server": server,
            "certificate-authority-data": STANDARD.encode(ca_pem),
        }}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
        "current-context": "test",
    }))
    .context("writing a kubeconfig")
}
