#!/bin/sh
# A post-renderer for helm: reads what a chart has rendered, and writes it with the
# component that is named, such as cilium/one. Needs kubectl.
set -eu
component=${1:?the name of a component, such as cilium/one}
cd "$(dirname "$0")"
work=$(mktemp -d ./rendered.XXXXXX) # a kustomization names its parts by relative paths
trap 'rm -rf "$work"' EXIT
cat > "$work/chart.yaml"
cat > "$work/kustomization.yaml" <<END
resources: [chart.yaml]
components: [../$component]
END
kubectl kustomize "$work"
