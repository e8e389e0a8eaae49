{{/* (list INTO FROM): fills in what INTO does not have. Unlike `merge`, it takes what is empty, 0 or false for given. */}}
{{- define "vigil.fill" -}}
{{- $into := index . 0 }}
{{- range $key, $value := index . 1 }}
{{- if not (hasKey $into $key) }}{{ $_ := set $into $key (deepCopy $value) }}
{{- else if and (kindIs "map" $value) (kindIs "map" (index $into $key)) }}{{ include "vigil.fill" (list (index $into $key) $value) }}
{{- end }}
{{- end }}
{{- end }}

{{/* "yes" if nodes may talk in plain text, since the values say so. */}}
{{- define "vigil.plain" -}}
{{- if dig "cluster" "allow_plain_text" false .Values.config }}yes{{ end }}
{{- end }}

{{/* "yes" if cameras, rules and defaults are in the registry, and nodes have them from there. */}}
{{- define "vigil.inRegistry" -}}
{{- if eq (dig "cluster" "configuration" "file" .Values.config) "registry" }}yes{{ end }}
{{- end }}

{{/* What bounds a node, by its key in `cluster`: the value of its pool, the variable that brings it, and what stands for that: YAML. */}}
{{- define "vigil.bounds" -}}
max_cameras: {value: maxCameras, variable: VIGIL_MAX_CAMERAS, reference: "{VIGIL_MAX_CAMERAS}"}
max_streams: {value: maxStreams, variable: VIGIL_MAX_STREAMS, reference: "{VIGIL_MAX_STREAMS}"}
{{- end }}

{{/* (list VALUE PATH): "PATH NAME" of each variable that stands in a text of a map, a line each. In questions, titles, labels, keys of askers and
lists of texts braces are nobody's. */}}
{{- define "vigil.references" -}}
{{- $value := index . 0 }}{{ $path := index . 1 }}
{{- if kindIs "map" $value }}
{{- range $key, $below := omit $value "rules" "labels" "askers" }}
{{- include "vigil.references" (list $below (printf "%s.%s" $path $key)) }}
{{- end }}
{{- else if kindIs "slice" $value }}
{{- range $number, $below := $value }}
{{- if kindIs "map" $below }}{{ include "vigil.references" (list $below (printf "%s[%d]" $path $number)) }}{{ end }}
{{- end }}
{{- else if kindIs "string" $value }}
{{- range regexFindAll "\\{[A-Z_][A-Z0-9_]*\\}" $value -1 }}
{{ $path }} {{ trimAll "{}" . }}
{{- end }}
{{- end }}
{{- end }}

{{/* HOST:PORT of etcd's servers, as a JSON list. */}}
{{- define "vigil.etcd.endpoints" -}}
{{- if .Values.etcd.enabled }}
{{- $found := list }}{{ $root := . }}
{{- range until (int .Values.etcd.replicas) }}
{{- $found = append $found (printf "%s-etcd-%d.%s:2379" (include "vigil.fullname" $root) . (include "vigil.etcd.host" $root)) }}
{{- end }}
{{- toJson $found }}
{{- else }}
{{- toJson (default .Values.etcd.external.endpoints (dig "cluster" "registry" "endpoints" list .Values.config)) }}
{{- end }}
{{- end }}

{{/* The fleet's configuration: what the values say, and what the chart knows where they say nothing. */}}
{{- define "vigil.config" -}}
{{- $config := deepCopy .Values.config }}
{{- $host := include "vigil.nodes.host" . }}
{{- $has_tls := ne (include "vigil.tls.secret" .) "" }}
{{- $external := .Values.etcd.external }}
{{- $registry := dict "endpoints" (include "vigil.etcd.endpoints" . | fromJsonArray) }}
{{- if and (not .Values.etcd.enabled) $external.tls.existingSecret }}
{{- $_ := set $registry "ca_file" "/etc/vigil/etcd-tls/ca.crt" }}
{{- if $external.tls.clientCertificate }}
{{- $_ := set $registry "certificate" (dict "cert_file" "/etc/vigil/etcd-tls/tls.crt" "key_file" "/etc/vigil/etcd-tls/tls.key") }}
{{- end }}
{{- else if $has_tls }}
{{- $_ := set $registry "ca_file" "/etc/vigil/tls/ca.crt" }}
{{- $_ := set $registry "certificate" (dict "cert_file" "/etc/vigil/tls/tls.crt" "key_file" "/etc/vigil/tls/tls.key") }}
{{- end }}
{{- if and (not .Values.etcd.enabled) $external.auth.existingSecret }}
{{- $_ := set $registry "username" "{VIGIL_ETCD_USERNAME}" }}
{{- $_ := set $registry "password" "{VIGIL_ETCD_PASSWORD}" }}
{{- end }}
{{- $cluster := dict "name" (printf "%s.%s" .Release.Namespace .Release.Name) "listen" "0.0.0.0:7400" "bulk" "0.0.0.0:7401"
    "advertise" (printf "{POD_NAME}.%s" $host) "registry" $registry }}
{{- $root := . }}
{{- range $key, $bound := include "vigil.bounds" . | fromYaml }}
{{- range include "vigil.pools" $root | fromYaml }}
{{- if gt (index . $bound.value | int) 0 }}{{ $_ := set $cluster $key $bound.reference }}{{ end }}
{{- end }}
{{- end }}
{{- if include "vigil.inRegistry" . }}
{{- range list "cameras" "defaults" "rules" }}{{ if not (index $config .) }}{{ $_ := unset $config . }}{{ end }}{{ end }}
{{- end }}
{{- $metrics := dict "listen" "0.0.0.0:9464" "probes" "0.0.0.0:9465" }}
{{- if $has_tls }}
{{- $_ := set $cluster "tls_dir" "/etc/vigil/tls" }}
{{- if not (dig "metrics" "allow_plain_text" false $config) }}
{{- $_ := set $metrics "tls" (dict "cert_file" "/etc/vigil/tls/tls.crt" "key_file" "/etc/vigil/tls/tls.key") }}
{{- end }}
{{- end }}
{{- $alerts := dict "bind" "tcp://0.0.0.0:5556" "outbox" "/var/lib/vigil/outbox" }}
{{- if .Values.topics.curve.existingSecret }}
{{- $_ := set $alerts "curve" (dict "secret_key_file" "/etc/vigil/curve/server.key") }}
{{- end }}
{{- if dig "asks" "askers" list $config }}
{{- $asks := dict "bind" "tcp://0.0.0.0:5558" }}
{{- if .Values.topics.curve.existingSecret }}{{ $_ := set $asks "secret_key_file" "/etc/vigil/curve/server.key" }}{{ end }}
{{- include "vigil.fill" (list $config (dict "asks" $asks)) }}
{{- end }}
{{- include "vigil.fill" (list $config (dict "name" "{POD_NAME}" "cluster" $cluster "metrics" $metrics "alerts" $alerts
    "evidence" (dict "dir" "/var/lib/vigil/evidence"))) }}
{{- $port := include "vigil.port" $config.cluster.listen }}
{{- include "vigil.fill" (list $config.cluster (dict "seeds" (list (printf "%s:%s" $host $port)))) }}
{{- include "vigil.fill" (list $config.alerts (dict "replay" (regexReplaceAll "[0-9]+$" $config.alerts.bind
    (add1 (include "vigil.port" $config.alerts.bind | int) | toString)))) }}
{{- toYaml $config }}
{{- end }}

{{/* The keys that a running node follows by itself: all others need a restart. */}}
{{- define "vigil.live" -}}
defaults cameras rules log.level
{{- end }}

{{/* What the pods' checksum is made of: all that a node does not follow. */}}
{{- define "vigil.fixed" -}}
{{- $fixed := include "vigil.config" . | fromYaml }}
{{- $live := include "vigil.live" . | splitList " " }}
{{- range .Values.followsConfig | ternary $live list }}
{{- $path := splitList "." . }}
{{- if eq (len $path) 1 }}{{ $_ := unset $fixed (first $path) }}
{{- else if hasKey $fixed (first $path) }}{{ $_ := unset (get $fixed (first $path)) (last $path) }}
{{- end }}
{{- end }}
{{- toYaml $fixed }}
{{- end }}

{{/* The port at the end of an address; 0 if there is none. */}}
{{- define "vigil.port" -}}
{{ default "0" (regexFind "[0-9]+$" .) }}
{{- end }}

{{/* A pool's or a probe's port by its name, out of the configuration (list CONFIG NAME). */}}
{{- define "vigil.ports" -}}
peers: {{ include "vigil.port" .cluster.listen }}
bulk: {{ include "vigil.port" .cluster.bulk }}
metrics: {{ include "vigil.port" .metrics.listen }}
probes: {{ include "vigil.port" .metrics.probes }}
events: {{ include "vigil.port" .alerts.bind }}
replay: {{ include "vigil.port" .alerts.replay }}
asks: {{ include "vigil.asked" . | default "0" }}
{{- end }}

{{/* The port of questions about the past, where others than the node itself may ask them; nothing otherwise. */}}
{{- define "vigil.asked" -}}
{{- $bind := dig "asks" "bind" "" . }}
{{- if and (dig "memory" "enabled" false .) $bind (not (regexMatch "^(tcp://)?(127\\.|localhost:|\\[::1\\])|^ipc://" $bind)) }}{{ include "vigil.port" $bind }}{{ end }}
{{- end }}

{{/* A duration of the configuration in whole seconds, rounded up. */}}
{{- define "vigil.seconds" -}}
{{- $number := regexFind "^[0-9.]+" . | float64 }}
{{- $unit := dict "ms" 0.001 "s" 1.0 "m" 60.0 "h" 3600.0 "d" 86400.0 }}
{{- mulf $number (get $unit (regexFind "[a-z]+$" .)) | ceil | int }}
{{- end }}
