// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package e2e_test

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fault is something wrong with a cluster, a manifest or a node, and what
// kubectl describe then has to say: the cause and the remedy.
type fault struct {
	name  string
	wrong func(*testing.T, *deployment) // before the DaemonSet is created
	says  []string
	short bool // also where time is short
}

var faults = []fault{
	{
		name: "RBAC denies", short: true,
		wrong: func(t *testing.T, d *deployment) {
			d.drop("Role", "RoleBinding")
			kubectl(t, "delete", "role,rolebinding", "agent-nodeinit", "--namespace=kube-system", "--ignore-not-found")
		},
		says: []string{
			`User "system:serviceaccount:kube-system:agent" cannot get resource "configmaps"`,
			`grant it by a Role in namespace kube-system with the rule {apiGroups: [""], resources: ["configmaps"], resourceNames: ["cilium-config"], verbs: ["get"]}`,
		},
	},
	{
		name: "no API server",
		wrong: func(t *testing.T, d *deployment) {
			d.flags("--timeout=6s", "--k8s-api-server-urls=https://127.0.0.1:1")
		},
		says: []string{"https://127.0.0.1:1", "connection refused", "--k8s-api-server-urls: URLs of API servers"},
	},
	{
		name:  "a directory that the host does not have",
		wrong: func(t *testing.T, d *deployment) { d.hostPath("hostproc", "/nowhere") },
		says:  []string{"hostPath type check failed: /nowhere is not a directory"},
	},
	{
		name: "a disk is full",
		wrong: func(t *testing.T, d *deployment) {
			on(t, "mount -t tmpfs -o size=1m full /opt/cni/bin; head -c 1000000 /dev/zero > /opt/cni/bin/other")
			t.Cleanup(func() { on(t, "umount /opt/cni/bin") })
		},
		says: []string{"write file /opt/cni/bin/bridge: ", "no space left on device (needs free space and free inodes"},
	},
	{
		name:  "no token",
		wrong: func(t *testing.T, d *deployment) { d.pod["automountServiceAccountToken"] = false },
		says:  []string{"automountServiceAccountToken"},
	},
}

// kubectl describe pod alone says what has failed, where, and what to do.
func TestFaultsAreTold(t *testing.T) {
	begin(t)
	for _, f := range faults {
		if testing.Short() && !f.short {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			begin(t)
			t.Cleanup(func() { on(t, "/run/nodeinit uninstall --any-owner --force") })
			d := agent(t)
			f.wrong(t, d)
			d.apply(t)
			described(t, f)
		})
	}
}

// described waits until the output of kubectl describe for the pod has what it must: the
// messages of its containers, and warnings. The kubelet may have warned of something that was
// over soon.
func described(t *testing.T, f fault) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		text, err := node.Kubectl(context.WithoutCancel(t.Context()), "describe", "pods", "--namespace=kube-system", "--selector=app=agent")
		said := messageOf(text)
		if err == nil && !slices.ContainsFunc(f.says, func(want string) bool { return !strings.Contains(said, want) }) {
			return
		}
		require.True(t, time.Now().Before(deadline), "it has to say %q, and says:\n%s\nof:\n%s", f.says, said, text)
		time.Sleep(200 * time.Millisecond)
	}
}

var (
	message = regexp.MustCompile(`(?ms)^ +Message: +(.*?)^ +Exit Code: +(\d+)`)
	warning = regexp.MustCompile(`(?m)^ +Warning +(Failed\w*|InspectFailed) .*?  (\S.*)$`)
)

func messageOf(description string) string {
	for _, m := range message.FindAllStringSubmatch(description, -1) {
		if m[2] != "0" {
			return strings.TrimSpace(m[1])
		}
	}
	if m := warning.FindStringSubmatch(description); m != nil {
		return m[1] + ": " + m[2]
	}
	return ""
}

// drop leaves out objects of these kinds.
func (d *deployment) drop(kinds ...string) {
	d.objects = slices.DeleteFunc(d.objects, func(o object) bool { return slices.Contains(kinds, o["kind"].(string)) })
}

// hostPath has a volume show another directory of the host.
func (d *deployment) hostPath(volume, path string) {
	for _, v := range d.pod["volumes"].([]any) {
		if v.(object)["name"] == volume {
			at(v.(object), "hostPath")["path"] = path
		}
	}
}
