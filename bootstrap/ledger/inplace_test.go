// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// folder holds network configurations, each NETWORK:PLUGIN,PLUGIN... Their owners rewrite
// and rename them.
type folder struct {
	files map[string]string
	die   func()
}

const aside = ".aside"

// find returns the file of a network, in its place or set aside.
func (f folder) find(network string) (name string, plugins []string) {
	for _, name := range sortedKeys(f.files) {
		if n, list, _ := strings.Cut(f.files[name], ":"); n == network {
			return name, strings.Split(list, ",")
		}
	}
	return "", nil
}

// pluginKind is of plugins in others' files. An object is NETWORK#PLUGIN: the file may get
// another name, or be set aside.
func (f folder) pluginKind() *ledger.Kind {
	return &ledger.Kind{
		Name: "plugin", Rounds: true,
		Read: func(_ context.Context, o string) (ledger.State, error) {
			network, plugin, _ := strings.Cut(o, "#")
			if _, plugins := f.find(network); slices.Contains(plugins, plugin) {
				return ledger.State{Type: "plugin"}, nil
			}
			return ledger.State{}, nil
		},
		Write: func(_ context.Context, o string, to ledger.State) error {
			network, plugin, _ := strings.Cut(o, "#")
			name, plugins := f.find(network)
			if name == "" {
				return fs.ErrNotExist
			}
			f.die()
			plugins = slices.DeleteFunc(plugins, func(p string) bool { return p == plugin })
			if !to.IsZero() {
				plugins = append(plugins, plugin)
			}
			f.files[name] = network + ":" + strings.Join(plugins, ",")
			f.die()
			return nil
		},
	}
}

// asideKind is of files that are set aside. Its states: "file", "aside", or "both" once the
// owner has made the file again.
func (f folder) asideKind() *ledger.Kind {
	return &ledger.Kind{
		Name: "aside",
		Read: func(_ context.Context, o string) (ledger.State, error) {
			_, there := f.files[o]
			_, set := f.files[o+aside]
			return ledger.State{Type: map[[2]bool]string{{true, false}: "file", {false, true}: "aside", {true, true}: "both"}[[2]bool{there, set}]}, nil
		},
		Write: func(_ context.Context, o string, to ledger.State) error {
			f.die()
			content, there := f.files[o]
			switch {
			case to.Type == "aside":
				f.files[o+aside] = content
				delete(f.files, o)
			case !there && to.Type == "file":
				f.files[o] = f.files[o+aside]
				delete(f.files, o+aside)
			default:
				delete(f.files, o+aside)
			}
			f.die()
			return nil
		},
		Met:  func(now ledger.State, w ledger.Want) bool { return now.Type == w.To.Type },
		Same: func(a, b ledger.State) bool { return a.Type == b.Type || a.Type == "both" && b.Type == "aside" },
	}
}

func TestPLAN6_CNI4_CNI5_PluginsInFilesOfOthersGo(t *testing.T) {
	for _, kills := range []bool{false, true} {
		t.Run(fmt.Sprint("kills ", kills), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for seed := range *sequences / 5 {
					inPlace(t, seed, kills)
				}
			})
		})
	}
}

// inPlace is one random sequence of two agents that chain a plugin, one that sets others'
// files aside, and the owners.
func inPlace(t *testing.T, seed uint64, kills bool) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 3))
	p := newPlay("")
	f := folder{map[string]string{"F": "n1:calico0", "H": "n2:flannel0"}, p.die}
	base := map[string]string{"F": "n1:calico0", "H": "n2:flannel0"}
	plugin, set := f.pluginKind(), f.asideKind()
	book := func(agent string) *ledger.Book {
		return (&ledger.Ledger{Agent: agent, Kinds: []*ledger.Kind{plugin, set}}).OpenIn(p.memory, "boot")
	}
	agents, trace := []string{"acme", "mesh", "only"}, []string(nil)
	say := func(format string, args ...any) {
		trace = append(trace, fmt.Sprintf(format, args...)+fmt.Sprintf("\n    %q", f.files))
	}
	for i := range 3 + r.IntN(8) {
		agent, kill := agents[r.IntN(3)], 0
		if kills {
			kill = r.IntN(10)
		}
		switch n := r.IntN(6); {
		case n == 0:
			killed, err := p.mortal(kill, func() error { _, err := book(agent).Undo(t.Context(), nil); return err })
			say("undo %s (killed %v, %v)", agent, killed, err)
		case n == 1:
			name := sortedKeys(base)[r.IntN(len(base))]
			network, _, _ := strings.Cut(base[name], ":")
			base[name] = fmt.Sprintf("%s:others%d", network, i)
			f.files[name] = base[name]
			say("the owner writes %s", name)
			time.Sleep(2 * time.Second)
		case n == 2:
			if _, there := f.files["F"]; there && f.files["G"] == "" && base["G"] == "" && f.files["F"+aside]+f.files["G"+aside] == "" {
				f.files["G"], base["G"] = f.files["F"], base["F"]
				delete(f.files, "F")
				delete(base, "F")
				say("the owner renames F to G")
				time.Sleep(2 * time.Second)
			}
		default:
			var wants ledger.Wants
			for _, name := range []string{"F", "G", "H"} {
				if _, there := f.files[name]; there && agent == "only" {
					wants.List = append(wants.List, ledger.Want{Kind: set, Object: name, To: ledger.State{Type: "aside"}})
				}
			}
			for _, network := range []string{"n1", "n2"} {
				if name, _ := f.find(network); name != "" && agent != "only" && r.IntN(2) == 0 {
					wants.List = append(wants.List, ledger.Want{Kind: plugin, Object: network + "#" + agent, To: ledger.State{Type: "plugin"}})
				}
			}
			killed, err := p.mortal(kill, func() error { _, err := book(agent).Apply(t.Context(), "s", wants); return err })
			say("apply %s %d wants (killed %v, %v)", agent, len(wants.List), killed, err)
		}
	}
	for _, i := range r.Perm(3) {
		_, err := book(agents[i]).Undo(t.Context(), nil)
		say("undo %s: %v", agents[i], err)
		if !kills || !errors.Is(err, ledger.ErrChanged) { // an undoing was killed before the owner renamed the file
			require.NoError(t, err, "seed %d\n%s", seed, strings.Join(trace, "\n"))
		}
	}
	for _, agent := range agents {
		undoes(t, book(agent).Accepting())
	}
	require.Equal(t, base, f.files, "seed %d\n%s", seed, strings.Join(trace, "\n"))
	require.Nil(t, p.memory.Content)
}
