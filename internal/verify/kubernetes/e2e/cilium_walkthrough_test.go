// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build cilium

package e2e_test

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/slipway-dev/slipway/internal/verify/image"
	"github.com/slipway-dev/slipway/internal/verify/kubernetes/e2e/cluster"
	"github.com/slipway-dev/slipway/internal/verify/programs"
)

// walk is the walk-through for a stranger, whose commands run on the node as the page has
// them, in the repository: kubectl, go and the post-renderer are real. In place of kind,
// docker and helm are programs of testdata, which take what the page says and no more.
type walk struct {
	dir    string // what those share with the test
	root   string // of the repository; on the node, what is written there goes to dir
	blocks []string
	shell  string // what those that have run leave to the next
}

const (
	walkDir = "/run/e2e/walkthrough" // on the node
	filter  = "/proc/sys/net/ipv4/conf/all/rp_filter"
)

var shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// startWalk reads the page and prepares the node for its commands, with what the chart
// renders for the image of its release.
func startWalk(t *testing.T, chart []object) *walk {
	t.Helper()
	root, err := programs.Root()
	require.NoError(t, err)
	w := &walk{dir: filepath.Join(node.Root(), walkDir), root: root}
	page, err := os.ReadFile(filepath.Join(deployDir, "walkthrough.md"))
	require.NoError(t, err)
	text := strings.Replace(string(page), "NODE=kind-worker\n", "NODE="+cluster.NodeName+"\n", 1)
	for _, block := range shellBlock.FindAllStringSubmatch(text, -1) {
		w.blocks = append(w.blocks, block[1])
	}
	on(t, "mkdir -p "+walkDir+"/upper "+walkDir+"/work; mount -t overlay -o lowerdir="+root+",upperdir="+walkDir+"/upper,workdir="+walkDir+"/work walk "+root)
	on(t, "echo 0 >"+filter)
	on(t, "mkdir /dev/pts; mount -t devpts -o newinstance,ptmxmode=0666 devpts /dev/pts; ln -s pts/ptmx /dev/ptmx") // for a person's terminal
	t.Cleanup(func() { on(t, "rm /dev/ptmx; umount /dev/pts; rmdir /dev/pts; umount "+root+"; rm -rf "+walkDir) })
	on(t, "ctr --namespace k8s.io images tag --force "+cluster.Pause+" registry.k8s.io/pause:3.10")
	require.NoError(t, os.CopyFS(filepath.Join(w.dir, "bin"), os.DirFS("testdata/walkthrough")))
	var all strings.Builder
	for _, o := range chart {
		text, err := yaml.Marshal(o)
		require.NoError(t, err)
		all.WriteString("---\n" + string(text))
	}
	require.NoError(t, node.WriteFile(walkDir+"/chart.yaml", all.String()))
	return w
}

// kept is what a shell keeps of a block for those that follow.
var kept = regexp.MustCompile(`(?m)^[A-Z]+=.*\n|^\w+\(\) \{\n(  .*\n)*\}\n`)

// next runs the next block of the page as a person does, who has run those before, and
// checks what it says.
func (w *walk) next(t *testing.T, begins, says string) {
	t.Helper()
	require.NotEmpty(t, w.blocks)
	block := w.blocks[0]
	w.blocks = w.blocks[1:]
	require.True(t, strings.HasPrefix(block, begins), block)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 6*time.Minute) // the page waits for five
	defer cancel()
	cmd := exec.CommandContext(ctx, "script", "--quiet", "--return", "--command", "set -eu\n"+w.shell+block, "/dev/null")
	cmd.Dir = w.root
	cmd.Env = append(pageEnv(t), "WALK="+walkDir)
	out, err := node.Output(cmd)
	require.NoError(t, err, block)
	require.Regexp(t, says, out, block)
	w.shell += strings.Join(kept.FindAllString(block, -1), "")
}

// pageEnv has what is on the page found, and go with what it has built on the machine.
func pageEnv(t *testing.T) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT", "GOCACHE", "GOMODCACHE").Output()
	require.NoError(t, err)
	dirs := strings.Fields(string(out))
	require.Len(t, dirs, 3)
	return []string{
		"PATH=" + walkDir + "/bin:/run/e2e/bin:" + dirs[0] + "/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"GOCACHE=" + dirs[1], "GOMODCACHE=" + dirs[2], "GOFLAGS=-buildvcs=false", "GOWORK=off", "GOTOOLCHAIN=local",
	}
}

// importBuilt gives the node the image that docker was told to build, over these files.
func (w *walk) importBuilt(t *testing.T, files []image.File) {
	t.Helper()
	name, err := os.ReadFile(filepath.Join(w.dir, "name"))
	require.NoError(t, err)
	copied := os.DirFS(filepath.Join(w.dir, "image"))
	require.NoError(t, fs.WalkDir(copied, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(copied, path)
		files = append(files, image.File{Path: "/" + path, Mode: 0o755, Content: content})
		return err
	}))
	require.NoError(t, node.Import(t.Context(), strings.TrimSpace(string(name)), nil, files...))
}

// A stranger's way through the page, with what it says on the way and the release that it names,
// from its own chart: each block of commands as it stands there, so one that is wrong fails.
func TestWalkThroughWithCilium(t *testing.T) {
	begin(t)
	cilium120.importImage(t) // for the operator
	prepareForCilium(t)
	nodeReady(t, "False")
	own := []string{"image.override=quay.io/cilium/cilium:v1.20.2", "operator.image.override=" + cilium120.image()}
	w := startWalk(t, documents(t, []byte(ownMachine(string(cilium120.chart(t, slices.Concat(own, ciliumValues)...))))))
	on(t, "nft delete table ip raw")
	before := look(t)
	w.through(t, cilium120.agentContents(t))
	removeUnrecorded(t)
	require.NotContains(t, on(t, "nft list table ip raw; nft delete table ip raw"), "jump")
	settles(t, before, "but for what the page names, the node is as it was before")
}

// through is the page from its first block to its last.
func (w *walk) through(t *testing.T, agent []image.File) {
	t.Helper()
	w.next(t, "cat >kind.yaml", ` NotReady `)
	w.next(t, "CGO_ENABLED=0 go build", "")
	w.importBuilt(t, agent)
	install := w.blocks[0]
	w.next(t, "go build -C examples/postrender", `(?s)successfully rolled out.* condition met`)
	nodeReady(t, "True")
	require.Equal(t, "nodeinit", kubectl(t, "get", "pods", "--namespace=kube-system", "--selector=k8s-app=cilium", "--output=jsonpath={.items[*].spec.initContainers[*].name}"))
	w.next(t, "kubectl -n kube-system logs", `(?s)sysctl +changed .*7 steps: `)
	w.next(t, "NODE=", `(?s)agent cilium: ok\s+last run  apply, .*, version `)
	w.next(t, "docker exec", `(?s)sysctl +would-change .* set net.ipv4.conf.all.rp_filter = 0 \(is 1\).*exit status 2`)
	w.next(t, "kubectl -n kube-system delete pod", ` deleted`)
	kubectl(t, "rollout", "status", "daemonset/cilium", "--namespace=kube-system", "--timeout=120s")
	w.next(t, "kubectl -n kube-system rollout status", `sysctl +unchanged `)
	uninstall := w.blocks[0]
	w.next(t, "helm uninstall", `(?s)successfully rolled out.* deleted`)
	nodeReady(t, "False")
	w.blocks = append([]string{install, uninstall}, w.blocks...) // it can be installed again
	w.next(t, "go build -C examples/postrender", ` condition met`)
	w.next(t, "helm uninstall", `successfully rolled out`)
	nodeReady(t, "False")
	w.next(t, "kind delete", "")
	require.Empty(t, w.blocks)
	require.Equal(t, "1\n", on(t, "cat "+filter+"; echo 0 >"+filter), "it comes back as it was found")
}

// ownMachine has a chart ask for what this machine has: no capabilities that it lacks, and
// another directory of modules.
func ownMachine(chart string) string {
	chart = regexp.MustCompile(`(?m)^ *- SYS_(MODULE|RESOURCE)\n`).ReplaceAllString(chart, "")
	return strings.Replace(chart, "path: /lib/modules\n", "path: /run/e2e/modules\n          type: DirectoryOrCreate\n", 1)
}
