// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package slipway brings a Linux node to the state that an eBPF CNI agent
// needs before it starts, and takes all of it away again.
//
// The module is a set of small packages that can be imported one by one; this
// one holds no code and is the map:
//
//   - bootstrap: the plan. Steps that are checked, applied, verified and
//     reverted, with a report; standard library only.
//   - bootstrap/hostns: the host, as a plan reaches it and locks it: runs code in its
//     namespaces from inside a container, without nsenter and without a helper
//     binary.
//   - bootstrap/journal: what was there before, and whose the node is.
//   - bootstrap/reconcile: a plan now, on a timer, and when something has changed.
//   - bootstrap/timeline: what a run did when, as a picture.
//   - bootstrap/textfile: what a run has come to, for node_exporter.
//   - bootstrap/prom, bootstrap/otel: what a plan does, for Prometheus and
//     OpenTelemetry; modules of their own.
//   - bootstrap/hostpath: the directories and files that an agent expects, and files
//     with given content.
//   - bootstrap/kmod: the kernel modules that it needs.
//   - bootstrap/cri: where the container runtime looks for CNI files, what it has
//     loaded, and which sandboxes it knows.
//   - bootstrap/gate: waits for a file, a TCP port, kube-proxy's rules.
//   - bootstrap/preflight: what is known to fail later, found before anything is changed.
//   - bootstrap/kube: waits for the API server and custom resources, marks the node
//     as ready, and tells a restart from a removal.
//   - bootstrap/probe: the health probe of an agent with a plan.
//   - bootstrap/bpfmap: an agent's pinned maps, kept over its restarts.
//   - bootstrap/hostlocal: releases the addresses of pods that are gone.
//   - bootstrap/bootstraptest: a conformance test for an action, a scripted
//     action, a kernel in memory, and a throw-away node to test against.
//   - configresolve: one configuration from many sources, with provenance.
//   - configresolve/kube: the sources that read a cluster.
//   - configresolve/configdir: the configuration as a directory, written as a
//     kubelet writes a mounted ConfigMap.
//   - cgroup: a cgroup2 mount with the host's root.
//   - bpffs: a BPF file system mount.
//   - sysctl: a drop-in persisted, kernel values set and read back.
//   - cniinstall: CNI plugins and the network configuration.
//   - cleanup: what an agent left behind, found first and then removed.
//   - cleanup/ownershipfile: what an agent owns, from a YAML file.
//
// The leaves (from configresolve on) import neither each other nor bootstrap,
// but for its journal:
// what they offer satisfies [bootstrap.Action] by its methods alone, and they
// meet in the program that builds a plan of them. Two such programs are
// examples/nodeinit, a command that replaces a chain of init containers, and
// examples/agent, an agent that embeds the packages.
//
// # Guides
//
// Each is a page of documentation or an example that runs as a test:
//
//   - Embed it in an agent: package bootstrap, Example (Embed), and examples/agent.
//   - Write your own action with the journal: package bootstrap, "An action of your
//     own", and the example of [journal.Files.Write].
//   - Replace Cilium's init containers: examples/deploy/README.md.
//   - Clean up after your agent: the example of [cleanup.Ownership], and
//     examples/ownership for YAML.
//   - Share a node with other agents: package bootstrap/journal, Example
//     (SeveralAgents).
//   - Move from your own installer: package cniinstall, Example
//     (MovingFromYourInstaller).
//   - Test without root: the example of [bootstraptest.Kernel].
//   - Operate it: the documentation of examples/nodeinit.
//
// # Errors
//
// Errors name operation, object and remedy, and match what a caller branches on. A
// cause that is worth telling apart on many nodes has a stable code too, such as
// "sysctl.read-only", which a plan's report has: CODES.md lists them. See
// [bootstrap.Code].
//
// # Compatibility
//
// Versions are semantic. Until 1.0, a patch version (0.1.1) changes no exported name, and
// a minor version (0.2) may, as follows; API.txt lists what is exported.
//
//   - A name that is to go is marked "Deprecated:", with its replacement, for one minor
//     version before: what 0.2 marks is still in 0.2, and 0.3 may be without it.
//     CHANGELOG.md names every change.
//   - A journal that the previous minor version has written is read, obeyed and undone,
//     and so is one of the next: a node can be updated by one minor version, and rolled
//     back. A field or a kind of record that a version does not know stays in the journal.
//   - A code of an error keeps its meaning. What a report has in JSON stays, and more is
//     added. nodeinit's commands, flags and exit statuses are treated as exported names.
//   - Structs get fields, so name those that you set. A published interface gets no
//     method. A text, of an error or in a report, may change in any version.
//   - Nothing is promised of what is in internal, of the examples' source, and of the
//     lowest versions in go.mod, which a minor version may raise.
//
// # What it needs
//
// Linux 5.10 or newer, and for each package the capabilities that its
// documentation names. On other systems everything compiles, and what touches
// the kernel returns errors that match [errors.ErrUnsupported].
//
// [bootstrap.Code]: https://pkg.go.dev/github.com/slipway-dev/slipway/bootstrap#Code
// [bootstraptest.Kernel]: https://pkg.go.dev/github.com/slipway-dev/slipway/bootstrap/bootstraptest#Kernel
// [cleanup.Ownership]: https://pkg.go.dev/github.com/slipway-dev/slipway/cleanup#Ownership
// [journal.Files.Write]: https://pkg.go.dev/github.com/slipway-dev/slipway/bootstrap/journal#Files.Write
// [bootstrap.Action]: https://pkg.go.dev/github.com/slipway-dev/slipway/bootstrap#Action
package slipway
