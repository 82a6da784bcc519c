// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
)

// missingAt is an error for an object that exists at none of some paths.
type missingAt []string

func (m missingAt) Error() string       { return "it is not there" }
func (m missingAt) MissingAt() []string { return m }

// making is an action with changes to make, which declares the paths.
type making struct {
	*bootstraptest.Script
	at string
}

func (m making) Places() map[string]string { return map[string]string{m.at: ""} }

// noting is an action that declares its records, and makes no files.
type noting struct {
	*bootstraptest.Script
	kinds []string
}

func (n noting) Kinds() []string { return n.kinds }

// An object that no earlier step could make is missing, even after steps with changes; an
// object that one of them could make is not known yet.
func TestPLAN9_PLAN17_WhatNoStepCouldBringFailsBeforeTheFirstChange(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(dir+"/opt/bin", 0o755))
	require.NoError(t, os.Symlink("opt", dir+"/link"))
	lacks := missingAt{dir + "/opt/bin/cni", dir + "/other/cni"}
	for name, tc := range map[string]struct {
		before bootstrap.Action
		err    error
		want   bootstrap.Status
	}{
		"made elsewhere":             {making{todo(), dir + "/etc"}, lacks, bootstrap.Failed},
		"a name that starts so":      {making{todo(), dir + "/opt/bi"}, lacks, bootstrap.Failed},
		"made in its folder":         {making{todo(), dir + "/opt/bin"}, lacks, bootstrap.Unknown},
		"made above":                 {making{todo(), dir}, lacks, bootstrap.Unknown},
		"made at the second":         {making{todo(), dir + "/other"}, lacks, bootstrap.Unknown},
		"made below":                 {making{todo(), dir + "/opt/bin"}, missingAt{dir + "/opt"}, bootstrap.Unknown},
		"made through a link":        {making{todo(), dir + "/link/bin"}, lacks, bootstrap.Unknown},
		"it says what it records":    {noting{todo(), []string{"acme/value"}}, lacks, bootstrap.Failed},
		"it waits":                   {noting{todo(), nil}, lacks, bootstrap.Unknown},
		"it says nothing":            {todo(), lacks, bootstrap.Unknown},
		"it is in a wrapper":         {bootstrap.Retry(making{todo(), dir + "/etc"}, nil), lacks, bootstrap.Failed},
		"nothing is to be done":      {&bootstraptest.Script{}, lacks, bootstrap.Failed},
		"one of several is hopeless": {making{todo(), dir + "/opt/bin"}, errors.Join(errBoom, lacks, missingAt{dir + "/etc/x"}), bootstrap.Failed},
		"another error":              {making{todo(), dir + "/etc"}, errBoom, bootstrap.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			first := making{todo(), dir + "/first"}
			plan := &bootstrap.Plan{Host: &host{}, Steps: []bootstrap.Step{
				step("first", first),
				step("before", tc.before, "first"),
				skipped(step("between", nil, "before")),
				step("s", &bootstraptest.Script{CheckErrs: []error{fmt.Errorf("look: %w", tc.err), tc.err, tc.err}}, "between"),
			}}
			report, err := plan.Check(t.Context())
			require.Equal(t, tc.want, report.Results[3].Status)
			require.Equal(t, tc.want == bootstrap.Failed, err != nil)
			require.ErrorContains(t, report.Results[3].Err, tc.err.Error())

			report, err = plan.Apply(t.Context())
			require.Error(t, err)
			require.Equal(t, tc.want == bootstrap.Unknown, first.Applied(), "%v", report)
		})
	}
}

// While a gate is closed, others may still supply the object; an apply does all it can.
func TestPLAN9_WhatIsMissingMayComeWhileAGateIsClosed(t *testing.T) {
	lacks := missingAt{filepath.Join(t.TempDir(), "cni")}
	check := func() bootstrap.Action {
		return &bootstraptest.Script{CheckErrs: []error{lacks, lacks}}
	}
	plan := &bootstrap.Plan{Host: &host{}, Gates: []bootstrap.Step{step("gate", todo())}, Steps: []bootstrap.Step{step("s", check())}}
	report, err := plan.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, lines("gate would-change", "s unknown"), statuses(report))

	first := making{todo(), "/nowhere"}
	plan = &bootstrap.Plan{Host: &host{}, KeepGoing: true, Steps: []bootstrap.Step{step("first", first), step("s", check(), "first")}}
	report, err = plan.Apply(t.Context())
	require.ErrorAs(t, err, new(bootstrap.MissingError))
	require.Equal(t, lines("first changed", "s failed"), statuses(report))
}
