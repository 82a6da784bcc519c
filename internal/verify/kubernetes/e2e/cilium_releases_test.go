// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build cilium

package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/verify/kubernetes/e2e/cluster"
)

// A node goes from one release to the other and back under our component: pods that are
// there lose no packet, others can come, and in the end the node is as it was before.
func TestReleasesOfCilium(t *testing.T) {
	begin(t)
	cilium118.importImage(t)
	cilium120.importImage(t)
	prepareForCilium(t)
	nodeReady(t, "False")
	before := look(t)
	older, newer := cilium118.deployment(t, "cilium/one"), cilium120.deployment(t, "cilium/one")
	address := older.runs(t)
	for _, step := range []struct {
		name string
		*deployment
	}{{"from 1.18.3 to 1.20.2", newer}, {"back to 1.18.3", older}} {
		step.base(t)
		require.Zero(t, step.replaces(t, step.name, address))
		step.agentReady(t)
		podOn(t, "third", cluster.NodeName)
		reaches(t, "third", address)
		removePod(t, "third")
	}
	removePingPods(t)
	noSandboxes(t)
	newer.end(t)
	older.end(t)
	t.Log(takeBack(t))
	nodeReady(t, "False")
	removeUnrecorded(t)
	settles(t, before, "the node is as it was before")
}
