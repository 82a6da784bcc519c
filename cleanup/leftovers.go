// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/failure"
)

// defaultBPFRoot is the usual mount point of the BPF file system.
const defaultBPFRoot = "/sys/fs/bpf"

// ErrAgentAlive is matched by the error of [Leftovers.Remove] if [Ownership.AgentAlive]
// detects the agent: stop it first.
var ErrAgentAlive = code.New(code.CleanupAgentAlive, "the agent is running")

// Leftovers describes the objects that an agent left on a node. As an action of a plan,
// its goal is a node without them; removals cannot be undone. The zero value owns nothing,
// selects nothing, and its methods return an error.
//
// Leftovers keeps everything that agents have recorded in the plan's ledger, or that of
// [ledger.With]: its directory and recorded paths as if they were in Keep, recorded
// directories as if they were in KeepDirs. What only other agents want is listed as left.
// Links and other objects of the network are not kept. A ledger that cannot be read is an
// error, and nothing is removed.
type Leftovers struct {
	// Ownership describes the agent's property.
	Ownership Ownership

	// Scope selects how much of it is removed: "bpf-state", the BPF programs (tc filters,
	// tcx, netkit, XDP, those of cgroups) and the pins, or "all-state", everything.
	Scope string

	// BPFRoots are the mount points of BPF file systems to look for [Ownership.Pins] in;
	// none means /sys/fs/bpf. Paths with another file system are skipped.
	BPFRoots []string

	// CgroupRoot is the directory of the cgroup2 hierarchy to which the agent attaches
	// its programs: the root of the hierarchy, if empty. A directory on another file
	// system is skipped.
	CgroupRoot string

	// Keep are absolute paths that are not removed: files, mounts, and directories with
	// everything in them. KeepDirs are directories that are not removed themselves, but
	// whose content is.
	Keep, KeepDirs []string

	// WhileAlive makes Remove skip its check for a running agent, which is
	// [Ownership.AgentAlive] with the ledger above.
	WhileAlive bool

	// StrandPods makes Remove also remove the plugins and the configuration that, by
	// libcni's cached results, sandboxes need for their deletion: their pods are then
	// stuck. Otherwise these files stay: Inventory's details and Remove's errors have the
	// number of sandboxes and a result's path.
	StrandPods bool

	// Sandboxes lists the IDs of all sandboxes that the container runtime knows, such as
	// cri.Endpoint.SandboxIDs: a cached result for any other counts for nothing if it is
	// ten minutes old, so that its sandbox is not starting. It is called in the process's
	// own namespaces. If nil, or if it fails, each result counts.
	Sandboxes func(context.Context) ([]string, error)

	// Progress, if set, is called after each item that Remove processed, on the calling
	// goroutine: err is nil for one that is gone.
	Progress func(done, total int, item string, err error)
}

// Inventory lists the items that are owned and in scope, in the order of their removal.
// It changes nothing. If part of the node cannot be examined, it still lists the rest,
// and the error names the missing part.
func (l Leftovers) Inventory(ctx context.Context) (*Inventory, error) {
	own, err := l.compile()
	if err != nil {
		return &Inventory{}, err
	}
	return l.inventory(ctx, own, finders())
}

// Remove removes the items, which an Inventory of the same Leftovers listed, and nothing
// else. The error joins one for each item that is still there. When ctx is done,
// Remove stops between two items or groups of them, and the error has one more part, with
// the number of items that it did not reach.
func (l Leftovers) Remove(ctx context.Context, items []Item) error {
	own, err := l.compile()
	if err != nil || len(items) == 0 {
		return err
	}
	if !l.WhileAlive {
		if err := l.Ownership.AgentAlive(ctx, ledger.From(ctx)); err != nil {
			return err
		}
	}
	return l.remove(ctx, own, items)
}

// AgentAlive returns an error that matches [ErrAgentAlive] and names the evidence if the
// agent runs, and any other error if it cannot tell. Each of these is evidence:
//
//   - another process has the number in one of PidFiles as its pid in its own pid
//     namespace, sees that very file in its own root directory, and executes one
//     of Executables; or, if there are no PidFiles, executes one of them in the calling
//     thread's network namespace;
//   - [ledger.Book.Agents] reports that the owner of b's agent is alive; nil means that there
//     is no ledger;
//   - one of PidFiles is locked exclusively. If users other than root can open the
//     file, a process of root's must have the lock;
//   - one of Sockets accepts a connection, or has a full queue.
//
// A pid file or socket left behind by an agent is no evidence. AgentAlive looks at the
// processes in the /proc of the calling thread's mount namespace, which should be the
// host's; that takes CAP_SYS_PTRACE.
func (o Ownership) AgentAlive(ctx context.Context, b *ledger.Book) error {
	return o.agentAlive(ctx, b)
}

// OnHost lists the host namespaces that a plan enters, and the directories and the file
// systems whose content is removed: in a container without the host's, Inventory would find
// nothing there.
func (l Leftovers) OnHost() (namespaces []string, places map[string]string) {
	places = map[string]string{}
	for _, path := range slices.Concat(l.Ownership.StateDirs, l.BPFRoots) {
		places[path] = ""
	}
	return []string{"mnt", "net", "cgroup"}, places
}

// Check lists what Apply would remove, one line for each item, long lists
// folded. It changes nothing.
func (l Leftovers) Check(ctx context.Context) ([]string, error) {
	inv, err := l.Inventory(ctx)
	return inv.changes(), err
}

// Apply removes everything that Inventory lists, even if part of the node could not be
// examined; the error then names that part.
func (l Leftovers) Apply(ctx context.Context) error {
	inv, err := l.Inventory(ctx)
	if len(inv.Items) > 0 {
		err = errors.Join(err, l.Remove(ctx, inv.Items))
	}
	return err
}

// compile returns what is owned. No step of a plan mends an error in the fields.
func (l Leftovers) compile() (*owned, error) {
	err := validScope(l.Scope)
	for _, keep := range slices.Concat(l.Keep, l.KeepDirs) {
		err = cmp.Or(err, validDir("path to keep", keep))
	}
	if err != nil {
		return nil, failure.Certain(err)
	}
	own, err := l.Ownership.compile()
	return own, failure.Certain(err)
}
