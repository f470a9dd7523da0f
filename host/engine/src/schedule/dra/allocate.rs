//! Allocating a pod's claims on one node or claim, and writing it down.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::ledger::{Held, Holder, Taken, Which};
use super::request::Asked;
use super::search::{Answers, Ground, STEPS, Scene, Search};
use super::stock::Reach;
use super::{Devices, Wanted};
use crate::schedule::existing::ExistingNodes;
use crate::symbol::{SymbolSet, Symbols};

/// Devices found for a pod.
#[derive(Debug)]
pub(super) struct Plan {
    /// By profile; profiles that are not here cannot host the pod.
    pub(super) taken: BTreeMap<u32, Vec<Taken>>,
    /// What is left of the claim's requirements; nothing for a node.
    pub(super) requirements: Option<SymbolSet>,
    /// ResourceClaims by name that get devices now, with their place.
    named: Vec<(Arc<str>, usize)>,
}

impl Devices<'_> {
    /// Gives a pod its devices on a node: on every profile that the node may turn out to have.
    pub(super) fn take(
        &mut self,
        holder: Holder,
        wanted: &[Wanted],
        nodes: &ExistingNodes<'_>,
        at: usize,
        symbols: &Symbols,
    ) -> bool {
        let Some(node) = nodes.nodes.get(at) else { return false };
        let meets = |set: &SymbolSet| nodes.meets(at, set, symbols);
        let ground = Ground::Node(node.source.node_name.clone(), &meets);
        let profiles = self.of_node.get(at).cloned().unwrap_or_default();
        match self.plan(holder, wanted, ground, &profiles, symbols) {
            Some(plan) if plan.taken.len() == profiles.len() => {
                self.commit(holder, plan, symbols);
                true
            }
            _ => false,
        }
    }

    /// Devices for a pod's claims, on each of these profiles that has them.
    pub(super) fn plan(
        &mut self,
        holder: Holder,
        wanted: &[Wanted],
        mut ground: Ground<'_>,
        profiles: &BTreeSet<u32>,
        symbols: &Symbols,
    ) -> Option<Plan> {
        let mut claims: Vec<Arc<Asked>> = Vec::new();
        let mut named: Vec<(Arc<str>, usize)> = Vec::new();
        for claim in wanted {
            match claim {
                Wanted::Own(asked) => claims.push(Arc::clone(asked)),
                Wanted::Settled(name) => {
                    let reach = self.settled.get(name)?;
                    ground = ground.reached(reach, symbols).into_iter().next()?;
                }
                Wanted::Shared(name, asked) => match self.held.get(name) {
                    Some(held) if held.holder == holder => {}
                    Some(held) if held.is_local => return None,
                    Some(held) => {
                        for set in held.requirements.values() {
                            ground = ground.within(set, symbols)?;
                        }
                    }
                    None if named.iter().any(|(known, _)| known == name) => {}
                    None => {
                        named.push((Arc::clone(name), claims.len()));
                        claims.push(Arc::clone(asked));
                    }
                },
            }
        }
        let mut steps = STEPS;
        let mut answers: Answers = std::mem::take(&mut self.answers);
        let mut taken = BTreeMap::new();
        for profile in profiles {
            let Some(own) = self.profiles.get(*profile as usize) else { continue };
            let scene = Scene {
                stock: &self.stock,
                profile: (*profile, own),
                ledger: &self.ledger,
                holder,
                selectors: &self.selectors,
                symbols,
            };
            // What one profile asks of the node the next ones have to live with: the claim has one set of requirements.
            if let Some((found, narrower)) = Search::run(scene, &claims, ground.clone(), &mut answers, &mut steps) {
                taken.insert(*profile, found);
                ground = narrower;
            }
        }
        self.answers = answers;
        let requirements = match ground {
            Ground::Claim(requirements, _) => Some(requirements),
            Ground::Node(..) => None,
        };
        (!taken.is_empty()).then_some(Plan { taken, requirements, named })
    }

    /// Writes a plan down.
    pub(super) fn commit(&mut self, holder: Holder, plan: Plan, symbols: &Symbols) {
        for (name, place) in plan.named {
            let mut held = Held { holder, is_local: false, requirements: BTreeMap::new() };
            for (profile, taken) in &plan.taken {
                let needs = held.requirements.entry(*profile).or_default();
                for one in taken.iter().filter(|one| one.claim == place) {
                    let reach = match one.which {
                        Which::Template(_) => None,
                        Which::Published(at) => self.stock.devices.get(at as usize).map(|entry| &entry.reach),
                    };
                    match reach {
                        Some(Reach::Everywhere) => {}
                        // Of several alternatives any may become true: nobody else can rely on one.
                        Some(Reach::Nodes(sets)) if sets.len() == 1 => {
                            sets.iter().for_each(|set| needs.extend(set, symbols));
                        }
                        _ => held.is_local = true,
                    }
                }
            }
            self.held.insert(name, held);
        }
        self.ledger.take(&self.stock, holder, plan.taken);
    }
}
