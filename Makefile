# The two commands the README names are `make demo` and `make test`; CI runs the second and nothing else.

.PHONY: demo demo-down test soak check lab-binaries

# This machine as a host, with one repository on it. As root; asks before it installs anything, unless YES=1.
demo:
	@scripts/demo.sh

# Leaves nothing of the demo behind, and says so after looking.
demo-down:
	@scripts/demo-down.sh

# Everything CI demands: format, lints, every test. The lab runs the programs as they are built first.
test: check lab-binaries
	cargo build --workspace
	cargo test --workspace

# What is too long for every change: mutants, and the lab over and over. Writes docs/soak/COMMIT.md.
soak: check lab-binaries
	scripts/soak.sh

check:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings

# The broker and the proxy the lab runs, pinned by hash, and a broker that is too old; fetched once.
lab-binaries:
	scripts/fetch-lab-binaries.sh
	scripts/fetch-old-broker.sh
