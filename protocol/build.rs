//! Generates the wire messages from `proto/` with a compiler written in Rust, so no `protoc` is needed.

use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files = ["envelope", "declaration", "keyring", "enrolment", "event"].map(|name| format!("proto/{name}.proto"));
    let descriptors = protox::compile(&files, ["proto"])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("descriptors.bin"), prost::Message::encode_to_vec(&descriptors))?;
    prost_build::Config::new().btree_map(["."]).bytes(["."]).compile_fds(descriptors)?;
    for file in &files {
        println!("cargo:rerun-if-changed={file}");
    }
    Ok(())
}
