// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package cniinstall puts CNI plugins and a network configuration on a node,
// so that a container runtime never sees half of one, and takes them away
// again.
//
// An [Install] is a state of two folders, the plugins' and the configuration's.
// Whatever differs is written beside its place under a temporary name that no
// runtime loads, made durable, read back, and only then renamed: a plugin that
// runs keeps running, and a reader finds the old file or the new one. The
// configuration comes last and is validated first, by libcni and by running its
// plugins with CNI_COMMAND=VERSION; an invalid one changes nothing at all.
// What is equal already is not written, so a folder baked into a read-only
// image is no error. Where the sizes are the same, every byte is compared.
//
// The configuration is given [Whole], is an [Agent]'s by a template, or is
// another CNI's that the agent's plugin joins ([Chained]). With Exclusive the
// others are set aside once ours is in its place, the last in the order of
// names first: runtimes, which load the folder at each change and use its first
// file, go from the one that was first to ours in one step, and on Revert back.
// Without it, [Install.Advise] tells of files that win over ours.
//
// Folders are never removed or replaced, except on Revert those that Install
// made, if they are empty. A [Guard] keeps what was installed as it is, and a
// [Handler] undoes it in another process.
//
// Folders are opened once, and what is done there is done in what was opened: a
// symbolic link on the way is followed only if nobody but root and the caller can
// have put it there, and one in a file's place never is. Configurations of others
// are read through links, as runtimes do, up to 1 MiB.
//
// # Needs
//
// Linux of any version; root, or CAP_DAC_OVERRIDE, CAP_CHOWN and CAP_FOWNER
// where the folders or files belong to somebody else. Elsewhere it works as
// far as the system has permissions and renames over files, without locks and
// durable renames.
//
// # Which side, which thread
//
// Plugins is read on the caller's side, through a handle opened beforehand;
// BinDir, ConfDir and SearchDirs are the node's, as the calling thread sees it;
// the journal is where it was opened. To install on the host from a container, run the methods in
// the host's mount namespace (package bootstrap/hostns). Nothing here resolves
// a name or leaves a goroutine. Plugins are executed from the calling thread
// and so in its namespaces, and are waited for. The goroutines that are needed
// meanwhile copy pipes and watch the context, and have ended when the call
// returns.
//
// # Errors
//
// [InvalidError]: the configuration is wrong, and where. [ErrPluginMissing]: a
// plugin that it names is not on the node (yet), which may be worth waiting
// for; so may [ErrTargetMissing], a network to join. [ErrUninstalled],
// [ErrContested], and those of the journal for a node that is somebody else's by
// now: why a guard has ended. Everything else is the file system's, with
// operation, path and remedy.
//
// # When not to use it
//
// To install a configuration that no plugin is to be run for, or where two
// programs install different content under one name: each would win in turn.
// Calls with a Journal must be serialised by the caller (a lock on the node,
// such as the plan's); calls without need no lock.
package cniinstall
