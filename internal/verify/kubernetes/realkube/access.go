// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package realkube

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"
)

// User is a user of the API server. Its token is derived from its name.
type User struct {
	Name   string
	Groups []string
}

// Admin may do everything.
var Admin = User{Name: "admin", Groups: []string{"system:masters"}}

// ServiceAccount returns the user of a ServiceAccount.
func ServiceAccount(namespace, name string) User {
	return User{
		Name:   "system:serviceaccount:" + namespace + ":" + name,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace},
	}
}

// Token is the user's bearer token.
func (u User) Token() string { return "token-of-" + strings.ReplaceAll(u.Name, ":", "-") }

// tokens is the API server's token file.
func tokens(users []User) []byte {
	var file strings.Builder
	for _, u := range users {
		fmt.Fprintf(&file, "%s,%s,%s,%q\n", u.Token(), u.Name, u.Name, strings.Join(u.Groups, ","))
	}
	return []byte(file.String())
}

// Kubeconfig returns a kubeconfig file for the holder of the token.
func Kubeconfig(server string, caPEM []byte, token string) []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- name: real
  cluster: {server: %q, certificate-authority-data: %s}
users:
- name: user
  user: {token: %q}
contexts:
- name: real
  context: {cluster: real, user: user}
current-context: real
`, server, base64.StdEncoding.EncodeToString(caPEM), token)
}

// WriteKubeconfig writes a kubeconfig file into dir under an unused name, and returns its path.
func WriteKubeconfig(dir, server string, caPEM []byte, token string) (string, error) {
	f, err := os.CreateTemp(dir, "kubeconfig-")
	if err != nil {
		return "", err
	}
	_, err = f.Write(Kubeconfig(server, caPEM, token))
	return f.Name(), errors.Join(err, f.Close())
}
