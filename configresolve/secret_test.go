// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/configresolve"
)

func TestSEC8_SecretKeys(t *testing.T) {
	for _, key := range []string{
		"etcd-password", "ETCD_PASSWD", "db.passphrase", "client-secret", "hubble-token", "TOKEN", "aws-credentials", "registry.credential",
		"private-key", "privateKey", "tls.key", "ca.key", "ipsec-psk", "api_key", "apiKey", "access-key-id", "kubeconfig", "imagePullSecrets", "auth-key",
	} {
		require.Contains(t, resolve(t, configresolve.Resolver{Sources: []configresolve.Source{static("s", values{key: "x"})}}).Explain().String(), "(masked)", key)
	}
	for _, key := range []string{
		"cluster-name", "mtu", "key", "monitor-aggregation", "ingress-secrets-namespace", "ipsec-key-file", "etcd-password-file", "token_path", "k8s-kubeconfig-path",
		"bpf-map-dynamic-size-ratio", "keyring", "identity-allocation-mode", "sidecar-istio-proxy-image", "tls.crt",
	} {
		require.NotContains(t, resolve(t, configresolve.Resolver{Sources: []configresolve.Source{static("s", values{key: "x"})}}).Explain().String(), "(masked)", key)
	}
}

const pem = "-----BEGIN EC PRIVATE KEY-----\nhunter2\n"

func secrets(t *testing.T, revealed bool) *configresolve.Config {
	t.Helper()
	return resolve(t, configresolve.Resolver{Revealed: revealed, DenyKeys: []string{"api-token"}, Sources: []configresolve.Source{
		static("one", values{"etcd-password": "hunter1", "api-token": "t0", "endpoint": "https://u:hunter2@h:2379", "some.pem": pem}),
		static("two", values{"etcd-password": "hunter2", "api-token": "hunter2", "enable-secrets-sync": "true", "empty-token": ""}),
	}})
}

func TestSEC8_ExplainMasksWhatLooksSecret(t *testing.T) {
	x := secrets(t, false).Explain()
	text := x.String()
	require.NotContains(t, text, "hunter")
	require.NotContains(t, text, "t0")
	require.Contains(t, text, "etcd-password = (masked) from static:two\n    overrides (masked) from static:one\n")
	require.Contains(t, text, "api-token = (masked) from static:one\n    denied (masked) from static:two: ")
	require.Contains(t, text, `endpoint = "https://h:2379" from`)
	require.Contains(t, text, "some.pem = (masked)")
	require.Contains(t, text, `enable-secrets-sync = "true"`)
	require.Contains(t, text, `empty-token = ""`)

	text = secrets(t, true).Explain().String()
	require.NotContains(t, text, "masked")
	for _, shown := range []string{`"hunter1"`, `"hunter2"`, `"t0"`, `"https://u:hunter2@h:2379"`} {
		require.Contains(t, text, shown)
	}
	encoded, err := json.Marshal(x)
	require.NoError(t, err)
	require.NotContains(t, string(encoded), "masked", "a program reads all of it")
	require.Equal(t, "hunter2", secrets(t, true).Data()["etcd-password"])
}

func TestSEC8_ChangesMaskWhatLooksSecret(t *testing.T) {
	old := resolve(t, configresolve.Resolver{Sources: []configresolve.Source{static("zero", values{"etcd-password": "hunter0", "gone-token": "hunter0"})}})
	revealed := ""
	for _, change := range configresolve.Diff(old, secrets(t, false)) {
		require.NotContains(t, change.String(), "hunter")
	}
	for _, change := range configresolve.Diff(old, secrets(t, true)) {
		revealed += change.String() + "\n"
	}
	require.Contains(t, revealed, `etcd-password = "hunter2" from static:two (was "hunter0" from static:zero)`)
	require.Contains(t, revealed, `gone-token is no longer set (was "hunter0" from static:zero)`)
}

func TestSEC8_ErrorsOfSecretsHoldNoValue(t *testing.T) {
	config := resolve(t, configresolve.Resolver{Sources: []configresolve.Source{static("one", values{"token-ttl": "hunter2", "ttl": "hunter2"})}})
	var v struct {
		Secret int `config:"token-ttl"`
		TTL    int `config:"ttl"`
	}
	require.EqualError(t, configresolve.Decode(config, &v), `config key "token-ttl" from static:one: its value cannot be parsed, and is not shown
config key "ttl" from static:one: "hunter2" does not fit into a field of the type int`)
}

// A server supplies an object's name, which becomes part of a layer's name.
func TestSEC8_NamesOfSourcesStayOnTheirLine(t *testing.T) {
	name := "a\nnodeinit: all is well\x1b[2J"
	config := resolve(t, configresolve.Resolver{Sources: []configresolve.Source{scripted{layers: []configresolve.Layer{
		layer(name, values{"mtu": "1"}), layer("b", values{"mtu": "2", "../x": "3"}), layer(name, values{"mtu": "3"}),
	}}.source()}})
	text := config.Explain().String()
	for _, f := range config.Explain().Findings {
		text += f.String() + "\n"
	}
	for _, c := range configresolve.Diff(nil, config) {
		text += c.String() + "\n"
	}
	require.NotContains(t, text, "\x1b")
	require.NotContains(t, text, "\nnodeinit")
	require.Contains(t, text, `ns/a\nnodeinit: all is well\x1b[2J`)
}
