// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !unix

package cniinstall

import (
	"io/fs"
	"os"
	"os/exec"
)

const hasModes = false

func killGroup(*exec.Cmd) {}

func openThere(path string) (*os.File, error) { return os.Open(path) }

func ownerOf(fs.FileInfo) (uid, gid int) { return os.Geteuid(), os.Getegid() }
