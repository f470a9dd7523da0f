//! Ports that containers take of their node (karpenter-algorithms §2.4).

use std::sync::Arc;

use mortise_engine::pod::HostPort;

use super::Converter;
use crate::objects::{Container, PodSpec};

impl Converter {
    /// Host ports of the containers and sidecars, sorted. Other init containers are over before a port could matter to
    /// the scheduler, which does not count theirs either. On the host's network every port is the node's.
    pub(super) fn host_ports(&mut self, spec: &PodSpec, problems: &mut Vec<String>) -> Vec<HostPort> {
        let sidecar = |c: &&Container| c.restart_policy.as_deref() == Some("Always");
        let containers = spec.containers.iter().chain(spec.init_containers.iter().filter(sidecar));
        let mut ports = Vec::new();
        for port in containers.flat_map(|c| &c.ports) {
            let number = match port.host_port {
                None | Some(0) if spec.host_network => port.container_port.unwrap_or_default(),
                number => number.unwrap_or_default(),
            };
            if number == 0 {
                continue;
            }
            let Ok(number) = u16::try_from(number) else {
                problems.push(format!("spec.containers[].ports[].hostPort {number} is not a port (1 to 65535)"));
                continue;
            };
            let protocol = match port.protocol.as_deref() {
                None | Some("") => "TCP",
                Some(protocol) => protocol,
            };
            ports.push(HostPort {
                ip: self.host_ip(port.host_ip.as_deref()),
                port: number,
                protocol: self.strings.get(protocol),
            });
        }
        ports.sort_unstable();
        ports.dedup();
        ports
    }

    /// Empty for every address, however that is written.
    fn host_ip(&mut self, ip: Option<&str>) -> Arc<str> {
        let ip = ip.filter(|ip| !matches!(*ip, "0.0.0.0" | "::")).unwrap_or_default();
        self.strings.get(ip)
    }
}
