// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package preflight_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/preflight"
)

var (
	_ bootstrap.Action  = preflight.Checks{}
	_ bootstrap.Adviser = preflight.Checks{}
	_ bootstrap.Gate    = preflight.Checks{}
	_ bootstrap.Hosted  = preflight.Checks{}
)

// lacks is a kernel without a feature.
var lacks = preflight.Kernel("Acme",
	preflight.Feature{Name: "the helper bpf_redirect_peer", Since: "5.10", Have: func() error { return fmt.Errorf("probe: %w", errors.ErrUnsupported) }},
	preflight.Feature{Name: "maps", Have: func() error { return nil }},
)

// behind is a warning.
var behind = preflight.APIServer([]string{"10.96.0.1"}, []string{"10.96.0.1"})

func TestRDY7_AWarningIsAdviceAndWhatIsCertainAFailure(t *testing.T) {
	run := func(list ...preflight.Check) (*bootstrap.Report, error) {
		p := bootstrap.Plan{Steps: []bootstrap.Step{
			{Name: "preflight", Action: preflight.Checks(list)},
			{Name: "other", Action: bootstrap.Func(
				"do it", func(context.Context) (bool, error) { return false, nil },
				func(context.Context) error { return nil },
			)},
		}}
		return p.Check(t.Context())
	}
	warning := preflight.Check{Name: "api-server", Find: behind}

	report, err := run(preflight.Check{Name: "server", Find: preflight.APIServer(nil, nil)})
	require.NoError(t, err)
	require.Equal(t, bootstrap.Unchanged, report.Results[0].Status)
	require.Empty(t, report.Results[0].Advice)

	report, err = run(warning)
	require.NoError(t, err)
	require.Equal(t, bootstrap.Unchanged, report.Results[0].Status)
	require.Len(t, report.Results[0].Advice, 1)
	require.Regexp(t, `^api-server: the agent is to reach .* \(preflight\.service-address\)$`, report.Results[0].Advice[0])

	report, err = run(warning, preflight.Check{Name: "kernel", Find: lacks})
	require.Equal(t, "preflight.kernel-feature", bootstrap.Code(err))
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.Regexp(t, `(?s)kernel: the kernel lacks the helper bpf_redirect_peer, without which Acme does not start \(boot Linux 5\.10.*api-server: `, err.Error(), "the certain one first, and all of them")
	require.Equal(t, bootstrap.Failed, report.Results[0].Status)
	require.Equal(t, bootstrap.WouldChange, report.Results[1].Status, "the others are looked at")
}

// That something is certain counts also while a step before it would change something.
func TestRDY7_NoStepMendsWhatIsCertain(t *testing.T) {
	changing := bootstrap.Func("x", func(context.Context) (bool, error) { return false, nil }, func(context.Context) error { return nil })
	p := bootstrap.Plan{Steps: []bootstrap.Step{
		{Name: "first", Action: changing},
		{Name: "preflight", After: []string{"first"}, Action: preflight.Checks{{Name: "kernel", Find: lacks}}},
	}}
	report, err := p.Check(t.Context())
	require.Error(t, err)
	require.Equal(t, bootstrap.Failed, report.Results[1].Status)
}

// counting counts how often it looks.
type counting struct{ looks *int }

func (c counting) Findings(context.Context) ([]error, error) {
	*c.looks++
	return []error{errors.New("as it is")}, nil
}

func TestRDY7_ARunLooksOnce(t *testing.T) {
	looks := 0
	p := bootstrap.Plan{
		Gates: []bootstrap.Step{{Name: "before", Gate: preflight.Checks{{Name: "a", Find: counting{&looks}.Findings}}}},
		Steps: []bootstrap.Step{{Name: "preflight", Action: preflight.Checks{{Name: "b", Find: counting{&looks}.Findings}}}},
	}
	for run, f := range []func(context.Context) (*bootstrap.Report, error){p.Check, p.Apply} {
		report, err := f(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"b: as it is (plan.failed)"}, report.Results[1].Advice)
		require.Equal(t, 2*(run+1), looks, "each of the two")
	}
}

func TestWhatCannotBeLookedAtIsAWarning(t *testing.T) {
	denied := preflight.Kernel("Acme", preflight.Feature{Name: "a", Have: func() error { return fs.ErrPermission }}, preflight.Feature{Name: "b", Have: func() error { return fs.ErrPermission }})
	c := preflight.Checks{{Name: "kernel", Find: denied}, {Name: "routing", Find: preflight.Tables(nil)}}
	require.NoError(t, c.Apply(t.Context()))
	advice, err := c.Advise(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{
		"kernel: cannot be looked at: a: permission denied, and 1 more (plan.permission)",
		"routing: cannot be looked at: no agent given: cleanup.Cilium() is one (plan.failed)",
	}, advice)
}

func TestRDY8_APIServerBehindTheAgentsOwnService(t *testing.T) {
	const service = "10.96.0.1"
	for server, found := range map[string]bool{
		"10.96.0.1": true, "https://10.96.0.1:443": true, "10.96.0.1:443": true, "https://kubernetes.default.svc": true, "kubernetes.default.svc.cluster.local.": true, "::ffff:10.96.0.1": true,
		"10.0.0.7": false, "https://10.0.0.7:6443": false, "https://api.example.org": false, "[fd00::7]:6443": false, "kubernetes.example.org": false,
	} {
		findings, err := preflight.APIServer([]string{server}, []string{service})(t.Context())
		require.NoError(t, err)
		require.Equal(t, found, len(findings) == 1, server)
	}
	findings, err := preflight.APIServer([]string{service, "10.0.0.7"}, []string{service})(t.Context())
	require.NoError(t, err)
	require.Empty(t, findings, "the agent tries them in turn")

	// The agent intercepts the address of a load balancer too that is a service of its cluster.
	findings, err = preflight.APIServer([]string{"https://192.0.2.7"}, []string{service, "192.0.2.7"})(t.Context())
	require.NoError(t, err)
	require.Len(t, findings, 1)
	require.ErrorContains(t, findings[0], "give it the address of the endpoint itself")
	require.ErrorContains(t, findings[0], "never that of a load balancer that is a service of this cluster")
}

func TestRDY8_KernelWithoutBTF(t *testing.T) {
	file := filepath.Join(t.TempDir(), "vmlinux")
	findings, err := preflight.BTFIn(file)
	require.NoError(t, err)
	require.Len(t, findings, 1)
	require.Equal(t, "preflight.no-btf", bootstrap.Code(findings[0]))

	require.NoError(t, os.WriteFile(file, nil, 0o600))
	findings, err = preflight.BTFIn(file)
	require.NoError(t, err)
	require.Empty(t, findings)
}
