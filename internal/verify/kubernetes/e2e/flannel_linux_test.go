// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/verify/image"
	"github.com/slipway-dev/slipway/internal/verify/programs"
)

const (
	flannelVersion = "v0.28.4"
	flannelImage   = "slipway.test/flannel:1"
	flannelConf    = "10-flannel.conflist"
)

// buildFlannel builds flanneld and its plugin into dir, and copies its manifest there. The
// SDK of one of its backends is not to be had, and another one needs a C compiler; nor is the
// plugin's own module, but the one that it was a part of.
func buildFlannel(ctx context.Context, dir string) error {
	const flannel, plugins = "github.com/flannel-io/flannel", "github.com/containernetworking/plugins"
	daemon, plugin := filepath.Join(dir, "flanneld"), filepath.Join(dir, "flannel")
	var source bytes.Buffer
	if err := errors.Join(programs.Require(ctx, os.Stderr, daemon, flannel+"@"+flannelVersion), programs.Require(ctx, os.Stderr, plugin, plugins+"@v0.9.1"),
		programs.Go(ctx, &source, daemon, nil, "list", "-m", "-f", "{{.Dir}}", flannel)); err != nil {
		return err
	}
	for name, to := range map[string]string{"main.go": "flanneld/main.go", "Documentation/kube-flannel.yml": "kube-flannel.yml"} {
		text, err := os.ReadFile(filepath.Join(strings.TrimSpace(source.String()), name))
		if err != nil {
			return err
		}
		text = regexp.MustCompile(`(?m)^.*/pkg/backend/(tencentvpc|udp)"\n`).ReplaceAll(text, nil)
		if err := os.WriteFile(filepath.Join(dir, to), text, 0o644); err != nil {
			return err
		}
	}
	build := []string{"build", "-mod=mod", "-trimpath", "-ldflags=-s -w -X " + flannel + "/pkg/version.Version=" + flannelVersion, "-o", "built"}
	return errors.Join(programs.Go(ctx, os.Stderr, daemon, nil, append(build, ".")...), programs.Go(ctx, os.Stderr, plugin, nil, append(build, plugins+"/plugins/meta/flannel")...))
}

// importFlannel gives the nodes an image with Flannel's programs, nodeinit, and two sets of
// plugins: Flannel's own, and with it those that it calls. It returns Flannel's manifest.
func importFlannel(t *testing.T) (manifest string) {
	t.Helper()
	dir, err := programs.Kept(t.Context(), os.Stderr, "flannel", flannelVersion+"-"+runtime.GOARCH, func(dir string) error {
		return buildFlannel(context.WithoutCancel(t.Context()), dir)
	})
	require.NoError(t, err)
	daemon, err := os.ReadFile(filepath.Join(dir, "flanneld/built"))
	require.NoError(t, err)
	plugin, err := os.ReadFile(filepath.Join(dir, "flannel/built"))
	require.NoError(t, err)
	called, err := node.Plugins("/all", "bridge", "host-local", "portmap", "loopback")
	require.NoError(t, err)
	nodeinit, err := build(t.Context(), "examples/nodeinit")
	require.NoError(t, err)
	require.NoError(t, node.Import(t.Context(), flannelImage, nil, append(called,
		image.File{Path: "/opt/bin/flanneld", Mode: 0o755, Content: daemon}, image.File{Path: "/bin/nodeinit", Mode: 0o755, Content: nodeinit},
		image.File{Path: "/cni/flannel", Mode: 0o755, Content: plugin}, image.File{Path: "/all/flannel", Mode: 0o755, Content: plugin})...))
	return filepath.Join(dir, "kube-flannel.yml")
}

// flannel is Flannel's own manifest with our component over it, in the namespace of the
// other agents. Its daemon's container has the node's iptables.
func flannel(t *testing.T, manifest, plugins string) *deployment {
	t.Helper()
	d := parse(t, strings.NewReplacer("example.com/flannel-nodeinit:latest", flannelImage, "ghcr.io/flannel-io/flannel:"+flannelVersion, flannelImage,
		"kube-flannel-ds", "flannel", "namespace: kube-flannel", "namespace: kube-system", "--plugins=/cni", "--plugins="+plugins,
	).Replace(render(t, manifest, "flannel")))
	init := d.init
	d.init = d.pod["containers"].([]any)[0].(object)
	for _, path := range []string{"/usr", "/lib", "/lib64", "/etc/alternatives", "/etc/protocols"} {
		d.mount(path, object{"hostPath": object{"path": path}})
	}
	d.init["env"] = append(d.init["env"].([]any), object{"name": "PATH", "value": "/usr/sbin:/usr/bin"})
	d.init = init
	return d
}
