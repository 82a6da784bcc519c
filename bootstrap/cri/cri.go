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

// errNoRuntime means that there is no container runtime, or that it does not run yet: no
// socket was found.
var errNoRuntime = code.New(code.CRINoRuntime, "no container runtime listens")

// errSeveral means that several sockets were found, which the error lists, and no kubelet
// that names the one it uses.
var errSeveral = code.New(code.CRISeveral, "several container runtimes listen")

// errUnproven means that another user than root listens at the socket or may change its
// path, that it cannot be told, or that no runtime answers at the path that the caller gives.
var errUnproven = code.New(code.CRIUnproven, "nothing proves that the host's container runtime listens")

// Endpoint is the socket of a container runtime.
type Endpoint struct {
	// HostProc is where the host's /proc is mounted, such as /hostproc. If empty, it
	// is /proc.
	HostProc string

	// Path is the absolute path of the socket on the host. It may be written as the
	// kubelet's --container-runtime-endpoint: unix:///run/containerd/containerd.sock.
	// If empty, each call searches for it.
	//
	// A running kubelet decides: by the flag --container-runtime-endpoint, else by
	// containerRuntimeEndpoint in the files of its flags --config and --config-dir, else by
	// its default, /run/containerd/containerd.sock. Of k3s, RKE2 and MicroK8s' kubelite,
	// which contain one, only the flag counts. If no kubelet names one, it is the only
	// socket that answers among the places of distributions: those of containerd, CRI-O,
	// cri-dockerd, iSulad, k3s and RKE2, k0s, and MicroK8s. If there are several, it is
	// that of the running k3s, RKE2 or MicroK8s. The search sends no request: it only
	// connects.
	Path string
}

// found is e with a path.
func (e Endpoint) found(ctx context.Context) (Endpoint, error) {
	if e.Path != "" {
		return e, nil
	}
	path, err := find(ctx, e.proc())
	if err != nil {
		return Endpoint{}, fmt.Errorf("find the container runtime: %w", err)
	}
	return Endpoint{HostProc: e.HostProc, Path: path}, nil
}

func (e Endpoint) proc() string { return cmp.Or(e.HostProc, "/proc") }

const scheme = "unix://"

// socket returns the path of a socket given in the form of the kubelet's flag.
func socket(endpoint string) (string, error) {
	p := strings.TrimPrefix(endpoint, scheme)
	if !path.IsAbs(p) {
		return "", fmt.Errorf("%q: want the absolute path of a unix socket, such as unix:///run/containerd/containerd.sock", endpoint)
	}
	return path.Clean(p), nil
}

// status is the state that a runtime reports.
type status struct {
	CNI      CNI    // zero if the runtime does not report it
	LastLoad string // the result of its last reading of the configurations: "OK", or an error's text. Only containerd reports it
	Networks []network
}

// network is one that a runtime has loaded: not that of the loopback device.
type network struct {
	Name   string
	Source string // the configuration as the runtime read it: JSON of a list of plugins
}

// CNI is where a runtime looks for plugins and configurations. The directories are
// absolute paths on its host, as cleaned by [path.Clean].
type CNI struct {
	PluginDirs []string // searched in this order
	ConfDir    string

	// CRIO is what holds on CRI-O alone. DefaultNetwork names the only network that pods get
	// (cni_default_network); if empty, the first configuration serves. StaysReady is true if
	// the runtime, once ready, may go on reporting the network as ready although its
	// configuration has gone or its plugin fails STATUS: cni_status_grace_period is not set.
	CRIO struct {
		DefaultNetwork string
		StaysReady     bool
	}

	// OwnLoopback is true if the runtime brings up the loopback device of pods itself,
	// and runs no plugin named loopback: CRI-O since ocicni 0.4, and containerd since 2.0
	// where use_internal_loopback is set.
	OwnLoopback bool
}

// rpcError is an error that the runtime answered. It matches
// [errors.ErrUnsupported] if the runtime does not know the call.
type rpcError struct {
	Code    int    // of gRPC, such as 14: unavailable
	Message string // as the runtime sent it
}

// Is reports whether the code is gRPC's for a call that the server does not know.
func (e *rpcError) Is(target error) bool { return target == errors.ErrUnsupported && e.Code == 12 }
