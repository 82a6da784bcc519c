// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package realcri_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/cri"
)

// statusPlugin answers STATUS as Cilium's plugin does: with an error while its agent, here a
// file, is missing.
const statusPlugin = `#!/bin/sh
if [ "$CNI_COMMAND" = STATUS ]; then
	[ -e /run/agent-answers ] && exit 0
	echo '{"cniVersion":"1.1.0","code":50,"msg":"DaemonDown","details":"unable to connect to the agent"}'
	exit 1
fi
echo '{"cniVersion":"1.1.0","supportedVersions":["0.3.1","1.0.0","1.1.0"]}'
`

// The effect of a configuration's version while the plugin's agent does not answer: with 1.1.0
// the kubelet learns that the network is not ready; with an older version, that it is. On a
// containerd that does not call STATUS, the install is refused and nothing is changed.
func TestCNI11_RealContainerdAsksThePluginForItsStatus(t *testing.T) {
	for _, version := range versions() {
		t.Run(version, func(t *testing.T) {
			n := newNode(t)
			require.NoError(t, os.Rename(filepath.Join(n.work, "plugins/test-cni"), filepath.Join(n.work, "plugins/cilium-cni")))
			for _, name := range []string{"cilium-cni", "loopback"} {
				require.NoError(t, os.WriteFile(filepath.Join(n.work, "plugins", name), []byte(statusPlugin), 0o755))
			}
			n.containerd(version, "/etc/cni")

			install := func(cniVersion string) (code int, stdout, stderr string) {
				return n.run("install-cni", "--plugins", n.work+"/plugins", "--cni-template", "none", "--cni-version", cniVersion)
			}
			e := cri.Endpoint{HostProc: n.Proc(), Path: usual}
			becomes := func(ready bool, version string) (s cri.Status) {
				t.Helper()
				require.Eventually(t, func() bool {
					var err error
					s, err = e.Status(t.Context())
					loaded := err == nil && len(s.Networks) == 1 && strings.Contains(s.Networks[0].Source, `"cniVersion": "`+version+`"`)
					return loaded && s.NetworkReady == ready
				}, 30*time.Second, 50*time.Millisecond, "with %s: ready %v", version, ready)
				return s
			}
			for _, old := range []string{"0.3.1", "1.0.0"} {
				code, stdout, stderr := install(old)
				require.Zero(t, code, stdout+stderr)
				becomes(true, old)
			}
			r, err := e.Runtime(t.Context())
			require.NoError(t, err)
			t.Log(r)
			if r.CallsStatus() != nil {
				code, stdout, stderr := install("1.1.0")
				require.Equal(t, 1, code, stdout+stderr)
				require.Contains(t, stderr, "does not call STATUS of CNI 1.1.0, which it does since 2.0.1")
				becomes(true, "1.0.0")
				return
			}
			code, stdout, stderr := install("1.1.0")
			require.Zero(t, code, stdout+stderr)
			require.Contains(t, becomes(false, "1.1.0").Reason, "DaemonDown")
			n.shell("touch /run/agent-answers")
			becomes(true, "1.1.0")
			n.shell("rm /run/agent-answers")
			becomes(false, "1.1.0")
		})
	}
}
