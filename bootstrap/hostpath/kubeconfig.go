// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostpath

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/input"
)

// Kubeconfig is a kubeconfig with which CNI plugins on the host act as this program. Its
// Prepare is that of a bootstrap.Step, and reads the files on this side for each run, since the
// kubelet renews a pod's token every hour. A reconcile.Loop does not watch them: a new token is
// written at the next run, within the loop's Interval. For a kubeconfig of another form, such as
// without verification, make a [Content].
type Kubeconfig struct {
	// Path is that of the file, on the host: see [Content].
	Path string

	// Server is the URL of the API server as the host reaches it, such as https://10.0.0.1:6443.
	Server string

	// CAFile has the certificates, as PEM, that the server's is signed by. If it is empty, CA
	// has them; without either, those that the host trusts count.
	CAFile string
	CA     []byte

	// TokenFile has the token.
	TokenFile string
}

// Prepare reads the files, and returns a [Content] with mode 0600, Secret and Parents set. An
// empty token is an error, as is a file that cannot be read.
func (k Kubeconfig) Prepare(ctx context.Context) (ledger.Wanter, error) {
	text, err := k.render(ctx)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %q: %w", k.Path, err)
	}
	return Content{Path: k.Path, Bytes: text, Secret: true, Parents: true}, nil
}

func (k Kubeconfig) render(ctx context.Context) ([]byte, error) {
	if u, err := url.Parse(k.Server); err != nil || u.Scheme != "https" || u.Hostname() == "" || strings.HasSuffix(u.Host, ":") {
		return nil, fmt.Errorf("its server is %q: want https://HOST:PORT, as a token goes to no other", k.Server)
	}
	ca, err := k.CA, error(nil)
	if k.CAFile != "" {
		ca, err = input.ReadFile(ctx, k.CAFile, input.MaxManifest)
	}
	if err != nil {
		return nil, err
	}
	if k.TokenFile == "" {
		return nil, errors.New("it has no token that plugins could use: give TokenFile")
	}
	token, err := input.ReadFile(ctx, k.TokenFile, input.MaxManifest)
	if err != nil {
		return nil, err
	}
	cluster := map[string]any{"server": k.Server}
	switch token = bytes.TrimSpace(token); {
	case len(token) == 0:
		return nil, fmt.Errorf("it has no token that plugins could use: %s is empty", k.TokenFile)
	case bytes.Contains(ca, []byte("-----BEGIN CERTIFICATE-----")):
		cluster["certificate-authority-data"] = ca
	case len(ca) > 0 || k.CAFile != "":
		return nil, errors.New("its CA has no certificate in PEM")
	}
	type named = []map[string]any
	return json.Marshal(map[string]any{ // which YAML includes
		"apiVersion": "v1", "kind": "Config", "current-context": "agent",
		"clusters": named{{"name": "cluster", "cluster": cluster}},
		"users":    named{{"name": "agent", "user": map[string]any{"token": string(token)}}},
		"contexts": named{{"name": "agent", "context": map[string]any{"cluster": "cluster", "user": "agent"}}},
	})
}
