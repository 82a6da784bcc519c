// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/internal/testns"
)

// itemErrors returns every item's error in a tree of errors.
func itemErrors(err error) (out []*cleanup.Error) {
	switch e := err.(type) {
	case *cleanup.Error:
		return []*cleanup.Error{e}
	case interface{ Unwrap() error }:
		return itemErrors(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			out = append(out, itemErrors(err)...)
		}
	}
	return out
}

// Each remaining item has its own error, however the action is called.
func TestCLN4_EachItemHasAnError(t *testing.T) {
	testns.Enter(t, testns.Mount)
	dir := testns.TempDir(t)
	files(t, dir, "etc/cni/net.d/05-cilium.conflist", "etc/cni/net.d/05-cilium.conf", "opt/cni/bin/cilium-cni")
	failing := []string{filepath.Join(dir, "etc/cni/net.d/05-cilium.conflist"), filepath.Join(dir, "opt/cni/bin/cilium-cni")}
	for _, path := range failing {
		immutable(t, path)
	}
	l := filesOnly(dir)
	host := hostns.Host{
		Proc:     testns.Proc(t, fmt.Sprintf("/proc/%d/task/%d", os.Getpid(), unix.Gettid())),
		LockFile: filepath.Join(t.TempDir(), "lock"),
	}
	plan := bootstrap.Plan{Host: host, Steps: []bootstrap.Step{{Name: "cleanup", Action: l}}}
	_, planErr := plan.Apply(t.Context())
	inv := inventory(t, l)
	for name, err := range map[string]error{
		"Remove": l.Remove(t.Context(), inv.Items),
		"Enter":  host.Enter(t.Context(), []string{"mnt"}, l.Apply),
		"Plan":   planErr,
	} {
		var first *cleanup.Error
		require.ErrorAs(t, err, &first, name)
		all := itemErrors(err)
		require.Len(t, all, 2, name)
		require.Same(t, first, all[0], name)
		for i, e := range all {
			require.Equal(t, "file", e.Item.Kind, name)
			require.Equal(t, failing[i], e.Item.Object, name)
			require.ErrorIs(t, e, unix.EPERM, name)
			require.Equal(t, "remove file "+failing[i]+": "+e.Err.Error(), e.Error(), name)
			require.ErrorContains(t, err, e.Error(), name)
		}
		require.NoFileExists(t, filepath.Join(dir, "etc/cni/net.d/05-cilium.conf"), name)
	}
	require.True(t, errors.As(planErr, new(*bootstrap.StepError)))
}
