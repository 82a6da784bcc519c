// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// identity is that of a container runtime, in its own words.
type identity struct {
	Name    string // such as "containerd" or "cri-o"
	Version string // such as "v2.1.4", "1.7.24~ds1" or "1.33.0"
}

// CallsStatus returns nil if the runtime asks the plugins of a configuration of
// cniVersion 1.1.0 for their STATUS: containerd since 2.0.1, whenever the kubelet asks
// whether the network is ready; CRI-O since 1.32, but only until it is ready for the first
// time ([CNI].CRIO). An older one may fail to give pods a network with such a
// configuration. For it, and for an unknown runtime, the error matches
// [errors.ErrUnsupported]. It asks the runtime once for its name and version
// (RuntimeService/Version). Set a deadline in ctx, as for [Endpoint.SandboxIDs].
func (e Endpoint) CallsStatus(ctx context.Context) error {
	r, err := ask(ctx, e, rpc{"Version", nil, maxMessage}, " which it is", parseVersion)
	if err != nil {
		return err
	}
	return r.CallsStatus()
}

// callsStatus has the version since which each runtime calls STATUS of CNI 1.1.0:
// containerd with go-cni 1.1.11 (go-cni#123), CRI-O with ocicni 0.4.3 (ocicni#196), which
// 1.31 does not have yet.
var callsStatus = map[string][3]int{"containerd": {2, 0, 1}, "cri-o": {1, 32, 0}}

// CallsStatus is nil if the runtime is known to ask.
func (r identity) CallsStatus() error {
	since, known := callsStatus[r.Name]
	version, err := parseNumbers(r.Version)
	switch {
	case !known || err != nil:
		return fmt.Errorf("%w: cannot tell whether %s calls STATUS of CNI 1.1.0 (containerd does since 2.0.1, and CRI-O since 1.32)", errors.ErrUnsupported, r)
	case slices.Compare(version[:], since[:]) < 0:
		return fmt.Errorf("%w: %s does not call STATUS of CNI 1.1.0, which it does since %d.%d.%d", errors.ErrUnsupported, r, since[0], since[1], since[2])
	}
	return nil
}

// String returns name and version, quoted: they are the runtime's own words.
func (r identity) String() string { return fmt.Sprintf("%.100q", r.Name+" "+r.Version) }

var preRelease = regexp.MustCompile(`^v?[\d.]+[-~](alpha|beta|rc|dev)`)

// parseNumbers reads the three numbers at the start of a version. A pre-release, in the
// notation of semantic versions or of Debian, such as 2.0.1-rc.0, is less than its release.
func parseNumbers(version string) (n [3]int, err error) {
	_, err = fmt.Sscanf(strings.TrimPrefix(version, "v"), "%d.%d.%d", &n[0], &n[1], &n[2])
	if preRelease.MatchString(version) {
		n[2]-- // for x.y.0 that is x.y.-1, which is less as well
	}
	return n, err
}
