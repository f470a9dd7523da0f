//! `cargo xtask crdgen`: the CRDs as templates of charts/mortise-crd, and as they are in charts/mortise/crds, from where Helm
//! installs them with the first release and never touches them again.

use anyhow::{Context, Result, bail};
use mortise_api::crd;
use serde_json::Value;

use crate::files::{self, Generated};

/// Where the templates lie.
const TEMPLATES: &str = "charts/mortise-crd/templates";
/// Where the plain ones lie.
const PLAIN: &str = "charts/mortise/crds";
/// First line of each.
const HEADER: &str = "# Made from host/api by `cargo xtask crdgen`. Do not edit.\n";
/// What fills the annotations of every CRD: the chart's own value. A placeholder in the YAML marks the place.
const ANNOTATIONS: &str = "  annotations:\n    {{- with .Values.additionalAnnotations }}\n    {{- toYaml . | nindent 4 }}\n    {{- end }}\n    mortise.dev/crd-version: {{ .Chart.AppVersion | quote }}\n";

/// Arguments.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Change nothing; fail if a file differs from what would be written.
    #[arg(long)]
    check: bool,
}

/// Writes or checks the templates.
pub(crate) fn run(args: &Args) -> Result<()> {
    let files = generate()?;
    if args.check { files::check(&files, "cargo xtask crdgen") } else { files::write(&files) }
}

/// The files: each CRD as a template and plain.
fn generate() -> Result<Vec<Generated>> {
    let mut files = Vec::new();
    for crd in crd::all().context("making the CRDs")? {
        files.extend(both(&whole(serde_json::to_value(crd)?))?);
    }
    Ok(files)
}

/// Bounds of schemas are floating-point in the type; as YAML they read better as what they are.
fn whole(value: Value) -> Value {
    match value {
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, whole(value))).collect(),
        Value::Array(list) => list.into_iter().map(whole).collect(),
        Value::Number(number) => match number.as_f64() {
            // Exact: the bounds are far below 2^53.
            #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and small")]
            Some(float) if !number.is_i64() && float.fract() == 0.0 && float.abs() < 1e15 => (float as i64).into(),
            _ => number.into(),
        },
        other => other,
    }
}

/// One CRD twice: `apiVersion`, `kind` and `metadata` by hand, the rest as YAML in which Helm finds nothing to do.
fn both(crd: &Value) -> Result<[Generated; 2]> {
    let name = crd.pointer("/metadata/name").and_then(Value::as_str).context("a CRD has a name")?;
    let spec = serde_norway::to_string(&serde_json::json!({"spec": crd.get("spec")}))?;
    if spec.contains("{{") {
        bail!("{name}: the schema contains {{{{, which Helm would take for a template");
    }
    let head = format!(
        "{HEADER}apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: {name}\n"
    );
    // karpenter.sh_nodepools.yaml, as everybody names these files.
    let (plural, group) = name.split_once('.').context("a CRD is named plural.group")?;
    let file = |folder: &str, annotations: &str| Generated {
        path: format!("{folder}/{group}_{plural}.yaml"),
        text: format!("{head}{annotations}{spec}"),
    };
    Ok([file(PLAIN, ""), file(TEMPLATES, ANNOTATIONS)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_templates_are_what_the_types_say() {
        files::check(&generate().unwrap(), "cargo xtask crdgen").unwrap();
    }

    #[test]
    fn the_spec_survives_as_yaml() {
        let crds = crd::all().unwrap();
        for (crd, file) in crds.iter().flat_map(|crd| [crd, crd]).zip(generate().unwrap()) {
            let at = file.text.find("\nspec:").unwrap();
            let back: Value = serde_norway::from_str(&file.text[at..]).unwrap();
            assert_eq!(back["spec"], whole(serde_json::to_value(&crd.spec).unwrap()), "{}", file.path);
        }
    }
}
