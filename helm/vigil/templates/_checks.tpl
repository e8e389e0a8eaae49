{{/* What does not fit together in the values: a line each, all of them at once. (What a single value may be is the schema's.) */}}
{{- define "vigil.problems" -}}
{{- $config := include "vigil.config" . | fromYaml }}
{{- $pools := include "vigil.pools" . | fromYaml }}
{{- $external := .Values.etcd.external.endpoints | empty | ternary (dig "cluster" "registry" "endpoints" list .Values.config) .Values.etcd.external.endpoints }}
{{- $plain := include "vigil.plain" . }}
{{- $manager := .Values.tls.certManager }}
{{- $in_registry := include "vigil.inRegistry" . }}
{{- $loopback := "^(tcp://)?(127\\.|localhost:|\\[::1\\])" }}
{{- if .Values.config.name }}
config.name: all nodes would have the one name; leave it out, and each has its pod's
{{- end }}
{{- if and $config.cluster.advertise (not (contains "{POD_NAME}" $config.cluster.advertise)) }}
config.cluster.advertise: all nodes would have the one address; leave it out, or let {POD_NAME} stand in it
{{- end }}
{{- if $in_registry }}
{{- range list "cameras" "defaults" "rules" }}
{{- if index $.Values.config . }}
config.{{ . }}: is in the registry, as config.cluster.configuration says; put it there (vigil config put), and leave it out here
{{- end }}
{{- end }}
{{- else if not $config.cameras }}
config.cameras: no camera yet; for example {gate: {url: "rtsp://10.0.10.10:554/live", rules: [{name: person, prompt: "Is there a person?"}]}}
{{- end }}
{{- if and (not .Values.model.volume) (hasPrefix .Values.model.mountPath (default "" $config.model)) }}
model.volume: says nothing of where {{ $config.model }} comes from; for example {persistentVolumeClaim: {claimName: models}}
{{- end }}
{{- if and $manager.enabled .Values.tls.existingSecret }}
tls: existingSecret and certManager.enabled both say where the certificate comes from; leave out one
{{- else if and (not (include "vigil.tls.secret" .)) (not $plain) }}
tls: nodes do not talk in plain text; name a Secret in tls.existingSecret, or turn on tls.certManager, or say config.cluster.allow_plain_text: true
{{- end }}
{{- if and $manager.enabled (not $manager.issuerRef.name) }}
tls.certManager.issuerRef: which issuer? For example {name: fleet, kind: Issuer}
{{- end }}
{{- if and .Values.etcd.enabled $external }}
etcd: etcd.enabled brings one, and etcd.external or config.cluster.registry.endpoints names another; leave out one
{{- else if and (not .Values.etcd.enabled) (not $external) }}
etcd: a fleet needs one; name yours in etcd.external.endpoints, or let the chart bring one with etcd.enabled: true
{{- else if and .Values.etcd.enabled (not (include "vigil.etcd.secret" .)) (or (not $plain) (include "vigil.tls.secret" .)) }}
etcd.tls.existingSecret: etcd needs a certificate; name a Secret, or turn on tls.certManager
{{- end }}
{{- if not (or (include "vigil.tls.secret" .) $config.metrics.allow_plain_text (dig "tls" "cert_file" "" $config.metrics) (regexMatch $loopback $config.metrics.listen) (empty $config.metrics.listen)) }}
config.metrics: without certificates, say config.metrics.allow_plain_text: true, or listen: "127.0.0.1:9464"
{{- end }}
{{- if or (empty $config.metrics.probes) (regexMatch $loopback (default "" $config.metrics.probes)) }}
config.metrics.probes: Kubernetes has to reach it, such as 0.0.0.0:9465
{{- end }}
{{- if and (not (dig "curve" "secret_key_file" "" $config.alerts)) (not (regexMatch $loopback $config.alerts.bind)) }}
topics.curve.existingSecret: events leave a machine encrypted only; name a Secret with the key of `vigil keygen server.key`
{{- end }}
{{- if and (dig "curve" "secret_key_file" "" $config.alerts) (not (dig "curve" "allow" list $config.alerts)) }}
config.alerts.curve.allow: nobody could read events; list the public keys of clients, each from its `vigil keygen`
{{- end }}
{{- range include "vigil.references" (list $config "config") | splitList "\n" | uniq }}
{{- if . }}
{{- $place := splitList " " . | first }}{{ $variable := splitList " " . | last }}
{{- $without := list }}
{{- range $name, $pool := $pools }}
{{- /* Whoever opens a camera looks for its secrets, and nobody else. */}}
{{- $needs := or (not (hasPrefix "config.cameras." $place)) (has "camera" $pool.roles) }}
{{- if and $needs (not (include "vigil.pool.mayHave" (list $ $pool $variable))) }}{{ $without = append $without $name }}{{ end }}
{{- end }}
{{- if $without }}
{{ $place }}: nothing gives the variable {{ $variable }} to {{ join ", " $without }}; name a Secret that has it in credentials.cameraSecrets, or give it by extraEnv of the pool
{{- end }}
{{- end }}
{{- end }}
{{- $known := include "vigil.roles" . | splitList ", " }}
{{- $roles := list }}
{{- range $name, $pool := $pools }}
{{- range $key, $value := include "vigil.bounds" $ | fromYaml }}
{{- $given := dig "cluster" $key "" $.Values.config | toString }}
{{- if and (gt (index $pool $value.value | int) 0) $given (ne $given $value.reference) }}
config.cluster.{{ $key }}: is {{ $given }} for all nodes, and pools.{{ $name }}.{{ $value.value }} says something else; leave out one
{{- end }}
{{- end }}
{{- range $pool.roles }}
{{- if not (has . $known) }}
pools.{{ $name }}.roles: has {{ . }}, which has nothing to do yet: `vigil node` refuses it, too; leave it out
{{- end }}
{{- end }}
{{- $some := or (gt (int $pool.replicas) 0) (ne $pool.autoscaling.kind "none") }}
{{- if $some }}{{ $roles = concat $roles $pool.roles }}{{ end }}
{{- if has $name (list "etcd" "nodes" "topics" "test") }}
pools.{{ $name }}: is the name of something else in the fleet; give it another
{{- end }}
{{- if not $pool.roles }}
pools.{{ $name }}.roles: some of {{ join ", " $known }}
{{- end }}
{{- $needed := include "vigil.pool.finish" (list $config $pool) | int }}
{{- $given := int $pool.terminationGracePeriodSeconds }}
{{- if and (gt $given 0) (lt $given $needed) }}
pools.{{ $name }}.terminationGracePeriodSeconds: {{ $given }} is too short; its nodes need {{ $needed }} (preStopSeconds, config.shutdown_grace{{ if has "camera" $pool.roles }} one and a half times{{ end }}, and 15), or say 0
{{- end }}
{{- if and (has "stream" $pool.roles) (dig "memory" "enabled" false $config) (dig "memory" "dir" "" $config) (not $pool.persistence.enabled) }}
pools.{{ $name }}.persistence: config.memory.dir is on a disk that goes with the pod, and erasures wait for its node for ever; turn it on, or leave out dir
{{- end }}
{{- if and (include "vigil.pool.computes" $pool) (hasPrefix "cuda" (default "cpu" (dig "engine" "device" "cpu" $config))) (eq (int $pool.gpu.count) 0) }}
pools.{{ $name }}.gpu.count: is 0, and config.engine.device is {{ $config.engine.device }}
{{- end }}
{{- $scaling := $pool.autoscaling }}
{{- if ne $scaling.kind "none" }}
{{- if gt (int $scaling.minReplicas) (int $scaling.maxReplicas) }}
pools.{{ $name }}.autoscaling: minReplicas is more than maxReplicas
{{- end }}
{{- if not (or $scaling.requestsWaiting.target $scaling.windowLag.target) }}
pools.{{ $name }}.autoscaling: by what? Both targets are 0
{{- end }}
{{- end }}
{{- if and (eq $scaling.kind "keda") (not $scaling.keda.serverAddress) }}
pools.{{ $name }}.autoscaling.keda.serverAddress: where is Prometheus?
{{- end }}
{{- if and (eq $scaling.kind "keda") (not ($.Capabilities.APIVersions.Has "keda.sh/v1alpha1")) }}
pools.{{ $name }}.autoscaling: the cluster does not know keda.sh/v1alpha1 (with `helm template`, say so by --api-versions)
{{- end }}
{{- end }}
{{- range $known }}
{{- if not (has . $roles) }}
pools: no node has the role {{ . }}{{ if eq . "gateway" }}, and nobody else publishes events{{ end }}
{{- end }}
{{- end }}
{{- $metrics := .Values.metrics }}
{{- if and (or $metrics.serviceMonitor.enabled $metrics.podMonitor.enabled $metrics.prometheusRule.enabled) (not (.Capabilities.APIVersions.Has "monitoring.coreos.com/v1")) }}
metrics: the cluster does not know monitoring.coreos.com/v1, the Prometheus operator's (with `helm template`, say so by --api-versions)
{{- end }}
{{- if and $metrics.serviceMonitor.enabled $metrics.podMonitor.enabled }}
metrics: with serviceMonitor and podMonitor everything is counted twice; leave out one
{{- end }}
{{- if and $manager.enabled (not (.Capabilities.APIVersions.Has "cert-manager.io/v1")) }}
tls.certManager: the cluster does not know cert-manager.io/v1 (with `helm template`, say so by --api-versions)
{{- end }}
{{- end }}
