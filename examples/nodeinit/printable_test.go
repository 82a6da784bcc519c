// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// hostile is a text that clears a screen, reverses a line, and contains a line of its own.
const hostile = "a\x1b[2J\u009b31m\u202e\x7f\nnodeinit: all is well"

// requireHarmless checks that neither stream holds characters that control a terminal, or a
// line written by another user.
func requireHarmless(t *testing.T, o outcome) {
	t.Helper()
	for _, text := range []string{o.stdout, o.stderr} {
		require.True(t, utf8.ValidString(text), "%q", text)
		require.Negative(t, strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }), "%q", text)
		require.NotContains(t, "\n"+text, "\nnodeinit: all is well")
	}
}

func TestSEC8_TextFromFilesAndFlags(t *testing.T) {
	source := filepath.Join(t.TempDir(), "config.yaml")
	keys, err := json.Marshal(map[string]string{hostile: "x", "mtu": hostile})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(source, keys, 0o600))
	dest := filepath.Join(t.TempDir(), "dest")
	for name, args := range map[string][]string{
		"keys and values":         {"explain", "--source", "file:" + source},
		"keys and values as JSON": {"explain", "--source", "file:" + source, "--output", "json"},
		"an error as JSON":        {"explain", "--source", "file:/" + hostile, "--output", "json"},
		"a log in JSON":           {"explain", "--source", "file:" + source, "--log-format", "json"},
		"what is written":         {"build-config", "--source", "file:" + source, "--dest", dest},
		"a strict error":          {"build-config", "--source", "file:" + source, "--dest", dest, "--strict"},
		"a path":                  {"explain", "--source", "file:/" + hostile},
		"a path as JSON":          {"build-config", "--source", "file:/" + hostile, "--dest", dest, "--output", "json"},
		"an argument":             {"explain", "--source", "file:" + source, hostile},
		"a flag":                  {"explain", "--" + hostile},
		"a command":               {hostile},
		"invalid UTF-8":           {"explain", "--source", "file:/\xff\x9b2J"},
	} {
		t.Run(name, func(t *testing.T) {
			o := here(t, nil, args...)
			require.NotEmpty(t, o.stdout+o.stderr)
			requireHarmless(t, o)
			if strings.Contains(name, "as JSON") && o.stdout != "" {
				require.True(t, json.Valid([]byte(o.stdout)), o.stdout)
			}
		})
	}
	t.Run("a configuration file", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "flags.yaml")
		require.NoError(t, os.WriteFile(file, keys, 0o600))
		o := here(t, nil, "explain", "--config", file)
		require.NotZero(t, o.code)
		requireHarmless(t, o)
	})
}

func TestSEC8_TextOfAServer(t *testing.T) {
	message, err := json.Marshal(hostile + strings.Repeat("long ", 1<<16))
	require.NoError(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Forbidden","code":403,"message":%s}`, message)
	}))
	defer server.Close()
	for _, format := range []string{"text", "json"} {
		o := here(t, []string{"K8S_NODE_NAME=node1", "CILIUM_K8S_NAMESPACE=ns1"}, "build-config", "--output", format, "--log-format", format,
			"--k8s-api-server-urls", server.URL, "--dest", filepath.Join(t.TempDir(), "dest"))
		require.Equal(t, 1, o.code)
		requireHarmless(t, o)
		require.Contains(t, o.stderr, "[2J")
		require.Less(t, len(o.stderr), 20_000, "one line, of a length that can be read")
	}
}

func TestSEC8_NoCredentialsOfURLs(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://someone:hunter2@%s"}}]
contexts: [{name: x, context: {cluster: c}}]
current-context: x
`, host), 0o600))
	dest := filepath.Join(t.TempDir(), "dest")
	for _, args := range [][]string{
		{"--k8s-kubeconfig-path", kubeconfig, "--log-format", "json", "--output", "json"},
		{"--k8s-api-server-urls", "http://someone:hunter2@" + host},
		{"--k8s-api-server-urls", "http://someone:hunter2@" + host + "/path"},
	} {
		o := here(t, []string{"K8S_NODE_NAME=node1", "CILIUM_K8S_NAMESPACE=ns1"},
			append(args, "build-config", "--dest", dest, "--timeout", "300ms", "--k8s-retry-spread", "100ms")...)
		require.Equal(t, map[bool]int{false: 1, true: 64}[strings.HasSuffix(args[1], "/path")], o.code)
		require.Contains(t, o.stderr, host)
		require.NotContains(t, o.stdout+o.stderr, "hunter2")
		require.NotContains(t, o.stdout+o.stderr, "someone")
	}
}

func TestSEC8_SecretsAreMaskedForPeople(t *testing.T) {
	source := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(source, []byte("etcd-password: hunter2\nmtu: 1500\n"), 0o600))
	env := []string{"X_ETCD_PASSWORD=hunter3", "X_MTU=9000"}
	args := []string{"explain", "--source", "file:" + source, "--source", "env:X_"}
	o := here(t, env, args...)
	require.Zero(t, o.code, o.stderr)
	require.NotContains(t, o.stdout+o.stderr, "hunter")
	require.Contains(t, o.stdout, "etcd-password = (masked) from env:X_")
	require.Contains(t, o.stdout, `mtu = "9000"`)

	o = here(t, env, append(args, "--show-values")...)
	require.Contains(t, o.stdout, `etcd-password = "hunter3" from env:X_`)
	o = here(t, env, append(args, "--output", "json")...)
	require.Contains(t, o.stdout, `"hunter3"`)

	dest := filepath.Join(t.TempDir(), "dest")
	o = here(t, nil, "build-config", "--source", "file:"+source, "--dest", dest)
	require.Zero(t, o.code, o.stderr)
	require.NotContains(t, o.stdout+o.stderr, "hunter")
	content, err := os.ReadFile(filepath.Join(dest, "etcd-password"))
	require.NoError(t, err)
	require.Equal(t, "hunter2", string(content))
}
