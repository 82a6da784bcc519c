// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/cri"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/critest"
	"github.com/slipway-dev/slipway/internal/testns"
)

func TestSEC11_TheOnlySocketAtAPlaceOfADistributionIsTheRuntime(t *testing.T) {
	for _, path := range []string{
		usual, "/run/crio/crio.sock", "/run/cri-dockerd.sock", "/run/isulad.sock", "/run/k3s/containerd/containerd.sock",
		"/run/k3s/cri-dockerd/cri-dockerd.sock", "/run/k0s/containerd.sock", "/var/snap/microk8s/common/run/containerd.sock",
	} {
		h := newHost(t)
		h.listen("/run/docker/containerd/containerd.sock")
		h.listen("/system/run/containerd/containerd.sock") // Talos' own, without the CRI
		h.listen(path)
		found, err := cri.Find(t.Context(), h.proc)
		require.NoError(t, err)
		require.Equal(t, cri.Endpoint{HostProc: h.proc, Path: path}, found)
	}
}

func TestNoSocketIsSaid(t *testing.T) {
	h := newHost(t)
	ended := h.listen(usual)
	ended.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, ended.Close())
	h.write(filepath.Join(h.root, "run/crio"), "no directory")
	require.NoError(t, os.MkdirAll(filepath.Join(h.root, "run/isulad.sock"), 0o755))
	_, err := cri.Find(t.Context(), h.proc)
	require.ErrorIs(t, err, cri.ErrNoRuntime)
	require.Equal(t, "cri.no-runtime", code.Of(err))
	require.EqualError(t, err, "find the container runtime: no container runtime listens")
}

func TestOneSocketOfTwoPathsIsOne(t *testing.T) {
	h := newHost(t)
	h.listen(usual)
	require.NoError(t, os.MkdirAll(filepath.Join(h.root, "run/k0s"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(h.root, "var"), 0o755))
	require.NoError(t, os.Symlink("/run", filepath.Join(h.root, "var/run"))) // absolute: the host's
	require.NoError(t, os.Symlink("/var"+usual, filepath.Join(h.root, "run/k0s/containerd.sock")))
	requireFound(t, h.proc, usual)
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
			requireFound(t, h.proc, tc.want)
		})
	}
}

// No other runtime is taken instead.
func TestTheKubeletsRuntimeIsNotThere(t *testing.T) {
	for _, tc := range []struct{ listens, flag, missing string }{
		{usual, "--container-runtime-endpoint=unix:///run/crio/crio.sock", "/run/crio/crio.sock"},
		{"/run/crio/crio.sock", "--v=2", usual},
	} {
		h := newHost(t)
		h.listen(tc.listens)
		h.process("812", "kubelet", "kubelet", tc.flag)
		_, err := cri.Find(t.Context(), h.proc)
		require.ErrorIs(t, err, cri.ErrNoRuntime)
		require.EqualError(t, err, `find the container runtime: no container runtime listens at the kubelet's runtime endpoint: open `+tc.missing+`: no such file or directory`)
	}
	h := newHost(t)
	h.listen(usual)
	h.process("812", "kubelet", "kubelet", "--container-runtime-endpoint=tcp://10.0.0.1:3735")
	_, err := cri.Find(t.Context(), h.proc)
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

// Docker brings a containerd without the CRI.
func TestADistributionHasARuntimeOfItsOwn(t *testing.T) {
	for program, own := range map[string]string{
		"k3s": "/run/k3s/containerd/containerd.sock", "rke2": "/run/k3s/containerd/containerd.sock", "kubelite": "/var/snap/microk8s/common/run/containerd.sock",
	} {
		h := newHost(t)
		h.process("812", program, program, "server")
		h.listen(usual)
		requireFound(t, h.proc, usual) // it may be configured so
		h.listen(own)
		requireFound(t, h.proc, own)
	}
}

func TestAKubeletsFileThatCannotBeRead(t *testing.T) {
	h := newHost(t)
	h.serve(critest.Runtime{})
	h.process("812", "kubelet", "kubelet", "--config=/gone.yaml")
	requireFound(t, h.proc, usual) // there is one
	critest.Serve(t, h.listen("/run/crio/crio.sock"), critest.Runtime{})
	_, err := cri.Find(t.Context(), h.proc)
	require.ErrorIs(t, err, cri.ErrSeveral)
	require.ErrorContains(t, err, `(process 812, kubelet: read which runtime it uses: open /gone.yaml: no such file or directory)`)
}

func TestSEC8_HostilePathsAreQuoted(t *testing.T) {
	_, err := cri.Endpoint{HostProc: newHost(t).proc, Path: "/run/\x1b/containerd.sock"}.Status(t.Context())
	require.EqualError(t, err, `ask the container runtime at "/run/\x1b/containerd.sock": nothing proves that the host's container runtime listens: open /run/\x1b/containerd.sock: no such file or directory`)
}

// What root may not be the only one to change is not believed, and not taken for missing:
// not at a known place, and not where the caller or the kubelet names it.
func TestSEC1_SEC11_OnlyRootMayChangeTheWholePath(t *testing.T) {
	testns.Root(t)
	const path = "/run/k3s/containerd/containerd.sock"
	const last, above, first = "/run/k3s/containerd", "/run/k3s", "/run"
	for name, spoil := range map[string]func(at func(string) string) error{
		"world-writable directory":   func(at func(string) string) error { return os.Chmod(at(last), 0o777) },
		"below a world-writable one": func(at func(string) string) error { return os.Chmod(at(first), 0o777) },
		"a group's directory": func(at func(string) string) error {
			return errors.Join(os.Chown(at(above), 0, nobody), os.Chmod(at(above), 0o775))
		},
		"another user's directory": func(at func(string) string) error { return os.Chown(at(above), nobody, nobody) },
		"another user's socket":    func(at func(string) string) error { return os.Chown(at(path), nobody, nobody) },
		"another user's link on the way": func(at func(string) string) error {
			return errors.Join(os.Rename(at(above), at("/moved")), os.Symlink("/moved", at(above)), os.Lchown(at(above), nobody, nobody))
		},
		"a link of root's, in a directory of another user": func(at func(string) string) error {
			return errors.Join(os.Rename(at(above), at("/moved")), os.Symlink("/moved", at(above)), os.Chown(at(first), nobody, nobody))
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			critest.Serve(t, h.listen(path), http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a stranger was asked") }))
			found, err := cri.Find(t.Context(), h.proc)
			require.NoError(t, err)
			require.NoError(t, spoil(func(name string) string { return filepath.Join(h.root, name) }))
			_, err = cri.Find(t.Context(), h.proc)
			require.ErrorIs(t, err, cri.ErrUnproven)
			require.Equal(t, "cri.unproven", code.Of(err))
			require.ErrorContains(t, err, path+": nothing proves that the host's container runtime listens (root must listen, and no other user may change the socket's path): ")
			_, err = found.Status(t.Context())
			require.ErrorIs(t, err, cri.ErrUnproven)
			h.process("812", "kubelet", "kubelet", "--container-runtime-endpoint="+path)
			_, err = cri.Find(t.Context(), h.proc)
			require.ErrorIs(t, err, cri.ErrUnproven)
		})
	}
}

// A place that is not believed does not keep another one from it.
func TestSEC11_AnUnprovenSocketIsPassedBy(t *testing.T) {
	h := newHost(t)
	h.listen("/run/crio/crio.sock")
	h.listen(usual)
	require.NoError(t, os.Chmod(filepath.Join(h.root, "run/crio"), 0o777))
	requireFound(t, h.proc, usual)
}

func TestSEC6_FindEndsWithItsContext(t *testing.T) {
	h := newHost(t)
	h.listen(usual)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := cri.Find(ctx, h.proc)
	require.ErrorIs(t, err, context.Canceled)
}

func TestFindWithoutAHost(t *testing.T) {
	_, err := cri.Find(t.Context(), t.TempDir())
	require.ErrorContains(t, err, "is the host's /proc mounted there?")
}
