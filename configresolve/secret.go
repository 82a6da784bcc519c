// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"strings"

	"github.com/slipway-dev/slipway/internal/printable"
)

const masked = printable.Mask

// Secret reports whether, judging by its name, the value of key is a secret: the
// name contains password, passwd, passphrase, secret, token, credential, psk,
// kubeconfig or dockerconfig, or names a key that is private, pre-shared, or for an
// API, access, encryption, authentication, TLS, fast open, a client, a server or an authority
// ("etcd-password", "api_key", "tls.key"). A name that ends in namespace, file,
// path or dir is only the location of a secret, and does not count.
// [Explanation.String] and [Change.String] mask such values.
func Secret(key string) bool { return printable.Secret(key) }

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
