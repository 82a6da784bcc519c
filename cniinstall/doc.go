// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package cniinstall installs CNI plugins and a network configuration on a node, so
// that a container runtime never sees an incomplete one, and can remove them again.
//
// An [Install] wants a state of two directories, one with the plugins and one with the
// configuration: it is a step of a plan, which records and undoes it by its ledger. Each
// file that differs is written to the same directory under a
// temporary name that no runtime loads, made durable, tried, and only then
// renamed: a running plugin keeps running, and a reader finds either the old file
// or the new one. The configuration is published last. It is validated before
// anything is published, by libcni and by running its plugins with
// CNI_COMMAND=VERSION; if it is invalid, nothing is changed at all. Plugins that
// users other than root may change, for example in a user's directory, are installed
// but not run. [Install.Advise] names those whose versions are unknown, also because
// a plugin that others have installed did not answer. A file that is equal is not
// written, so a directory that is part of a read-only image is no error; a plugin whose
// Replace does not name is not compared, and stays as it is.
//
// The configuration is given as a [Whole], made from a template ([Agent]), or that of another CNI with the agent's plugin added ([Chained]), in a file of its own or in place. With Exclusive, the
// other configurations are set aside (renamed) once ours is published, the last
// file name first: runtimes, which reload the directory at each change and use its
// first file, switch from the previous first file to ours in one step, and back in
// one step when that is undone. Without Exclusive, [Install.Advise] names the files that take
// precedence over ours.
//
// In place ([Chained].InPlace), nothing is published: the plugin is an object of the directory, and
// is in whichever file has its network. [Unchain] takes out what an earlier installer has put
// there, and [Configs] lists what a runtime finds.
//
// Plugins may go to several directories (AlsoBinDirs).
//
// With Install.Runtime, the directories are those that the node's container runtime uses,
// according to package bootstrap/cri, and earlier installations in other
// directories are undone. Without it, they are the defaults of the runtimes.
//
// Files that the step installed before and the Install no longer lists are undone
// once the rest is installed: see Install.Names and ConfName.
//
// Directories are never replaced, and only removed by an undo, if Install made them and
// they are empty. A reconcile.Loop repairs an installation that other programs change, and
// [Uninstall] says what an undoing keeps, such as plugins that a configuration
// or a sandbox on the node still needs. [AgentConf] removes a configuration that
// the agent itself has written.
//
// Directories are opened once, and all work is done through the open directory: a symbolic
// link on the path to it is followed only if no user but root and the caller can
// have made it, and a symbolic link in place of a file is never followed. Other
// CNIs' configurations are read through links, as by runtimes, up to 1 MiB.
//
// # Needs
//
// Linux of any version; root, or CAP_DAC_OVERRIDE, CAP_CHOWN and CAP_FOWNER if the
// directories or files belong to another user. On other systems it works as far as
// these have permissions and can rename over existing files, without locks and
// durable renames.
//
// # Container or node, and which thread
//
// Install.Plugins is opened by the caller beforehand ([OpenPlugins]), for example
// in a container; BinDir, AlsoBinDirs, ConfDir and the runtime's directories are resolved in the
// calling thread's mount namespace; the ledger stays where it was opened. To
// install on the host from a container, use a bootstrap.Plan with a hostns.Host,
// which calls the methods in the host's namespaces. Nothing here looks up host
// names or leaves a goroutine behind. Plugins are executed from the calling thread,
// and so in its namespaces, and are waited for. Goroutines that run meanwhile only
// copy pipes, watch the context, and read and sync open files, which does not
// depend on a namespace; they end before the call returns.
//
// # Errors
//
// [ErrInvalid] means that the configuration is wrong, and the text says where.
// [ErrPluginMissing] means that a plugin which the configuration names is not on
// the node (yet), and [ErrTargetMissing] that the network to join is not; both may
// be worth waiting for. A plugin that the source lacks matches fs.ErrNotExist. All other errors are the file system's, with operation, path and
// remedy.
//
// # When not to use it
//
// Do not use it for a configuration whose plugins must not be run, or if two
// programs install different content under the same name: they would overwrite each
// other in turn. Calls with a ledger must be serialised by the caller (with a lock
// on the node, such as the plan's); calls without one need no lock.
package cniinstall
