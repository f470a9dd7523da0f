#!/usr/bin/env bash
# Builds and installs the real components that the end-to-end tests run on, once per machine:
#   kubernetes  etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kubectl in one binary (tests/controlplane/kubernetes)
#   kwok        the kubelets of nodes that have no machine
#   helm        installs the charts as a user would
#   moto        an AWS API endpoint (a Python virtual environment)
# Needs Go, Python 3 with venv, and nothing else. Every tool has a stamp that names what it was built from, so a second run
# only compares stamps. Prints the cache directory as its last line.
#
# usage: tests/tools.sh [kubernetes|kwok|helm|moto|karpenter|parity|cargo-deny]...   (default: the first four, which the tests want)
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${MORTISE_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/mortise}
bin=$cache/bin

KUBERNETES=v1.36.3
KWOK=v0.8.0
HELM=v3.22.0
MOTO=5.2.5
KARPENTER=v1.15.0
KARPENTER_GO=go1.27.3
KARPENTER_BEFORE_GO=go1.26.9
CARGO_DENY=0.20.2

say() { printf 'tools: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }
need() { command -v "$1" >/dev/null 2>&1 || fail "$1 is not installed: $2"; }

# fresh NAME WHAT: true if NAME was built from WHAT and its stamp still says so.
fresh() { [ -e "$cache/$1.stamp" ] && [ "$(cat "$cache/$1.stamp")" = "$2" ]; }
stamp() { printf '%s\n' "$2" >"$cache/$1.stamp"; }

go_version() { go env GOVERSION; }

kubernetes() {
  local source=$here/controlplane/kubernetes what
  need go "install Go 1.26 or newer (it builds the control plane)"
  what="$(cat "$source/go.sum" "$source/go.mod" "$source/main.go" | sha256sum | cut -d' ' -f1) $(go_version)"
  if [ -x "$bin/kubernetes" ] && fresh kubernetes "$what"; then return; fi
  say "building the Kubernetes control plane $KUBERNETES (about six minutes on two cores, once)"
  (cd "$source" && go build -mod=readonly -trimpath -ldflags "-s -w \
    -X k8s.io/component-base/version.gitVersion=$KUBERNETES \
    -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36" -o "$bin/kubernetes.new" .)
  mv "$bin/kubernetes.new" "$bin/kubernetes"
  stamp kubernetes "$what"
}

# installed NAME PACKAGE VERSION
installed() {
  need go "install Go 1.26 or newer (it builds $1)"
  local what="$2@$3 $(go_version)"
  if [ -x "$bin/$1" ] && fresh "$1" "$what"; then return; fi
  say "building $1 $3"
  GOBIN=$bin go install -trimpath -ldflags "-s -w" "$2@$3"
  stamp "$1" "$what"
}

kwok() { installed kwok sigs.k8s.io/kwok/cmd/kwok $KWOK; }
helm() { installed helm helm.sh/helm/v3/cmd/helm $HELM; }

moto() {
  need python3 "install Python 3.10 or newer with the venv module (it runs the AWS endpoint)"
  local what="moto==$MOTO $(python3 -V)"
  if [ -x "$cache/moto/bin/moto_server" ] && fresh moto "$what"; then return; fi
  say "installing moto $MOTO"
  rm -rf "$cache/moto"
  python3 -m venv "$cache/moto" || fail "python3 -m venv failed: install the venv module (python3-venv on Debian)"
  "$cache/moto/bin/pip" install -q --disable-pip-version-check "moto[server,ec2,ssm,iam,sqs,eks]==$MOTO"
  stamp moto "$what"
}

# The original that `make bench` measures beside ours: a program of its own, built from its published module.
karpenter() {
  need go "install Go 1.26 or newer (it builds karpenter)"
  local source=$here/controlplane/karpenter what module
  what="$(cat "$source/go.sum" "$source/go.mod" | sha256sum | cut -d' ' -f1) $KARPENTER"
  if [ -x "$bin/karpenter-kwok" ] && fresh karpenter "$what"; then return; fi
  say "building karpenter $KARPENTER with its KWOK provider"
  # It wants a newer Go than the rest, which Go fetches as a module.
  local -x GOTOOLCHAIN=$KARPENTER_GO
  (cd "$source" && go build -mod=readonly -trimpath -ldflags "-s -w" -o "$bin/karpenter-kwok.new" sigs.k8s.io/karpenter/kwok)
  mv "$bin/karpenter-kwok.new" "$bin/karpenter-kwok"
  rm -rf "$cache/karpenter-crds" && mkdir -p "$cache/karpenter-crds"
  module=$(cd "$source" && go list -mod=readonly -m -f '{{.Dir}}' sigs.k8s.io/karpenter)
  cp "$module"/kwok/charts/crds/*.yaml "$module"/kwok/apis/crds/*.yaml "$cache/karpenter-crds/"
  chmod -R u+w "$cache/karpenter-crds"
  stamp karpenter "$what"
}

# The scheduler of the original, as a program that answers the problems of tests/parity, and the one of its release before
# as a second yardstick: the same sources with the modules of oracle-v1.14.
parity() {
  oracle oracle "$here/parity/oracle/go.mod" $KARPENTER_GO ""
  oracle oracle-v1.14 "$here/parity/oracle-v1.14/go.mod" $KARPENTER_BEFORE_GO karpenter_v1_14
}

# oracle NAME MODFILE GO TAGS
oracle() {
  need go "install Go 1.26 or newer (it builds $1)"
  local source=$here/parity/oracle what
  what="$(find "$source" -name '*.go' ! -name '*_test.go' | sort | xargs cat "$2" "${2%.mod}.sum" | sha256sum | cut -d' ' -f1) $3"
  if [ -x "$bin/$1" ] && fresh "$1" "$what"; then return; fi
  say "building $1 with $(grep -o 'sigs.k8s.io/karpenter v[0-9.]*' "$2") (minutes, once)"
  local -x GOTOOLCHAIN=$3
  (cd "$source" && go build -mod=readonly -modfile="$2" -tags "$4" -trimpath -ldflags "-s -w" -o "$bin/$1.new" .)
  mv "$bin/$1.new" "$bin/$1"
  stamp "$1" "$what"
}

# Licences and dependency rules (`make deny`).
cargo-deny() {
  need cargo "install Rust"
  local what="cargo-deny $CARGO_DENY"
  if [ -x "$bin/cargo-deny" ] && fresh cargo-deny "$what"; then return; fi
  say "building $what"
  # Unoptimised: it runs for seconds, and builds in a third of the time.
  CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=false CARGO_PROFILE_RELEASE_DEBUG=false \
    cargo install --quiet --locked --root "$cache" --version "$CARGO_DENY" cargo-deny
  stamp cargo-deny "$what"
}

mkdir -p "$bin"
# One builder at a time: parallel test binaries ask for the same tools.
exec 9>"$cache/.lock"
flock 9
if [ $# -eq 0 ]; then set -- kubernetes kwok helm moto; fi
for tool in "$@"; do
  case $tool in
    kubernetes | kwok | helm | moto | karpenter | parity | cargo-deny) "$tool" ;;
    *) fail "unknown tool $tool: want kubernetes, kwok, helm, moto, karpenter, parity or cargo-deny" ;;
  esac
done
printf '%s\n' "$cache"
