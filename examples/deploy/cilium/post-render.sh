#!/bin/sh
# A post-renderer for helm: reads what a chart has rendered, writes it with the
# component of that name (one, run or image-volume). Needs kubectl.
set -eu
component=${1:?the name of a component: one, run or image-volume}
cd "$(dirname "$0")"
work=$(mktemp -d ./rendered.XXXXXX) # a kustomization names its parts by relative paths
trap 'rm -rf "$work"' EXIT
cat > "$work/chart.yaml"
cat > "$work/kustomization.yaml" <<END
resources: [chart.yaml]
components: [../$component]
END
kubectl kustomize "$work"
