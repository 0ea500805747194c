//! The `replicator-host-agent` command: everything it does stands in the library.

fn main() -> std::process::ExitCode {
    // One TLS provider for the whole process; only a second installation could fail, and this is the first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    replicator_host_agent::cli::main()
}
