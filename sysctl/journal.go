// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/slipway-dev/slipway/internal/record"
)

// The kinds of entries for values. Their Object is the dotted key.
const (
	kindOwn  = "sysctl"
	kindSide = "sysctl-side" // rewritten by the kernel when one of ours changed
)

// bookPrefix is what every book of this package is called after.
const bookPrefix = "sysctl-"

// journal notes values before they change. Without a book it notes nothing.
type journal struct {
	book  *record.Book
	now   string // this boot
	boot  string // the boot that undoes what is noted; empty: none does
	begun []begun
}

// begun is an entry that was begun, and why.
type begun struct {
	record.Entry
	cause Key
	prior *record.Entry // the same object's, of an earlier run
}

func state(value string) record.State { return record.State{Type: "value", Value: value} }

func (j *journal) entry(kind string, key Key, before, after string) record.Entry {
	return record.Entry{Kind: kind, Object: string(key), Before: state(before), After: state(after), Boot: j.boot}
}

// lookup finds the entry of key, unless a reboot has undone it.
func (j *journal) lookup(key Key) *record.Entry {
	e, known := j.book.Lookup(string(key))
	if !known || e.Boot != "" && e.Boot != j.now {
		return nil
	}
	return &e
}

// untilReboot notes in the same book what the next boot undoes.
func (j *journal) untilReboot() *journal {
	return &journal{book: j.book, now: j.now, boot: j.now}
}

// outlast notes that what was set, or is about to be, comes back with the next
// boot: a file of ours sets as. What the kernel changes along with it does too.
func (j *journal) outlast(k Kernel, as []Assignment) error {
	j.boot = ""
	if j.book == nil {
		return nil
	}
	targets, _ := expand(k.files(), as) // what is wrong with it has been said
	brought := map[string]bool{}
	for _, t := range targets {
		dragged, err := sides(k.files(), t.path)
		if err != nil {
			return err
		}
		for _, p := range append(dragged, t.path) {
			brought[string(keyOf(p))] = true
		}
	}
	var all, done []record.Entry
	for _, e := range j.book.Entries() {
		if e.Boot == "" || e.Boot != j.now || !brought[e.Object] {
			continue
		}
		e.Boot = ""
		if all = append(all, e); e.Done {
			done = append(done, e)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return errors.Join(j.book.Begin(all...), j.book.Complete(done...))
}

// file finds the entry of the file at path, unless a reboot has taken it away.
func (j *journal) file(path string) (*record.Entry, error) {
	if j.book == nil {
		return nil, nil
	}
	e, known := j.book.Lookup(path)
	if !known {
		return nil, nil
	}
	outlived, err := e.Outlived()
	if err != nil || outlived {
		return nil, err
	}
	return &e, nil
}

// begin notes what changes will alter, first what the kernel alters by itself.
func (j *journal) begin(k Kernel, changes []Change) error {
	if j.book == nil {
		return nil
	}
	j.begun = nil
	own := map[Key]bool{}
	for _, c := range changes {
		own[c.Key] = true
	}
	for _, c := range changes {
		if err := j.addSides(k, c, own); err != nil {
			return fmt.Errorf("record what %s changes: %w", c.Key, err)
		}
	}
	for _, c := range changes {
		j.add(j.entry(kindOwn, c.Key, c.Old, c.New), c.Key)
	}
	var entries []record.Entry
	for _, b := range j.begun {
		entries = append(entries, b.Entry)
	}
	return j.book.Begin(entries...)
}

// add adds e. What an earlier run noted stays: the first value, and that no
// boot undoes it.
func (j *journal) add(e record.Entry, cause Key) {
	prior := j.lookup(Key(e.Object))
	if prior != nil {
		e.Before = prior.Before
		if prior.Boot == "" {
			e.Boot = ""
		}
	}
	j.begun = append(j.begun, begun{e, cause, prior})
}

// addSides adds what c drags along, but for keys in own and those that earlier
// runs set for their own sake.
func (j *journal) addSides(k Kernel, c Change, own map[Key]bool) error {
	at, err := c.Key.path()
	if err != nil {
		return err
	}
	paths, err := sides(k.files(), at)
	if err != nil {
		return err
	}
	for _, p := range paths {
		key := keyOf(p)
		if e := j.lookup(key); own[key] || e != nil && e.Kind == kindOwn {
			continue
		}
		value, err := k.read(p)
		if errors.Is(err, fs.ErrNotExist) { // a link that went
			continue
		}
		if err != nil {
			return err
		}
		own[key] = true
		j.add(j.entry(kindSide, key, value, value), c.Key)
	}
	return nil
}

// end notes how the changes came out. Of those that did not come about stays
// what an earlier run noted.
func (j *journal) end(k Kernel, changes []Change) error {
	if j.book == nil {
		return nil
	}
	took := map[Key]bool{}
	for _, c := range changes {
		now, err := k.Get(c.Key)
		took[c.Key] = err == nil && sameValue(now, c.New)
	}
	var done []record.Entry
	var dropped []string
	for _, b := range j.begun {
		switch now, err := k.Get(Key(b.Object)); {
		case err == nil && took[b.cause]:
			b.After = state(now)
			done = append(done, b.Entry)
		case b.prior != nil:
			b.After = b.prior.After
			done = append(done, b.Entry)
		default:
			dropped = append(dropped, b.Object)
		}
	}
	err := j.book.Complete(done...)
	if len(dropped) > 0 {
		err = errors.Join(err, j.book.Forget(dropped...))
	}
	return err
}

// openJournal opens the book of one action.
func (k Kernel) openJournal(stateDir, name string) (*journal, error) {
	if stateDir == "" {
		return &journal{}, nil
	}
	book, err := record.Open(stateDir, bookPrefix+name)
	if err != nil {
		return nil, err
	}
	id, err := record.ReadBootID(func(path string) ([]byte, error) { // through k, so that a fake may have one
		return k.files().ReadFile(strings.TrimPrefix(path, "/proc/sys/"))
	})
	if err != nil {
		return nil, err
	}
	return &journal{book: book, now: id, boot: id}, nil
}
