# The two commands the README names; CI runs `make test` and nothing else.

.PHONY: test check

# Everything CI demands: format, lints, every test.
test: check
	cargo test --workspace

check:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
