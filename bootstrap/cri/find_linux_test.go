// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/cri"
	"github.com/slipway-dev/slipway/bootstrap/cri/critest"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/testns"
)

func TestTheOnlySocketIsTheRuntime(t *testing.T) {
	for _, path := range []string{
		usual, "/run/k3s/containerd/containerd.sock", "/var/snap/microk8s/common/run/containerd.sock",
		"/var/run/crio/crio.sock", "/run/cri-dockerd.sock", "/run/a folder/isulad.sock",
	} {
		h := newHost(t)
		h.listen("/run/docker/containerd/containerd.sock")
		h.listen(usual + ".ttrpc")
		h.listen(path)
		h.list("/gone/containerd.sock")
		found, err := cri.Find(t.Context(), h.proc)
		require.NoError(t, err)
		require.Equal(t, cri.Endpoint{HostProc: h.proc, Path: path}, found)
	}
}

func TestNoSocketIsSaid(t *testing.T) {
	h := newHost(t)
	h.list("/run/in-a-container/containerd.sock")
	h.write(filepath.Join(h.root, "run/file/containerd.sock"), "")
	h.list("/run/file/containerd.sock")
	h.list("relative/containerd.sock")
	_, err := cri.Find(t.Context(), h.proc)
	require.ErrorIs(t, err, cri.ErrNoRuntime)
	require.Equal(t, "cri.no-runtime", code.Of(err))
	require.EqualError(t, err, "find the container runtime: no container runtime listens")
}

func TestOneSocketOfTwoPathsIsOne(t *testing.T) {
	h := newHost(t)
	h.listen(usual)
	require.NoError(t, os.MkdirAll(filepath.Join(h.root, "var"), 0o755))
	require.NoError(t, os.Symlink("/run", filepath.Join(h.root, "var/run"))) // absolute: the host's
	h.list("/var" + usual)
	found, err := cri.Find(t.Context(), h.proc)
	require.NoError(t, err)
	require.Equal(t, usual, found.Path)
}

func TestOfSeveralTheKubeletDecides(t *testing.T) {
	const other = "/var/run/crio/crio.sock"
	const config = "/var/lib/kubelet/config.yaml"
	for name, tc := range map[string]struct {
		args  []string
		files map[string]string
		want  string
	}{
		"flag":              {[]string{"--v=2", "--container-runtime-endpoint=unix://" + other}, nil, other},
		"flag and value":    {[]string{"--container-runtime-endpoint", other, "--v=2"}, nil, other},
		"flag over file":    {[]string{"--container-runtime-endpoint=unix://" + other, "--config=" + config}, map[string]string{config: "containerRuntimeEndpoint: unix://" + usual}, other},
		"file":              {[]string{"--config=" + config}, map[string]string{config: "kind: KubeletConfiguration\ncontainerRuntimeEndpoint: \"unix://" + other + "\" # ours\n"}, other},
		"file of JSON":      {[]string{"--config", config}, map[string]string{config: `{"kind": "KubeletConfiguration", "containerRuntimeEndpoint": "unix://` + other + `"}`}, other},
		"last drop-in":      {[]string{"--config=" + config, "--config-dir=/etc/kubelet"}, map[string]string{config: "containerRuntimeEndpoint: /a", "/etc/kubelet/10.conf": "containerRuntimeEndpoint: /b", "/etc/kubelet/20.conf": "containerRuntimeEndpoint: " + other, "/etc/kubelet/30.yaml": "containerRuntimeEndpoint: /c"}, other},
		"file says nothing": {[]string{"--config=" + config}, map[string]string{config: "kind: KubeletConfiguration\n# containerRuntimeEndpoint: unix://" + other}, usual},
		"nothing":           {nil, nil, usual},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.listen(usual)
			h.listen(other)
			for path, content := range tc.files {
				h.write(filepath.Join(h.root, path), content)
			}
			h.process("700", "sh", "sh", "--container-runtime-endpoint=unix:///run/elsewhere.sock")
			h.process("812", "kubelet", append([]string{"/usr/bin/kubelet"}, tc.args...)...)
			found, err := cri.Find(t.Context(), h.proc)
			require.NoError(t, err)
			require.Equal(t, tc.want, found.Path)
		})
	}
}

func TestTheKubeletsWordNeedsNoUsualName(t *testing.T) {
	h := newHost(t)
	h.listen(usual)
	h.listen("/run/acme.socket")
	h.process("812", "kubelet", "kubelet", "--container-runtime-endpoint=unix:///run/acme.socket")
	found, err := cri.Find(t.Context(), h.proc)
	require.NoError(t, err)
	require.Equal(t, "/run/acme.socket", found.Path)
}

func TestTheKubeletsRuntimeIsNotThere(t *testing.T) {
	h := newHost(t)
	h.listen(usual)
	h.process("812", "kubelet", "kubelet", "--container-runtime-endpoint=unix:///run/crio/crio.sock")
	_, err := cri.Find(t.Context(), h.proc)
	require.ErrorIs(t, err, cri.ErrNoRuntime)
	require.EqualError(t, err, `find the container runtime: no container runtime listens at the kubelet's runtime endpoint: open on the host "/run/crio/crio.sock": no such file or directory`)

	h = newHost(t)
	h.listen(usual)
	h.process("812", "kubelet", "kubelet", "--container-runtime-endpoint=tcp://10.0.0.1:3735")
	_, err = cri.Find(t.Context(), h.proc)
	require.ErrorContains(t, err, `the kubelet's runtime endpoint "tcp://10.0.0.1:3735": want the absolute path of a unix socket`)
}

func TestSeveralWithoutAKubeletAreListed(t *testing.T) {
	for name, prepare := range map[string]func(h *host){
		"none": func(*host) {},
		"a container's": func(h *host) {
			h.process("812", "kubelet", "kubelet", "--container-runtime-endpoint=unix:///run/hostile.sock")
			h.replace(filepath.Join(h.proc, "812/ns/pid"))
		},
		"one that is ending": func(h *host) {
			h.process("812", "kubelet")
			require.NoError(t, os.RemoveAll(filepath.Join(h.proc, "812/ns")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.serve(critest.Runtime{})
			critest.Serve(t, h.listen("/run/k3s/containerd/containerd.sock"), critest.Runtime{})
			prepare(h)
			_, err := cri.Find(t.Context(), h.proc)
			require.ErrorIs(t, err, cri.ErrSeveral)
			require.Equal(t, "cri.several", code.Of(err))
			require.EqualError(t, err, `find the container runtime: several container runtimes listen, and no kubelet names the one it uses: ["/run/containerd/containerd.sock" "/run/k3s/containerd/containerd.sock"]`)
		})
	}
}

// Talos runs its kubelet in a container, and a second containerd without the CRI.
func TestOfSeveralThoseWithoutTheCRIAreLeftOut(t *testing.T) {
	h := newHost(t)
	const systems = "/system/run/containerd/containerd.sock"
	h.serve(critest.Runtime{})
	critest.Serve(t, h.listen(systems), critest.Runtime{NoCRI: true})
	found, err := cri.Find(t.Context(), h.proc)
	require.NoError(t, err)
	require.Equal(t, usual, found.Path)

	critest.Serve(t, h.listen("/run/crio/crio.sock"), critest.Runtime{})
	_, err = cri.Find(t.Context(), h.proc)
	require.ErrorIs(t, err, cri.ErrSeveral)
	require.ErrorContains(t, err, `["/run/containerd/containerd.sock" "/run/crio/crio.sock"]`)

	h = newHost(t)
	for _, path := range []string{usual, systems} {
		critest.Serve(t, h.listen(path), critest.Runtime{NoCRI: true})
	}
	_, err = cri.Find(t.Context(), h.proc)
	require.ErrorIs(t, err, cri.ErrSeveral, "either may be starting")
}

func TestAKubeletsFileThatCannotBeRead(t *testing.T) {
	h := newHost(t)
	h.serve(critest.Runtime{})
	h.process("812", "kubelet", "kubelet", "--config=/gone.yaml")
	found, err := cri.Find(t.Context(), h.proc)
	require.NoError(t, err, "there is one")
	require.Equal(t, usual, found.Path)
	critest.Serve(t, h.listen("/run/crio/crio.sock"), critest.Runtime{})
	_, err = cri.Find(t.Context(), h.proc)
	require.ErrorIs(t, err, cri.ErrSeveral)
	require.ErrorContains(t, err, `read which runtime the kubelet uses: open on the host "/gone.yaml": no such file or directory`)
}

func TestSEC8_HostilePathsAreQuoted(t *testing.T) {
	h := newHost(t)
	for _, path := range []string{"/run/\x1b[2J\u202e/containerd.sock", "/run/b/containerd.sock"} {
		critest.Serve(t, h.listen(path), critest.Runtime{})
	}
	h.list("/run/a\nnodeinit: all well/containerd.sock")
	_, err := cri.Find(t.Context(), h.proc)
	require.ErrorContains(t, err, `["/run/\x1b[2J\u202e/containerd.sock" "/run/b/containerd.sock"]`)
	_, err = cri.Endpoint{HostProc: h.proc, Path: "/run/\x1b/containerd.sock"}.Status(t.Context())
	require.EqualError(t, err, `ask the container runtime at "/run/\x1b/containerd.sock": open on the host "/run/\x1b/containerd.sock": no such file or directory`)
}

// A pod that is root in its container, in the host's network namespace, with an emptyDir,
// cannot make the node install plugins elsewhere.
func TestSEC1_ASocketInAFolderOfOthersIsNotTheRuntime(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, h *host, dir string){
		"world-writable folder": func(t *testing.T, _ *host, dir string) { require.NoError(t, os.Chmod(dir, 0o777)) },
		"a group's folder": func(t *testing.T, _ *host, dir string) {
			testns.Root(t)
			require.NoError(t, os.Chown(dir, 0, 1000))
			require.NoError(t, os.Chmod(dir, 0o775))
		},
		"below a world-writable one": func(t *testing.T, _ *host, dir string) { require.NoError(t, os.Chmod(filepath.Dir(dir), 0o777)) },
		"another user's folder": func(t *testing.T, _ *host, dir string) {
			testns.Root(t)
			require.NoError(t, os.Chown(dir, 1000, 1000))
		},
		"another user's socket": func(t *testing.T, _ *host, dir string) {
			testns.Root(t)
			require.NoError(t, os.Chown(filepath.Join(dir, "containerd.sock"), 1000, 1000))
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			const planted = "/var/lib/kubelet/pods/x/volumes/empty/containerd.sock"
			h.listen(planted)
			_, err := cri.Find(t.Context(), h.proc)
			require.NoError(t, err)
			spoil(t, h, filepath.Dir(filepath.Join(h.root, planted)))
			_, err = cri.Find(t.Context(), h.proc)
			require.ErrorIs(t, err, cri.ErrNoRuntime)
			h.listen(usual)
			found, err := cri.Find(t.Context(), h.proc)
			require.NoError(t, err)
			require.Equal(t, usual, found.Path)
		})
	}
}

func TestSEC6_WhatIsListedHasABound(t *testing.T) {
	h := newHost(t)
	for i := range 101 {
		h.listen(fmt.Sprintf("/run/%d/containerd.sock", i))
	}
	_, err := cri.Find(t.Context(), h.proc)
	require.ErrorContains(t, err, "more than 100 sockets are named as a runtime's")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = cri.Find(ctx, h.proc)
	require.ErrorIs(t, err, context.Canceled)
}

func TestFindWithoutAHost(t *testing.T) {
	_, err := cri.Find(t.Context(), t.TempDir())
	require.ErrorContains(t, err, "is the host's /proc mounted there?")
}
