// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/internal/cniconf"
)

var (
	sequences = flag.Uint64("sequences", 60, "how many random sequences of agents in one file")
	firstSeed = flag.Uint64("seed", 0, "the first of them")
)

// inOneFile is a node on which agents put plugins into the files of others, which write, rename
// and remove these, and on which an agent sets all others aside.
type inOneFile struct {
	t     *testing.T
	root  string
	base  map[string]string // what the owners have written last
	kill  int               // writes until the process is killed; 0: it is not
	trace []string
	acts  int
	begun bool // to set files aside, by a run that was killed: one that goes now counts as set aside
}

type killed struct{}

// Whatever agents and owners do, and wherever runs are killed: once no agent wants anything any
// more, each file is as its owner last wrote it.
func TestPLAN6_CNI4_CNI5_PluginsInFilesOfOthersGo(t *testing.T) {
	memory := t.TempDir()
	if dir, err := os.MkdirTemp("/dev/shm", "slipway"); err == nil { // where syncing takes no time
		memory = dir
		t.Cleanup(func() { os.RemoveAll(dir) })
	}
	for seed := *firstSeed; seed < *firstSeed+*sequences; seed++ {
		n := &inOneFile{t: t, root: filepath.Join(memory, fmt.Sprint(seed)), base: map[string]string{}}
		n.play(rand.New(rand.NewPCG(seed, 3)))
		if t.Failed() {
			t.Fatalf("seed %d\n%s", seed, strings.Join(n.trace, "\n"))
		}
		require.NoError(t, os.RemoveAll(n.root))
	}
}

// ofOwner is a plugin of an agent's type that an owner, or an earlier installer, has in a list.
const ofOwner = `, {"type": "acme", "by": "its owner"}`

const names = "10-f.conflist 20-g.conflist 30-h.conflist"

func (n *inOneFile) dir() string { return filepath.Join(n.root, "net.d") }

func (n *inOneFile) file(name string) string { return filepath.Join(n.dir(), name) }

// listOf is a version of an owner's configuration, with white space of its own.
func listOf(network string, version int, more string) string {
	return fmt.Sprintf("{\"cniVersion\": \"1.0.0\",\n \"name\": \"%s\",\t\"plugins\":[ {\"type\": \"%s\", \"v\": %d.0}%s\n] }\n", network, network+"-cni", version, more)
}

func (n *inOneFile) own(name, content string) {
	n.base[name] = content
	write(n.t, n.file(name), content, 0o640)
	n.ages(name)
}

// ages lets a file be written long ago: time passes between any two acts.
func (n *inOneFile) ages(name string) {
	long := time.Now().Add(-time.Hour)
	require.NoError(n.t, os.Chtimes(n.file(name), long, long))
}

func (n *inOneFile) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	files, err := os.ReadDir(n.dir())
	require.NoError(n.t, err)
	for _, f := range files {
		n.ages(f.Name())
		if raw, err := os.ReadFile(n.file(f.Name())); err == nil {
			text += fmt.Sprintf("\n    %s %q", f.Name(), raw)
		}
	}
	n.trace = append(n.trace, text)
}

func (n *inOneFile) uninstall() cniinstall.Uninstall {
	return cniinstall.Uninstall{ConfDir: n.dir(), Results: filepath.Join(n.root, "results"), Force: true}
}

func (n *inOneFile) book(agent string, accept bool) *ledger.Book {
	var kinds []*ledger.Kind
	for _, k := range n.uninstall().Kinds() {
		kinds = append(kinds, n.mortal(k))
	}
	l := &ledger.Ledger{Dir: filepath.Join(n.root, "state"), Agent: agent, Kinds: kinds, AcceptKept: accept, NoOwner: true}
	book, err := l.Open(n.t.Context())
	require.NoError(n.t, err)
	return book
}

// mortal is a kind whose writes may be the last thing that a process does.
func (n *inOneFile) mortal(k *ledger.Kind) *ledger.Kind {
	m := *k
	m.Write = func(ctx context.Context, object string, to ledger.State) error {
		n.step()
		err := k.Write(ctx, object, to)
		n.step()
		return err
	}
	return &m
}

func (n *inOneFile) step() {
	if n.kill--; n.kill == 0 {
		panic(killed{})
	}
}

// run lets f run until it is killed.
func (n *inOneFile) run(kill int, f func() error) (err error) {
	n.kill = kill
	defer func() {
		if r := recover(); r != nil {
			if r != (killed{}) {
				panic(r)
			}
			err = errors.New("killed")
		}
		n.kill = 0
	}()
	return f()
}

// install is what an agent wants: acme and mesh put a plugin into others' files, beside renders
// a file of its own, and only sets all others aside.
func (n *inOneFile) install(agent string, version int, render bool) cniinstall.Install {
	plugin := fmt.Sprintf(`{ "type": "%s", "version": %d.50 }`, agent, version)
	i := cniinstall.Install{ConfDir: n.dir(), BinDir: filepath.Join(n.root, "bin"), Optional: []string{"loopback"}, Vouched: []string{"f-cni", "g-cni", "h-cni", "acme", "mesh", "beside", "only", "only-cni"}}
	switch {
	case agent == "only" && !render:
		i.Config, i.ConfName, i.Exclusive = cniinstall.Whole(listOf("only", version, "")), "05-only.conflist", true
	case agent == "only":
		i.Config, i.ConfName, i.Exclusive = cniinstall.Chained{Plugin: json.RawMessage(plugin)}, "05-only.conflist", true
	case agent == "beside":
		i.Config, i.ConfName = cniinstall.Chained{Plugin: json.RawMessage(plugin)}, "07-beside.conflist"
	default:
		i.Config = cniinstall.Chained{Plugin: json.RawMessage(plugin), InPlace: true}
	}
	return i
}

func (n *inOneFile) apply(agent string, i cniinstall.Install) error {
	book := n.book(agent, false)
	defer book.Close()
	ctx := ledger.With(n.t.Context(), book)
	wants, err := i.Wants(ctx)
	if err != nil {
		return err
	}
	mortal := map[*ledger.Kind]*ledger.Kind{}
	for i, w := range wants.List {
		if mortal[w.Kind] == nil {
			mortal[w.Kind] = n.mortal(w.Kind)
		}
		wants.List[i].Kind = mortal[w.Kind]
	}
	_, err = book.Apply(ctx, "cni", wants)
	return err
}

func (n *inOneFile) undo(agent string, accept bool) error {
	book := n.book(agent, accept)
	defer book.Close()
	_, err := book.Undo(ledger.With(n.t.Context(), book), nil)
	return err
}

var agents = []string{"acme", "mesh", "beside", "only"}

func (n *inOneFile) play(r *rand.Rand) {
	n.own("10-f.conflist", listOf("f", 0, ""))
	n.own("20-g.conflist", listOf("g", 0, ""))
	kills, render := r.IntN(2) == 0, r.IntN(2) == 0
	for range 4 + r.IntN(12) {
		n.acts++
		agent, kill := agents[r.IntN(len(agents))], 0
		if kills {
			kill = r.IntN(8)
		}
		if agent == "only" {
			n.begun = kill > 0
		}
		switch r.IntN(9) {
		case 0, 1:
			n.say("undo %s, kill %d: %v", agent, kill, n.run(kill, func() error { return n.undo(agent, false) }))
		case 2, 3:
			n.owner(r)
		default:
			version := r.IntN(2)
			n.say("apply %s %d, kill %d: %v", agent, version, kill, n.run(kill, func() error { return n.apply(agent, n.install(agent, version, render)) }))
		}
	}
	for _, i := range r.Perm(len(agents)) {
		n.say("at last, undo %s: %v", agents[i], n.undo(agents[i], false))
	}
	for _, agent := range agents {
		require.NoError(n.t, n.undo(agent, true))
	}
	n.check()
}

// owner lets an owner write.
func (n *inOneFile) owner(r *rand.Rand) {
	all := strings.Fields(names)
	name, other := all[r.IntN(len(all))], all[r.IntN(len(all))]
	network := strings.TrimSuffix(name[3:], ".conflist")
	now, err := os.ReadFile(n.file(name))
	_, errOther := os.Lstat(n.file(other))
	switch r.IntN(6) {
	case 0:
		n.own(name, listOf(network, n.acts, ofOwner))
		n.say("the owner writes %s, with a plugin like an agent's", name)
	case 1: // as programs do that add to what is there
		if err != nil {
			return
		}
		write(n.t, n.file(name), strings.ReplaceAll(string(now), " ", "  "), 0o640)
		n.ages(name)
		n.base[name] = strings.ReplaceAll(n.base[name], " ", "  ")
		n.say("the owner writes %s again as it is", name)
	case 2:
		if n.begun || err != nil || errOther == nil || n.isAside(name) || n.isAside(other) || n.base[other] != "" {
			return
		}
		require.NoError(n.t, os.Rename(n.file(name), n.file(other)))
		n.base[other] = n.base[name]
		delete(n.base, name)
		n.say("the owner renames %s to %s", name, other)
	case 3:
		if n.begun || err != nil || n.isAside(name) {
			return
		}
		require.NoError(n.t, os.Remove(n.file(name)))
		delete(n.base, name)
		n.say("the owner removes %s", name)
	default:
		n.own(name, listOf(network, n.acts, ""))
		n.say("the owner writes %s", name)
	}
}

func (n *inOneFile) isAside(name string) bool {
	_, err := os.Lstat(n.file(name + ".aside"))
	return err == nil
}

func withoutBlanks(s string) string { return strings.ReplaceAll(s, " ", "") }

// check compares the files with what their owners wrote last.
func (n *inOneFile) check() {
	for name, content := range n.base {
		raw, err := os.ReadFile(n.file(name))
		isEqual := string(raw) == content
		if bare := withoutBlanks(content); strings.Contains(bare, withoutBlanks(ofOwner)) { // an agent may have taken it for its own
			isEqual = slices.Contains([]string{bare, strings.Replace(bare, withoutBlanks(ofOwner), "", 1)}, withoutBlanks(string(raw)))
		}
		require.True(n.t, err == nil && isEqual, "%s is %q, and shall be %q\n%s", name, raw, content, strings.Join(n.trace, "\n"))
	}
	files, err := os.ReadDir(n.dir())
	require.NoError(n.t, err)
	for _, f := range files {
		if n.base[f.Name()] != "" {
			continue
		}
		raw, _ := os.ReadFile(n.file(f.Name()))
		require.False(n.t, cniconf.IsName(f.Name()), "%s is left: %s\n%s", f.Name(), raw, strings.Join(n.trace, "\n"))
		require.NotContains(n.t, string(raw), `"version"`, "%s has the plugin of an agent\n%s", f.Name(), strings.Join(n.trace, "\n"))
	}
	left, _ := os.ReadFile(filepath.Join(n.root, "state", "ledger"))
	require.NotContains(n.t, string(left), "cni-in-place", strings.Join(n.trace, "\n"))
}
