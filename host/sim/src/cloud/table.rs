//! The embedded table of instance types.

use std::sync::LazyLock;

use mortise_cloud::catalog_build::{Accelerator, Gpu, NetworkCard, NeuronDevice, TypeRow};

static CSV: &str = include_str!("../../data/instance-types.csv");

/// A type and the zones it is sold in, as letters.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) facts: TypeRow,
    pub(super) zones: String,
}

/// All types, sorted by name.
pub(super) static TABLE: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let mut rows: Vec<Row> = CSV.lines().filter_map(row).collect();
    rows.sort_by(|a, b| a.facts.name.cmp(&b.facts.name));
    rows
});

/// One line; comments, the heading and lines of another form give nothing (a test holds the count).
fn row(line: &str) -> Option<Row> {
    let columns: Vec<&str> = line.split(',').collect();
    let [
        name,
        arch,
        vcpus,
        memory,
        hypervisor,
        cpu,
        clock,
        flags,
        ebs,
        network,
        store,
        ipv4,
        default_card,
        cards,
        efa,
        gpus,
        accelerators,
        neuron,
        zones,
    ] = columns.as_slice()
    else {
        return None;
    };
    let architectures = arch.chars().map(|c| match c {
        'x' => "x86_64",
        'a' => "arm64",
        _ => "i386",
    });
    let has = |flag: char| flags.contains(flag);
    let facts = TypeRow {
        name: (*name).to_owned(),
        architectures: architectures.map(str::to_owned).collect(),
        vcpus: vcpus.parse().ok()?,
        memory_mib: memory.parse().ok()?,
        hypervisor: (*hypervisor).to_owned(),
        cpu_manufacturer: (*cpu).to_owned(),
        clock_mhz: clock.parse().ok(),
        on_demand: has('o'),
        spot: has('s'),
        ebs_mbps: ebs.parse().ok(),
        network_mbps: network.parse().ok(),
        instance_store_gb: store.parse().ok(),
        nvme: has('n'),
        encryption_in_transit: has('t'),
        ipv4_per_eni: ipv4.parse().unwrap_or_default(),
        default_card: default_card.parse().unwrap_or_default(),
        cards: list(cards, |p| Some(NetworkCard { index: number(p, 0)?, interfaces: number(p, 1)? })),
        efa_max: efa.parse().unwrap_or_default(),
        ena: has('e'),
        gpus: list(gpus, |p| {
            Some(Gpu {
                name: word(p, 0)?,
                manufacturer: word(p, 1)?,
                count: number(p, 2)?,
                memory_mib: number(p, 3)?.into(),
            })
        }),
        accelerators: list(accelerators, |p| {
            Some(Accelerator { name: word(p, 0)?, manufacturer: word(p, 1)?, count: number(p, 2)? })
        }),
        neuron: list(neuron, |p| Some(NeuronDevice { name: word(p, 0)?, count: number(p, 1)?, cores: number(p, 2)? })),
        enclaves: has('c'),
        nested_virtualization: has('v'),
        placement_strategies: Vec::new(),
    };
    Some(Row { facts, zones: (*zones).to_owned() })
}

fn list<T>(text: &str, item: impl Fn(&[&str]) -> Option<T>) -> Vec<T> {
    text.split_whitespace().filter_map(|part| item(&part.split(':').collect::<Vec<_>>())).collect()
}

fn number(parts: &[&str], at: usize) -> Option<u32> {
    parts.get(at)?.parse().ok()
}

fn word(parts: &[&str], at: usize) -> Option<String> {
    parts.get(at).map(|text| text.replace('_', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_table_is_read() {
        let lines = CSV.lines().filter(|l| !l.starts_with('#')).count();
        assert_eq!(TABLE.len() + 1, lines, "one heading and the rows");
        let large = TABLE.iter().find(|r| r.facts.name == "m5.large").unwrap();
        assert_eq!((large.facts.vcpus, large.facts.memory_mib, large.facts.ipv4_per_eni), (2, 8192, 10));
        assert_eq!(large.facts.cards, [NetworkCard { index: 0, interfaces: 3 }]);
        assert!(large.facts.spot && large.facts.on_demand && large.facts.is_usable() && large.zones.contains('a'));
        let gpu = TABLE.iter().find(|r| r.facts.name == "g5.xlarge").unwrap();
        assert_eq!((gpu.facts.gpus[0].name.as_str(), gpu.facts.gpus[0].count), ("A10G", 1));
    }
}
