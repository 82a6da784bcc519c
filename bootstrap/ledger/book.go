// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/slipway-dev/slipway/internal/failure"
	"github.com/slipway-dev/slipway/internal/input"
)

const defaultDir = "/var/lib/slipway"

// Ledger says where the records are, for which agent, and on whose behalf. It does no I/O
// until it is opened. It remembers what this process has claimed: use one for all plans of a
// process, and do not open it from two goroutines at once for the first time.
type Ledger struct {
	Dir   string // an absolute path; empty: /var/lib/slipway
	Agent string // a DNS label
	// Owner is on whose behalf the agent is applied, such as a pod's UID. NoOwner says that
	// there is none: the process then claims nothing, and stops no other. One must be set.
	Owner   string
	NoOwner bool

	TakeOver   bool // a superseded owner may claim again
	AnyOwner   bool // what another owner has made may be undone
	Override   bool // the wants of other agents that differ are overridden
	AcceptKept bool // undoing leaves what others have changed since to them for good
	Adopt      bool // files that a step names, and finds as wanted when it first claims, count as made by the agent; not those that may be others' (Want.NoAdopt)
	AllAgents  bool // undoing is of all agents of the node at once
	RepairOnly bool // the process claims nothing: it only keeps what another one of its owner has applied

	// MayUndo is asked by [Book.MayUndo], to refuse what the program alone can tell, such as
	// that an agent is alive; nil: nothing is. In a plan the node is locked then.
	MayUndo func(context.Context) error

	Boot  string  // identifies the running boot; empty: as the kernel says
	Kinds []*Kind // of records that no want of this program names any more

	bound *atomic.Pointer[binding]
	known *sync.Map // by step: the IDs of the files that this process knows it to claim
}

var isLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`).MatchString

// Validate returns an error if a field is invalid.
func (l *Ledger) Validate() error {
	if l == nil {
		return errors.New("the ledger is a nil *Ledger")
	}
	switch dir := l.dir(); {
	case !filepath.IsAbs(dir) || dir == filepath.Dir(dir):
		return fmt.Errorf("state directory %q is not an absolute path below the root", l.Dir)
	case !isLabel(l.Agent):
		return fmt.Errorf("agent %q is not a DNS label, such as acme-1", l.Agent)
	case !utf8.ValidString(l.Owner) || len(l.Owner) > maxOwner:
		return fmt.Errorf("owner %q is not UTF-8 of up to %d bytes", l.Owner, maxOwner)
	case l.Owner == "" && !l.NoOwner:
		return fmt.Errorf("state directory %s: no owner is named: set Owner, such as a pod's UID, or NoOwner", dir)
	case l.Owner != "" && l.NoOwner:
		return fmt.Errorf("state directory %s: Owner is %q, and NoOwner is set", dir, l.Owner)
	}
	if i := slices.Index(l.Kinds, nil); i >= 0 {
		return fmt.Errorf("state directory %s: kind %d of %d is nil", l.dir(), i+1, len(l.Kinds))
	}
	return nil
}

// maxOwner bounds the name of an owner, in bytes.
const maxOwner = 253

// File is the path of the file with the records. It is another file after each change.
func (l *Ledger) File() string { return filepath.Join(l.dir(), fileName) }

func (l *Ledger) dir() string { return filepath.Clean(cmp.Or(l.Dir, defaultDir)) }

// Book is an open ledger.
type Book struct {
	ledger Ledger
	store  store
	boot   string
	place  place            // of the objects that it looks at
	kinds  map[string]*Kind // by name: of records, those that this program knows
	saved  string           // the file's content when it was last read or written
	parsed parsed

	bound   *atomic.Pointer[binding]
	known   *sync.Map
	process *claimant // that is recorded for the owner; nil: that is a pod, or none
	reverts bool      // MayUndo was asked, and not Claim
}

// Open opens the directory, as the calling thread sees it, and makes nothing. The book
// finds it afterwards from whichever mount namespace.
func (l *Ledger) Open(ctx context.Context) (*Book, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	boot, err := l.Boot, error(nil)
	if boot == "" {
		boot, err = bootID(ctx)
	}
	if err != nil {
		return nil, err
	}
	store, err := openDirectory(l.dir())
	if err != nil {
		return nil, err
	}
	b := l.open(store, boot)
	b.Learn(File(), Dir())                      // after the program's own variants of them
	if _, a, err := b.loadAgent(); err == nil { // else each operation says so, but Salvage
		b.lookAtProcesses(ctx, a.current())
	}
	return b, nil
}

// bootID identifies the running boot, as in random(4).
func bootID(ctx context.Context) (string, error) {
	if runtime.GOOS != "linux" {
		return "unknown", nil // boots are told apart on Linux only
	}
	id, err := input.ReadFile(ctx, "/proc/sys/kernel/random/boot_id", 128)
	return strings.TrimSpace(string(id)), err
}

// open is Open with a store and a boot, such as a test's.
func (l *Ledger) open(s store, boot string) *Book {
	if l.bound == nil {
		l.bound, l.known = &atomic.Pointer[binding]{}, &sync.Map{}
	}
	b := &Book{ledger: *l, store: s, boot: boot, kinds: map[string]*Kind{}, bound: l.bound, known: l.known}
	b.ledger.Dir = l.dir()
	for _, k := range l.Kinds {
		b.kinds[k.Name] = k
	}
	return b
}

// Close closes the directory.
func (b *Book) Close() error {
	if b == nil {
		return nil
	}
	return b.store.close()
}

// read reads the file.
func (b *Book) read() (content []byte, err error) {
	if content, _, err = b.store.read(fileName, maxFile); err == nil { // else what was read before still counts
		b.saved = string(content)
	}
	return content, err
}

// parsed is a file's content, which a run reads a dozen times, and its records. They are not
// changed.
type parsed struct {
	content []byte
	sheet   *sheet
}

// load returns the file's records, as they count in this boot.
func (b *Book) load() (*sheet, error) {
	content, err := b.read()
	if err != nil {
		return nil, err
	}
	if b.parsed.sheet == nil || content == nil || !bytes.Equal(content, b.parsed.content) {
		s, err := parse(content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.ledger.Dir, err)
		}
		b.parsed = parsed{content, s}
	}
	s := b.parsed.sheet.clone()
	s.view(b.place, b.boot)
	s.reboot(b.boot)
	return s, nil
}

// save replaces the file, if it has changed. Contents are removed after the file that named
// them, those of a killed run too, and the directory with the last record.
func (b *Book) save(s *sheet) error {
	if err := b.write(s); err != nil {
		return fmt.Errorf("%w: %w", failure.ErrUnrecorded, err)
	}
	return nil
}

func (b *Book) write(s *sheet) error {
	changed, text, err := b.changed(s)
	if err != nil {
		return err
	}
	if bound, a := b.bound.Load(), s.head.Agents[b.ledger.Agent]; bound != nil && bound.id == "" {
		b.bind(a) // which has got its ID now
	}
	if s.isEmpty() {
		b.saved = ""
		return b.store.remove()
	}
	if changed {
		if err := b.replace(text); err != nil {
			return err
		}
	}
	return b.store.collect(s.obsolete())
}

// changed reports whether the file is to be replaced, and by which text. Nil: it is to go.
func (b *Book) changed(s *sheet) (changed bool, text []byte, err error) {
	s.tidy()
	s.tidyAgents()
	if !s.isEmpty() {
		text, err = s.text()
	}
	return string(text) != b.saved, text, err
}

// replace replaces the file, unless another process has done so since it was read.
func (b *Book) replace(text []byte) error {
	now, _, err := b.store.read(fileName, maxFile)
	if err == nil && string(now) != b.saved {
		err = fmt.Errorf("%s: another process has changed it meanwhile: a process that changes a node must hold the node's lock", b.ledger.Dir)
	}
	if err != nil {
		return err
	}
	b.saved = string(text)
	if err = b.store.write(fileName, text); err != nil {
		_, _ = b.read() // it may have been replaced all the same, and is written again
	}
	return err
}

// look calls f with the records, and again if they were replaced meanwhile: what f has seen
// of the node then belongs to neither version.
func (b *Book) look(ctx context.Context, f func(*sheet) error) error {
	for range 100 {
		before := b.store.version()
		s, err := b.load()
		if err == nil {
			err = f(s)
		}
		if b.store.version() == before || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
	}
	return fmt.Errorf("%s: another process changes it all the time", b.ledger.Dir)
}

// keep returns s with its content stored: in the record if it is short, else beside the
// file.
func (b *Book) keep(ctx context.Context, s State, secret bool) (State, error) {
	if s.SHA256 == "" || secret {
		s = s.bare()
		s.secret = s.SHA256 != ""
		return s, nil
	}
	if s.kept {
		return s, nil
	}
	r, err := s.Reader()
	if err != nil {
		return State{}, err
	}
	defer r.Close()
	bare := s.bare()
	if s.Size > maxInline {
		bare.kept = true
		return bare, b.store.keep(ctx, s, r)
	}
	var short bytes.Buffer
	err = copyContent(ctx, &short, r, &s)
	bare.Content = short.Bytes()
	return bare, err
}

// writable returns a recorded state with its content, as a kind writes it.
func (b *Book) writable(s State) State {
	if s.kept {
		sha256 := s.SHA256
		s.Open = func() (io.ReadCloser, error) { return b.store.open(sha256) }
	}
	return s
}
