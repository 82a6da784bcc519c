// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/process"
)

// claimant is the process that claimed the node. Start and boot distinguish it from
// another process with its number.
type claimant struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // in clock ticks since the boot
	Boot  string `json:"boot"`
}

// lookAtClaimants finds the process that claims the node through this journal, and
// whether the previous claimant is alive. It runs while the calling thread is in the
// journal's namespaces, and so sees the host's processes; in a container, a process has a
// different number for itself.
func (j *Journal) lookAtClaimants(p *page) {
	if j.options.Owner == "" || isPod(j.options.Owner) {
		return
	}
	ctx := context.Background()
	if self, err := process.Self(); err == nil { // not so in a pid namespace above
		if start, err := self.Start(ctx); err == nil {
			j.self = &claimant{self.PID, start, j.boot}
		}
	}
	if by := p.current().Process; by != nil {
		if alive, _ := by.alive(ctx, j.boot); alive {
			j.living = by
		}
	}
}

// claimant returns the process to record for this journal's owner. A recorded one that is
// alive stays: it is the agent, and this process is a command run on its behalf.
func (j *Journal) claimant(current owner) *claimant {
	if current.Name == j.options.Owner && j.living != nil && same(current.Process, j.living) {
		return j.living
	}
	return j.self
}

// claimedByAnother reports whether a process other than the recorded one claims the node
// for the same owner.
func (j *Journal) claimedByAnother(current owner) bool {
	return j.self != nil && !same(current.Process, j.claimant(current))
}

func same(a, b *claimant) bool { return a != nil && b != nil && *a == *b }

// alive reports whether the process still runs.
func (c claimant) alive(ctx context.Context, boot string) (bool, error) {
	if c.Boot != boot {
		return false, nil
	}
	p := process.Process{PID: c.PID}
	start, err := p.Start(ctx)
	if err == nil && start == c.Start {
		var s process.Status
		s, err = p.Status(ctx)
		return err == nil && !s.Dead, ignoreGone(err)
	}
	return false, ignoreGone(err)
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// OwnerAlive returns the evidence that the node's owner is alive, or "" if there is none:
// processes of the pod, if the owner's name is a pod's UID, and otherwise the process
// that claimed the node. This process and its own pod do not count, nor does [Node].Owner
// if that is a pod's UID.
//
// Processes are searched in the /proc of the calling thread's mount namespace, and pods
// in cgroups as its cgroup namespace shows them: both should be the host's.
func (j *Journal) OwnerAlive(ctx context.Context) (seen string, err error) {
	if j == nil {
		return "", nil
	}
	p, err := j.head()
	if err != nil {
		return "", err
	}
	return j.alive(ctx, p.current())
}

// alive returns the evidence that an owner, of whichever agent, is alive.
func (j *Journal) alive(ctx context.Context, o owner) (seen string, err error) {
	switch {
	case isPod(o.Name):
		if o.Name != j.options.Owner {
			return podAlive(ctx, o.Name)
		}
	case o.Process != nil:
		alive, err := o.Process.alive(ctx, j.boot)
		if self, _ := process.Self(); alive && self.PID != o.Process.PID {
			seen = fmt.Sprintf("process %d, which claimed the node for its owner %q, runs", o.Process.PID, o.Name)
		}
		return seen, err
	}
	return "", nil
}

// isPod reports whether the owner is a pod's UID, as made by the API server, or by the
// kubelet for a static pod.
func isPod(owner string) bool {
	return hasForm(owner, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx") || hasForm(owner, strings.Repeat("x", 32))
}

// hasForm reports whether s is form, with a hexadecimal digit in the place of each x.
func hasForm(s, form string) bool {
	if len(s) != len(form) {
		return false
	}
	for i := range len(s) {
		if form[i] == 'x' && strings.IndexByte("0123456789abcdef", s[i]) < 0 || form[i] != 'x' && s[i] != form[i] {
			return false
		}
	}
	return true
}

// podAlive looks for processes in the pod's cgroups.
func podAlive(ctx context.Context, uid string) (seen string, err error) {
	if self, err := process.Self(); err == nil {
		if own, _ := self.Cgroups(ctx); inPod(own, uid) {
			return "", nil
		}
	}
	for p, err := range process.All(ctx) {
		if err != nil {
			return "", err
		}
		paths, err := p.Cgroups(ctx)
		if err := ignoreGone(err); err != nil {
			return "", err
		}
		if !inPod(paths, uid) {
			continue
		}
		if s, err := p.Status(ctx); err == nil && !s.Dead {
			return fmt.Sprintf("process %d (%s) is in the pod %s, which owns the node", p.PID, s.Name, uid), nil
		}
	}
	return "", nil
}

// inPod reports whether one of the cgroups is in that of the pod.
func inPod(cgroups []string, uid string) bool {
	return slices.ContainsFunc(cgroups, func(path string) bool { return podOf(path, uid) })
}

// podOf reports whether the cgroup's path leads through the pod's:
// .../kubepods/burstable/podUID with the driver cgroupfs,
// .../kubepods-burstable-podUID.slice with systemd, which has underscores for the dashes.
// Cgroups that a user can make, in a session of the user or in a container of another
// pod, are not the kubelet's.
func podOf(path, uid string) bool {
	for name := range strings.SplitSeq(path, "/") {
		if slice, isSlice := strings.CutSuffix(name, ".slice"); isSlice {
			name = strings.ReplaceAll(slice[strings.LastIndex(slice, "-")+1:], "_", "-")
		}
		pod, isPods := strings.CutPrefix(name, "pod")
		switch {
		case isPods && isPod(pod):
			return pod == uid
		case name == "user":
			return false
		}
	}
	return false
}
