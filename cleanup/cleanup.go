// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// DefaultBPFRoot is where the BPF file system is mounted on a node.
const DefaultBPFRoot = "/sys/fs/bpf"

// ErrAgentAlive is matched by the error of [Cleanup.Remove] where a process
// holds the lock on one of [Ownership.PidFiles]: stop the agent first.
var ErrAgentAlive = errors.New("the agent is running")

// Cleanup removes what an agent left behind. The zero value owns nothing,
// selects nothing, and its methods return an error that matches [ErrNoScope].
type Cleanup struct {
	// Ownership says what is the agent's.
	Ownership Ownership

	// Scope says how much of it goes.
	Scope Scope

	// BPFRoots are the mount points of BPF file systems to look for
	// [Ownership.Pins] in; none means [DefaultBPFRoot]. What is there and is
	// not a BPF file system is passed over.
	BPFRoots []string

	// CgroupRoot is a directory of the cgroup2 hierarchy, on which the agent
	// attaches its programs: its root, if empty. What is there and is not of
	// that file system is passed over.
	CgroupRoot string

	// Keep are absolute paths that stay: files, mounts, and directories with
	// everything in them. KeepDirs are directories that stay themselves, while
	// what is in them goes.
	Keep, KeepDirs []string

	// Journal is what the other packages of this module record their changes on
	// this node in. Its directory stays, as if it were in Keep, and so does what
	// it holds; of directories that were made the content goes. One that cannot be
	// read is an error, and nothing is removed. Nil: nothing is looked up.
	Journal *journal.Journal

	// Progress, if set, is called after each item that Remove dealt with, on
	// the calling goroutine: err is nil for one that is gone.
	Progress func(done, total int, item string, err error)
}

// Inventory lists what is owned and in scope, in the order in which it will be
// removed. It changes nothing. Where a part of the node cannot be looked at,
// the rest is still listed, and the error says what is missing from it.
func (c Cleanup) Inventory(ctx context.Context) (*Inventory, error) {
	own, err := c.compile()
	if err != nil {
		return &Inventory{}, err
	}
	return c.inventory(ctx, own)
}

// Remove removes the items, which an Inventory of the same Cleanup listed, and
// nothing else. The error joins one for each item that is still there. When
// ctx is done it stops between two steps and says how much is left.
func (c Cleanup) Remove(ctx context.Context, items []Item) error {
	own, err := c.compile()
	if err != nil || len(items) == 0 {
		return err
	}
	if err := c.Ownership.AgentAlive(); err != nil {
		return err
	}
	return c.remove(ctx, own, items)
}

// AgentAlive is an error that matches [ErrAgentAlive] where a process holds the
// lock on one of PidFiles. The lock ends with the process, whatever pid namespace
// it is in; a number in a file that nobody locks says nothing (a container's
// agent is often pid 1).
func (o Ownership) AgentAlive() error { return o.agentAlive() }

// Check lists what Apply would remove, one line for each item, long lists
// folded. It changes nothing.
func (c Cleanup) Check(ctx context.Context) ([]string, error) {
	inv, err := c.Inventory(ctx)
	return inv.changes(), err
}

// Apply removes everything that Inventory lists, also where a part of the node
// could not be looked at; the error says so.
func (c Cleanup) Apply(ctx context.Context) error {
	inv, err := c.Inventory(ctx)
	return errors.Join(err, c.removeFound(ctx, inv.Items))
}

func (c Cleanup) removeFound(ctx context.Context, items []Item) error {
	if len(items) == 0 {
		return nil
	}
	return c.Remove(ctx, items)
}

func (c Cleanup) compile() (*owned, error) {
	if err := c.Scope.validate(); err != nil {
		return nil, err
	}
	for _, keep := range slices.Concat(c.Keep, c.KeepDirs) {
		if err := validStatePath(keep); err != nil {
			return nil, fmt.Errorf("keep: %w", err)
		}
	}
	return c.Ownership.compile()
}

func (c Cleanup) bpfRoots() []string {
	if len(c.BPFRoots) == 0 {
		return []string{DefaultBPFRoot}
	}
	return c.BPFRoots
}
