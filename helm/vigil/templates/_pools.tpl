{{/* The pools that are there, by name, each with all that it has: YAML. */}}
{{- define "vigil.pools" -}}
{{- $pools := dict }}
{{- range $name, $given := .Values.pools }}
{{- if $given }}
{{- $pool := deepCopy $given }}
{{- include "vigil.fill" (list $pool $.Values.poolDefaults) }}
{{- if $pool.enabled }}{{ $_ := set $pools $name $pool }}{{ end }}
{{- end }}
{{- end }}
{{- toYaml $pools }}
{{- end }}

{{/* (list ROOT POOL-NAME): what selects the pods of a pool. */}}
{{- define "vigil.pool.selector" -}}
{{ include "vigil.selector" (index . 0) }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* (list CONFIG POOL): what a pod needs to finish. Cameras are handed over first, for half the grace at most. */}}
{{- define "vigil.pool.finish" -}}
{{- $grace := include "vigil.seconds" (default "10s" (index . 0).shutdown_grace) | int }}
{{- if has "camera" (index . 1).roles }}{{ $grace = div (add (mul $grace 3) 1) 2 }}{{ end }}
{{- add $grace (index . 1).preStopSeconds 15 }}
{{- end }}

{{/* (list ROOT POOL VARIABLE): "yes" if its pods have the variable, or may have it, since nobody knows what is in a Secret. */}}
{{- define "vigil.pool.mayHave" -}}
{{- $root := index . 0 }}{{ $pool := index . 1 }}{{ $variable := index . 2 }}
{{- $known := list "POD_NAME" "POD_NAMESPACE" "NODE_NAME" "HOME" "HOSTNAME" "PATH" }}
{{- if $root.Values.etcd.external.auth.existingSecret }}{{ $known = concat $known (list "VIGIL_ETCD_USERNAME" "VIGIL_ETCD_PASSWORD") }}{{ end }}
{{- range include "vigil.bounds" $root | fromYaml }}{{ $known = append $known .variable }}{{ end }}
{{- range $pool.extraEnv }}{{ $known = append $known .name }}{{ end }}
{{- if or $root.Values.credentials.cameraSecrets $pool.extraEnvFrom (has $variable $known) }}yes{{ end }}
{{- end }}

{{/* A pool's resources, its GPUs among them. */}}
{{- define "vigil.pool.resources" -}}
{{- $resources := deepCopy .resources }}
{{- if gt (int .gpu.count) 0 }}
{{- include "vigil.fill" (list $resources (dict "limits" dict)) }}
{{- $_ := set $resources.limits .gpu.resource (int .gpu.count) }}
{{- end }}
{{- toYaml $resources }}
{{- end }}

{{/* The roles that `vigil node` takes: as its help lists them, which tests/helm/chart/roles_test.py compares. */}}
{{- define "vigil.roles" -}}
camera, vision, stream, generate, gateway
{{- end }}

{{/* Whether the model computes there. */}}
{{- define "vigil.pool.computes" -}}
{{- if or (has "vision" .roles) (has "stream" .roles) (has "generate" .roles) }}yes{{ end }}
{{- end }}

{{/* (dict "root" "config" "ports" "name" "pool"): the pods of a pool. */}}
{{- define "vigil.pod" -}}
{{- $root := .root }}{{ $pool := .pool }}{{ $config := .config }}{{ $values := .root.Values -}}
metadata:
  labels:
    {{- include "vigil.podLabels" (list $root .name) | nindent 4 }}
    vigil.dev/part: node
    {{- range $pool.roles }}
    vigil.dev/role-{{ . }}: "true"
    {{- end }}
    {{- with $pool.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
  annotations:
    # Of all that a running node does not follow by itself (followsConfig).
    checksum/config: {{ include "vigil.fixed" $root | sha256sum }}
    {{- with merge (deepCopy $pool.podAnnotations) $values.commonAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  serviceAccountName: {{ include "vigil.serviceAccount" $root }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- include "vigil.pullSecrets" (list $root 2) }}
  terminationGracePeriodSeconds: {{ default (include "vigil.pool.finish" (list .config $pool)) $pool.terminationGracePeriodSeconds }}
  securityContext:
    {{- toYaml $values.podSecurityContext | nindent 4 }}
  {{- with $pool.gpu.runtimeClassName }}
  runtimeClassName: {{ . }}
  {{- end }}
  {{- with $pool.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with $pool.schedulerName }}
  schedulerName: {{ . }}
  {{- end }}
  {{- with $pool.nodeSelector }}
  nodeSelector:{{ toYaml . | nindent 4 }}
  {{- end }}
  {{- with $pool.tolerations }}
  tolerations:{{ toYaml . | nindent 4 }}
  {{- end }}
  {{- with $pool.affinity }}
  affinity:{{ toYaml . | nindent 4 }}
  {{- end }}
  {{- with $pool.topologySpread }}
  topologySpreadConstraints:
    {{- range . }}
    {{- $constraint := deepCopy . }}
    {{- include "vigil.fill" (list $constraint (dict "labelSelector" (dict "matchLabels" (include "vigil.pool.selector" (list $root $.name) | fromYaml)))) }}
    - {{ toYaml $constraint | nindent 6 | trim }}
    {{- end }}
  {{- end }}
  {{- with $pool.initContainers }}
  initContainers:{{ toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: vigil
      {{- $image := deepCopy $pool.image }}
      {{- /* A digest is that of one image. */}}
      {{- $own := or $image.repository $image.tag $image.digest }}
      {{- include "vigil.fill" (list $image (ternary (omit $values.image "digest") $values.image (not (empty $own)))) }}
      image: {{ include "vigil.image" (list $root $image $root.Chart.AppVersion) }}
      imagePullPolicy: {{ $image.pullPolicy }}
      args:
        - node
        - --roles
        - {{ join "," $pool.roles }}
        - --config
        - /etc/vigil/vigil.yaml
        {{- with $pool.extraArgs }}{{ toYaml . | nindent 8 }}{{ end }}
      env:
        - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
        - {name: NODE_NAME, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
        {{- with $values.etcd.external.auth.existingSecret }}
        - {name: VIGIL_ETCD_USERNAME, valueFrom: {secretKeyRef: {name: {{ . }}, key: username}}}
        - {name: VIGIL_ETCD_PASSWORD, valueFrom: {secretKeyRef: {name: {{ . }}, key: password}}}
        {{- end }}
        {{- range $key, $bound := include "vigil.bounds" $root | fromYaml }}
        {{- if eq (index $config.cluster $key | toString) $bound.reference }}
        - {name: {{ $bound.variable }}, value: {{ index $pool $bound.value | int | toString | quote }}}
        {{- end }}
        {{- end }}
        {{- with $pool.extraEnv }}{{ toYaml . | nindent 8 }}{{ end }}
      {{- $sources := list }}
      {{- /* Every node reads the whole file, and wants each variable in it. */}}
      {{- range $values.credentials.cameraSecrets }}{{ $sources = append $sources (dict "secretRef" (dict "name" .)) }}{{ end }}
      {{- with concat $sources $pool.extraEnvFrom }}
      envFrom:{{ toYaml . | nindent 8 }}
      {{- end }}
      ports:
        - {name: peers, containerPort: {{ .ports.peers }}}
        - {name: bulk, containerPort: {{ .ports.bulk }}}
        - {name: metrics, containerPort: {{ .ports.metrics }}}
        - {name: probes, containerPort: {{ .ports.probes }}}
        {{- if has "gateway" $pool.roles }}
        - {name: events, containerPort: {{ .ports.events }}}
        - {name: replay, containerPort: {{ .ports.replay }}}
        {{- if .ports.asks }}
        - {name: asks, containerPort: {{ .ports.asks }}}
        {{- end }}
        {{- end }}
      startupProbe:{{ merge (dict "httpGet" (dict "path" "/startupz" "port" "probes")) $pool.probes.startup | toYaml | nindent 8 }}
      readinessProbe:{{ merge (dict "httpGet" (dict "path" "/readyz" "port" "probes")) $pool.probes.readiness | toYaml | nindent 8 }}
      livenessProbe:{{ merge (dict "httpGet" (dict "path" "/healthz" "port" "probes")) $pool.probes.liveness | toYaml | nindent 8 }}
      {{- if gt (int $pool.preStopSeconds) 0 }}
      # Whoever asks by a Service goes elsewhere first; SIGTERM then drains.
      lifecycle: {preStop: {sleep: {seconds: {{ $pool.preStopSeconds }}}}}
      {{- end }}
      securityContext:{{ toYaml $values.containerSecurityContext | nindent 8 }}
      resources:{{ include "vigil.pool.resources" $pool | nindent 8 }}
      volumeMounts:
        - {name: config, mountPath: /etc/vigil, readOnly: true}
        - {name: data, mountPath: /var/lib/vigil}
        - {name: tmp, mountPath: /tmp}
        - {name: shm, mountPath: /dev/shm}
        {{- if and $pool.mountModel $values.model.volume }}
        - {name: model, mountPath: {{ $values.model.mountPath }}, readOnly: true}
        {{- end }}
        {{- with $pool.extraVolumeMounts }}{{ toYaml . | nindent 8 }}{{ end }}
  volumes:
    # One volume, so that nothing is mounted within another that cannot be written to. What it holds follows its sources.
    - name: config
      projected:
        defaultMode: 0440
        sources:{{ include "vigil.pod.sources" . | nindent 10 }}
    {{- if not $pool.persistence.enabled }}
    - {name: data, emptyDir: {}}
    {{- end }}
    - {name: tmp, emptyDir: {sizeLimit: {{ $pool.tmpSize }}}}
    - {name: shm, emptyDir: {medium: Memory, sizeLimit: {{ $pool.shmSize }}}}
    {{- if and $pool.mountModel $values.model.volume }}
    - name: model
      {{- toYaml $values.model.volume | nindent 6 }}
    {{- end }}
    {{- with $pool.extraVolumes }}{{ toYaml . | nindent 4 }}{{ end }}
{{- end }}

{{/* What /etc/vigil is made of. */}}
{{- define "vigil.pod.sources" -}}
- configMap: {name: {{ include "vigil.fullname" .root }}, items: [{key: vigil.yaml, path: vigil.yaml}]}
{{- with include "vigil.tls.secret" .root }}
- secret:
    name: {{ . }}
    items: [{key: ca.crt, path: tls/ca.crt}, {key: tls.crt, path: tls/tls.crt}, {key: tls.key, path: tls/tls.key}]
{{- end }}
{{- $external := .root.Values.etcd.external.tls }}
{{- if and (not .root.Values.etcd.enabled) $external.existingSecret }}
- secret:
    name: {{ $external.existingSecret }}
    items:
      - {key: ca.crt, path: etcd-tls/ca.crt}
      {{- if $external.clientCertificate }}
      - {key: tls.crt, path: etcd-tls/tls.crt}
      - {key: tls.key, path: etcd-tls/tls.key}
      {{- end }}
{{- end }}
{{- if has "gateway" .pool.roles }}
{{- with .root.Values.topics.curve }}
{{- if .existingSecret }}
- secret: {name: {{ .existingSecret }}, items: [{key: {{ .secretKey }}, path: curve/server.key}]}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
