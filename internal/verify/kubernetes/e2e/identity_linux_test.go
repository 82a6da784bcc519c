// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package e2e_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/testns"
)

// Where those lie who lie about who they are, as in internal/verify/attack.
const (
	liarsProgram = "/opt/attack"
	liarsFolder  = "/var/liar"
)

// A node's life with an agent, beside a user who runs a set-user-id program by a link
// named kubelet, and a privileged pod that is called kubelet, among the host's processes.
// By their word plugins would go to the user's folder, and the configuration to that of
// sshd.
func TestSEC11_LifeOfANodeBesideLiars(t *testing.T) {
	testns.SkipShort(t, "a minute")
	begin(t)
	on(t, script(t, "foreign.sh"))
	on(t, "cd /var/lib/cni/networks && ls | grep -vx other | xargs rm -rf") // of tests before this one
	lie(t)
	look(t) // looking for rules makes the kernel's tables
	life(t, agent(t))
	require.Empty(t, on(t, "find "+liarsFolder+" /etc/ssh -type f 2>/dev/null -newer "+liarsProgram+"/attack || true"))
}

// lie starts all of them, for as long as the test runs.
func lie(t *testing.T) {
	t.Helper()
	program, err := build(t.Context(), "internal/verify/attack")
	require.NoError(t, err)
	on(t, "mkdir -p -m 755 "+liarsProgram+" "+liarsFolder+"/su "+liarsFolder+"/plain")
	require.NoError(t, os.WriteFile(filepath.Join(node.Root(), liarsProgram, "attack"), program, 0o755))
	t.Cleanup(func() {
		on(t, "xargs -r kill < /run/e2e/liars || true; rm -rf /run/e2e/liars "+liarsFolder+" "+liarsProgram)
	})
	on(t, `cd `+liarsProgram+`
chmod 755 attack; cp attack su; chmod 4755 su; ln attack kubelet
ln -s $PWD/su `+liarsFolder+`/su/kubelet; ln -s $PWD/attack `+liarsFolder+`/plain/kubelet
chown 65534:65534 `+liarsFolder+`
mkdir -p /run/e2e
(echo; exec sleep 900) 2>/dev/null | setpriv --reuid 65534 --regid 65534 --clear-groups ./attack -as liar kubelet >/dev/null 2>&1 &
echo $! > /run/e2e/liars`)
	pod := liarInAPod("liar-kubelet", "kubelet of a pod")
	kubelet := pod["spec"].(object)
	kubelet["hostPID"] = true
	kubelet["containers"].([]any)[0].(object)["securityContext"] = object{"privileged": true}
	t.Cleanup(func() { kubectl(t, "delete", "pods", "--selector=app=liar", "--ignore-not-found") })
	applyObjects(t, pod)
	kubectl(t, "wait", "pods", "--selector=app=liar", "--for=condition=Ready", "--timeout=60s")
	on(t, "timeout 20 sh -c 'until test -S "+liarsFolder+"/his.sock; do :; done'")
	on(t, "xargs kill -0 < /run/e2e/liars")
}

// liarInAPod is root there, and shares the host's network.
func liarInAPod(name, lie string) object {
	return object{
		"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": name, "labels": object{"app": "liar"}},
		"spec": object{
			"hostNetwork": true, "tolerations": []any{object{"operator": "Exists"}}, "terminationGracePeriodSeconds": 0,
			"automountServiceAccountToken": false,
			"containers": []any{object{
				"name": "liar", "image": agentImage, "imagePullPolicy": "Never",
				"command": []any{"/bin/sh", "-c", `(echo; exec sleep 900) | ` + liarsProgram + `/attack -as liar "` + lie + `" >/dev/null`},
				"volumeMounts": []any{
					object{"name": "program", "mountPath": liarsProgram, "readOnly": true},
					object{"name": "folder", "mountPath": liarsFolder},
				},
			}},
			"volumes": []any{
				object{"name": "program", "hostPath": object{"path": liarsProgram}},
				object{"name": "folder", "hostPath": object{"path": liarsFolder}},
			},
		},
	}
}
