"""Writes protobuf.txt: field numbers of the Kubernetes messages that kubectl sends in protobuf.

    python3 protobuf.py $(go env GOMODCACHE)/k8s.io v0.36.3 > protobuf.txt

It reads the generated.proto files of the modules k8s.io/api and k8s.io/apimachinery and follows the messages from the
kinds in ROOTS. The format is described in the header; host/sim/src/apiserver/protobuf.rs reads it.
"""

import pathlib
import re
import sys

ROOTS = """core.v1: Binding ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume PersistentVolumeClaim Pod
PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount
apps.v1: ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet
authentication.v1: SelfSubjectReview TokenRequest
authorization.v1: SelfSubjectAccessReview
autoscaling.v1: Scale
autoscaling.v2: HorizontalPodAutoscaler
batch.v1: CronJob Job
coordination.v1: Lease
discovery.v1: EndpointSlice
events.v1: Event
networking.v1: Ingress NetworkPolicy
policy.v1: Eviction PodDisruptionBudget
rbac.v1: ClusterRole ClusterRoleBinding Role RoleBinding
scheduling.v1: PriorityClass
storage.v1: CSIDriver CSINode StorageClass VolumeAttachment
meta.v1: DeleteOptions"""

# Go embeds these structs, so JSON has their fields in the outer object.
INLINE = {
    "volumeSource", "persistentVolumeSource", "ephemeralContainerCommon", "handler", "localObjectReference",
}
NOT_INLINE = {("PersistentVolumeSpec", "volumeSource")}

HEADER = """\
# Field numbers of Kubernetes {version} messages, from the generated.proto files of k8s.io/api and k8s.io/apimachinery,
# by protobuf.py. One message a line: NAME FIELD:NUMBER:TYPE ... with types s string, b bool, i integer, d double,
# y bytes, or a message; [] before = repeated, {{}} before = map from strings, ! before = inlined in the outer object."""

SCALARS = {"string": "s", "bool": "b", "int32": "i", "int64": "i", "uint32": "i", "uint64": "i", "bytes": "y", "double": "d"}
PREFIXES = {
    "k8s.io.apimachinery.pkg.apis.meta.v1.": "meta.v1.",
    "k8s.io.apimachinery.pkg.util.intstr.": "intstr.",
    "k8s.io.apimachinery.pkg.api.resource.": "resource.",
    "k8s.io.apimachinery.pkg.runtime.": "runtime.",
    "k8s.io.api.": "",
}


def short(name):
    name = name.lstrip(".")
    for prefix, replacement in PREFIXES.items():
        if name.startswith(prefix):
            return replacement + name[len(prefix):]
    return name


def parse(path, messages):
    text = path.read_text()
    package = short(re.search(r"^package (\S+);", text, re.M).group(1) + ".").rstrip(".")
    for name, body in re.findall(r"^message (\w+) \{\n(.*?)^\}", text, re.M | re.S):
        fields = []
        for line in body.splitlines():
            m = re.match(r"\s*(optional|repeated|required)\s+(\S+)\s+(\w+) = (\d+);", line)
            if m:
                kind = SCALARS.get(m[2]) or (short(m[2]) if m[2].startswith(".") else f"{package}.{m[2]}")
                fields.append(("[]" if m[1] == "repeated" else "", m[3], int(m[4]), kind))
            m = re.match(r"\s*map<string, (\S+)> (\w+) = (\d+);", line)
            if m:
                kind = SCALARS.get(m[1]) or (short(m[1]) if m[1].startswith(".") else f"{package}.{m[1]}")
                fields.append(("{}", m[2], int(m[3]), kind))
        messages[f"{package}.{name}"] = fields


def main():
    root, version = pathlib.Path(sys.argv[1]), sys.argv[2]
    messages = {}
    for module in ("api", "apimachinery"):
        for path in (root / f"{module}@{version}").rglob("generated.proto"):
            if "testing" not in path.parts and "testapigroup" not in path.parts:
                parse(path, messages)
    todo = []
    for line in re.split(r"\n(?=\S+: )", ROOTS):
        package, kinds = line.split(": ", 1)
        todo += [f"{package}.{kind}" for kind in kinds.split()]
    seen = set()
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        todo += [kind for _, _, _, kind in messages[name] if len(kind) > 1]
    print(HEADER.format(version=version))
    for name in sorted(seen):
        parts = []
        for repeat, field, number, kind in messages[name]:
            inline = field in INLINE and len(kind) > 1 and kind.rsplit(".", 1)[1][0].isupper()
            inline = inline and kind.rsplit(".", 1)[1].lower() in (field.lower(), "probehandler") and not (
                field == "localObjectReference" and kind.rsplit(".", 1)[1] != "LocalObjectReference"
            )
            parts.append(f"{field}:{number}:{'!' if inline else ''}{repeat}{kind}")
        print(name, *parts)


main()
