#!/bin/sh
# A post-renderer for helm: reads what a chart has rendered, and writes it with the
# component that is named, such as cilium/one. Needs kubectl.
set -eu
component=${1:?the name of a component, such as cilium/one}
cd -P "$(dirname "$0")" # of the script itself, where a plugin of helm is a link
work=$(mktemp -d ./rendered.XXXXXX) # a kustomization names its parts by relative paths
trap 'rm -rf "$work"' EXIT
cat > "$work/chart.yaml"
cat > "$work/kustomization.yaml" <<END
resources: [chart.yaml]
components: [../$component]
END
kubectl kustomize "$work" && exit
reason="the component $component is for a chart's default values, and for what its flags say: examples/postrender follows others"
if [ "${HELM_PLUGIN_NAME:-}" = slipway-component ]; then # of a plugin that fails helm 4 shows nothing, and of an output that is no object all
	printf '|\n  %s\n' "$reason"
	exit
fi
echo "$0: $reason" >&2
exit 1
