// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package layouts runs nodeinit on nodes that are laid out as distributions lay
// them out: which directories are read-only, where links lead, which container runtime runs
// and where it looks. It has tests only:
//
//	make layouts                                            # all, with a table
//	go test -count 1 -v -run 'Layouts/debian' ./internal/verify/layouts
//	go test -count 1 ./internal/verify/layouts -update             # accepts nodeinit's output
//
// A layout is a text archive (the format of golang.org/x/tools/txtar) in testdata.
// Its comment has a title and the sources, one a line: a name, a colon, a repository
// or package, a file and a version. The file "layout" in it has one line for each object,
// which ends with the name of its source:
//
//	mount PATH KIND [OPTION...]      a file system: image (read-only in the end), disk or tmpfs,
//	                                 overlay (with lower=, upper=), bind (with from=), bpf; and ro, noexec, ...
//	dir PATH MODE [UID:GID]          a directory
//	file PATH MODE                   a file; its content is the archive's file of that name, or that of a plugin
//	                                 if it is executable, or nothing
//	link PATH TARGET                 a symbolic link
//	process NAME ARGUMENT...         a process, by the name that the kernel shows
//	container NAME ARGUMENT...       the same, in a mount namespace of its own
//	containerd SOCKET CONF PLUGIN... a containerd that reports these directories
//	crio SOCKET CONF PLUGIN...       a CRI-O that does
//	nocri SOCKET                     a containerd without the CRI
//	sysctl DIR...                    where sysctl.d files are read at boot; none: no program reads any
//	flags FLAG...                    flags in the pod's manifest on such nodes
//	remedy STEP FLAG...              the step is refused, and its error names this flag as the remedy
//	advice STEP FLAG...              the step succeeds, and its advice names this flag
//
// Stand-ins provide the pod's environment (a root, the node's /proc, three capabilities)
// and the runtime's answers; the directories, mounts and links are real, and so are the
// kernel and nodeinit. internal/verify/kubernetes/realcri shows that a real runtime reads
// the installed files.
package layouts
