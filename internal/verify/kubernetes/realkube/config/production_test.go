// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package config_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every shipped manifest meets a checklist for production, line by line.
func TestShippedPodsAreFitForProduction(t *testing.T) {
	type container struct {
		Name, Image, TerminationMessagePolicy string
		Command                               []string
		Resources                             struct{ Requests map[string]string }
		SecurityContext                       struct {
			Privileged, AllowPrivilegeEscalation, ReadOnlyRootFilesystem *bool
			Capabilities                                                 struct{ Drop []string }
			SeccompProfile                                               struct{ Type string }
		}
	}
	for file, raw := range shippedPods(t) {
		var pod struct {
			Spec struct {
				PriorityClassName          string
				HostNetwork, HostPID       bool
				Tolerations                []struct{ Key, Operator, Effect string }
				InitContainers, Containers []container
			}
		}
		require.NoError(t, json.Unmarshal(raw, &pod))
		s := pod.Spec
		require.Equal(t, "system-node-critical", s.PriorityClassName, "%s: it is not evicted, and others make room", file)
		require.True(t, s.HostNetwork, "%s: there may be no pod network", file)
		require.False(t, s.HostPID, "%s: nothing needs it", file)
		require.Equal(t, []struct{ Key, Operator, Effect string }{{"", "Exists", ""}}, s.Tolerations, "%s: on every node", file)
		ours := 0
		for _, c := range append(s.InitContainers, s.Containers...) {
			if len(c.Command) == 0 {
				continue // the placeholder for the agent, or a container that does nothing
			}
			ours++
			is := file + " " + c.Name
			require.Regexp(t, `@sha256:[0-9a-f]{64}$`, c.Image, "%s: a tag may mean another image tomorrow", is)
			require.NotEmpty(t, c.Resources.Requests["cpu"], "%s: it has its share of a busy node", is)
			require.NotEmpty(t, c.Resources.Requests["memory"], is)
			require.Nil(t, c.SecurityContext.Privileged, is)
			require.False(t, *c.SecurityContext.AllowPrivilegeEscalation, is)
			require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem, is)
			require.Equal(t, []string{"ALL"}, c.SecurityContext.Capabilities.Drop, is)
			require.Equal(t, "RuntimeDefault", c.SecurityContext.SeccompProfile.Type, is)
			if file != "drift.yaml" { // it reports through its Node
				require.Equal(t, "FallbackToLogsOnError", c.TerminationMessagePolicy, "%s: kubectl describe says why", is)
			}
		}
		require.Positive(t, ours, file)
		name, _, _ := strings.Cut(file, " ")
		text, err := os.ReadFile(deployDir + name)
		require.NoError(t, err)
		require.Regexp(t, `(?m)^  updateStrategy:\n    rollingUpdate: \{maxUnavailable: (10|100)%\}`, string(text), "%s: a cluster of thousands is updated within an hour", file)
	}
}
