{{/* The name in labels: what selectors written for Karpenter look for. */}}
{{- define "mortise.name" -}}
{{- default "karpenter" .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* The name of the objects. */}}
{{- define "mortise.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if or (contains "karpenter" .Release.Name) (contains "mortise" .Release.Name) }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-mortise" .Release.Name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "mortise.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "mortise.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- required "serviceAccount.create is false: give serviceAccount.name, the account that exists" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "mortise.selectorLabels" -}}
app.kubernetes.io/name: {{ include "mortise.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "mortise.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "mortise.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: mortise
{{- with .Values.additionalLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* metadata of an object; takes a dict with root, name and, where the object has its own, annotations. */}}
{{- define "mortise.metadata" -}}
name: {{ .name }}
labels:
  {{- include "mortise.labels" .root | nindent 2 }}
{{- with merge (dict) (.annotations | default dict) .root.Values.additionalAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "mortise.image" -}}
{{- $image := .Values.controller.image }}
{{- if eq $image.repository "public.ecr.aws/karpenter/controller" }}
{{- fail "controller.image.repository is Karpenter's own image, which this chart does not install: leave it out or name an image of Mortise" }}
{{- end }}
{{- if $image.digest }}
{{- printf "%s@%s" $image.repository $image.digest }}
{{- else }}
{{- printf "%s:%s" $image.repository (default .Chart.AppVersion $image.tag) }}
{{- end }}
{{- end }}

{{/* A map of booleans as Name=true,Name=false; takes a dict with gates and names (value key -> gate name, in order). */}}
{{- define "mortise.gates" -}}
{{- $gates := .gates }}
{{- $pairs := list }}
{{- range .names }}
{{- $key := index . 0 }}
{{- $pairs = append $pairs (printf "%s=%t" (index . 1) (default false (get $gates $key))) }}
{{- end }}
{{- join "," $pairs }}
{{- end }}

{{- define "mortise.featureGates" -}}
{{- include "mortise.gates" (dict "gates" .Values.settings.featureGates "names" (list
  (list "nodeRepair" "NodeRepair")
  (list "reservedCapacity" "ReservedCapacity")
  (list "spotToSpotConsolidation" "SpotToSpotConsolidation")
  (list "nodeOverlay" "NodeOverlay")
  (list "staticCapacity" "StaticCapacity")
  (list "capacityBuffer" "CapacityBuffer")
  (list "terminateFirstDrift" "TerminateFirstDrift")
  (list "terminateFirstRepair" "TerminateFirstRepair")
  (list "podDeletionCostManagement" "PodDeletionCostManagement"))) }}
{{- end }}

{{/* enableDRA stands for all three; together with one of them it would not say what is wanted. */}}
{{- define "mortise.checkDRA" -}}
{{- $settings := .Values.settings }}
{{- if $settings.enableDRA }}
{{- range $name, $value := dict "settings.awsFeatureGates.draNVIDIAGPU" $settings.awsFeatureGates.draNVIDIAGPU "settings.awsFeatureGates.draEFA" $settings.awsFeatureGates.draEFA "settings.ignoreDRARequests" $settings.ignoreDRARequests }}
{{- if not (kindIs "invalid" $value) }}
{{- fail (printf "settings.enableDRA is true, which decides %s too: remove one of them" $name) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "mortise.awsFeatureGates" -}}
{{- $gates := .Values.settings.awsFeatureGates }}
{{- if .Values.settings.enableDRA }}
{{- $gates = merge (dict "draNVIDIAGPU" true "draEFA" true) $gates }}
{{- end }}
{{- include "mortise.gates" (dict "gates" $gates "names" (list
  (list "nodeClassCEL" "NodeClassCEL")
  (list "draNVIDIAGPU" "DRANVIDIAGPU")
  (list "draEFA" "DRAEFA")
  (list "rebootForRepair" "RebootForRepair"))) }}
{{- end }}

{{/* Claims are not ignored once a driver gate is on, whatever else is said. */}}
{{- define "mortise.ignoreDRARequests" -}}
{{- $settings := .Values.settings }}
{{- if or $settings.enableDRA $settings.awsFeatureGates.draNVIDIAGPU $settings.awsFeatureGates.draEFA -}}
false
{{- else if kindIs "invalid" $settings.ignoreDRARequests -}}
true
{{- else -}}
{{- $settings.ignoreDRARequests -}}
{{- end }}
{{- end }}

{{/* Whether there is a second metrics port. */}}
{{- define "mortise.extraMetricsPort" -}}
{{- $metrics := .Values.controller.metrics }}
{{- if ne (int $metrics.extraPort) (int $metrics.port) }}{{ int $metrics.extraPort }}{{ else }}0{{ end }}
{{- end }}

{{/* Adds the pods' selector to the terms of a list that have none; takes a dict with root and terms. */}}
{{- define "mortise.withSelector" -}}
{{- $selector := dict "labelSelector" (dict "matchLabels" (include "mortise.selectorLabels" .root | fromYaml)) }}
{{- range .terms }}
- {{ toYaml (merge (dict) . (hasKey . "labelSelector" | ternary (dict) $selector)) | nindent 2 | trim }}
{{- end }}
{{- end }}
