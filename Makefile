# Everything a person types. CONTRIBUTING.md says what each target proves; tools are cached outside the clone.
MORTISE_TOOLS ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/mortise
export MORTISE_TOOLS
CARGO ?= cargo

.PHONY: demo test test-fast test-e2e bench lint tools deny generate help

help:
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: ## the main job in an embedded cluster: no cloud, no Kubernetes, nothing but Rust and a C compiler
	$(CARGO) run --quiet -p mortise -- demo $(DEMO_ARGS)

test: lint test-fast test-e2e ## everything

test-fast: ## what needs no control plane
	$(CARGO) test --quiet

test-e2e: tools ## the built binary on a real control plane and a real AWS API endpoint
	$(CARGO) build -p mortise --features aws
	$(CARGO) test -p mortise-cloud --features aws
	$(CARGO) test -p mortise-sim --features kubectl-tests
	$(CARGO) test -p mortise-controlplane-tests

bench: tools ## the numbers, as ratios measured in one run
	$(CARGO) bench -p mortise-engine
	$(CARGO) bench -p mortise-wasm
	$(CARGO) build --release -p mortise --features aws
	$(CARGO) run --release -p mortise-controlplane-tests --bin bench

lint: ## format, clippy, rustdoc, layering, generated files, dependencies
	$(CARGO) fmt --all --check
	$(CARGO) clippy --quiet --workspace --all-targets --features mortise/aws -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --quiet --workspace --no-deps --features mortise/aws
	$(CARGO) xtask layering
	$(CARGO) xtask crdgen --check
	$(CARGO) xtask chart --check

deny: ## licences, sources and bans of dependencies
	tests/tools.sh cargo-deny
	$(MORTISE_TOOLS)/bin/cargo-deny check bans licenses sources

generate: ## CRD YAML from the types
	$(CARGO) xtask crdgen

tools: ## control plane, KWOK, Helm and moto, built once per machine
	tests/tools.sh
