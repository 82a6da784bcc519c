#!/bin/sh
# A post-renderer for helm: it adds the named component, such as cilium/one, to a
# chart's output. Needs kubectl.
set -eu
component=${1:?the name of a component, such as cilium/one}
cd -P "$(dirname "$0")" # of the script itself, which a helm plugin may link to
work=$(mktemp -d ./rendered.XXXXXX) # kustomizations name their parts by relative paths
trap 'rm -rf "$work"' EXIT
cat > "$work/chart.yaml"
cat > "$work/kustomization.yaml" <<END
resources: [chart.yaml]
components: [../$component]
END
kubectl kustomize "$work" && exit
reason="the component $component is for a chart's default values, and for what its flags say: examples/postrender follows others"
if [ "${HELM_PLUGIN_NAME:-}" = slipway-component ]; then # helm 4 shows nothing of a failing plugin's output, but all of an output that is no object
	printf '|\n  %s\n' "$reason"
	exit
fi
echo "$0: $reason" >&2
exit 1
