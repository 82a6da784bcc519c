// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"errors"
	"slices"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/code"
)

// DefaultBPFRoot is where the BPF file system is mounted on a node.
const DefaultBPFRoot = "/sys/fs/bpf"

// ErrAgentAlive is matched by the error of [Leftovers.Remove] where
// [Ownership.AgentAlive] sees the agent: stop it first.
var ErrAgentAlive = code.New(code.CleanupAgentAlive, "the agent is running")

// Leftovers are what an agent left on a node. As an action of a plan it is the
// state of the node without them: a plan with a journal asks for Step.NoUndo, since
// nothing that is removed comes back. The zero value owns nothing, selects nothing, and
// its methods return an error that matches [ErrNoScope].
//
// What the other packages of this module have recorded on this node, in the journal that
// a plan has entered or that journal.With gives, is kept: the journal's directory and the
// paths that it records as if they were in Keep, directories that it records as if they
// were in KeepDirs. A journal that cannot be read is an error, and nothing is removed.
type Leftovers struct {
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

	// Keep are absolute paths that are not removed: files, mounts, and directories
	// with everything in them. KeepDirs are directories that are not removed
	// themselves, while what is in them is.
	Keep, KeepDirs []string

	// WhileAlive says that Remove does not look whether the agent runs, as by
	// [Ownership.AgentAlive], with that journal.
	WhileAlive bool

	// StrandPods says that Remove also takes the plugins and the configuration that
	// sandboxes need to be deleted, by libcni's cached results: their pods are then stuck.
	// Otherwise these stay, and their errors say how many sandboxes there are.
	StrandPods bool

	// Progress, if set, is called after each item that Remove dealt with, on
	// the calling goroutine: err is nil for one that is gone.
	Progress func(done, total int, item string, err error)
}

// Inventory lists what is owned and in scope, in the order in which it will be
// removed. It changes nothing. Where a part of the node cannot be looked at,
// the rest is still listed, and the error says what is missing from it.
func (l Leftovers) Inventory(ctx context.Context) (*Inventory, error) {
	own, err := l.compile()
	if err != nil {
		return &Inventory{}, err
	}
	return l.inventory(ctx, own)
}

// Remove removes the items, which an Inventory of the same Leftovers listed, and
// nothing else. The error joins an [Error] for each item that is still there.
// When ctx is done, Remove stops between two items or groups of them, and the
// error has one more part, which says how many items it did not come to.
func (l Leftovers) Remove(ctx context.Context, items []Item) error {
	own, err := l.compile()
	if err != nil || len(items) == 0 {
		return err
	}
	if !l.WhileAlive {
		if err := l.Ownership.AgentAlive(ctx, journal.OnNode(ctx)); err != nil {
			return err
		}
	}
	return l.remove(ctx, own, items)
}

// AgentAlive returns an error that matches [ErrAgentAlive] if the agent runs, which
// says what shows that; and any other error if that cannot be told. Each of these
// shows it:
//
//   - another process has the number in one of PidFiles as its pid in its own pid
//     namespace, sees that very file in its own root directory, and executes one
//     of Executables;
//   - [journal.Journal.OwnerAlive], of the journal of this agent; nil: there is none;
//   - one of PidFiles is locked exclusively. If users other than root can open the
//     file, a process of root's must have the lock;
//   - a connection to one of Sockets is taken, or has to queue.
//
// A pid file or socket that an agent has left behind shows nothing. AgentAlive looks at the processes in the /proc of the calling thread's mount
// namespace, which should be the host's; that takes CAP_SYS_PTRACE.
func (o Ownership) AgentAlive(ctx context.Context, j *journal.Journal) error {
	return o.agentAlive(ctx, j)
}

// Namespaces lists those of the host that a plan enters.
func (Leftovers) Namespaces() []string { return []string{"mnt", "net", "cgroup"} }

// Places lists the directories and the file systems whose content is removed: in a
// container that does not have the host's, nothing would be found.
func (l Leftovers) Places() map[string]string {
	places := map[string]string{}
	for _, path := range slices.Concat(l.Ownership.StateDirs, l.BPFRoots) {
		places[path] = ""
	}
	return places
}

// Check lists what Apply would remove, one line for each item, long lists
// folded. It changes nothing.
func (l Leftovers) Check(ctx context.Context) ([]string, error) {
	inv, err := l.Inventory(ctx)
	return inv.changes(), err
}

// Apply removes everything that Inventory lists, also where a part of the node
// could not be looked at; the error says so.
func (l Leftovers) Apply(ctx context.Context) error {
	inv, err := l.Inventory(ctx)
	return errors.Join(err, l.removeFound(ctx, inv.Items))
}

func (l Leftovers) removeFound(ctx context.Context, items []Item) error {
	if len(items) == 0 {
		return nil
	}
	return l.Remove(ctx, items)
}

func (l Leftovers) compile() (*owned, error) {
	if err := l.Scope.validate(); err != nil {
		return nil, err
	}
	for _, keep := range slices.Concat(l.Keep, l.KeepDirs) {
		if err := validDir("what is kept", keep); err != nil {
			return nil, err
		}
	}
	return l.Ownership.compile()
}

func (l Leftovers) bpfRoots() []string {
	if len(l.BPFRoots) == 0 {
		return []string{DefaultBPFRoot}
	}
	return l.BPFRoots
}
