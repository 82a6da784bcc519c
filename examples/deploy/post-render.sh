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
reason="the component $component is for a chart's default values, and for what its flags say: examples/postrender follows others"
if kubectl kustomize "$work" > "$work/rendered"; then
	named='/^---$/ { if (runs && !names) exit; runs = names = 0 } /^ *- (.*\/)?nodeinit$/ { runs = 1 } /--agent=|SLIPWAY_AGENT/ { names = 1 } END { exit runs && !names }'
	awk "$named" "$work/rendered" && cat "$work/rendered" && exit
	reason="the component $component has a nodeinit without --agent: what another agent than Cilium applies would be recorded as Cilium's"
fi
if [ "${HELM_PLUGIN_NAME:-}" = slipway-component ]; then # helm 4 shows nothing of a failing plugin's output, but all of an output that is no object
	printf '|\n  %s\n' "$reason"
	exit
fi
echo "$0: $reason" >&2
exit 1
