// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package slipway brings a Linux node to the state that an eBPF CNI agent
// needs before it starts, and undoes it all when the agent leaves.
//
// The module is a set of small packages that can be imported one by one; this
// one holds no code and is the map:
//
//   - bootstrap: the plan. Steps that are checked, applied, verified and
//     reverted, with a report.
//   - bootstrap/hostns: the host, and the node's lock: runs code in the host's
//     namespaces from inside a container, without nsenter or a helper binary.
//   - bootstrap/ledger: one record for each object of the node: what it was, how it was
//     left, and which agents want it. Files and directories are described there.
//   - bootstrap/reconcile: the loop that keeps a node so: a plan applied now and on a timer,
//     and repaired within a second when the node changes.
//   - bootstrap/timeline: a run as a picture.
//   - bootstrap/textfile: the outcome of a run, for node_exporter.
//   - bootstrap/prom, bootstrap/otel: metrics for Prometheus and spans for
//     OpenTelemetry; modules of their own.
//   - bootstrap/hostpath: directories and files that an agent expects, also with given
//     content, and a kubeconfig for CNI plugins.
//   - bootstrap/kmod: kernel modules that it needs.
//   - bootstrap/cri: asks the container runtime where it looks for CNI files, what it
//     has loaded, and which sandboxes it knows.
//   - bootstrap/gate: waits for a file, a TCP port, kube-proxy's rules.
//   - bootstrap/preflight: problems that would appear later, found before anything is
//     changed.
//   - bootstrap/kube: waits for the API server and custom resources, marks the node as
//     ready, reports outcomes, and tells a restart from a removal.
//   - bootstrap/probe: the health probe of an agent with a plan.
//   - bootstrap/bpfmap: an agent's pinned maps, kept over its restarts.
//   - bootstrap/hostlocal: releases the addresses of pods that are gone.
//   - bootstrap/bootstraptest: conformance tests for a kind and for an action, a scripted
//     action, a kernel in memory, and a throw-away node to test against.
//   - configresolve: one configuration from many sources, with provenance.
//   - configresolve/kube: the sources that read a cluster.
//   - configresolve/configdir: the configuration as a directory, written as a
//     kubelet writes a mounted ConfigMap.
//   - cgroup: a cgroup2 mount with the host's root.
//   - bpffs: a BPF file system mount.
//   - mount: the kernel that cgroup and bpffs call, as one interface.
//   - sysctl: a drop-in persisted, kernel values set and read back.
//   - cniinstall: CNI plugins and the network configuration, of its own or joined to that of
//     another CNI.
//   - cleanup: finds what an agent left behind, and then removes it.
//   - cleanup/ownershipfile: an agent's ownership, from a YAML file.
//
// The leaves (configresolve, cgroup, bpffs, sysctl, cniinstall, cleanup and the packages
// below them) import neither each other nor bootstrap, except for its ledger: their types
// say which objects they want, as a [ledger.Wanter], and meet in the program that builds a
// plan of them. Two such programs are
// examples/nodeinit, a command that replaces a chain of init containers, and
// examples/agent, an agent that embeds the packages.
//
// # Guides
//
// Each is a page of documentation or an example that runs as a test:
//
//   - Embed it in an agent: the program in README.md, and examples/agent.
//   - Describe objects of your own, with the same guarantees: [ledger.Kind], and
//     [bootstraptest.ConformKind] to test it.
//   - Replace Cilium's init containers: examples/deploy/README.md.
//   - Clean up after your agent: the example of [cleanup.Ownership], and
//     examples/ownership for YAML.
//   - Share a node with other agents: package bootstrap/ledger.
//   - Move from your own installer: the field Adopt of [ledger.Ledger].
//   - Test without root: the example of [bootstraptest.Kernel].
//   - Operate it: examples/nodeinit/README.md.
//
// # Errors
//
// Errors name the operation, the object and the remedy, and match the sentinels that
// callers branch on. A cause that is worth grouping many nodes by also has a stable code,
// such as "sysctl.read-only", in the plan's report: CODES.md lists them. See
// [bootstrap.Code].
//
// # Compatibility
//
// Versions are semantic. Until 1.0, a patch version (0.1.1) changes no exported name, and
// a minor version (0.2) may, as follows; API.txt lists what is exported.
//
//   - A name is marked "Deprecated:", with its replacement, for one minor version before
//     it is removed: a name marked in 0.2 may be gone in 0.3. CHANGELOG.md names every
//     change.
//   - The ledgers of the previous minor version and of the next one are read, obeyed and
//     undone: a node can be updated by one minor version, and rolled back. Fields and
//     kinds of records that a version does not know stay in the ledger.
//   - Error codes keep their meaning. A report's JSON keeps its fields, and may get more.
//     nodeinit's commands, flags and exit statuses are treated as exported names.
//   - Structs may get fields, so name those that you set. A published interface gets no
//     methods. Texts of errors and reports may change in any version.
//   - Packages below internal, the source of the examples, and the lowest versions in
//     go.mod, which a minor version may raise, are not covered.
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
// [ledger.Wanter]: https://pkg.go.dev/github.com/slipway-dev/slipway/bootstrap/ledger#Wanter
package slipway
