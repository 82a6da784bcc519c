// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package realkube_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/verify/kubernetes/realkube"
)

func TestServerKeepsItsDataOverAKill(t *testing.T) {
	agent := realkube.ServiceAccount("kube-system", "agent")
	server, err := realkube.Start(t.Context(), realkube.Options{Users: []realkube.User{agent}, Log: os.Stderr})
	require.NoError(t, err)
	defer func() { require.NoError(t, server.Close()) }()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()

	version, err := server.Admin().Get(ctx, "/version")
	require.NoError(t, err)
	var v struct{ GitVersion string }
	require.NoError(t, json.Unmarshal(version, &v))
	require.Regexp(t, `^v1\.\d+\.\d+$`, v.GitVersion)

	const path = "/api/v1/namespaces/default/configmaps"
	mark, err := server.AuditMark()
	require.NoError(t, err)
	before, err := server.Metrics(ctx)
	require.NoError(t, err)
	object := map[string]any{"metadata": map[string]any{"name": "kept"}, "data": map[string]any{"k": "v"}}
	require.NoError(t, server.Admin().Create(ctx, path, object))
	body, err := server.Admin().Get(ctx, path+"/kept")
	require.NoError(t, err)

	var refused *realkube.Error
	_, err = server.Client(agent).Get(ctx, path+"/kept")
	require.ErrorAs(t, err, &refused)
	require.Equal(t, 403, refused.Code)

	events, err := server.Audit(mark, "")
	require.NoError(t, err)
	var seen []string
	for _, e := range events {
		if e.Object.Resource == "configmaps" && e.Object.Namespace == "default" {
			seen = append(seen, e.User.Username+" "+e.String())
		}
	}
	require.Equal(t, []string{"admin create v1 configmaps 201", "admin get v1 configmaps 200", agent.Name + " get v1 configmaps 403"}, seen)
	after, err := server.Metrics(ctx)
	require.NoError(t, err)
	cost := after.Since(before)
	require.GreaterOrEqual(t, cost.Bytes, float64(len(body)))
	require.GreaterOrEqual(t, cost.EtcdReads, 1.0)

	apiserver, etcd, err := server.CPU()
	require.NoError(t, err)
	require.Positive(t, apiserver)
	require.Positive(t, etcd)

	server.KillAPIServer()
	_, err = server.Admin().Get(ctx, path+"/kept")
	require.Error(t, err)
	server.KillEtcd()
	require.NoError(t, server.StartEtcd())
	require.NoError(t, server.StartAPIServer(ctx))
	again, err := server.Admin().Get(ctx, path+"/kept")
	require.NoError(t, err)
	require.JSONEq(t, string(body), string(again))
}

func TestServerThatCannotStartSaysWhy(t *testing.T) {
	var log bytes.Buffer
	_, err := realkube.Start(t.Context(), realkube.Options{Flags: []string{"--no-such-flag"}, Log: &log})
	require.ErrorContains(t, err, "until kube-apiserver is ready: kube-apiserver has ended")
	require.ErrorContains(t, err, "unknown flag: --no-such-flag")
}

func TestBinaryIsBuiltOnce(t *testing.T) {
	var log bytes.Buffer
	first, err := realkube.Binary(t.Context(), os.Stderr)
	require.NoError(t, err)
	second, err := realkube.Binary(t.Context(), &log)
	require.NoError(t, err)
	require.Equal(t, first, second)
	require.Empty(t, log.String())
}
