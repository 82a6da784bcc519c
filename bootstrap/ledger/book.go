// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"strings"

	"github.com/slipway-dev/slipway/internal/input"
)

// Ledger says where the records are, and for which agent. It does no I/O until it is
// opened.
type Ledger struct {
	Dir      string  // such as /var/lib/slipway
	Agent    string  // a DNS label
	Boot     string  // identifies the running boot; empty: as the kernel says
	Override bool    // the wants of other agents that differ are overridden
	Kinds    []*Kind // of records that no want of this program names any more
}

var isLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`).MatchString

// Book is an open ledger.
type Book struct {
	ledger Ledger
	store  store
	boot   string
	kinds  map[string]*Kind // by name: of records, those that this program knows
	saved  string           // the file's content when it was last read or written
}

// Open opens the directory, as the calling thread sees it, and makes nothing. The book
// finds it afterwards from whichever mount namespace.
func (l *Ledger) Open() (*Book, error) {
	boot, err := l.Boot, error(nil)
	if boot == "" {
		boot, err = bootID()
	}
	if err != nil {
		return nil, err
	}
	if !isLabel(l.Agent) {
		return nil, fmt.Errorf("agent %q is not a DNS label, such as acme-1", l.Agent)
	}
	store, err := openDirectory(l.Dir)
	if err != nil {
		return nil, err
	}
	return l.open(store, boot), nil
}

// bootID identifies the running boot, as in random(4).
func bootID() (string, error) {
	if runtime.GOOS != "linux" {
		return "unknown", nil // boots are told apart on Linux only
	}
	id, err := input.ReadFile(context.Background(), "/proc/sys/kernel/random/boot_id", 128)
	return strings.TrimSpace(string(id)), err
}

// open is Open with a store and a boot, such as a test's.
func (l *Ledger) open(s store, boot string) *Book {
	b := &Book{ledger: *l, store: s, boot: boot, kinds: map[string]*Kind{}}
	for _, k := range l.Kinds {
		b.kinds[k.Name] = k
	}
	return b
}

// Close closes the directory.
func (b *Book) Close() error { return b.store.close() }

// load reads the file.
func (b *Book) load() (*sheet, error) {
	content, err := b.store.read()
	if err != nil {
		return nil, err
	}
	b.saved = string(content)
	if content == nil {
		return newSheet(), nil
	}
	s, err := parse(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.ledger.Dir, err)
	}
	s.reboot(b.boot)
	return s, nil
}

// save replaces the file, if it has changed. Contents are removed after the file that named
// them, those of a killed run too, and the directory with the last record.
func (b *Book) save(s *sheet) error {
	s.tidy()
	if len(s.records)+len(s.damaged) == 0 {
		b.saved = ""
		return b.store.remove()
	}
	text, err := s.text()
	if err != nil {
		return err
	}
	if string(text) != b.saved {
		if err := b.store.replace(text); err != nil {
			return err
		}
		b.saved = string(text)
	}
	return b.store.collect(s.contents())
}

// look calls f with the records, and again if they were replaced meanwhile: what f has seen
// of the node then belongs to neither version.
func (b *Book) look(ctx context.Context, f func(*sheet) error) error {
	for range 100 {
		s, err := b.load()
		if err == nil {
			err = f(s)
		}
		now, readErr := b.store.read()
		if string(now) == b.saved || readErr != nil || ctx.Err() != nil {
			return errors.Join(err, readErr, ctx.Err())
		}
	}
	return fmt.Errorf("%s: another process changes it all the time", b.ledger.Dir)
}

// unknownKind is the error for a record that this program can neither read nor write.
func unknownKind(r *record) error {
	return fmt.Errorf("%s %s: %w", r.Kind, r.Object, ErrUnknownKind)
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
