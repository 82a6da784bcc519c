// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstraptest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// ConformKind tests that a kind keeps the contract of [ledger.Kind] for an object that this
// process may own and write, in a directory that exists. It brings the object to each of the
// states in turn, which must differ, and leaves it as it was. The rules:
//
//   - Read changes nothing, and reads the same when asked again.
//   - What Write has written is read back, and is Met. Write may be repeated.
//   - With a context that is done, Write succeeds, or returns an error and changes nothing.
//   - An object is the Same as itself, and not the same as in another state. It does not
//     meet what it is not like.
//   - Describe is one printable line, Canonical has one name for an object, the object may
//     be owned, and Permission allows what then works.
func ConformKind(t testing.TB, k *ledger.Kind, object string, states ...ledger.State) {
	t.Helper()
	c := &kindSubject{k, object}
	if err := c.test(t.Context(), states); err != nil {
		t.Fatalf("kind %s breaks the contract: %v", k.Name, err)
	}
}

type kindSubject struct {
	*ledger.Kind
	object string
}

func (c *kindSubject) test(ctx context.Context, states []ledger.State) error {
	if c.Name == "" || c.Read == nil || c.Write == nil || len(states) == 0 {
		return errors.New("a kind needs a Name, Read and Write, and the test a state")
	}
	original, err := c.read(ctx)
	if err == nil {
		err = c.named(ctx)
	}
	now := original
	for i := 0; i < len(states) && err == nil; i++ {
		now, err = c.become(ctx, now, states[i])
	}
	if err != nil {
		return err
	}
	_, err = c.become(ctx, now, original)
	return err
}

// named tests what the kind says of the object's name.
func (c *kindSubject) named(ctx context.Context) (err error) {
	name := c.object
	if c.Canonical != nil {
		if name, err = c.Canonical(name); err != nil {
			return fmt.Errorf("canonical name: %w", err)
		}
		if again, err := c.Canonical(name); err != nil || again != name {
			return fmt.Errorf("the canonical name %q has another one, %q: %w", name, again, err)
		}
	}
	if c.Owns != nil {
		err = c.Owns(name)
	}
	if c.Permission != nil {
		err = errors.Join(err, c.Permission(ctx, name))
	}
	return err
}

// read reads the object twice.
func (c *kindSubject) read(ctx context.Context) (ledger.State, error) {
	first, err := c.Read(ctx, c.object)
	if err != nil {
		return first, fmt.Errorf("read: %w", err)
	}
	second, err := c.Read(ctx, c.object)
	if err == nil && !second.Equal(first) {
		err = fmt.Errorf("it is %s, and read again %s", shown(first), shown(second))
	}
	return first, err
}

// become writes a state, and returns how the object is then.
func (c *kindSubject) become(ctx context.Context, was, to ledger.State) (now ledger.State, err error) {
	if c.Describe != nil {
		if err := isLine(c.Describe(c.object, was, to)); err != nil {
			return was, err
		}
	}
	if c.isMet(was, to) {
		return was, fmt.Errorf("in state %s it already counts as written %s", shown(was), shown(to))
	}
	if err := c.Write(done(ctx), c.object, to); err != nil {
		if now, errRead := c.read(ctx); errRead != nil || !now.Equal(was) {
			return was, fmt.Errorf("a write that returns %w has changed it from %s to %s", errors.Join(err, errRead), shown(was), shown(now))
		}
	}
	for range 2 {
		if err := c.Write(ctx, c.object, to); err != nil {
			return was, fmt.Errorf("write %s: %w", shown(to), err)
		}
		if now, err = c.read(ctx); err != nil {
			return was, err
		}
		if !c.isMet(now, to) || !c.isSame(now, now) || c.isSame(now, was) {
			return was, fmt.Errorf("after %s was written over %s, it is %s", shown(to), shown(was), shown(now))
		}
	}
	return now, nil
}

func (c *kindSubject) isSame(a, b ledger.State) bool {
	if c.Same == nil || a.IsZero() || b.IsZero() {
		return a.Equal(b)
	}
	return c.Same(a, b)
}

// isMet is what the ledger takes for written.
func (c *kindSubject) isMet(now, to ledger.State) bool {
	if c.Met == nil || now.IsZero() || to.IsZero() {
		return c.isSame(now, to)
	}
	return c.Met(now, ledger.Want{Kind: c.Kind, Object: c.object, To: to})
}

// shown leaves out the fields that are zero.
func shown(s ledger.State) string {
	text, _ := json.Marshal(s) // of strings and numbers
	return string(text)
}
