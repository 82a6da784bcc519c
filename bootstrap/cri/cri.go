// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/slipway-dev/slipway/internal/code"
)

// ErrNoRuntime is matched by the error of a [Find] that found no socket of a
// container runtime: there is none, or it does not run yet.
var ErrNoRuntime = code.New(code.CRINoRuntime, "no container runtime listens")

// ErrSeveral is matched by the error of a [Find] that found several sockets, and no
// kubelet that says which one it uses. The error lists them.
var ErrSeveral = code.New(code.CRISeveral, "several container runtimes listen")

// ErrUnproven is matched by the error of a call, or of a [Find] that found no other
// socket, at whose socket no process of the host's root listens, as far as can be
// told: anybody can listen at a socket with a runtime's name.
var ErrUnproven = code.New(code.CRIUnproven, "nothing proves that the host's container runtime listens")

// Endpoint is the socket of a container runtime.
type Endpoint struct {
	// HostProc is where the host's /proc is mounted, such as /hostproc. If empty, it
	// is /proc.
	HostProc string

	// Path is the absolute path of the socket on the host. It may be written as the
	// kubelet's --container-runtime-endpoint: unix:///run/containerd/containerd.sock.
	// If empty, each call searches for it by [Find].
	Path string
}

// Find returns the endpoint of the runtime of the host whose /proc is mounted at
// hostProc, such as /hostproc; empty: /proc.
//
// A kubelet decides: by the flag --container-runtime-endpoint, else by
// containerRuntimeEndpoint in the files of its flags --config and --config-dir. It is
// a process of the host's root (see the package's comment) whose program is named
// kubelet or hyperkube; of k3s, RKE2 and MicroK8s' kubelite the flag counts. Without its
// word, the only listening socket whose name is that of a runtime is taken
// (containerd.sock, crio.sock, cri-dockerd.sock, isulad.sock; not that of Docker's
// private containerd, which has no CRI), and only if a process of the host's root
// listens at it, and it and the folders on its way belong to root and nobody else can
// write to them. If there are several and a kubelet runs that names none, it is the
// kubelet's default, /run/containerd/containerd.sock. If there are several and no
// kubelet, each is asked, for three seconds at most, and those that say that they have
// no CRI are left out.
//
// Otherwise Find asks nothing: it connects, to see who listens.
func Find(ctx context.Context, hostProc string) (Endpoint, error) {
	e, err := find(ctx, cmp.Or(hostProc, "/proc"))
	if err != nil {
		return Endpoint{}, fmt.Errorf("find the container runtime: %w", err)
	}
	e.HostProc = hostProc
	return e, nil
}

func (e Endpoint) proc() string { return cmp.Or(e.HostProc, "/proc") }

// String returns the path of the socket.
func (e Endpoint) String() string { return e.Path }

const scheme = "unix://"

// socket returns the path of a socket that is named as the kubelet's flag does.
func socket(endpoint string) (string, error) {
	p := strings.TrimPrefix(endpoint, scheme)
	if !path.IsAbs(p) {
		return "", fmt.Errorf("%q: want the absolute path of a unix socket, such as unix:///run/containerd/containerd.sock", endpoint)
	}
	return path.Clean(p), nil
}

// Status is what a runtime says of itself.
type Status struct {
	// CNI is where it looks. Zero: it does not say.
	CNI CNI

	// NetworkReady says that the runtime can give pods a network; else Reason says why
	// not, in its own words.
	NetworkReady bool
	Reason       string

	// LastLoad is how its last reading of the configurations ended: "OK", or what was
	// wrong, in its own words. Empty: it does not say. This is containerd's.
	LastLoad string

	// Networks are those that it has loaded, in its order, without that of the
	// loopback device. Only a runtime that tells LastLoad tells them.
	Networks []Network
}

// CNI is where a runtime looks for plugins and configurations. The directories are
// absolute paths on its host, as cleaned by [path.Clean].
type CNI struct {
	PluginDirs []string // searched in this order
	ConfDir    string
	MaxConfNum int // how many files are loaded, in the order of their names; zero: all, or it does not say

	// OwnLoopback says that the runtime brings up the loopback device of pods itself, and
	// runs no plugin named loopback: CRI-O since ocicni 0.4, and containerd since 2.0
	// where use_internal_loopback is set.
	OwnLoopback bool
}

// Network is a network that a runtime has loaded.
type Network struct {
	Name    string
	Plugins []string // types, in their order
	Source  string   // the configuration as the runtime read it: JSON of a list of plugins
}

// RPCError is an error that the runtime answered. It matches
// [errors.ErrUnsupported] if the runtime does not know the call.
type RPCError struct {
	Code    int    // of gRPC, such as 14: unavailable
	Message string // as the runtime sent it
}

// noSuchCall is gRPC's code for a call that the server does not know.
const noSuchCall = 12

// Is reports whether target says what the code does.
func (e *RPCError) Is(target error) bool {
	return target == errors.ErrUnsupported && e.Code == noSuchCall
}
