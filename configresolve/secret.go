// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/printable"
)

// masked replaces a value that is not shown.
const masked = "(masked)"

// secretWords are the words in a key that mark its value as a secret. They may be
// part of a longer word; dots, dashes and underscores are the same.
func secretWords() []string {
	return []string{
		"password", "passwd", "passphrase", "secret", "token", "credential",
		"private-key", "privatekey", "api-key", "apikey", "access-key", "accesskey",
		"encryption-key", "encryptionkey", "auth-key", "authkey", "tls-key", "client-key", "server-key", "ca-key",
		"psk", "pre-shared-key", "preshared-key", "kubeconfig", "dockerconfig",
	}
}

// placeWords are the endings of keys whose value is only the location of a secret.
func placeWords() []string { return []string{"-namespace", "-file", "-path", "-dir"} }

// Secret reports whether, judging by its name, the value of key is a secret: the
// name contains password, passwd, passphrase, secret, token, credential, psk,
// kubeconfig or dockerconfig, or names a key that is private, pre-shared, or for an
// API, access, encryption, authentication, TLS, a client, a server or an authority
// ("etcd-password", "api_key", "tls.key"). A name that ends in namespace, file,
// path or dir is only the location of a secret, and does not count.
// [Explanation.String] and [Change.String] mask such values.
func Secret(key string) bool {
	key = strings.NewReplacer("_", "-", ".", "-").Replace(strings.ToLower(key))
	holds := func(word string) bool { return strings.Contains(key, word) }
	ends := func(word string) bool { return strings.HasSuffix(key, word) }
	return slices.ContainsFunc(secretWords(), holds) && !slices.ContainsFunc(placeWords(), ends)
}

// shownValue quotes the value of key for people, unless it looks like a secret. A
// boolean or an empty value reveals nothing.
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
