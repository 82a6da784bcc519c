// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package layouts_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/mountinfo"
	"github.com/slipway-dev/slipway/internal/snapshot"
	"github.com/slipway-dev/slipway/internal/testns"
	"github.com/slipway-dev/slipway/internal/verify/programs"
)

var (
	update = flag.Bool("update", false, "write nodeinit's output to testdata/golden, and the table to EVIDENCE.md")
)

const (
	plugin   = "cilium-cni"
	confName = "05-cilium.conflist"
	dropIn   = "99-zzz-override_cilium.conf"

	podsConfig = "/tmp/cilium/config-map"

	// tke is a configuration that users give whole, since there is no template for the
	// cloud.
	tke = `{"cniVersion":"0.3.1","name":"generic-veth","plugins":[{"type":"tke-route-eni"},{"type":"cilium-cni","chaining-mode":"generic-veth"}]}` + "\n"
)

func TestLayouts(t *testing.T) {
	testns.Root(t)
	dir := images(t)
	archives, err := filepath.Glob("testdata/*.txtar")
	require.NoError(t, err)
	var rows []row
	for _, path := range archives {
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		t.Run(name, func(t *testing.T) { rows = append(rows, open(t, name).life(t, dir)) })
	}
	if len(rows) == len(archives) && !t.Failed() {
		table(t, rows)
	}
}

func open(t *testing.T, name string) layout {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".txtar"))
	require.NoError(t, err)
	l, err := parse(name, string(text))
	require.NoError(t, err)
	return l
}

// Absolute links of the node lead to the node's files even if its root is mounted in a
// container: MicroK8s has links to its own directories, NixOS to its store.
func TestAHostPrefixHoldsTheNodesLinks(t *testing.T) {
	testns.Root(t)
	dir := images(t)
	for name, want := range map[string]struct{ plugin, conf, says string }{
		"microk8s": {"/var/snap/microk8s/8000/opt/cni/bin/" + plugin, "/var/snap/microk8s/8000/args/cni-network/" + confName, ""},
		"nixos":    {"", "", "/host/nix/store/7dqv-kubernetes-cni-config/" + confName + ": /host/nix/store/7dqv-kubernetes-cni-config is not writable: read-only file system"},
	} {
		t.Run(name, func(t *testing.T) {
			n := build(t, open(t, name), dir)
			before := n.state()
			installer := func(command string, args ...string) outcome {
				args = append([]string{"pod", work + "/pod", "/nodeinit", command, "--state-dir=/host/var/lib/slipway"}, args...)
				return n.run([]string{"HOST_PREFIX=/host"}, work+"/standin", args...)
			}
			o := installer("install-cni", "--plugins=/cni", "--cni-template=none")
			if want.says != "" {
				require.Equal(t, 1, o.code, o)
				require.Contains(t, o.stderr, want.says)
				o = installer("uninstall-cni") // the failed run left a report
				require.Zero(t, o.code, o)
				require.Empty(t, before.Diff(n.state()))
				return
			}
			require.Zero(t, o.code, o)
			n.do(func() error {
				_, err := os.Lstat(want.conf)
				return errors.Join(err, unix.Access(want.plugin, unix.X_OK))
			})
			o = installer("uninstall-cni")
			require.Zero(t, o.code, o)
			require.Empty(t, before.Diff(n.state()))
		})
	}
}

// images builds the programs for the nodes: nodeinit in a pod's image, and the stand-ins.
func images(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o755))
	for _, sub := range []string{"pod/cni", "pod/config", "pod/conf", "pod/proc", "pod/host", "pod/run", "pod/hostproc", "pod/tmp/cilium", "run"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, sub), 0o755))
	}
	for to, pkg := range map[string]string{"pod/nodeinit": "./examples/nodeinit", "standin": "./internal/verify/layouts/standin"} {
		built, err := programs.Program{Package: pkg}.Build(t.Context())
		require.NoError(t, err)
		program, err := os.ReadFile(built)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, to), program, 0o755))
	}
	standin, err := os.ReadFile(filepath.Join(dir, "standin"))
	require.NoError(t, err)
	for _, name := range []string{plugin, "loopback"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "pod/cni", name), standin, 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "pod/config/cluster-name"), []byte("default"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "pod/conf/tke.conflist"), []byte(tke), 0o644))
	for _, name := range []string{"kubelet", "kubelite", "k3s", "rke2"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "run", name), standin, 0o755))
	}
	require.NoError(t, os.Symlink("k3s", filepath.Join(dir, "run/k3s-server"))) // the name it is called by
	return dir
}

// life plays the life of a node: check, apply, apply again, uninstall, and cleanup of what
// another installer left. If the first apply is refused, it takes each of the remedies named,
// on the same node.
func (l layout) life(t *testing.T, dir string) row {
	n := build(t, l, dir)
	var flags []string
	for _, f := range l.all("flags") {
		flags = append(flags, f.args...)
	}
	before := n.state()
	var golden strings.Builder
	check := n.show(&golden, "check", flags...)
	require.Equal(t, check, n.direct("check", flags...), "the pod and the command on the node itself report the same")
	remedies := l.all("remedy", "advice")
	if len(remedies) == 0 {
		require.Equal(t, 2, check.code, check)
		n.installed(&golden, before, flags)
	} else {
		n.refused(&golden, check, before, flags)
	}
	for _, r := range remedies {
		fmt.Fprintf(&golden, "== with %s\n", strings.Join(r.args[1:], " "))
		n.installed(&golden, before, append(slices.Clone(flags), r.args[1:]...))
	}
	n.cleaned(&golden, before)
	compare(t, filepath.Join("testdata", "golden", l.name+".txt"), golden.String())
	return l.row(n.plugins)
}

// refused applies without a remedy. check must report the cause, and each of the
// remedies, beforehand.
func (n *node) refused(golden *strings.Builder, check outcome, before snapshot.Snapshot, flags []string) {
	n.t.Helper()
	apply := n.show(golden, "apply", flags...)
	for _, r := range n.layout.all("remedy", "advice") {
		if r.verb == "remedy" {
			require.Equal(n.t, 1, apply.code, apply)
			require.Contains(n.t, apply.stderr, "step "+r.args[0]+": ")
			// check cannot be certain about a failure after a step that would change
			// something.
			require.Regexp(n.t, `(?m)^  `+r.args[0]+` +(failed|unknown)`, check.stdout)
		} else {
			require.Equal(n.t, []int{2, 0}, []int{check.code, apply.code}, apply)
			require.Contains(n.t, check.stdout, " sorts before ")
			require.Contains(n.t, apply.stdout, " sorts before ")
			continue
		}
		for _, flag := range r.args[1:] {
			name, _, _ := strings.Cut(flag, "=")
			require.Contains(n.t, check.stdout+check.stderr, name, "check names the remedy")
			require.Contains(n.t, apply.stdout+apply.stderr, name, "and so does apply")
		}
	}
	require.Zero(n.t, n.show(golden, "uninstall").code)
	require.Empty(n.t, before.Diff(n.state()), "after the refused apply and uninstall")
}

// installed applies, verifies that the installed files are used, applies again, which
// must change nothing, and uninstalls, which must restore the node.
func (n *node) installed(golden *strings.Builder, before snapshot.Snapshot, flags []string) {
	n.t.Helper()
	apply := n.show(golden, "apply", flags...)
	require.Zero(n.t, apply.code, apply)
	n.inUse(flags)
	again := n.show(golden, "apply", flags...)
	require.Zero(n.t, again.code, again)
	check := n.direct("check", append(slices.Clone(flags), "--skip=config")...) // which was written in the pod
	require.Zero(n.t, check.code, check)
	require.NotRegexp(n.t, `(?m)^  (host-paths|cgroup|sysctl|bpffs|cni) +changed`, again.stdout) // config is in each pod
	uninstall := n.show(golden, "uninstall")
	require.Zero(n.t, uninstall.code, uninstall)
	require.Empty(n.t, before.Diff(n.state()), "after uninstall")
}

// cleaned leaves what the agent's own installer does, wherever the runtime looks, and cleans
// up on the node itself, which must restore it.
func (n *node) cleaned(golden *strings.Builder, before snapshot.Snapshot) {
	n.t.Helper()
	confDir, pluginDirs := n.layout.reads()
	var left []string
	n.do(func() error {
		for _, dir := range append([]string{confDir}, pluginDirs...) {
			name := plugin
			if dir == confDir {
				name = confName
			}
			err := os.WriteFile(filepath.Join(dir, name), nil, 0o644)
			if err == nil {
				left = append(left, filepath.Join(dir, name))
			} else if !errors.Is(err, unix.EROFS) && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		left = append(left, "/run/cilium")
		return os.MkdirAll("/run/cilium/state", 0o755)
	})
	for _, how := range []string{"--dry-run", "-f"} {
		o := n.run(nil, work+"/pod/nodeinit", "cleanup", "--all-state", how)
		fmt.Fprintf(golden, "$ nodeinit cleanup --all-state %s\n%v", how, o)
		require.Zero(n.t, o.code, o)
		for _, object := range left {
			require.Contains(n.t, o.stdout, object)
		}
	}
	require.Empty(n.t, before.Diff(n.state()), "after cleanup")
}

// inUse returns an error unless the installed files are in use.
func (n *node) inUse(flags []string) {
	n.t.Helper()
	confDir, pluginDirs := n.layout.reads()
	n.do(func() error {
		if slices.Contains(flags, "--skip=cni") {
			return nil
		}
		i := slices.IndexFunc(pluginDirs, func(dir string) bool { return unix.Access(filepath.Join(dir, plugin), unix.X_OK) == nil })
		if i < 0 {
			return fmt.Errorf("no plugin in %s, where the runtime looks", pluginDirs)
		}
		n.plugins = pluginDirs[i]
		if name := first(confDir); name != confName {
			return fmt.Errorf("the runtime loads %q from %s", name, confDir)
		}
		return nil
	})
	n.do(func() error {
		const value = "/proc/sys/net/ipv4/conf/all/rp_filter"
		is, err := os.ReadFile(value)
		if err != nil || strings.TrimSpace(string(is)) != "0" && !slices.Contains(flags, "--skip=sysctl") {
			return fmt.Errorf("%s is %q (%v)", value, is, err)
		}
		return n.dropInIsRead()
	})
	n.do(func() error {
		mounts, err := mountinfo.Read()
		for path, kind := range map[string]string{"/run/cilium/cgroupv2": "cgroup2", "/sys/fs/bpf": "bpf"} {
			if !slices.ContainsFunc(mounts, func(m mountinfo.Mount) bool { return m.Point == path && m.FSType == kind }) {
				err = errors.Join(err, fmt.Errorf("no %s on %s", kind, path))
			}
		}
		return err
	})
}

// first returns the configuration that a runtime loads.
func first(confDir string) string {
	entries, _ := os.ReadDir(confDir)
	for _, e := range entries {
		if slices.Contains([]string{".conf", ".conflist", ".json"}, filepath.Ext(e.Name())) {
			return e.Name()
		}
	}
	return ""
}

// dropInIsRead returns an error if a drop-in is in a directory that is not read at boot.
func (n *node) dropInIsRead() error {
	var read []os.FileInfo
	for _, s := range n.layout.all("sysctl") {
		for _, dir := range s.args {
			if info, err := os.Stat(dir); err == nil {
				read = append(read, info)
			}
		}
	}
	return walk(n.layout.places(), func(path string) error {
		if filepath.Base(path) != dropIn {
			return nil
		}
		dir, err := os.Stat(filepath.Dir(path))
		if err == nil && !slices.ContainsFunc(read, func(r os.FileInfo) bool { return os.SameFile(r, dir) }) {
			err = fmt.Errorf("%s is not read at boot", path)
		}
		return err
	})
}

// places returns the node's file systems whose files are compared.
func (l layout) places() (dirs []string) {
	for _, m := range l.all("mount") {
		if !strings.HasPrefix(m.args[0], "/sys/") {
			dirs = append(dirs, m.args[0])
		}
	}
	return dirs
}

func walk(dirs []string, f func(path string) error) error {
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if e != nil && e.IsDir() && slices.Contains([]string{"/proc", "/sys", "/dev", work}, path) {
				return fs.SkipDir
			}
			return errors.Join(err, f(path))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// state describes everything that nodeinit may change on the node.
func (n *node) state() snapshot.Snapshot {
	n.t.Helper()
	s := snapshot.Snapshot{}
	n.do(func() error {
		return errors.Join(s.Files(n.layout.places()...), s.Mounts(), s.Links(), s.Values("net/ipv4", "net/ipv6"))
	})
	s.DropMoving()
	s.DropSources()
	for _, lock := range []string{"/run/slipway.lock", "/run/xtables.lock"} { // which stay
		delete(s, "file "+lock)
	}
	for object := range s {
		for _, m := range n.layout.all("mount") {
			if upper := option(m.args[2:], "upper"); upper != "" && strings.Contains(object, upper+"/") {
				delete(s, object) // the overlay's own: its merged view is compared instead
			}
		}
	}
	return s
}

// reads returns where the kubelet's runtime looks: the layout's first.
func (l layout) reads() (confDir string, pluginDirs []string) {
	r := l.all("containerd", "crio")[0]
	return r.args[1], r.args[2:]
}

// outcome is how a run of nodeinit ended.
type outcome struct {
	code           int
	stdout, stderr string
}

func (o outcome) String() string {
	return fmt.Sprintf("%s%sexit status %d\n", o.stdout, o.stderr, o.code)
}

// show runs nodeinit as the pod's init container, and adds its output to golden.
func (n *node) show(golden *strings.Builder, command string, flags ...string) outcome {
	n.t.Helper()
	args := []string{command, "--host-proc=/hostproc"}
	if command != "uninstall" {
		args = append(args, manifest("", podsConfig, flags)...)
	}
	o := n.run(pods, filepath.Join(work, "standin"), slices.Concat([]string{"pod", filepath.Join(work, "pod"), "/nodeinit"}, args, flags)...)
	fmt.Fprintf(golden, "$ nodeinit %s\n%v", strings.Join(append([]string{command}, flags...), " "), o)
	return o
}

// manifest returns the command line of an agent's manifest, whose image is at root.
func manifest(root, dest string, flags []string) []string {
	args := []string{"--source=dir:" + root + "/config", "--dest=" + dest, "--plugins=" + root + "/cni"}
	if slices.ContainsFunc(flags, func(f string) bool { return strings.HasPrefix(f, "--cni-conf=") }) {
		return args
	}
	return append(args, "--cni-template=none")
}

// direct runs nodeinit on the node itself.
func (n *node) direct(command string, flags ...string) outcome {
	n.t.Helper()
	const pod, dest = work + "/pod", "/dev/shm/config-map"
	args := slices.Concat([]string{command}, manifest(pod, dest, flags), flags)
	for i, arg := range args {
		args[i] = strings.Replace(arg, "=/conf/", "="+pod+"/conf/", 1)
	}
	o := n.run(pods, pod+"/nodeinit", args...)
	o.stdout = strings.ReplaceAll(o.stdout, dest, podsConfig)
	return o
}

// pods is the environment in the manifest.
var pods = []string{"K8S_NODE_NAME=node", "CILIUM_K8S_NAMESPACE=kube-system", "POD_UID=9f2c"}

func (n *node) run(env []string, program string, args ...string) outcome {
	n.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(program)
	cmd.Args = append(cmd.Args, args...)
	cmd.Env = env
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(n.t, n.StartCommand(cmd))
	err := cmd.Wait()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) {
		require.NoError(n.t, err)
	}
	return outcome{cmd.ProcessState.ExitCode(), steady(stdout.String()), steady(stderr.String())}
}

// steady removes parts that differ from run to run.
func steady(text string) string {
	return times.ReplaceAllString(text, "${1}TIME")
}

var times = regexp.MustCompile(`([ (]) *[0-9.]+ ?(µs|ms|s)\b`)

// compare compares with the golden file, or writes it.
func compare(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "nodeinit's output differs from %s (-update accepts it)", path)
}
