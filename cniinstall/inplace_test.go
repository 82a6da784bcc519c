// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/cniinstall"
)

// calicoList is a primary's configuration, with its owner's white space.
const calicoList = "{\n  \"name\": \"k8s-pod-network\", \"cniVersion\": \"1.0.0\",\n  \"plugins\": [\n    {\"type\": \"calico\", \"mtu\": 1.50e3},\n\t{\"type\":\"portmap\"}\n  ]\n}"

// withAcme is calicoList with a plugin at its end.
func withAcme(plugin string) string {
	return strings.Replace(calicoList, `{"type":"portmap"}`, `{"type":"portmap"}, `+plugin, 1)
}

// inPlace is an installation that puts a plugin into the primary's file.
func (n node) inPlace(plugin string) recorded {
	for _, name := range []string{"calico", "portmap", "acme"} {
		write(n.t, n.plugin(name), script("1.0.0"), 0o755)
	}
	n.ownLoopback()
	i := n.install()
	i.Plugins, i.ConfName, i.Config = nil, "", cniinstall.Chained{Plugin: json.RawMessage(plugin), InPlace: true}
	return i
}

func TestCNI4_InPlaceWhateverTheOwnerDoes(t *testing.T) {
	n := newNode(t)
	const primary = "10-calico.conflist"
	i := n.inPlace(`{ "type": "acme",  "mtu": 1e3 }`)
	const acme = `{"type":"acme","mtu":1e3}`
	require.ErrorIs(t, i.Apply(t.Context()), cniinstall.ErrTargetMissing)

	write(t, n.other(primary), calicoList, 0o640)
	requireChanges(t, i, "put plugin acme into "+n.other(primary))
	requireApplied(t, i, n.root)
	requireContent(t, n.other(primary), withAcme(acme), 0o640)

	write(t, n.other(primary), calicoList, 0o640) // the owner writes it again
	requireApplied(t, i, n.root)
	requireContent(t, n.other(primary), withAcme(acme), 0o640)

	require.NoError(t, os.Rename(n.other(primary), n.other("05-calico.conflist")))
	requireConverged(t, i, n.root)
	require.NoError(t, os.Rename(n.other("05-calico.conflist"), n.other("05-calico.conflist.old"))) // by another installer
	require.ErrorIs(t, i.Apply(t.Context()), cniinstall.ErrTargetMissing)
	write(t, n.other(primary), calicoList, 0o644)
	requireApplied(t, i, n.root)
	changes, err := i.CheckRevert(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"take plugin acme out of " + n.conf + "/" + primary + ", 05-calico.conflist.old"}, changes)
	require.NoError(t, i.Revert(t.Context()))
	requireContent(t, n.other(primary), calicoList, 0o644)
	requireContent(t, n.other("05-calico.conflist.old"), calicoList, 0o640)
	require.NoDirExists(t, n.state)
}

// The plugin's configuration changes, it moves to a file of its own and back, and joins another
// network.
func TestCNI4_APluginMovesBetweenItsOwnFileAndAnothers(t *testing.T) {
	n := newNode(t)
	write(t, n.other("10-calico.conflist"), calicoList, 0o640)
	write(t, n.other("20-blue.conflist"), strings.Replace(calicoList, "k8s-pod-network", "blue", 1), 0o600)
	i := n.inPlace(`{"type":"acme"}`)
	requireApplied(t, i, n.root)
	i.Config = cniinstall.Chained{Plugin: json.RawMessage(`{"type":"acme","v":2}`), InPlace: true, File: "20-blue"}
	requireApplied(t, i, n.root)
	requireContent(t, n.other("10-calico.conflist"), calicoList, 0o640)
	requireContent(t, n.other("20-blue.conflist"), strings.Replace(withAcme(`{"type":"acme","v":2}`), "k8s-pod-network", "blue", 1), 0o600)
	i.Config = cniinstall.Chained{Plugin: json.RawMessage(`{"type":"acme","v":2}`), Network: "k8s-pod-network"}
	i.ConfName = "02-acme.conflist"
	requireApplied(t, i, n.root)
	require.FileExists(t, n.other("02-acme.conflist"))
	requireContent(t, n.other("20-blue.conflist"), strings.Replace(calicoList, "k8s-pod-network", "blue", 1), 0o600)
	i.Config = cniinstall.Chained{Plugin: json.RawMessage(`{"type":"acme","v":2}`), Network: "k8s-pod-network", InPlace: true}
	requireApplied(t, i, n.root)
	require.NoFileExists(t, n.other("02-acme.conflist"))
	require.NoError(t, i.Revert(t.Context()))
	requireContent(t, n.other("10-calico.conflist"), calicoList, 0o640)
}

// Both plugins of an agent go, one after the other, also one that others have changed.
func TestCNI4_TwoPluginsInPlace(t *testing.T) {
	n := newNode(t)
	write(t, n.other("10-calico.conflist"), calicoList, 0o640)
	write(t, n.plugin("beta"), script("1.0.0"), 0o755)
	plan := n.planOf(cniinstall.Uninstall{}, bootstrap.Step{Name: "beta", Wants: n.inPlace(`{"type":"beta"}`).Install},
		bootstrap.Step{Name: "between", Action: &bootstraptest.Script{}}, bootstrap.Step{Name: "acme", Wants: n.inPlace(`{"type":"acme"}`).Install})
	_, err := plan.Apply(t.Context())
	require.NoError(t, err)
	write(t, n.other("10-calico.conflist"), withAcme(`{"type":"beta","v":2}, {"type":"acme"}`), 0o640)
	_, err = plan.Uninstall(t.Context())
	require.NoError(t, err)
	requireContent(t, n.other("10-calico.conflist"), calicoList, 0o640)
}

// Neither an odd name of the primary's file or text in it, nor a file beside it that is too large,
// keeps the plugin out, or in.
func TestCNI4_InPlaceAmongOddFiles(t *testing.T) {
	n := newNode(t)
	odd, list := n.other("10-a\n.conflist"), strings.Replace(calicoList, `"mtu"`, "\"by\":\"Ren\xe9\\n\", \"mtu\"", 1)
	write(t, odd, list, 0o640)
	write(t, n.other("99-x.conflist.bak"), "", 0o600)
	require.NoError(t, os.Truncate(n.other("99-x.conflist.bak"), 2<<30))
	i := n.inPlace(`{"type":"acme"}`)
	requireChanges(t, i, "put plugin acme into "+n.conf+`/10-a\n.conflist`)
	requireApplied(t, i, n.bin) // not a tree with the large file
	requireContent(t, odd, strings.Replace(list, `{"type":"portmap"}`, `{"type":"portmap"}, {"type":"acme"}`, 1), 0o640)
	require.NoError(t, i.Revert(t.Context()))
	requireContent(t, odd, list, 0o640)
}

// What an earlier installer has put into files is the agent's: it is replaced, does not come back,
// and is said.
func TestCNI4_InPlaceAfterAnEarlierInstaller(t *testing.T) {
	for name, old := range map[string]string{"of another version": `{"type":"acme","v":1}`, "equal": `{"type": "acme", "v": 2}`} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			second := strings.Replace(withAcme(old), "k8s-pod-network", "blue", 1)
			write(t, n.other("10-calico.conflist"), withAcme(old), 0o640)
			write(t, n.other("20-blue.conflist"), second, 0o640)
			i := n.inPlace(`{"type":"acme","v":2}`)
			if name == "equal" {
				requireChanges(t, i, "take plugin acme out of "+n.other("20-blue.conflist"))
			} else {
				requireChanges(t, i, "put plugin acme into "+n.other("10-calico.conflist")+", and take it out of "+n.other("20-blue.conflist"))
			}
			requireApplied(t, i, n.root)
			requireContent(t, n.other("20-blue.conflist"), strings.Replace(calicoList, "k8s-pod-network", "blue", 1), 0o640)
			require.NoError(t, i.Revert(t.Context()))
			requireContent(t, n.other("10-calico.conflist"), calicoList, 0o640)
			require.NoDirExists(t, n.state)
		})
	}
}

// The plugin goes with its entry, also with one that others have changed.
func TestCNI10_CNI4_APluginInPlaceGoesWithItsEntry(t *testing.T) {
	for name, entry := range map[string]string{"as left": `{"type":"acme"}`, "changed": `{"type":"acme","debug":true}`} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			i := n.inPlace(`{"type":"acme"}`)
			require.NoError(t, os.Remove(n.plugin("acme")))
			n.source("acme", script("1.0.0"))
			i.Plugins, i.Names = n.install().Plugins, []string{"acme"}
			write(t, n.other("10-calico.conflist"), calicoList, 0o640)
			requireApplied(t, i, n.root)
			require.FileExists(t, n.plugin("acme"))
			write(t, n.other("10-calico.conflist"), withAcme(entry), 0o640)
			require.NoError(t, i.Revert(t.Context()))
			require.NoFileExists(t, n.plugin("acme"))
			requireContent(t, n.other("10-calico.conflist"), calicoList, 0o640)
			require.NoDirExists(t, n.state)
		})
	}
}

// Nothing is published whose plugin is missing or speaks another version, and a single plugin's
// file has no place for another.
func TestCNI4_CNI2_InPlaceOnlyWhatWorks(t *testing.T) {
	n := newNode(t)
	i := n.inPlace(`{"type":"acme"}`)
	write(t, n.other("10-calico.conflist"), calicoList, 0o640)
	write(t, n.plugin("acme"), script("0.3.1"), 0o755)
	require.ErrorIs(t, i.Apply(t.Context()), cniinstall.ErrInvalid)
	require.NoError(t, os.Remove(n.plugin("acme")))
	require.ErrorIs(t, i.Apply(t.Context()), cniinstall.ErrPluginMissing)
	requireContent(t, n.other("10-calico.conflist"), calicoList, 0o640)
	write(t, n.other("05-first.conf"), `{"name":"first","type":"portmap","cniVersion":"1.0.0"}`, 0o644)
	err := i.Apply(t.Context())
	require.ErrorIs(t, err, cniinstall.ErrTargetMissing)
	require.ErrorContains(t, err, "05-first.conf is that of a single plugin")
	require.NoError(t, os.Remove(n.other("05-first.conf")))
	require.NoError(t, os.Rename(n.other("10-calico.conflist"), n.root+"/real"))
	require.NoError(t, os.Symlink(n.root+"/real", n.other("10-calico.conflist")))
	require.ErrorContains(t, i.Apply(t.Context()), "10-calico.conflist is a link")
	i.Exclusive = true
	require.ErrorContains(t, i.Apply(t.Context()), "exclude each other")
	require.ErrorIs(t, n.inPlace(`{"type":"portmap"}`).Apply(t.Context()), cniinstall.ErrInvalid, "it may be the primary's own")
}

// The primary's owner writes its file while it is being edited: it is the newer version that is edited, or nothing.
func TestCNI4_TheOwnerWritesMeanwhile(t *testing.T) {
	n := newNode(t)
	write(t, n.other("10-calico.conflist"), calicoList, 0o640)
	newer := strings.Replace(calicoList, "1.50e3", "9000", 1)
	for _, times := range []int{2, 10} {
		writes := 0
		err := cniinstall.EditList(t.Context(), n.other("10-calico.conflist"), func(raw string) string {
			if writes++; writes <= times {
				write(t, n.other("10-calico.conflist"), newer, 0o644)
				when := time.Unix(int64(writes), 0)
				require.NoError(t, os.Chtimes(n.other("10-calico.conflist"), when, when))
			}
			return raw + " edited"
		})
		if times == 10 { // it does not stop
			require.ErrorContains(t, err, "its owner has just written it")
			requireContent(t, n.other("10-calico.conflist"), newer, 0o644)
			return
		}
		require.NoError(t, err)
		requireContent(t, n.other("10-calico.conflist"), newer+" edited", 0o644)
		requireNoTemp(t, n.root)
	}
}

var _ bootstrap.Hosted = cniinstall.Unchain{}

// What an earlier installer has put into a primary's file goes, also from a file that was set
// aside; what this node's agents have put there stays.
func TestCNI4_Unchain(t *testing.T) {
	n := newNode(t)
	write(t, n.other("10-calico.conflist"), withAcme(`{"type":"old","a":[{"plugins":[]}]}`), 0o640)
	write(t, n.other("10-calico.conflist.bak"), strings.Replace(calicoList, "{\"type\": \"calico\"", `{"type":"old"},     {"type":"old"} , {"type": "calico"`, 1), 0o640)
	write(t, n.other("30-old.conflist"), `{"name":"old","cniVersion":"1.0.0","plugins":[{"type":"old"}]}`, 0o640)
	bootstraptest.Conform(t, func() bootstrap.Action { return cniinstall.Unchain{ConfDir: n.conf, Plugin: "old"} },
		func() map[string]string { return tree(t, n.conf) })
	requireContent(t, n.other("10-calico.conflist"), calicoList, 0o640)
	requireContent(t, n.other("10-calico.conflist.bak"), calicoList, 0o640)
	require.FileExists(t, n.other("30-old.conflist"))

	i := n.inPlace(`{"type":"acme"}`)
	requireApplied(t, i, n.root)
	own := cniinstall.Unchain{ConfDir: n.conf, Plugin: "acme"}
	changes, err := own.Check(i.with(t.Context()))
	require.NoError(t, err)
	require.Empty(t, changes)
	changes, err = own.Check(t.Context()) // without the ledger, it is not known whose it is
	require.NoError(t, err)
	require.Equal(t, []string{"take plugin acme out of " + filepath.Join(n.conf, "10-calico.conflist")}, changes)
}

// On a real plan, which needs no kinds: the step prepares itself, is undone although it could not
// be applied now, and its Undo says what stays.
func TestCNI4_PLAN17_AnInstallBringsItsKinds(t *testing.T) {
	n := newNode(t)
	i := n.inPlace(`{"type":"acme"}`).Install
	asked := errors.New("no runtime answers")
	plan := n.planOf(cniinstall.Uninstall{}, bootstrap.Step{Name: "cni", Wants: i, Prepare: func(context.Context) (ledger.Wanter, error) {
		prepared := i
		prepared.RuntimeErr = asked
		return prepared, nil
	}})
	plan.Ledger.Kinds = nil
	_, err := plan.Apply(t.Context())
	require.ErrorIs(t, err, ledger.ErrMissing)
	write(t, n.other("10-calico.conflist"), calicoList, 0o640)
	_, err = plan.Apply(t.Context())
	require.NoError(t, err)
	requireContent(t, n.other("10-calico.conflist"), withAcme(`{"type":"acme"}`), 0o640)
	require.NoError(t, os.Rename(n.other("10-calico.conflist"), n.other("10-calico.conflist.aside"))) // nothing to join
	report, err := plan.Uninstall(t.Context())
	require.NoError(t, err)
	require.Contains(t, fmt.Sprint(report.Results), "take plugin acme out of "+n.other("10-calico.conflist.aside"))
	requireContent(t, n.other("10-calico.conflist.aside"), calicoList, 0o640)
	require.NoDirExists(t, n.state)
}
