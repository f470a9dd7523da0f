# Everything a person types. CONTRIBUTING.md says what each target proves; tools are cached outside the clone.
MORTISE_TOOLS ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/mortise
export MORTISE_TOOLS
CARGO ?= cargo
# One selection of packages and features for everything but the demo and test-fast: another one would build Wasmtime and
# the AWS SDK a second time.
ALL := mortise/aws,mortise-cloud/aws,mortise-sim/kubectl-tests

.PHONY: demo test test-fast test-e2e parity test-oracle bench lint tools deny generate help

help:
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: ## the main job in an embedded cluster: no cloud, no Kubernetes, nothing but Rust and a C compiler
	$(CARGO) run --quiet -p mortise -- demo $(DEMO_ARGS)

test: lint tools ## everything: units, properties, scenarios, hostile guests, moto, kubectl, the real control plane
	$(CARGO) test --workspace --features $(ALL)

test-fast: ## what needs no control plane and no AWS SDK
	$(CARGO) test --quiet

test-e2e: tools ## the built binary on a real control plane and a real AWS API endpoint
	$(CARGO) build --workspace --features $(ALL)
	$(CARGO) test --workspace --features $(ALL) --test e2e

parity: ## SEEDS generated problems through the engine, the independent checker and the real Karpenter (needs Go)
	$(CARGO) run --quiet -p mortise-parity -- --seeds $(or $(SEEDS),500) --from $(or $(FROM),0)

test-oracle: ## the real Karpenter's answers to the problems of tests/parity, in both releases
	cd tests/parity/oracle && GOTOOLCHAIN=go1.27.3 go test -trimpath .
	cd tests/parity/oracle && GOTOOLCHAIN=go1.26.9 go test -trimpath -modfile=../oracle-v1.14/go.mod -tags karpenter_v1_14 .

bench: tools ## the numbers, as ratios measured in one run
	$(CARGO) bench -p mortise-engine
	$(CARGO) bench -p mortise-wasm
	$(CARGO) build --release -p mortise -p mortise-controlplane-tests --bins --no-default-features --features mortise/aws
	$(or $(CARGO_TARGET_DIR),target)/release/bench $(BENCH_ARGS)

bench-plan: ## what plans cost beside a linear-programming bound and Karpenter's
	$(CARGO) run --release -p mortise-plan-price

bench-karpenter: ## the engine beside two releases of the real Karpenter, on the same problems (needs Go; an hour)
	$(CARGO) run --quiet --release -p mortise-parity --bin bench-karpenter
	$(CARGO) run --quiet --release -p mortise-parity --bin bench-karpenter -- --mix topology,affinity,shapes --pods 500,2000,5000
	$(CARGO) run --quiet --release -p mortise-parity --bin bench-karpenter -- --alone --nodes 2000 --running 20000 --pods 500

lint: ## format, clippy, rustdoc, layering, generated files, dependencies
	$(CARGO) fmt --all --check
	$(CARGO) clippy --quiet --workspace --all-targets --features $(ALL) -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --quiet --workspace --no-deps --features $(ALL)
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
