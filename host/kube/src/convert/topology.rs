//! Topology spread, pod affinity and pod anti-affinity (karpenter-algorithms §3.7). What Kubernetes would refuse is a
//! problem of the pod that has it: such a constraint cannot be acted on, and is not left out in silence either.

use std::sync::Arc;

use mortise_api::labels;
use mortise_engine::pod::{PodShape, PodTerm, Spread};
use mortise_engine::requirement::Operator;

use super::Converter;
use super::affinity::qualified_name;
use super::selector::{label_selector, merge_own_labels};
use crate::objects::{Affinity, PodAffinity, PodAffinityTerm, SpreadConstraint};
use crate::record::Map;

impl Converter {
    /// Fills the spread constraints and the rules between pods of a shape that has its labels; returns what is wrong.
    pub(super) fn topology(
        &mut self,
        shape: &mut PodShape,
        spread: &[SpreadConstraint],
        affinity: Option<&Affinity>,
        problems: &mut Vec<String>,
    ) {
        for (i, constraint) in spread.iter().enumerate() {
            let field = format!("spec.topologySpreadConstraints[{i}]");
            match self.spread_of(&field, constraint, &shape.labels) {
                Ok(constraint) => shape.spread.push(constraint),
                Err(problem) => problems.push(problem),
            }
        }
        let Some(affinity) = affinity else { return };
        for (name, rules, required, preferred) in [
            ("podAffinity", &affinity.pod_affinity, &mut shape.pod_affinity, &mut shape.preferred_pod_affinity),
            (
                "podAntiAffinity",
                &affinity.pod_anti_affinity,
                &mut shape.pod_anti_affinity,
                &mut shape.preferred_pod_anti_affinity,
            ),
        ] {
            if let Some(rules) = rules {
                self.pod_terms(name, rules, &shape.labels, (required, preferred), problems);
            }
        }
    }

    fn pod_terms(
        &mut self,
        name: &str,
        rules: &PodAffinity,
        own: &Map,
        (required, preferred): (&mut Vec<PodTerm>, &mut Vec<(i32, PodTerm)>),
        problems: &mut Vec<String>,
    ) {
        for (i, term) in rules.required.iter().enumerate() {
            let field = format!("spec.affinity.{name}.requiredDuringSchedulingIgnoredDuringExecution[{i}]");
            match self.pod_term(&field, term, own) {
                Ok(term) => required.push(term),
                Err(problem) => problems.push(problem),
            }
        }
        for (i, weighted) in rules.preferred.iter().enumerate() {
            let field = format!("spec.affinity.{name}.preferredDuringSchedulingIgnoredDuringExecution[{i}]");
            match self.pod_term(&field, &weighted.pod_affinity_term, own) {
                Ok(term) => preferred.push((weighted.weight, term)),
                Err(problem) => problems.push(problem),
            }
        }
    }

    fn topology_key(&mut self, field: &str, key: &str) -> Result<Arc<str>, String> {
        if qualified_name(key) {
            Ok(self.strings.get(labels::normalize(key)))
        } else {
            Err(format!("{field}.topologyKey: {key:?} is not a label key; write name or domain/name"))
        }
    }

    /// A constraint that belongs to no pod yet, so that `matchLabelKeys` asks for nothing. `field` begins the message.
    ///
    /// # Errors
    /// What Kubernetes would refuse in a pod.
    pub fn spread(&mut self, field: &str, from: &SpreadConstraint) -> Result<Spread, String> {
        self.spread_of(field, from, &Map::new())
    }

    fn spread_of(&mut self, field: &str, from: &SpreadConstraint, own: &Map) -> Result<Spread, String> {
        let positive = |name: &str, number: i64| {
            let fits = u32::try_from(number).ok().filter(|n| *n > 0);
            fits.ok_or_else(|| format!("{field}.{name} is {number}; it must be a positive number"))
        };
        let honor = |name: &str, value: Option<&str>, default: bool| match value {
            None | Some("") => Ok(default),
            Some("Honor") => Ok(true),
            Some("Ignore") => Ok(false),
            Some(other) => Err(format!("{field}.{name} {other:?} is unknown; use Honor or Ignore")),
        };
        let schedule_anyway = match from.when_unsatisfiable.as_str() {
            "DoNotSchedule" => false,
            "ScheduleAnyway" => true,
            other => {
                return Err(format!(
                    "{field}.whenUnsatisfiable {other:?} is unknown; use DoNotSchedule or ScheduleAnyway"
                ));
            }
        };
        let mut spread = Spread {
            topology_key: self.topology_key(field, &from.topology_key)?,
            max_skew: positive("maxSkew", from.max_skew)?,
            schedule_anyway,
            selector: None,
            min_domains: from.min_domains.map(|n| positive("minDomains", n)).transpose()?,
            ignore_node_affinity: !honor("nodeAffinityPolicy", from.node_affinity_policy.as_deref(), true)?,
            honor_node_taints: honor("nodeTaintsPolicy", from.node_taints_policy.as_deref(), false)?,
        };
        if let Some(selector) = &from.label_selector {
            let mut selector = label_selector(&mut self.strings, &format!("{field}.labelSelector"), selector)?;
            merge_own_labels(&mut self.strings, &mut selector, &from.match_label_keys, Operator::In, own);
            spread.selector = Some(selector);
        }
        Ok(spread)
    }

    fn pod_term(&mut self, field: &str, from: &PodAffinityTerm, own: &Map) -> Result<PodTerm, String> {
        let mut namespaces: Vec<Arc<str>> = from.namespaces.iter().map(|name| self.strings.get(name)).collect();
        namespaces.sort_unstable();
        namespaces.dedup();
        let mut term =
            PodTerm { topology_key: self.topology_key(field, &from.topology_key)?, namespaces, ..PodTerm::default() };
        if let Some(selector) = &from.label_selector {
            let mut selector = label_selector(&mut self.strings, &format!("{field}.labelSelector"), selector)?;
            merge_own_labels(&mut self.strings, &mut selector, &from.match_label_keys, Operator::In, own);
            merge_own_labels(&mut self.strings, &mut selector, &from.mismatch_label_keys, Operator::NotIn, own);
            term.selector = Some(selector);
        }
        if let Some(selector) = &from.namespace_selector {
            let field = format!("{field}.namespaceSelector");
            term.namespace_selector = Some(label_selector(&mut self.strings, &field, selector)?);
        }
        Ok(term)
    }
}
