// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/printable"
)

// masked stands for a value that people are not shown.
const masked = "(masked)"

// secretWords are the words of a key, between its dots, dashes and underscores,
// by which its value looks like a secret; a word may be part of a longer one.
func secretWords() []string {
	return []string{
		"password", "passwd", "passphrase", "secret", "token", "credential",
		"private-key", "privatekey", "api-key", "apikey", "access-key", "accesskey",
		"encryption-key", "encryptionkey", "auth-key", "authkey", "tls-key", "client-key", "server-key", "ca-key",
		"psk", "pre-shared-key", "preshared-key", "kubeconfig", "dockerconfig",
	}
}

// placeWords end the keys whose value only says where a secret is.
func placeWords() []string { return []string{"-namespace", "-file", "-path", "-dir"} }

// Secret reports whether the value of key looks like a secret by the key's name:
// one that holds password, passwd, passphrase, secret, token, credential, psk,
// kubeconfig, dockerconfig, or a key that is private, pre-shared, or for an API,
// access, encryption, authentication, TLS, a client, a server or an authority
// ("etcd-password", "api_key", "tls.key"). One that ends in namespace, file, path
// or dir says where it is and is none. [Explanation.String] and [Change.String]
// mask such values.
func Secret(key string) bool {
	key = strings.NewReplacer("_", "-", ".", "-").Replace(strings.ToLower(key))
	holds := func(word string) bool { return strings.Contains(key, word) }
	ends := func(word string) bool { return strings.HasSuffix(key, word) }
	return slices.ContainsFunc(secretWords(), holds) && !slices.ContainsFunc(placeWords(), ends)
}

// shownValue quotes the value of key for people, unless it looks like a secret.
// A switch, or nothing, gives nothing away.
func shownValue(key, value string, revealed bool) string {
	switch {
	case revealed:
		return quote(value)
	case strings.Contains(value, "PRIVATE KEY-----"):
		return masked
	case Secret(key) && value != "" && value != "true" && value != "false":
		return masked
	}
	return quote(printable.NoCredentials(value))
}
