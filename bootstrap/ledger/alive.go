// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/process"
)

// claimant is the process that has claimed for an owner. Start and boot tell it from another
// one with its number.
type claimant struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // in clock ticks since the boot
	Boot  string `json:"boot"`
}

// lookAtProcesses finds the process to record for the owner: this one, unless the recorded one
// is alive, which is the agent, and this process is a command run on its behalf. It runs where
// the host's processes are seen: in a container, a process has a different number for itself.
func (b *Book) lookAtProcesses(ctx context.Context, current owner) {
	if b.ledger.Owner == "" || isPod(b.ledger.Owner) {
		return
	}
	if by := current.Process; by != nil && current.Name == b.ledger.Owner {
		if alive, _ := by.alive(ctx, b.boot); alive {
			b.process = by
			return
		}
	}
	self, err := process.Self() // fails in a pid namespace above
	if err != nil {
		return
	}
	if start, err := self.Start(ctx); err == nil {
		b.process = &claimant{self.PID, start, b.boot}
	}
}

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
		return err == nil && !s.Dead, durable.IgnoreGone(err)
	}
	return false, durable.IgnoreGone(err)
}

// alive returns the evidence that an owner, of whichever agent, is alive.
func (b *Book) alive(ctx context.Context, o owner) (seen string, err error) {
	switch {
	case isPod(o.Name):
		if o.Name != b.ledger.Owner {
			return podAlive(ctx, o.Name)
		}
	case o.Process != nil:
		alive, err := o.Process.alive(ctx, b.boot)
		if self, _ := process.Self(); alive && self.PID != o.Process.PID {
			seen = fmt.Sprintf("process %d, which claimed the node for its owner %q, runs", o.Process.PID, o.Name)
		}
		return seen, err
	}
	return "", nil
}

// isPod reports whether the owner is a pod's UID, as made by the API server, or by the
// kubelet for a static pod.
var isPod = regexp.MustCompile(`^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32})$`).MatchString

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
		if err := durable.IgnoreGone(err); err != nil {
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
