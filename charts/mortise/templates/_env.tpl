{{/*
The environment of the controller. Every value is written unless it is null or empty, a zero and a false too, so that what
stands in the values is what runs. Settings that have no value here are set through controller.env.
*/}}
{{- define "mortise.env" -}}
- name: KUBERNETES_MIN_VERSION
  value: "1.19.0-0"
- name: KARPENTER_SERVICE
  value: {{ include "mortise.fullname" . }}
- name: SYSTEM_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
- name: MEMORY_LIMIT
  valueFrom:
    resourceFieldRef:
      containerName: {{ .Values.controller.containerName }}
      divisor: "0"
      resource: limits.memory
- name: CPU_REQUESTS
  valueFrom:
    resourceFieldRef:
      containerName: {{ .Values.controller.containerName }}
      divisor: 1m
      resource: requests.cpu
- name: CLUSTER_NAME
  value: {{ tpl (required "settings.clusterName is required: give the name of the cluster" .Values.settings.clusterName) . | quote }}
- name: FEATURE_GATES
  value: {{ include "mortise.featureGates" . | quote }}
- name: AWS_FEATURE_GATES
  value: {{ include "mortise.awsFeatureGates" . | quote }}
- name: IGNORE_DRA_REQUESTS
  value: {{ include "mortise.ignoreDRARequests" . | quote }}
- name: EXTRA_METRICS_PORT
  value: {{ include "mortise.extraMetricsPort" . | quote }}
{{- $settings := .Values.settings }}
{{- range list
  (list "METRICS_PORT" .Values.controller.metrics.port)
  (list "HEALTH_PROBE_PORT" .Values.controller.healthProbe.port)
  (list "LOG_LEVEL" .Values.logLevel)
  (list "LOG_OUTPUT_PATHS" (join "," .Values.logOutputPaths))
  (list "LOG_ERROR_OUTPUT_PATHS" (join "," .Values.logErrorOutputPaths))
  (list "BATCH_MAX_DURATION" $settings.batchMaxDuration)
  (list "BATCH_IDLE_DURATION" $settings.batchIdleDuration)
  (list "PREFERENCE_POLICY" $settings.preferencePolicy)
  (list "MIN_VALUES_POLICY" $settings.minValuesPolicy)
  (list "CLUSTER_CA_BUNDLE" (tpl (default "" $settings.clusterCABundle) .))
  (list "CLUSTER_ENDPOINT" (tpl (default "" $settings.clusterEndpoint) .))
  (list "ISOLATED_VPC" $settings.isolatedVPC)
  (list "EKS_CONTROL_PLANE" $settings.eksControlPlane)
  (list "VM_MEMORY_OVERHEAD_PERCENT" $settings.vmMemoryOverheadPercent)
  (list "INTERRUPTION_QUEUE" (tpl (default "" $settings.interruptionQueue) .))
  (list "RESERVED_ENIS" $settings.reservedENIs)
  (list "ENABLE_ZONAL_SHIFT" $settings.enableZonalShift)
  (list "LEGACY_NODE_REPAIR" $settings.legacyNodeRepair)
  (list "DISABLE_CLUSTER_STATE_OBSERVABILITY" $settings.disableClusterStateObservability)
  (list "DISABLE_DRY_RUN" $settings.disableDryRun)
  (list "AMI_REFRESH_INTERVAL" $settings.amiRefreshInterval)
  (list "SUBNET_REFRESH_INTERVAL" $settings.subnetRefreshInterval)
  (list "SECURITY_GROUP_REFRESH_INTERVAL" $settings.securityGroupRefreshInterval)
  (list "CLOUD_PROVIDER" $settings.cloudProvider)
  (list "POLICIES_CONFIGMAP" .Values.policies.configMapName)
}}
{{- $value := index . 1 }}
{{- if not (or (kindIs "invalid" $value) (eq (toString $value) "")) }}
- name: {{ index . 0 }}
  value: {{ toString $value | quote }}
{{- end }}
{{- end }}
{{- end }}
