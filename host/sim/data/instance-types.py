"""Writes instance-types.csv: facts of EC2 instance types as DescribeInstanceTypes gives them.

Run with a moto server (pip install 'moto[server,ec2]') or EC2 itself:

    AWS_ENDPOINT_URL=http://127.0.0.1:5000 AWS_REGION=us-east-1 AWS_ACCESS_KEY_ID=x AWS_SECRET_ACCESS_KEY=x \
        python3 instance-types.py > instance-types.csv

Columns are described in the header that it prints; host/sim/src/cloud/table.rs reads them.
"""

import datetime
import os

import boto3

HEADER = """\
# EC2 instance types of us-east-1 that run Linux nodes (hvm, x86_64 or arm64).
# Source: {source}, DescribeInstanceTypes and DescribeInstanceTypeOfferings, taken {date} by instance-types.py.
# Absent = empty. arch: x = x86_64, a = arm64, i = i386, in EC2's order. flags: o = on demand, s = spot, n = NVMe store,
# t = encryption in transit, e = ENA, c = Nitro Enclaves, v = nested virtualisation. zones: letters of us-east-1.
# cards: index:interfaces. gpus: name:manufacturer:count:MiB. accelerators: name:manufacturer:count. neuron: name:count:cores.
name,arch,vcpus,memory_mib,hypervisor,cpu,clock_mhz,flags,ebs_mbps,network_mbps,store_gb,ipv4_per_eni,default_card,cards,efa_max,gpus,accelerators,neuron,zones"""


def text(value):
    return "" if value in (None, 0, 0.0) else str(value)


def row(t, zones):
    cpu, net, mem = t.get("ProcessorInfo", {}), t.get("NetworkInfo", {}), t["MemoryInfo"]
    ebs = t.get("EbsInfo", {})
    store = t.get("InstanceStorageInfo", {})
    classes = t.get("SupportedUsageClasses", [])
    letters = {"x86_64": "x", "arm64": "a", "i386": "i"}
    flags = "".join(
        flag
        for flag, on in [
            ("o", "on-demand" in classes),
            ("s", "spot" in classes),
            ("n", store.get("NvmeSupport", "unsupported") != "unsupported"),
            ("t", net.get("EncryptionInTransitSupported", False)),
            ("e", net.get("EnaSupport") in ("supported", "required")),
            ("c", t.get("NitroEnclavesSupport") == "supported"),
            ("v", "nested-virtualization" in cpu.get("SupportedFeatures", [])),
        ]
        if on
    )
    cards = net.get("NetworkCards", [])
    baseline = [c.get("BaselineBandwidthInGbps") for c in cards]
    mbps = round(sum(baseline) * 1000) if baseline and None not in baseline else None
    clock = cpu.get("SustainedClockSpeedInGhz")
    return ",".join(
        [
            t["InstanceType"],
            "".join(letters.get(a, "") for a in cpu.get("SupportedArchitectures", [])),
            str(t["VCpuInfo"]["DefaultVCpus"]),
            str(mem["SizeInMiB"]),
            t.get("Hypervisor", ""),
            cpu.get("Manufacturer", ""),
            text(round(clock * 1000) if clock else None),
            flags,
            text(ebs.get("EbsOptimizedInfo", {}).get("MaximumBandwidthInMbps") if ebs.get("EbsOptimizedSupport") == "default" else None),
            text(mbps),
            text(store.get("TotalSizeInGB")),
            text(net.get("Ipv4AddressesPerInterface")),
            text(net.get("DefaultNetworkCardIndex")),
            " ".join(f"{c['NetworkCardIndex']}:{c['MaximumNetworkInterfaces']}" for c in cards),
            text(net.get("EfaInfo", {}).get("MaximumEfaInterfaces")),
            " ".join(
                f"{g.get('Name', '').replace(' ', '_')}:{g.get('Manufacturer', '')}:{g.get('Count', 0)}:{g.get('MemoryInfo', {}).get('SizeInMiB', 0)}"
                for g in t.get("GpuInfo", {}).get("Gpus", [])
            ),
            " ".join(
                f"{a.get('Name', '').replace(' ', '_')}:{a.get('Manufacturer', '')}:{a.get('Count', 0)}"
                for a in t.get("InferenceAcceleratorInfo", {}).get("Accelerators", [])
            ),
            " ".join(
                f"{n.get('Name', '').replace(' ', '_')}:{n.get('Count', 0)}:{n.get('CoreInfo', {}).get('Count', 0)}"
                for n in t.get("NeuronInfo", {}).get("NeuronDevices", [])
            ),
            "".join(sorted(zones)),
        ]
    )


def main():
    ec2 = boto3.client("ec2")
    filters = [
        {"Name": "supported-virtualization-type", "Values": ["hvm"]},
        {"Name": "processor-info.supported-architecture", "Values": ["x86_64", "arm64"]},
    ]
    types = [t for page in ec2.get_paginator("describe_instance_types").paginate(Filters=filters) for t in page["InstanceTypes"]]
    zones = {}
    for page in ec2.get_paginator("describe_instance_type_offerings").paginate(LocationType="availability-zone"):
        for offering in page["InstanceTypeOfferings"]:
            zones.setdefault(offering["InstanceType"], set()).add(offering["Location"][-1])
    source = "EC2"
    if os.environ.get("AWS_ENDPOINT_URL"):
        import moto

        source = f"moto {moto.__version__} server"
    print(HEADER.format(source=source, date=datetime.date.today().isoformat()))
    for t in sorted(types, key=lambda t: t["InstanceType"]):
        print(row(t, zones.get(t["InstanceType"], ())))


main()
