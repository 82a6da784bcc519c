// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build charts

package config_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
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

	"github.com/slipway-dev/slipway/internal/verify/kubernetes/realkube"
	"github.com/slipway-dev/slipway/internal/verify/programs"
)

var (
	ciliums  = []string{"1.18.3", "1.19.7", "1.20.2"}
	versions = []string{"1.30.14", "1.33.13", "1.36.3"} // the last is the one that the other tests use
)

// way is a way to add nodeinit to a chart.
type way struct {
	name        string
	args        []string // the post-renderer's arguments; nil for the component of that name
	imageVolume bool
}

var ways = []way{
	{"postrender", []string{"--as=init"}, false},
	{"postrender --as=run", []string{"--as=run"}, false},
	{"postrender --image-volume", []string{"--as=run", "--image-volume=example.com/nodeinit:1"}, true},
	{"postrender --read-only-etc", []string{"--read-only-etc"}, false},
	{"cilium/one", nil, false},
	{"cilium/one-read-only-etc", nil, false},
	{"cilium/run", nil, false},
	{"cilium/image-volume", nil, true},
}

// given is a set of chart values, as testdata/values.yaml says.
type given struct {
	Name, Namespace, Rendered string
	Set                       []string
	Postrender, Component     string
	Run, From, Says           string
}

var sets = read[given]("testdata/values.yaml")

// expected is the expected refusal; empty if the API server accepts.
func (g given) expected(w way, cilium, kubernetes string) string {
	switch {
	case w.args == nil && g.Component != "" && cilium >= g.From:
		return g.Component
	case w.args != nil && g.Postrender != "":
		return g.Postrender
	case g.Run != "" && (strings.HasSuffix(w.name, "run") || w.imageVolume):
		return g.Run
	case w.imageVolume && kubernetes != "1.36.3":
		return `drops image volumes|image: field not declared in schema`
	}
	return ""
}

// Each chart, with each set of values, each way, on each API server, is accepted, or refused
// with an error that gives the reason.
func TestChartsMatrix(t *testing.T) {
	kubectl(t) // in the PATH for the components
	m := newMatrix(t)
	for _, kubernetes := range versions {
		t.Run(kubernetes, func(t *testing.T) {
			o := realkube.Options{Version: kubernetes, Flags: []string{"--allow-privileged"}, NoAudit: true, Log: os.Stderr}
			if kubernetes == versions[len(versions)-1] {
				o.Version = ""
			}
			api, err := realkube.Start(t.Context(), o)
			require.NoError(t, err)
			defer api.Close()
			version, err := api.Admin().Get(t.Context(), "/version")
			require.NoError(t, err)
			require.Contains(t, string(version), `"v`+kubernetes+`"`)
			require.NoError(t, api.Admin().ApplyYAML(t.Context(), "/api/v1/namespaces/networking", []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: networking}")))
			for _, cilium := range ciliums {
				for _, g := range sets {
					t.Run(cilium+" "+g.Name, func(t *testing.T) { m.cells(t, api, kubernetes, cilium, g) })
				}
			}
		})
	}
	if !t.Failed() {
		m.writeTable(t)
	}
}

// matrix collects the outcomes.
type matrix struct {
	helm, postrender, nodeinit string
	charts                     map[string]string               // directories by version
	made                       map[string]made                 // results by input text and way
	outcomes                   map[[2]string]map[string][]cell // by set and way
}

type made struct {
	daemonSet []byte
	said      string // nodeinit's arguments, variables and mounts
	refused   string
}

type cell struct{ cilium, kubernetes string }

func newMatrix(t *testing.T) *matrix {
	m := &matrix{charts: map[string]string{}, made: map[string]made{}, outcomes: map[[2]string]map[string][]cell{}}
	m.helm, m.postrender, m.nodeinit = helm(t, helm3), buildPostrender(t), buildNodeinit(t)
	for _, version := range ciliums {
		m.charts[version] = filepath.Join(download(t, "github.com/cilium/cilium@v"+version), "install/kubernetes/cilium")
	}
	return m
}

// cells tries each way on helm's output.
func (m *matrix) cells(t *testing.T, api *realkube.Server, kubernetes, cilium string, g given) {
	args := []string{"template", "cilium", m.charts[cilium], "-n", cmp.Or(g.Namespace, "kube-system"), "--kube-version", cmp.Or(g.Rendered, kubernetes),
		"-s", "templates/cilium-agent/daemonset.yaml", "-s", "templates/cilium-configmap.yaml"}
	for _, value := range append([]string{ownImage}, g.Set...) {
		args = append(args, "--set", value)
	}
	cmd := exec.CommandContext(t.Context(), m.helm, args...)
	cmd.Stderr = os.Stderr
	chart, err := cmd.Output()
	require.NoError(t, err)
	for _, w := range ways {
		outcome := m.try(t, api, w, chart, cmp.Or(g.Namespace, "kube-system"))
		if want := g.expected(w, cilium, kubernetes); want == "" {
			require.Equal(t, taken, outcome, w.name)
		} else {
			require.Regexp(t, want, outcome, w.name)
		}
		if said := m.made[w.name+string(chart)].said; said != "" {
			require.Regexp(t, g.Says, said, w.name)
		}
		key := [2]string{g.Name, w.name}
		if m.outcomes[key] == nil {
			m.outcomes[key] = map[string][]cell{}
		}
		m.outcomes[key][outcome] = append(m.outcomes[key][outcome], cell{cilium, kubernetes})
	}
}

const taken = "taken"

// try makes the DaemonSet and sends it to the API server; it returns the refusal, from
// whichever program.
func (m *matrix) try(t *testing.T, api *realkube.Server, w way, chart []byte, namespace string) string {
	key := w.name + string(chart)
	one, ok := m.made[key]
	if !ok {
		one = m.make(t, w, chart)
		m.made[key] = one
	}
	if one.refused != "" {
		return one.refused
	}
	path := "/apis/apps/v1/namespaces/" + namespace + "/daemonsets/cilium?fieldManager=test&fieldValidation=Strict&dryRun=All"
	answer, err := api.Admin().Do(t.Context(), http.MethodPatch, path, "application/apply-patch+yaml", one.daemonSet)
	switch {
	case err != nil:
		return "Kubernetes: " + sentence(err.Error())
	case w.imageVolume && !regexp.MustCompile(`"image": ?{\s*"reference"`).Match(answer):
		return "Kubernetes: takes it, and drops image volumes without a word: they need the feature gate ImageVolume"
	}
	return taken
}

// make runs the post-renderer, or the component's script.
func (m *matrix) make(t *testing.T, w way, chart []byte) made {
	cmd := exec.CommandContext(t.Context(), m.postrender, w.args...)
	if w.args == nil {
		cmd = exec.CommandContext(t.Context(), deployDir+"post-render.sh", w.name)
	}
	var said bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(chart), &said
	out, err := cmd.Output()
	if err != nil {
		require.Empty(t, out, "a refused DaemonSet is not written")
		if w.args == nil {
			require.Contains(t, said.String(), "the component "+w.name+" is for a chart's default values")
		}
		return made{refused: sentence(said.String())}
	}
	for document := range bytes.SplitSeq(out, []byte("\n---\n")) {
		if regexp.MustCompile(`(?m)^kind: DaemonSet$`).Match(document) {
			requireNoneLeft(t, document)
			return made{daemonSet: document, said: m.requireKnown(t, document)}
		}
	}
	t.Fatalf("%s: no DaemonSet:\n%s", w.name, out)
	return made{}
}

// requireKnown runs nodeinit as the container would: it knows every flag and accepts every
// value. The run ends because the host is missing. It returns what the container is told.
func (m *matrix) requireKnown(t *testing.T, daemonSet []byte) (mentioned string) {
	t.Helper()
	inits, containers := podOf(t, daemonSet)
	for _, c := range append(inits, containers...) {
		if len(c.Command) == 0 || filepath.Base(c.Command[0]) != "nodeinit" {
			continue
		}
		args := slices.Insert(c.Command[1:], 1, "--skip=config") // no request to an API server
		cmd := exec.CommandContext(t.Context(), m.nodeinit, slices.Insert(args, 1, "--timeout=10s")...)
		cmd.Env = []string{"CILIUM_K8S_NAMESPACE=kube-system", "PATH=" + os.Getenv("PATH")}
		mentioned = strings.Join(c.Command, " ") + " "
		for _, v := range c.Env {
			mentioned += v.Name + "=" + v.Value + " "
			if v.Value != "" {
				cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
			}
		}
		for _, mount := range c.VolumeMounts {
			mentioned += "mount=" + mount.MountPath + " "
		}
		out, err := cmd.CombinedOutput()
		require.Error(t, err)
		require.Regexp(t, `--host-proc /hostproc|"cilium-agent": executable file not found`, string(out))
		return mentioned
	}
	t.Fatalf("no container runs nodeinit:\n%s", daemonSet)
	return ""
}

// container is one of a pod's.
type container struct {
	Command, Args []string
	Env           []struct{ Name, Value string }
	VolumeMounts  []struct {
		MountPath string `yaml:"mountPath"`
	} `yaml:"volumeMounts"`
}

// podOf returns the containers of a DaemonSet's pods.
func podOf(t *testing.T, daemonSet []byte) (inits, containers []container) {
	t.Helper()
	var object struct {
		Spec struct {
			Template struct {
				Spec struct {
					InitContainers []container `yaml:"initContainers"`
					Containers     []container
				}
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(daemonSet, &object))
	return object.Spec.Template.Spec.InitContainers, object.Spec.Template.Spec.Containers
}

// requireNoneLeft checks that nodeinit has replaced the chart's containers.
func requireNoneLeft(t *testing.T, daemonSet []byte) {
	t.Helper()
	require.Regexp(t, `(?m)^ +- (nodeinit|/slipway/usr/bin/nodeinit)$`, string(daemonSet))
	for _, theirs := range []string{"name: mount-cgroup", "name: apply-sysctl-overwrites", "name: mount-bpf-fs", "name: clean-cilium-state", "name: install-cni-binaries", "cilium-dbg\n"} {
		require.NotContains(t, string(daemonSet), theirs)
	}
}

var lastReason = regexp.MustCompile(`(testing value \S+ failed|test operation does not apply: is missing path: \S+?name|postrender: .*|volumes\S+image: field not declared in schema)`)

// sentence is the relevant part of a program's output.
func sentence(said string) string {
	said = strings.ReplaceAll(said, `\`, "") // JSON escapes
	if found := lastReason.FindString(said); found != "" {
		said = strings.TrimPrefix(found, "postrender: ")
	}
	return strings.Join(strings.Fields(said), " ")
}

// download returns the directory of a module.
func download(t *testing.T, module string) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, programs.Go(t.Context(), &out, t.TempDir(), nil, "mod", "download", "-json", module))
	dir := regexp.MustCompile(`"Dir": "([^"]*)"`).FindSubmatch(out.Bytes())
	require.NotNil(t, dir, out.String())
	return string(dir[1])
}

// writeTable writes the outcomes to the file that the environment names.
func (m *matrix) writeTable(t *testing.T) {
	file := os.Getenv("SLIPWAY_EVIDENCE")
	if file == "" {
		return
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	const start, end = "<!-- make charts -->\n", "<!-- end of make charts -->\n"
	before, rest, ok := strings.Cut(string(text), start)
	require.True(t, ok, start)
	_, after, ok := strings.Cut(rest, end)
	require.True(t, ok, end)
	require.NoError(t, os.WriteFile(file, []byte(before+start+m.table(t.Context())+end+after), 0o644))
}

func (m *matrix) table(ctx context.Context) string {
	var b strings.Builder
	commit, _ := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--abbrev=12").Output()
	fmt.Fprintf(&b, "%s, commit %s: charts %s; Kubernetes %s.\n\n", time.Now().UTC().Format(time.DateOnly), bytes.TrimSpace(commit), strings.Join(ciliums, ", "), strings.Join(versions, ", "))
	b.WriteString("| values |")
	shown := slices.DeleteFunc(slices.Clone(ways), func(w way) bool { return w.imageVolume })
	for _, w := range shown {
		fmt.Fprintf(&b, " `%s` |", w.name)
	}
	fmt.Fprintf(&b, "\n|---%s|\n", strings.Repeat("|---", len(shown)))
	var notes []string
	for _, g := range sets {
		fmt.Fprintf(&b, "| %s |", g.Name)
		for _, w := range shown {
			fmt.Fprintf(&b, " %s |", cellText(m.outcomes[[2]string{g.Name, w.name}], &notes))
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	for i, note := range notes {
		fmt.Fprintf(&b, "%d. %s\n", i+1, note)
	}
	b.WriteString("\nWith an image volume (`--image-volume`, `cilium/image-volume`):\n\n")
	notes = nil
	for _, w := range ways {
		if w.imageVolume {
			fmt.Fprintf(&b, "- `%s`: default values %s\n", w.name, cellText(m.outcomes[[2]string{sets[0].Name, w.name}], &notes))
		}
	}
	b.WriteString("- all other values as without, where it is taken\n\n")
	for i, note := range notes {
		fmt.Fprintf(&b, "%d. %s\n", i+1, note)
	}
	return b.String()
}

// cellText is a cell of the table; a refusal is given as the number of a note.
func cellText(outcomes map[string][]cell, notes *[]string) string {
	var parts []string
	for _, outcome := range slices.SortedFunc(maps.Keys(outcomes), takenFirst) {
		mark := outcome
		if outcome != taken {
			at := slices.Index(*notes, outcome)
			if at < 0 {
				at, *notes = len(*notes), append(*notes, outcome)
			}
			mark = fmt.Sprintf("refused (%d)", at+1)
		}
		parts = append(parts, mark+where(outcomes[outcome]))
	}
	return strings.Join(parts, "; ")
}

func takenFirst(a, b string) int {
	switch taken {
	case a:
		return -1
	case b:
		return 1
	}
	return strings.Compare(a, b)
}

// where names the given cells; it is empty if they are all there are.
func where(cells []cell) string {
	seenCilium, seenKubernetes := map[string]bool{}, map[string]bool{}
	for _, c := range cells {
		seenCilium[c.cilium], seenKubernetes[c.kubernetes] = true, true
	}
	in := ""
	if len(seenCilium) < len(ciliums) {
		in += " with " + strings.Join(slices.Sorted(maps.Keys(seenCilium)), ", ")
	}
	if len(seenKubernetes) < len(versions) {
		in += " on " + strings.Join(slices.Sorted(maps.Keys(seenKubernetes)), ", ")
	}
	return in
}
