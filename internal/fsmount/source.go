// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package fsmount

import (
	"crypto/rand"
	"encoding/hex"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway/internal/mountinfo"
	"github.com/slipway-dev/slipway/mount"
)

// A source identifies a mount that was made here, in every mount namespace: "slipway-" and,
// if it is recorded, the agent and the state directory, each with a colon, and at the end
// random letters, since the kernel reuses its own identifiers of mounts.
const sourcePrefix = "slipway-"

// markPrefix starts the name of a directory that stands for a source, whose characters the
// kernel does not all take in a bpffs. The source follows in hex.
const markPrefix = "slipway_"

// mark is the source without its random end.
func mark(agent, dir string) string {
	if agent == "" {
		return sourcePrefix
	}
	return sourcePrefix + agent + ":" + dir + ":"
}

func newSource(mark string) string { return mark + strings.ToLower(rand.Text()[:16]) }

func isOurs(source string) bool { return strings.HasPrefix(source, sourcePrefix) }

// markOf returns the agent and the state directory in a source that isOurs.
func markOf(source string) (agent, dir string) {
	agent, rest, _ := strings.Cut(strings.TrimPrefix(source, sourcePrefix), ":")
	if end := strings.LastIndex(rest, ":"); end >= 0 {
		return agent, rest[:end]
	}
	return "", ""
}

// directoryOf names the directory that marks a bpffs which has no source.
func directoryOf(source string) string { return markPrefix + hex.EncodeToString([]byte(source)) }

// sourceOf returns the source of a visible mount. If the kernel took none for a bpffs, a
// directory in it stands for that.
func sourceOf(k mount.Mounter, m mountinfo.Mount) (string, error) {
	if m.FSType != "bpf" || isOurs(m.Source) {
		return m.Source, nil
	}
	for e, err := range Entries(k, filepath.Clean(m.Point)) {
		if err != nil {
			return m.Source, err
		}
		text, isMark := strings.CutPrefix(e.Name(), markPrefix)
		if source, err := hex.DecodeString(text); isMark && err == nil && e.IsDir() && isOurs(string(source)) {
			return string(source), nil
		}
	}
	return m.Source, nil
}
