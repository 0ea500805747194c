# The two commands the README names; CI runs `make test` and nothing else.

.PHONY: test check lab-binaries

# Everything CI demands: format, lints, every test. The lab runs the programs as they are built first.
test: check lab-binaries
	cargo build --workspace
	cargo test --workspace

check:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings

# The broker and the proxy the lab runs, pinned by hash; fetched once.
lab-binaries:
	scripts/fetch-lab-binaries.sh
