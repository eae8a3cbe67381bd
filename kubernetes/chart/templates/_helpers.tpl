{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}
{{- define "headroom.labels" -}}
app.kubernetes.io/name: headroom
{{- end }}

{{/* headroom.yaml, with the certificate that kubelet.ownCertificate mounts. */}}
{{- define "headroom.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- if .Values.kubelet.ownCertificate -}}
{{- $_ := set $config.headroom.kubernetes.kubelet "caFile" "/etc/headroom-kubelet/kubelet.crt" -}}
{{- end -}}
{{- toYaml $config -}}
{{- end }}

{{/* The image of both containers. */}}
{{- define "headroom.image" -}}
image: {{ printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- with .Values.image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
{{- end }}

{{/* A ClusterRoleBinding of the role of that name: (list . "headroom-evict"); to another service account than headroom's:
     (list . "headroom-metrics-reader" "ACCOUNT") */}}
{{- define "headroom.binding" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $account := "headroom" -}}
{{- if gt (len .) 2 }}{{ $account = index . 2 }}{{ end -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $name }}
  labels:
    {{- include "headroom.labels" $root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $name }}
subjects:
  - kind: ServiceAccount
    name: {{ $account }}
    namespace: {{ $root.Release.Namespace }}
{{- end }}
