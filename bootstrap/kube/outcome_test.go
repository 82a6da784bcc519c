// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/kube"
	"github.com/slipway-dev/slipway/internal/code"
)

func TestRDY5_WhatAReportComesTo(t *testing.T) {
	long := strings.Repeat("ö", 300)
	for name, tc := range map[string]struct {
		report bootstrap.Report
		want   kube.Outcome
	}{
		"nothing to do": {
			bootstrap.Report{Op: "check", Agent: "a", Owner: "pod", Version: "1", Results: []bootstrap.Result{{Step: "cgroup", Status: bootstrap.Unchanged}}},
			kube.Outcome{Agent: "a", Version: "1", Result: "ready"},
		},
		"applied": {
			bootstrap.Report{Op: "apply", Owner: "pod", Results: []bootstrap.Result{{Step: "cgroup", Status: bootstrap.Changed}}},
			kube.Outcome{Owner: "pod", Result: "ready"},
		},
		"something to do": {
			bootstrap.Report{Op: "check", Results: []bootstrap.Result{
				{Step: "cgroup", Status: bootstrap.Unchanged}, {Step: "bpffs", Status: bootstrap.WouldChange, Changes: []string{"mount /sys/fs/bpf", "x"}},
				{Step: "cni", Status: bootstrap.WouldChange, Changes: []string{"write file /a"}}}},
			kube.Outcome{Result: "drifted", Step: "bpffs", Message: "mount /sys/fs/bpf; x; write file /a"},
		},
		"failed": {
			bootstrap.Report{Op: "apply", Results: []bootstrap.Result{
				{Step: "optional", Status: bootstrap.Failed, Excused: true, Err: errors.New("x")},
				{Step: "cni", Status: bootstrap.WouldChange},
				{Step: "sysctl", Status: bootstrap.Failed, Err: code.New(code.SysctlReadOnly, "a\nhttps://u:p@b")}}},
			kube.Outcome{Result: "failed", Step: "sysctl", Code: code.SysctlReadOnly, Message: "a; https://b"},
		},
		"before its steps": {
			bootstrap.Report{Op: "apply", Err: &bootstrap.StepError{Step: "config", Op: "resolve", Err: errors.New(long)}},
			kube.Outcome{Result: "failed", Step: "config", Code: code.PlanFailed, Message: "step \"config\": resolve: " + long},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := kube.OutcomeOf(&tc.report)
			require.LessOrEqual(t, len(got.Message), 500)
			if strings.Contains(tc.want.Message, long) {
				require.True(t, strings.HasSuffix(got.Message, "ö..."), got.Message)
				got.Message = tc.want.Message
			}
			require.Equal(t, tc.want, got)
		})
	}
}

func TestRDY5_AnnotationsAreReadByAgent(t *testing.T) {
	require.Equal(t, []kube.Outcome{
		{Agent: "a", Result: "failed", Code: "sysctl.read-only"},
		{Agent: "b", Result: "garbled"},
		{Agent: "c", Result: "garbled"},
		{Agent: "d", Result: "garbled"},
	}, kube.Outcomes(map[string]string{
		"report.slipway.dev/d": `{"result":"ready","version":"` + strings.Repeat("1", 2100) + `"}`,
		"report.slipway.dev/c": `{"result":"well"}`,
		"report.slipway.dev/b": `{"result":`,
		"report.slipway.dev/a": `{"agent":"another","result":"failed","code":"sysctl.read-only"}`,
		"other":                "x",
	}))
	require.Equal(t, "SlipwayMyAgent2Ready", kube.Outcome{Agent: "my-agent.2"}.Condition())
}

func TestRDY5_AReporterNeedsItsClientsAndANode(t *testing.T) {
	_, err := kube.Reporter{}.Report(t.Context(), kube.Outcome{})
	require.ErrorContains(t, err, "no client given")
	_, err = kube.Reporter{}.Withdraw(t.Context(), "")
	require.ErrorContains(t, err, "no client given")
}
