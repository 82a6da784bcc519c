// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build cilium

package e2e_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// The way through the page with the release that it names, from its own chart.
func TestWalkThroughWithCilium(t *testing.T) {
	begin(t)
	cilium120.importImage(t) // for the operator
	prepareForCilium(t)
	nodeReady(t, "False")
	own := []string{"image.override=quay.io/cilium/cilium:v1.20.2", "operator.image.override=" + cilium120.image()}
	w := startWalk(t, documents(t, []byte(ownMachine(string(cilium120.chart(t, slices.Concat(own, ciliumValues)...))))))
	on(t, "nft delete table ip raw")
	before := look(t)
	w.through(t, cilium120.agentContents(t))
	removeUnrecorded(t)
	require.NotContains(t, on(t, "nft list table ip raw; nft delete table ip raw"), "jump")
	settles(t, before, "but for what the page names, the node is as it was before")
}
