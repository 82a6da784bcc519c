// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package layouts runs nodeinit on nodes that are laid out as distributions lay
// them out: which folders are read-only, what leads where, who runs a container
// runtime and where that looks. It has tests only:
//
//	make layouts                                            # all, with a table
//	go test -count 1 -v -run 'Layouts/debian' ./internal/verify/layouts
//	go test -count 1 ./internal/verify/layouts -update             # what nodeinit prints is right
//
// A layout is a text archive (the format of golang.org/x/tools/txtar) in testdata.
// Its comment has a title and the sources, one a line: a name, a colon, a repository
// or package, a file and a version. The file "layout" in it has one line for each
// thing, which ends with the name of the source that says so:
//
//	mount PATH KIND [OPTION...]      a file system: image (read-only in the end), disk or tmpfs,
//	                                 overlay (with lower=, upper=), bind (with from=), bpf; and ro, noexec, ...
//	dir PATH MODE [UID:GID]          a folder
//	file PATH MODE                   a file; its content is the archive's file of that name, or that of a plugin
//	                                 if it is executable, or nothing
//	link PATH TARGET                 a symbolic link
//	process NAME ARGUMENT...         something that runs, by the name that the kernel shows
//	container NAME ARGUMENT...       the same, in a mount namespace of its own
//	containerd SOCKET CONF PLUGIN... a containerd that says it looks there
//	crio SOCKET CONF PLUGIN...       a CRI-O that does
//	nocri SOCKET                     a containerd without the CRI
//	sysctl DIR...                    where sysctl.d files are read at boot; none: nobody reads any
//	flags FLAG...                    what the pod's manifest has on such nodes
//	remedy STEP FLAG...              the step is refused, and says that this flag helps
//	advice STEP FLAG...              the step succeeds, and says that this flag is needed
//
// What a pod gets from Kubernetes (a root, the node's /proc, three capabilities) and
// what a runtime answers is made by stand-ins; the folders, mounts and links are real,
// and so are the kernel and nodeinit. That a real runtime reads what is installed is
// shown by the tests with the tag realcri and by internal/verify/kubernetes/cniconform.
package layouts
