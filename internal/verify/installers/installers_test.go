// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package installers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/reconcile"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/internal/testns"
	"github.com/slipway-dev/slipway/internal/verify/installers"
)

// table is a file of testdata: texts and steps by their names, and cases: "STEP; STEP", by
// name, and after "|" why ours does otherwise than theirs. What ends in " x2" they run twice.
type table struct {
	Texts, Steps map[string]string
	Cases        []map[string]string
}

var ours = map[string]func(installers.Env) (*bootstrap.Plan, error){
	"aws": installers.AWS, "calico": installers.Calico, "istio": installers.Istio, "linkerd": installers.Linkerd, "multus": installers.Multus,
}

// The projects' own cases; and, with all of them on a node, what their users have reported.
// EVIDENCE.md has the counts.
func TestCNI4_CNI8_InstallersOfOthers(t *testing.T) {
	for _, name := range append(slices.Sorted(maps.Keys(ours)), "reports") {
		content, err := os.ReadFile("testdata/" + name + ".yaml")
		require.NoError(t, err)
		var tab table
		require.NoError(t, yaml.Unmarshal(content, &tab))
		all, agree := 0, 0
		for _, c := range tab.Cases {
			for title, text := range c {
				steps, differs, _ := strings.Cut(text, " | ")
				times := 1 + strings.Count(title, " x2")
				all += times
				if differs == "" {
					agree += times
				}
				t.Run(name+"/"+title, func(t *testing.T) { t.Parallel(); newNode(t, tab, name).do(steps) })
			}
		}
		t.Logf("%s: %d cases, of which ours does %d", name, all, agree)
	}
}

// node is a directory with a node's directories, the service account, and each installer's image.
type node struct {
	table
	*testing.T
	root, agent string
	env         installers.Env
	end         func() error // ends the agent that runs
}

func newNode(t *testing.T, tab table, agent string) *node {
	root := t.TempDir()
	n := &node{tab, t, root, agent, installers.Env{
		"BIN": root + "/bin", "CONF": root + "/conf", "RESULTS": root + "/results", "ACCOUNT": root + "/account", "CNI_AGENT_RUN_DIR": root + "/run",
		"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443", "LOG_LEVEL": "debug", "POD_NAMESPACE": "my-namespace",
		"CNI_NETWORK_CONFIG": tab.Texts["source"], "multus-kubeconfig-file-host": "/etc/foobar_kubeconfig", "multus-log-to-stderr": "false",
		"SECOND": root + "/second", "SECRETS": root + "/secrets", "PRIMARY_IP": "10.0.0.0",
	}, nil}
	for _, plugin := range strings.Fields("bridge tuning calico portmap flannel bandwidth cilium-cni mesh-cni loopback") {
		n.do("put /bin/" + plugin + " program")
	}
	n.do("put /istio/istio-cni program; put /linkerd/linkerd-cni program; put /multus/multus program; put /calico/calico program; put /calico/calico-ipam program; put /aws/aws-cni program; put /aws/egress-cni program; put /aws/10-aws.conflist template; put /account/token foo; put /account/ca.crt authority")
	require.NoError(t, os.Mkdir(root+"/conf", 0o755))
	return n
}

// path is a file of the node, in its directory of configurations unless it starts with a slash.
func (n *node) path(name string) string {
	if strings.HasPrefix(name, "/") {
		return n.root + name
	}
	return filepath.Join(n.root, "conf", name)
}

// text is what the table names so, or the word itself; with "+PLUGIN", a configuration that
// has this plugin in addition, at the end.
func (n *node) text(name string) string {
	names := strings.Split(name, "+")
	text, ok := n.Texts[names[0]]
	switch {
	case name == "root":
		return n.root
	case name == "authority", name == "another":
		return "-----BEGIN CERTIFICATE-----\n" + name
	case name == "program": // a plugin that only says which versions it speaks
		return "#!/bin/sh\n" + `echo '{"cniVersion":"1.0.0","supportedVersions":["0.3.1","0.4.0","1.0.0","1.1.0"]}'` + "\n"
	case !ok:
		return os.Expand(strings.Trim(name, `"`), n.text)
	}
	text = os.Expand(text, n.text)
	for _, plugin := range names[1:] {
		var conf map[string]any
		require.NoError(n, json.Unmarshal([]byte(text), &conf))
		if conf["plugins"] == nil {
			conf = map[string]any{"name": conf["name"], "cniVersion": conf["cniVersion"], "plugins": []any{conf}}
		}
		conf["plugins"] = append(conf["plugins"].([]any), json.RawMessage(n.text(plugin)))
		whole, _ := json.Marshal(conf) // it was JSON
		text = string(whole)
	}
	return text
}

// do does the steps, each a verb with its arguments, or the name of some steps.
func (n *node) do(steps string) {
	for _, step := range strings.Split(steps, "; ") {
		if named := n.Steps[step]; named != "" {
			n.do(named)
			continue
		}
		require.NoError(n, n.step(append(strings.Fields(step), "", "", "", "")), step)
	}
}

// step does what others do, then what the installer does, or looks at what there is. The error
// is that it is otherwise.
func (n *node) step(a []string) (err error) {
	path := n.path(a[1])
	switch a[0] {
	case "as":
		n.agent = a[1]
	case "set":
		n.env[a[1]] = n.text(a[2])
	case "put":
		mode := map[bool]fs.FileMode{true: 0o600, false: 0o755}[strings.HasPrefix(path, n.path("."))]
		return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(n.text(a[2])), mode))
	case "rm":
		return os.RemoveAll(path)
	case "mv":
		return os.Rename(path, n.path(a[2]))
	case "ln":
		return errors.Join(os.RemoveAll(n.path(a[2])), os.Symlink(a[1], n.path(a[2])))
	case "sandbox": // a pod of this network, as libcni remembers it
		conf, err := os.ReadFile(n.path(a[2]))
		cached, _ := json.Marshal(map[string]any{"kind": "cniCacheV1", "containerId": "pod", "config": conf, "ifName": "eth0", "networkName": a[1]})
		return errors.Join(err, os.Mkdir(n.path("/results"), 0o700), os.WriteFile(n.path("/results/pod"), cached, 0o600))
	case "shut": // a directory is mounted read-only, as that of an immutable image
		testns.Enter(n, testns.Mount)
		n.Cleanup(func() { _ = exec.Command("umount", path).Run() })
		return exec.Command("mount", "-o", "bind,ro", path, path).Run()
	case "busy": // a program that runs until the case ends
		cmd := exec.CommandContext(n.Context(), path, "1000")
		n.Cleanup(func() { _ = cmd.Wait() })
		return errors.Join(exec.Command("cp", "--remove-destination", "/bin/sleep", path).Run(), cmd.Start())
	case "check":
		return n.check(".", a[1])
	case "checked":
		return n.check(a[1], a[2])
	case "open": // for all to write
		return os.Chmod(path, 0o777)
	case "apply":
		return n.run(a[1], (*bootstrap.Plan).Apply)
	case "uninstall":
		return n.run(a[1], (*bootstrap.Plan).Uninstall)
	case "unchain":
		return cniinstall.Unchain{ConfDir: n.path("."), Plugin: a[1]}.Apply(n.Context())
	case "run":
		return n.start()
	case "stop":
		return n.end()
	case "soon":
		require.Eventually(n, func() bool { err = n.step(a[1:]); return err == nil }, 20*time.Second, 20*time.Millisecond)
	case "access":
		return n.access(path, a[2]+" "+n.text(a[3])+" "+a[4])
	default:
		return n.look(a)
	}
	return nil
}

func (n *node) plan() (*bootstrap.Plan, error) {
	n.env["IMAGE"] = n.root + "/" + n.agent
	p, err := ours[n.agent](n.env)
	if p != nil {
		p.Host, p.Ledger.Dir = bootstraptest.Host(n.T), n.root+"/state"
	}
	return p, err
}

// run does a run of the installer, which ends well, or "fails", or "waits" for a network.
func (n *node) run(expected string, run func(*bootstrap.Plan, context.Context) (*bootstrap.Report, error)) error {
	p, err := n.plan()
	if err == nil {
		_, err = run(p, n.Context())
	}
	ended := map[bool]string{true: "fails"}[err != nil]
	if errors.Is(err, cniinstall.ErrTargetMissing) {
		ended = "waits"
	}
	return as(expected, ended, err)
}

// as returns an error unless it is as expected.
func as(expected, found string, details any) error {
	if found == expected {
		return nil
	}
	return fmt.Errorf("%q, not %q: %v", found, expected, details)
}

// check looks at the configurations, or at another file: there is nothing to do, or the
// installer "writes", or the look "fails".
func (n *node) check(file, expected string) error {
	p, err := n.plan()
	require.NoError(n, err)
	report, _ := p.Check(n.Context())
	last := len(report.Results) - 1
	found, changes := report.Results[last], strings.Join(report.Results[last].Changes, "\n")
	outcome := map[bool]string{true: "writes"}[strings.Contains(changes, n.path(file))]
	if found.Err != nil {
		outcome = "fails"
	}
	return as(expected, outcome, fmt.Sprint(changes, found.Err))
}

// start runs the agent until the case ends, or it is stopped.
func (n *node) start() error {
	p, err := n.plan()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- reconcile.Loop{Plan: p, Interval: time.Second}.Run(ctx) }()
	n.end = sync.OnceValue(func() error { cancel(); return <-ended })
	n.Cleanup(func() { _ = n.end() })
	return err
}

// look looks at a file: it "is" a text, as JSON, or the "same" text, or "not" there; or a
// runtime takes it "first". Or it looks at what comes of it to "chain" a plugin to a text.
func (n *node) look(a []string) error {
	content, err := os.ReadFile(n.path(a[1]))
	switch a[0] {
	case "not":
		return as("true", fmt.Sprint(errors.Is(err, fs.ErrNotExist)), a[1])
	case "first":
		confs, _ := cniinstall.Configs(n.Context(), n.path("."))
		confs = append(slices.DeleteFunc(confs, func(c cniinstall.Conf) bool { return c.Err != nil }), cniinstall.Conf{File: "none"})
		return as(a[1], confs[0].File, nil)
	case "chain":
		conf, err := cniinstall.Chain([]byte(n.text(a[1])), []byte(n.text(a[2])))
		return as(fmt.Sprint(a[3] != "fails"), fmt.Sprint(err == nil && equal(conf, n.text(a[3]))), string(conf))
	case "is":
		if equal(content, n.text(a[2])) {
			return nil
		}
	}
	return errors.Join(err, as(n.text(a[2]), string(content), a[1]))
}

func equal(a []byte, b string) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

// access looks at a kubeconfig: the server, its authority, and the token.
func (n *node) access(path, want string) error {
	content, err := os.ReadFile(path)
	var k struct {
		Clusters []struct {
			Cluster struct {
				Server string
				CA     []byte `json:"certificate-authority-data"`
			}
		}
		Users []struct{ User struct{ Token string } }
	}
	if err := errors.Join(err, json.Unmarshal(content, &k)); err != nil {
		return err
	}
	c := k.Clusters[0].Cluster
	return as(want, c.Server+" "+string(c.CA)+" "+k.Users[0].User.Token, path)
}
