// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// node is a node in memory. Its objects:
//
//	v:NAME   kernel values. They are stored without a trailing x. Writing v:a changes v:b[0] along.
//	f:PATH   files. Writing f:/conf changes v:z along, as an init system does that reads it at each boot.
//	d:PATH   directories
//	m:PATH   mounts, the last one of each path visible. Each has an identity of its own.
//
// Values and mounts end with a reboot.
type node struct {
	values    map[string]string
	files     map[string]file // with the directories
	mounts    map[string][]string
	mounted   int
	root      string                      // where files and directories really are; empty: in memory
	staged    map[*ledger.Staged]func()   // on the file system, with what discards it
	killed    bool                        // the run is being killed
	abandoned int                         // temporary files of killed runs
	forgot    bool                        // a release or forget may have dropped what was begun
	die       func()                      // before and after each write of ours
	wrote     func(object, before string) // each object that a write of ours has changed
}

type file struct {
	dir     bool
	content string
	changed time.Time
}

var objects = []string{"v:a", "v:b[0]", "v:c\xff\\", "v:z", "f:/conf", "f:/d/f", "f:/d/e/g", "f:/h", "d:/d", "d:/d/e", "m:/m"}

func newNode(root string) *node {
	return &node{
		root: root, values: map[string]string{"a": "0", "b[0]": "0", "c\xff\\": "0", "z": "0"}, files: map[string]file{}, mounts: map[string][]string{}, staged: map[*ledger.Staged]func(){},
		die: func() {}, wrote: func(string, string) {},
	}
}

// state describes an object. Empty: there is none.
func (n *node) state(object string) string {
	sort, name, _ := strings.Cut(object, ":")
	f, ok := n.file(name)
	switch {
	case sort == "v":
		return n.values[name]
	case sort == "m":
		return strings.Join(n.mounts[name], "|")
	case ok && f.dir == (sort == "d"):
		return f.content
	}
	return ""
}

func (n *node) states() map[string]string {
	all := map[string]string{}
	for _, o := range objects {
		all[o] = n.state(o)
	}
	return all
}

// set makes a state of an object, as any program of the node can, and what comes with it.
func (n *node) set(object, to string) {
	sort, name, _ := strings.Cut(object, ":")
	switch sort {
	case "v":
		to = strings.TrimSuffix(to, "x")
		n.values[name] = to
		if name == "a" {
			n.values["b[0]"] = to
		}
	case "m":
		n.mounts[name] = slices.DeleteFunc(strings.Split(to, "|"), func(m string) bool { return m == "" })
	case "d", "f":
		if n.root != "" {
			n.setReal(sort == "d", name, to)
			break
		}
		if to == "" {
			maps.DeleteFunc(n.files, func(f string, _ file) bool { return f == name || strings.HasPrefix(f, name+"/") })
			return
		}
		for dir := path.Dir(name); dir != "/"; dir = path.Dir(dir) {
			if _, ok := n.files[dir]; !ok {
				n.files[dir] = file{dir: true, content: "dir", changed: time.Now()}
			}
		}
		n.files[name] = file{sort == "d", to, time.Now()}
	}
	if object == "f:/conf" && to != "" {
		n.values["z"] = to
	}
}

// file looks at a file or directory.
func (n *node) file(name string) (file, bool) {
	if n.root == "" {
		f, ok := n.files[name]
		return f, ok
	}
	info, err := os.Lstat(n.root + name)
	if err != nil {
		return file{}, false
	}
	if info.IsDir() {
		return file{dir: true, content: "dir"}, true
	}
	content, err := os.ReadFile(n.root + name)
	return file{content: token(content)}, err == nil
}

// setReal is by another program, whose clock is the test's.
func (n *node) setReal(dir bool, name, to string) {
	path := n.root + name
	err := os.RemoveAll(path)
	switch {
	case err != nil || to == "":
	case dir:
		err = os.MkdirAll(path, 0o755)
	default:
		err = os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = os.WriteFile(path, padded(to), 0o644)
		}
		if err == nil {
			err = os.Chtimes(path, time.Now(), time.Now())
		}
	}
	if err != nil {
		panic(err)
	}
}

// children lists what is in a directory.
func (n *node) children(dir string) (names []string) {
	if n.root != "" {
		entries, _ := os.ReadDir(n.root + dir)
		for _, e := range entries {
			names = append(names, dir+"/"+e.Name())
		}
	}
	for name := range n.files {
		if path.Dir(name) == dir && name != dir {
			names = append(names, name)
		}
	}
	return names
}

func (n *node) reboot() {
	for name := range n.values {
		n.values[name] = "0"
	}
	clear(n.mounts)
	if conf, ok := n.file("/conf"); ok {
		n.values["z"] = conf.content
	}
}

// write is set by an agent.
func (n *node) write(object, to string) {
	_ = n.writeBy(object, func() error { n.set(object, to); return nil })
}

// writeBy calls what writes an object for an agent.
func (n *node) writeBy(object string, write func() error) error {
	n.die()
	before := n.states()
	if err := write(); err != nil {
		return err
	}
	for _, o := range objects {
		if after := n.state(o); after != before[o] || o == object {
			n.wrote(o, before[o])
		}
	}
	n.die()
	return nil
}

// kinds of the node, by the first letter of an object.
func (n *node) kinds() map[string]*ledger.Kind {
	values := n.valueKind()
	if n.root != "" {
		return map[string]*ledger.Kind{"v": values, "f": n.realKind("f", ledger.File(), values), "d": n.realKind("d", ledger.Dir(), nil), "m": n.mountKind()}
	}
	return map[string]*ledger.Kind{"v": values, "f": n.fileKind(values), "d": n.dirKind(), "m": n.mountKind()}
}

func (n *node) valueKind() *ledger.Kind {
	k := &ledger.Kind{Name: "value", Rounds: true, EndsWithBoot: func(string) bool { return true }}
	k.Read = func(_ context.Context, o string) (ledger.State, error) {
		return ledger.State{Type: "value", Value: n.values[o]}, nil
	}
	k.Write = func(_ context.Context, o string, to ledger.State) error { n.write("v:"+o, to.Value); return nil }
	k.Along = func(_ context.Context, o string, to ledger.State) ([]ledger.Side, error) {
		if o != "a" {
			return nil, nil
		}
		return []ledger.Side{{Kind: k, Object: "b[0]", To: to}}, nil
	}
	return k
}

// padded is the content of a file: some is too large for a record.
func padded(token string) []byte {
	if strings.HasPrefix(token, "L") {
		return bytes.Repeat([]byte(token), 3000)
	}
	return []byte(token)
}

// tokens are those of the contents that agents want, by SHA-256.
var tokens = func() map[string]string {
	all := map[string]string{}
	for _, t := range []string{"1", "2", "3", "5", "6", "7", "L1", "L2", "L3", "L5", "L6", "L7"} {
		all[ledger.State{}.WithContent(padded(t)).SHA256] = t
	}
	return all
}()

func token(content []byte) string {
	if bytes.HasPrefix(content, []byte("L")) {
		return string(content[:len(content)/3000])
	}
	return string(content)
}

func (n *node) fileKind(values *ledger.Kind) *ledger.Kind {
	put := func(o string, content []byte) error {
		if parent, ok := n.files[path.Dir(o)]; path.Dir(o) != "/" && (!ok || !parent.dir) {
			return fmt.Errorf("%s: %w", o, fs.ErrNotExist)
		}
		n.write("f:"+o, token(content))
		return nil
	}
	return &ledger.Kind{
		Name: "file-in-memory", Space: "path",
		Read: func(_ context.Context, o string) (ledger.State, error) {
			f, ok := n.files[o]
			if !ok || f.dir {
				return ledger.State{}, nil
			}
			s := ledger.State{Type: "file", Changed: f.changed}.WithContent(padded(f.content))
			s.Open, s.Content = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(padded(f.content))), nil }, nil
			return s, nil
		},
		Write: func(_ context.Context, o string, to ledger.State) error {
			if to.IsZero() {
				n.write("f:"+o, "")
				return nil
			}
			content, err := contentOf(to)
			if err != nil {
				return err
			}
			return put(o, content)
		},
		Stage: func(_ context.Context, o string, to ledger.State) (*ledger.Staged, error) {
			if _, ok := n.files[path.Dir(o)]; path.Dir(o) != "/" && !ok {
				return nil, fs.ErrNotExist
			}
			n.die()
			content, err := contentOf(to)
			if err != nil {
				return nil, err
			}
			return &ledger.Staged{
				State:   ledger.State{Type: "file"}.WithContent(content),
				Commit:  func(context.Context) error { return put(o, content) },
				Discard: func() {},
			}, nil
		},
		Along: func(_ context.Context, o string, to ledger.State) ([]ledger.Side, error) {
			if o != "/conf" || to.IsZero() {
				return nil, nil
			}
			return []ledger.Side{{Kind: values, Object: "z", To: ledger.State{Type: "value", Value: tokens[to.SHA256]}}}, nil
		},
	}
}

// realKind is a kind of the file system, in which a run can be killed.
func (n *node) realKind(sort string, k, values *ledger.Kind) *ledger.Kind {
	write, stage := k.Write, k.Stage
	name := func(o string) string { return strings.TrimPrefix(o, n.root) }
	systemd := func(o, to string) {
		if sort+name(o) == "f/conf" && to != "" {
			n.values["z"] = to
		}
	}
	k.EndsWithBoot = nil // the test's directory is in memory, and outlives the test's boots
	k.Write = func(ctx context.Context, o string, to ledger.State) error {
		return n.writeBy(sort+":"+name(o), func() error {
			err := write(ctx, o, to)
			systemd(o, tokens[to.SHA256])
			return err
		})
	}
	if stage != nil {
		k.Stage = func(ctx context.Context, o string, to ledger.State) (*ledger.Staged, error) {
			n.die()
			s, err := stage(ctx, o, to)
			if err != nil {
				return nil, err
			}
			commit, discard := s.Commit, s.Discard
			n.staged[s] = discard
			s.Discard = func() {
				if !n.killed { // which ends no function in order
					delete(n.staged, s)
					discard()
				}
			}
			s.Commit = func(ctx context.Context) error {
				return n.writeBy(sort+":"+name(o), func() error {
					delete(n.staged, s)
					err := commit(ctx)
					systemd(o, tokens[s.State.SHA256])
					return err
				})
			}
			return s, nil
		}
		k.Along = func(_ context.Context, o string, to ledger.State) ([]ledger.Side, error) {
			if name(o) != "/conf" || to.IsZero() {
				return nil, nil
			}
			return []ledger.Side{{Kind: values, Object: "z", To: ledger.State{Type: "value", Value: tokens[to.SHA256]}}}, nil
		}
	}
	return k
}

// abandon does for temporary files what the kernel does when a process is killed: they stay,
// but are no longer open.
func (n *node) abandon() {
	for s, discard := range n.staged {
		discard()
		if os.WriteFile(s.Path, nil, 0o600) == nil { // else its directory has gone
			n.abandoned++
		}
	}
	clear(n.staged)
}

// temporary lists the temporary files of killed runs. One in a directory that is recorded no
// more, since its objects were forgotten, is the next writer's to remove.
func (n *node) temporary() (all []string) {
	if n.root == "" || n.forgot {
		return nil
	}
	_ = filepath.WalkDir(n.root, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".tmp") {
			all = append(all, path)
		}
		return err
	})
	return all
}

// name is that of an object in a record.
func (n *node) name(object string) string {
	if n.root != "" && strings.ContainsAny(object[:1], "fd") {
		return n.root + object[2:]
	}
	return object[2:]
}

// fileState is that of a file or directory as agents want it.
func (n *node) fileState(sort string) ledger.State {
	switch {
	case n.root == "":
		return ledger.State{Type: map[string]string{"f": "file", "d": "dir"}[sort]}
	case sort == "d":
		return ledger.State{Type: "dir", Mode: 0o755, UID: os.Geteuid(), GID: os.Getegid()}
	}
	return ledger.FileWant("/x", 0o644, nil).To
}

func contentOf(s ledger.State) ([]byte, error) {
	r, err := s.Reader()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

func (n *node) dirKind() *ledger.Kind {
	k := &ledger.Kind{Name: "dir-in-memory", Space: "path"}
	k.Read = func(_ context.Context, o string) (ledger.State, error) {
		if n.files[o].dir {
			return ledger.State{Type: "dir"}, nil
		}
		return ledger.State{}, nil
	}
	k.Write = func(_ context.Context, o string, to ledger.State) error {
		if parent := path.Dir(o); parent != "/" && !n.files[parent].dir {
			return fs.ErrNotExist
		}
		if to.IsZero() && len(n.children(o)) > 0 {
			return errors.New("not empty")
		}
		n.write("d:"+o, map[bool]string{true: "", false: "dir"}[to.IsZero()])
		return nil
	}
	k.Keeps = func(_ context.Context, o string, after ledger.StateAfter) (string, error) {
		for _, child := range n.children(o) {
			if to, changes := after(k, child); !changes || !to.IsZero() {
				return "", fmt.Errorf("%w: it holds %s", ledger.ErrChanged, child)
			}
		}
		return "", nil
	}
	return k
}

// mountKind is of mounts with a source, which the part of a state before the # is.
func (n *node) mountKind() *ledger.Kind {
	source := func(m string) string { return strings.Split(m, "#")[0] }
	top := func(o string) string {
		if stack := n.mounts[o]; len(stack) > 0 {
			return stack[len(stack)-1]
		}
		return ""
	}
	return &ledger.Kind{
		Name: "mount", EndsWithBoot: func(string) bool { return true },
		Read: func(_ context.Context, o string) (ledger.State, error) {
			if top(o) == "" {
				return ledger.State{}, nil
			}
			return ledger.State{Type: "mount", Value: top(o)}, nil
		},
		Write: func(_ context.Context, o string, to ledger.State) error {
			stack := n.mounts[o]
			switch {
			case to.IsZero():
				stack = stack[:len(stack)-1]
			case len(stack) > 1 && stack[len(stack)-2] == to.Value:
				stack = stack[:len(stack)-1]
			case top(o) != "" && source(top(o)) == "theirs":
				return errors.New("another file system is mounted there")
			default:
				n.mounted++
				stack = append(slices.Clone(stack), fmt.Sprintf("%s#%d", to.Value, n.mounted))
			}
			n.write("m:"+o, strings.Join(stack, "|"))
			return nil
		},
		Met: func(now ledger.State, w ledger.Want) bool { return source(now.Value) == source(w.To.Value) },
	}
}

// sortedKeys lists the keys of a set.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
