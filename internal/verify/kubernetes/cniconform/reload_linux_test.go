// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniconform_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/fsnotify/fsnotify"
	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/internal/journaltest"
)

// speaker is a plugin that answers VERSION.
const speaker = `#!/bin/sh
echo '{"cniVersion":"1.0.0","supportedVersions":["0.3.1","0.4.0","1.0.0"]}'
`

// node is the set of a node's folders.
type node struct {
	t                      *testing.T
	root, bin, conf, state string
}

func newNode(t *testing.T) node {
	root := t.TempDir() // not in memory below /dev, where nothing is reverted
	n := node{t, root, filepath.Join(root, "bin"), filepath.Join(root, "net.d"), filepath.Join(root, "state")}
	require.NoError(t, os.Mkdir(n.conf, 0o755))
	return n
}

func (n node) install(config cniinstall.Config) recorded {
	i := cniinstall.Cilium("")
	i.Plugins = fstest.MapFS{"cilium-cni": {Data: []byte(speaker)}, "provider-cni": {Data: []byte(speaker)}, "loopback": {Data: []byte(speaker)}}
	i.BinDir, i.ConfDir, i.Config = n.bin, n.conf, config
	return recorded{i, journaltest.Open(n.t, n.state)}
}

// agent is the agent's configuration.
func agent(network string, debug bool) cniinstall.Agent {
	a := cniinstall.CiliumAgent("")
	a.Network, a.Debug = network, debug
	return a
}

// provider is a version of another CNI's configuration.
func provider(version int) string {
	return fmt.Sprintf(`{"cniVersion":"0.3.1","name":"provider","plugins":[{"type":"provider-cni","mtu":%d}]}`, 1500+version)
}

// publish installs the other CNI's configuration, by rename.
func (n node) publish(content string) {
	temp := filepath.Join(n.conf, ".provider")
	require.NoError(n.t, os.WriteFile(temp, []byte(content), 0o644))
	require.NoError(n.t, os.Rename(temp, filepath.Join(n.conf, "10-provider.conflist")))
}

// observed is a node that runtimes read continuously.
type observed struct {
	node
	runtime *containerd
	reader  *reader
	changes int
}

// applied installs, and waits until the runtime has reloaded.
func (o *observed) applied(what string, i recorded) {
	o.t.Helper()
	content := o.rendered(i.Config)
	o.reader.expect(string(content))
	require.NoError(o.t, i.Apply(o.t.Context()))
	o.runtime.await(what, string(content))
	o.changes++
}

// rendered is the configuration expected in the folder. A chained one cannot tell by itself
// which file there is its own.
func (o *observed) rendered(config cniinstall.Config) []byte {
	o.t.Helper()
	var content []byte
	var err error
	if c, ok := config.(cniinstall.Chained); ok {
		theirs, readErr := os.ReadFile(filepath.Join(o.conf, "10-provider.conflist"))
		require.NoError(o.t, readErr)
		content, err = cniinstall.Chain(theirs, c.Plugin)
	} else {
		content, err = config.Render(o.t.Context(), o.conf)
	}
	require.NoError(o.t, err)
	return content
}

func (o *observed) reverted(what string, i recorded, want string) {
	o.t.Helper()
	require.NoError(o.t, i.Revert(o.t.Context()))
	o.runtime.await(what, want)
	o.changes++
}

// Runtimes read while we install, reinstall, chain, set aside and restore. They never see half
// a file, an invalid one, or none where one always exists, and they notice each change without
// a later event.
func TestCNI2_CNI4_CNI5_CNI8_RuntimesReadMeanwhile(t *testing.T) {
	rounds := 40
	if testing.Short() {
		rounds = 10
	}
	n := newNode(t)
	o := &observed{node: n, runtime: startContainerd(t, nil, n.conf, n.bin), reader: startReader(t, n.conf)}
	chained := json.RawMessage(`{"type":"cilium-cni","chaining-mode":"generic-veth"}`)
	for round := range rounds {
		o.applied("install", n.install(agent(fmt.Sprint("net", round), true)))
		o.applied("install again", n.install(agent(fmt.Sprint("net", round), false)))
		o.reverted("uninstall", n.install(nil), "")

		theirs, newer := provider(2*round), provider(2*round+1)
		o.reader.expect(theirs)
		o.reader.expect(newer)
		n.publish(theirs)
		o.runtime.await("the other CNI comes", theirs)
		o.reader.always(true)

		alone := n.install(cniinstall.CiliumAgent(""))
		alone.Exclusive = true
		o.applied("set the other aside", alone)
		alone.Config = agent("cilium", true)
		o.applied("install again beside what is aside", alone)
		o.reverted("put it back", alone, theirs)

		chain := n.install(cniinstall.Chained{Plugin: chained})
		o.applied("chain", chain)
		n.publish(newer)
		o.applied("chain onto a newer one", chain)
		o.reverted("take the chained one away", chain, newer)
		named := n.install(cniinstall.Chained{Target: "provider", Plugin: chained})
		named.Exclusive = true
		o.applied("chain and set aside", named)
		o.reverted("put it back again", named, newer)

		o.reader.always(false)
		require.NoError(t, os.Remove(filepath.Join(n.conf, "10-provider.conflist")))
		o.runtime.await("the other CNI goes", "")
	}
	require.NoError(t, n.install(nil).Revert(t.Context())) // removes the plugins that the other one needed
	o.reader.finish()
	require.Empty(t, o.reader.faults)
	require.Empty(t, o.runtime.faults())
	require.NoDirExists(t, n.state)
	left, err := os.ReadDir(n.conf)
	require.NoError(t, err)
	require.Empty(t, left)
	t.Logf("%d changes, each noticed; %d loads by containerd's loader, %d by libcni (in %d of them a listed file was gone)",
		o.changes, o.runtime.loads.Load(), o.reader.reads.Load(), o.reader.vanished.Load())
}

// The same observers detect an installer that copies in place, and containerd misses a file
// renamed from another folder, so the test above can fail.
func TestObserversFindFault(t *testing.T) {
	n := newNode(t)
	first, second := provider(1), provider(2)
	path := filepath.Join(n.conf, "05-cilium.conflist")
	r := startReader(t, n.conf)
	r.expect(first)
	r.expect(second)
	require.Eventually(t, func() bool {
		for _, content := range []string{first, second} {
			f, err := os.Create(path)
			if err != nil {
				return false
			}
			f.WriteString(content[:len(content)/2])
			f.WriteString(content[len(content)/2:])
			f.Close()
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.faults) > 0
	}, patience, 1)

	marked := make(chan bool)
	c := startContainerd(t, func(e fsnotify.Event) {
		if filepath.Base(e.Name) == "mark" && e.Has(fsnotify.Create) {
			marked <- true
		}
	}, n.conf, n.bin)
	c.await("at the start", second)
	elsewhere := filepath.Join(n.root, "elsewhere")
	require.NoError(t, os.WriteFile(elsewhere, []byte(first), 0o600))
	require.NoError(t, os.Rename(elsewhere, path))
	require.NoError(t, os.Mkdir(filepath.Join(n.conf, "mark"), 0o700)) // the event after the rename
	<-marked
	require.Equal(t, int64(1), c.loads.Load(), "the rename was not noticed")
	require.Equal(t, second, c.network())
}
