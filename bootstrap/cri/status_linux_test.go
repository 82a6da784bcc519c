// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/cri"
	"github.com/slipway-dev/slipway/internal/critest"
)

func TestWhatARuntimeSays(t *testing.T) {
	const conflist = `{"cniVersion":"1.0.0","name":"ours","plugins":[{"type":"our-cni"},{"type":"portmap"}]}`
	crio, err := os.ReadFile("testdata/crio.toml")
	require.NoError(t, err)
	saying := func(key, value string) func() map[string]string {
		return func() map[string]string { return map[string]string{key: value} }
	}
	for name, tc := range map[string]struct {
		runtime  critest.Runtime
		want     cri.CNI
		lastLoad string
		networks []cri.Network
	}{
		"nothing is loaded": {
			runtime:  critest.Runtime{Info: critest.Containerd(nil, "/etc/cni/net.d/", "/usr/lib/cni", "/opt/cni//bin")},
			want:     cri.CNI{PluginDirs: []string{"/usr/lib/cni", "/opt/cni/bin"}, ConfDir: "/etc/cni/net.d"},
			lastLoad: "no network config found in /etc/cni/net.d/",
		},
		"one is loaded": {
			runtime:  critest.Runtime{Info: critest.Containerd([]byte(conflist), "/etc/cni/net.d", "/opt/cni/bin")},
			want:     cri.CNI{PluginDirs: []string{"/opt/cni/bin"}, ConfDir: "/etc/cni/net.d"},
			lastLoad: "OK",
			networks: []cri.Network{{Name: "ours", Source: conflist}},
		},
		"CRI-O, by its configuration": {
			runtime: critest.Runtime{Info: saying("config", `{"sandboxImage":"pause"}`), Config: string(crio)},
			want:    onCRIO(cri.CNI{PluginDirs: []string{"/opt/cni/bin", "/usr/libexec/cni"}, ConfDir: "/etc/kubernetes/cni/net.d", OwnLoopback: true}, "", true),
		},
		"not where it looks":          {runtime: critest.Runtime{Info: saying("cniconfig", "null")}},
		"nothing at all, cri-dockerd": {},
	} {
		e := newHost(t).serve(tc.runtime)
		e.Path = "unix://" + e.Path
		s, err := e.Status(t.Context())
		require.NoError(t, err, name)
		require.Equal(t, tc.want, s.CNI, name)
		require.Contains(t, s.LastLoad, tc.lastLoad, name)
		require.Equal(t, tc.lastLoad == "", s.LastLoad == "", name)
		require.Equal(t, tc.networks, s.Networks, name)
		_, err = e.CNI(t.Context())
		require.Equal(t, tc.want.ConfDir == "", err != nil, "it does not report where it looks")
		require.ErrorIs(t, e.CallsStatus(t.Context()), errors.ErrUnsupported, "it does not report which it is")
	}
}

func TestStatusThroughALinkOfTheHost(t *testing.T) {
	h := newHost(t)
	e := h.serve(critest.Runtime{Info: critest.Containerd(nil, "/etc/cni/net.d", "/opt/cni/bin")})
	long := strings.Repeat("/long", 40)
	require.NoError(t, os.MkdirAll(filepath.Join(h.root, long), 0o755))
	require.NoError(t, os.Symlink(usual, filepath.Join(h.root, long, "containerd.sock")))
	e.Path = long + "/containerd.sock"
	_, err := e.Status(t.Context())
	require.NoError(t, err)
}

func TestARuntimeSaysWhetherItBringsUpLoopback(t *testing.T) {
	for config, want := range map[string]bool{
		"":                                      false, // a runtime that does not report it
		`{"cni":{"binDirs":["/opt/cni/bin"]}}`:  false,
		`{"cni":{"useInternalLoopback":false}}`: false,
		`{"cni":{"useInternalLoopback":true}}`:  true,
	} {
		info := critest.Containerd(nil, "/etc/cni/net.d", "/opt/cni/bin")()
		info["config"] = config
		s, err := newHost(t).serve(critest.Runtime{Info: func() map[string]string { return info }}).Status(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, s.CNI.OwnLoopback, config)
	}
}

func TestErrorsOfTheRuntime(t *testing.T) {
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		code    int
		want    string
	}{
		"refused": {func(w http.ResponseWriter, _ *http.Request) { refuse(w, 14, "not ready\x1b[2J\n yet: 100%") }, 14, `the runtime answered: not ready\x1b[2J\n yet: 100% (gRPC code 14)`},
		"no CRI":  {func(w http.ResponseWriter, _ *http.Request) { refuse(w, 12, "unknown service") }, 12, "it has no CRI, or an older one than v1 (containerd before 1.6); in containerd the plugin may be disabled, or have failed: the runtime answered: unknown service (gRPC code 12)"},
		"error after data": {func(w http.ResponseWriter, _ *http.Request) {
			send(w, nil)
			w.Header().Set("Grpc-Status", "2")
		}, 2, "(gRPC code 2)"},
		"no gRPC":          {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusNotFound) }, 0, `it does not speak gRPC: HTTP status 404, content type "text/plain; charset=utf-8"`},
		"no status":        {grpc("\x00\x00\x00\x00\x00"), 0, `its status "" is not a gRPC code`},
		"empty":            {func(w http.ResponseWriter, _ *http.Request) { refuse(w, 0, "") }, 0, "it is empty"},
		"cut off":          {grpc("\x00\x00\x00\x00\x09\x0a"), 0, "unexpected EOF"},
		"cut off head":     {grpc("\x00\x00"), 0, "unexpected EOF"},
		"compressed":       {grpc("\x01\x00\x00\x00\x00"), 0, "it is compressed"},
		"too large":        {grpc("\x00\x00\x40\x00\x01"), 0, "it has 4194305 bytes, more than 4194304"},
		"two messages":     {grpc("\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"), 0, "data follows its end"},
		"no protobuf":      {answer("\x0b\x0c"), 0, "it is not a protobuf message of the CRI"},
		"string too long":  {answer("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), 0, "it is not a protobuf message of the CRI"},
		"no JSON":          {info("cniconfig", "{"), 0, "cniconfig: unexpected end of JSON input"},
		"no configuration": {critest.Runtime{Info: func() map[string]string { return map[string]string{"cniconfig": "{}", "config": "["} }}.ServeHTTP, 0, "config: unexpected end of JSON input"},
		"other JSON":       {info("cniconfig", `{"PluginDirs":"/opt/cni/bin"}`), 0, "cniconfig: json: cannot unmarshal"},
		"relative":         {info("cniconfig", `{"PluginConfDir":"net.d\u001b"}`), 0, `the runtime reads configurations from "net.d\x1b", which is not an absolute path`},
		"relative plugins": {info("cniconfig", `{"PluginDirs":["/opt","bin"]}`), 0, `the runtime reads plugins from "bin", which is not an absolute path`},
		"crash":            {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			_, err := h.serve(tc.handler).Status(t.Context())
			require.ErrorContains(t, err, tc.want)
			require.ErrorContains(t, err, `ask the container runtime at "/run/containerd/containerd.sock": `)
			var refused *cri.RPCError
			if tc.code != 0 {
				require.ErrorAs(t, err, &refused)
				require.Equal(t, tc.code, refused.Code)
			} else {
				require.NotErrorAs(t, err, &refused)
			}
		})
	}
}

// grpc sends bytes as they are, and no trailers.
func grpc(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		_, _ = io.WriteString(w, body)
	}
}

func answer(message string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { send(w, []byte(message)) }
}

func info(key, value string) http.HandlerFunc {
	return critest.Runtime{Info: func() map[string]string { return map[string]string{key: value} }}.ServeHTTP
}

func TestSEC6_EndlessAnswersEnd(t *testing.T) {
	endless := func(start string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/grpc")
			_, err := io.WriteString(w, start)
			for chunk := strings.Repeat("\x00", 1<<16); err == nil; {
				_, err = io.WriteString(w, chunk)
			}
		}
	}
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"one message":   {endless("\x00\xff\xff\xff\xff"), "it has 4294967295 bytes, more than 4194304"},
		"many messages": {endless("\x00\x00\x00\x00\x00"), "data follows its end"},
		"headers": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/grpc")
			w.Header().Set("Endless", strings.Repeat("x", 1<<20))
		}, "ask the container runtime at"}, // the rest depends on the version of Go
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			_, err := h.serve(tc.handler).Status(t.Context())
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func TestSEC6_ASilentRuntimeIsWaitedForUntilTheContextEnds(t *testing.T) {
	wait := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for name, serve := range map[string]func(h *host){
		"accepts nothing": func(h *host) { h.listen(usual) },
		"answers nothing": func(h *host) { h.serve(http.HandlerFunc(wait)) },
		"stops": func(h *host) {
			h.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				grpc("\x00\x00\x00\x00\x09\x0a")(w, r)
				w.(http.Flusher).Flush()
				wait(w, r)
			}))
		},
		"has no /config": func(h *host) {
			h.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.ProtoMajor == 2 {
					critest.Runtime{}.ServeHTTP(w, r)
					return
				}
				wait(w, r)
			}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			serve(h)
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, err := cri.Endpoint{HostProc: h.proc, Path: usual}.Status(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		})
	}
}

func TestNoProcessListens(t *testing.T) {
	h := newHost(t)
	l := h.listen(usual)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	e := cri.Endpoint{HostProc: h.proc, Path: usual}
	_, err := e.Status(t.Context())
	require.EqualError(t, err, `ask the container runtime at "/run/containerd/containerd.sock": nothing proves that the host's container runtime listens: connect: connection refused`)
	h.write(filepath.Join(h.root, "file"), "")
	e.Path = "/file"
	_, err = e.Status(t.Context())
	require.ErrorContains(t, err, `connect /file: socket operation on non-socket`)
	e.Path = "run/containerd.sock"
	_, err = e.Status(t.Context())
	require.ErrorContains(t, err, "want the absolute path of a unix socket")
	require.ErrorIs(t, err, cri.ErrUnproven, "no default directories are assumed")
}

func TestAskingARuntimeLeaksNoFileAndNoGoroutine(t *testing.T) {
	h := newHost(t)
	e := h.serve(critest.Runtime{})
	_, err := e.Status(t.Context())
	require.NoError(t, err)
	files, goroutines := open(t), runtime.NumGoroutine()
	for range 50 {
		_, err := e.Status(t.Context())
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool { return open(t) <= files+2 && runtime.NumGoroutine() <= goroutines+4 }, 20*time.Second, 10*time.Millisecond,
		"those of the test's own server take a moment longer")
}

func open(t *testing.T) int {
	files, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(files)
}

func TestCNIAsksARuntimeThatIsStartingAgain(t *testing.T) {
	h := newHost(t)
	_, err := cri.Endpoint{HostProc: h.proc}.CNI(t.Context())
	require.ErrorIs(t, err, cri.ErrNoRuntime)

	var asked atomic.Int64
	h.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) <= 3 {
			refuse(w, 2, "server is not initialized yet")
			return
		}
		critest.Runtime{Info: critest.Containerd(nil, "/etc/there", "/opt/there")}.ServeHTTP(w, r)
	}))
	got, err := cri.Endpoint{HostProc: h.proc}.CNI(t.Context())
	require.NoError(t, err)
	require.Equal(t, cri.CNI{PluginDirs: []string{"/opt/there"}, ConfDir: "/etc/there"}, got)
	require.EqualValues(t, 4, asked.Load())

	asked.Store(-1 << 30)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = cri.Endpoint{HostProc: h.proc}.CNI(ctx)
	require.ErrorIs(t, err, context.Canceled)
}
