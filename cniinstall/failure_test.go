// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// brokenFS serves plugins whose n-th open differs: reading fails half-way, or gives other
// content.
type brokenFS struct {
	fs.FS
	name string
	at   int
	read func(fs.File) io.Reader
	n    int
}

func (b *brokenFS) Open(name string) (fs.File, error) {
	f, err := b.FS.Open(name)
	if name != b.name || err != nil {
		return f, err
	}
	if b.n++; b.n != b.at {
		return f, nil
	}
	return readerFile{f, b.read(f)}, nil
}

func (b *brokenFS) Stat(name string) (fs.FileInfo, error) { return fs.Stat(b.FS, name) }

type readerFile struct {
	fs.File
	r io.Reader
}

func (f readerFile) Read(p []byte) (int, error) { return f.r.Read(p) }

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

var errSource = errors.New("the source broke")

// A failure in any read leaves the old plugins and configuration whole, including plugins
// staged before it, with no temporary file and no record.
func TestCNI1_FailureLeavesTheOldWhole(t *testing.T) {
	failing := func(f fs.File) io.Reader {
		return io.MultiReader(io.LimitReader(f, 20), readerFunc(func([]byte) (int, error) { return 0, errSource }))
	}
	other := func(f fs.File) io.Reader { return strings.NewReader(script("9.9.9")) }
	rewritten := func(f fs.File) io.Reader {
		return readerFunc(func(p []byte) (int, error) {
			later := time.Now().Add(time.Second)
			n, err := f.Read(p[:1])
			if err == nil {
				err = os.Chtimes(f.(*os.File).Name(), later, later)
			}
			return n, err
		})
	}
	tests := []struct {
		name string
		at   int
		read func(fs.File) io.Reader
		want string
	}{
		{"comparing", 1, failing, errSource.Error()},
		{"writing", 2, failing, errSource.Error()},
		{"source has another size by then", 2, other, "the source changed while it was being copied"},
		{"source is written meanwhile", 2, rewritten, "the source changed while it was being copied"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t)
			for _, old := range []string{n.plugin("cilium-cni"), n.plugin("zzz")} {
				write(t, old, strings.Replace(script("0.3.1", "0.4.0", "1.0.0"), "sh", "SH", 1), 0o755)
			}
			n.source("zzz", script("0.3.1", "0.4.0", "1.0.0"))
			write(t, n.confFile(), "old", 0o644)
			before := tree(t, n.root)
			i := n.install()
			i.Plugins = &brokenFS{FS: i.Plugins, name: "zzz", at: tt.at, read: tt.read}
			require.ErrorContains(t, i.Apply(t.Context()), tt.want)
			after := tree(t, n.root)
			delete(before, n.src+"/zzz") // the test case touched it
			delete(after, n.src+"/zzz")
			require.Equal(t, before, after)
			requireApplied(t, n.install(), n.root)
		})
	}
}

// cancelAt is cancelled from the n-th check on.
type cancelAt struct {
	context.Context
	n     int
	asked atomic.Int64 // a hashing goroutine checks too
}

func (c *cancelAt) Err() error {
	if c.asked.Add(1) > int64(c.n) {
		return context.Canceled
	}
	return nil
}

// A second version, under another name and with fewer plugins, is cancelled at every check of
// the context: no temporary file is ever left, the next run reaches the same end state, also
// where another CNI has written its file again, and an undo, itself cancelled at many checks,
// restores the node.
func TestCNI1_CNI5_CNI10_CancelledAnywhere(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 5
	}
	for at := 0; ; at += step {
		n := newNode(t)
		n.others()
		write(t, n.plugin("cilium-cni"), "old", 0o755)
		for _, name := range []string{"bridge", "tuning"} {
			n.source(name, script("1.0.0"))
		}
		i := n.exclusive()
		i.Names = []string{"cilium-cni", "loopback", "tuning", "bridge"}
		require.NoError(t, i.Apply(t.Context()))
		again, others := at%2 == 0, awsConf
		if again {
			others = "version 2"
			write(t, n.other("10-aws.conflist"), others, 0o644)
		}
		n.source("cilium-cni", script("0.3.1", "1.0.0"))
		i.Names, i.ConfName = i.Names[:2], "90-cilium.conflist"
		err := i.Apply(&cancelAt{Context: t.Context(), n: at})
		requireNoTemp(t, n.root)
		if again {
			require.NoError(t, i.Apply(t.Context())) // it settles what was begun, and lists it from then on
			requireApplied(t, i, n.root)
			require.Equal(t, []string{"cilium-cni", "loopback"}, namesIn(t, n.bin))
			require.NoFileExists(t, n.confFile())
		}
		for undo := at % 8; i.Revert(&cancelAt{Context: t.Context(), n: undo}) != nil; undo += 8 {
			require.Less(t, undo, 200)
		}
		requireContent(t, n.plugin("cilium-cni"), "old", 0o755)
		requireContent(t, n.other("10-aws.conflist"), others, 0o644)
		require.Equal(t, []string{"00-multus.conf", "01-broken.conflist", "10-aws.conflist", "10-aws.conflist.old", "50-dir.conf", "99-loopback.json", "README"},
			namesIn(t, n.conf))
		require.Equal(t, []string{"cilium-cni", "loopback"}, namesIn(t, n.bin))
		require.NoDirExists(t, n.state)
		if err == nil {
			require.Greater(t, at, 20, "the context was checked often")
			return
		}
		require.ErrorIs(t, err, context.Canceled)
	}
}
