// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Options for connecting to a live recording.

use std::path::PathBuf;

use clap::Args;
use lateralis_recorder::{Fingerprint, TlsTrust};

/// Credentials for a live recording, and the means to verify it.
#[derive(Debug, Clone, Default, Args)]
pub struct PeerArgs {
    /// Token of the live recording
    #[arg(long, value_name = "SECRET", env = "LATERALIS_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// SHA-256 fingerprint of the live recording's certificate, as the other machine printed it
    #[arg(long, value_name = "SHA256", conflicts_with = "tls_ca")]
    pub fingerprint: Option<Fingerprint>,
    /// Instead of --fingerprint: CA certificates (PEM) to verify the live recording's certificate
    #[arg(long, value_name = "FILE")]
    pub tls_ca: Option<PathBuf>,
}

impl PeerArgs {
    /// Returns the way to verify an encrypted server.
    pub fn trust(&self) -> Option<TlsTrust> {
        let fingerprint = self.fingerprint.map(TlsTrust::Fingerprint);
        fingerprint.or_else(|| self.tls_ca.clone().map(TlsTrust::Authorities))
    }
}
