{{/* What things are called. Names of pools come behind it, and together they fit into a label (63) with a hash. */}}
{{- define "vigil.name" -}}
{{ default .Chart.Name .Values.nameOverride | trunc 36 | trimSuffix "-" }}
{{- end }}

{{- define "vigil.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride | trunc 36 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}{{ .Release.Name | trunc 36 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name $name | trunc 36 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* What never changes, so that selectors can have it. */}}
{{- define "vigil.selector" -}}
app.kubernetes.io/name: {{ include "vigil.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Selects all nodes, whatever their pool. */}}
{{- define "vigil.nodes" -}}
{{ include "vigil.selector" . }}
vigil.dev/part: node
{{- end }}

{{- define "vigil.etcd.selector" -}}
{{ include "vigil.selector" . }}
app.kubernetes.io/component: etcd
{{- end }}

{{- define "vigil.labels" -}}
{{ include "vigil.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: vigil
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* (list ROOT COMPONENT): of pods. Nothing of a version is among them, or each new chart would roll them all. */}}
{{- define "vigil.podLabels" -}}
{{ include "vigil.selector" (index . 0) }}
app.kubernetes.io/component: {{ index . 1 }}
app.kubernetes.io/part-of: vigil
{{- with (index . 0).Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* (list ROOT NAME COMPONENT [LABELS [ANNOTATIONS [NAMESPACE]]]): an object's metadata. */}}
{{- define "vigil.metadata" -}}
{{- $root := index . 0 }}
{{- $labels := dict "app.kubernetes.io/component" (index . 2) }}
{{- if gt (len .) 3 }}{{ $labels = merge (deepCopy (default dict (index . 3))) $labels }}{{ end }}
{{- $annotations := deepCopy $root.Values.commonAnnotations }}
{{- if gt (len .) 4 }}{{ $annotations = merge (deepCopy (default dict (index . 4))) $annotations }}{{ end }}
{{- $namespace := $root.Release.Namespace }}
{{- if gt (len .) 5 }}{{ $namespace = default $namespace (index . 5) }}{{ end -}}
name: {{ index . 1 }}
namespace: {{ $namespace }}
labels:
  {{- include "vigil.labels" $root | nindent 2 }}
  {{- toYaml $labels | nindent 2 }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "vigil.serviceAccount" -}}
{{ if .Values.serviceAccount.create }}{{ default (include "vigil.fullname" .) .Values.serviceAccount.name }}{{ else }}{{ default "default" .Values.serviceAccount.name }}{{ end }}
{{- end }}

{{/* (list ROOT IMAGE TAG): a reference to an image, by its digest if it has one. */}}
{{- define "vigil.image" -}}
{{- $root := index . 0 }}{{ $image := index . 1 }}
{{- $registry := default $image.registry $root.Values.global.imageRegistry }}
{{- with $registry }}{{ . }}/{{ end }}{{ $image.repository }}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ default (index . 2) $image.tag }}{{ end }}
{{- end }}

{{/* (list ROOT INDENT): the key of a pod with the Secrets by which its images are pulled, if there are any. */}}
{{- define "vigil.pullSecrets" -}}
{{- with concat (index . 0).Values.global.imagePullSecrets (index . 0).Values.imagePullSecrets | uniq }}
{{- $lines := list "imagePullSecrets:" }}
{{- range . }}{{ $lines = append $lines (printf "  - {name: %s}" .) }}{{ end }}
{{- join "\n" $lines | nindent (index $ 1) }}
{{- end }}
{{- end }}

{{/* The host under which all nodes, and with a pod's name before it one of them, are reached. */}}
{{- define "vigil.nodes.host" -}}
{{ include "vigil.fullname" . }}-nodes.{{ .Release.Namespace }}.svc
{{- end }}
{{- define "vigil.etcd.host" -}}
{{ include "vigil.fullname" . }}-etcd.{{ .Release.Namespace }}.svc
{{- end }}

{{/* Secrets of certificates: of nodes, and of the chart's etcd. */}}
{{- define "vigil.tls.secret" -}}
{{ if .Values.tls.certManager.enabled }}{{ include "vigil.fullname" . }}-tls{{ else }}{{ .Values.tls.existingSecret }}{{ end }}
{{- end }}
{{- define "vigil.etcd.secret" -}}
{{ if .Values.tls.certManager.enabled }}{{ include "vigil.fullname" . }}-etcd-tls{{ else }}{{ .Values.etcd.tls.existingSecret }}{{ end }}
{{- end }}
