// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package cleanup finds what an eBPF CNI agent left on a node, and removes it.
//
// It works in two steps. [Leftovers.Inventory] lists the items found and changes nothing;
// [Leftovers.Remove] removes the items of such a list and nothing else. An item stands
// for one object of the kernel or one path, by its identity (a program's id, a link's
// index, an inode), so that exactly the printed items are removed: an object that
// replaced another in the meantime is left alone and reported. [Leftovers.Check] and
// [Leftovers.Apply] are the same two steps as an action of a plan.
//
// What goes together is a group: a link with its routes, filters and peer, a chain with
// its rules and the chains that they jump to, a pin with its link and program, a state
// directory with what is in it. [Removals] lists the groups of one node for
// review, and selects those that are the same on others.
//
// The agent's property is described by data, an [Ownership]: [Cilium] returns Cilium's,
// and package ownershipfile reads that of another agent from a file. The zero value owns
// nothing. Its scope selects how much of it is removed; the zero value is an error.
//
// It acts on the network namespace and the mount namespace of the calling thread, and
// starts no goroutines except those that feed a tool, which end with it. Objects are
// removed in an order in which packets still find the objects that they need: programs,
// then routes and links (foreign hops of a shared route are added anew), then netfilter's
// rules, then pins, mounts and directories. Then configurations that the agent set aside
// get their names back, unless a plugin of theirs is missing or they would be read before
// another network that works. Files are removed last, plugins after configurations: a
// plugin stays as long as a configuration names it. If a configuration should have got its
// name back and did not, the files beside it stay, so that no failure leaves a directory
// without a configuration. If an item cannot be removed, the
// others still are; the error joins one for each item that remains. Removing an
// item that is already gone succeeds.
//
// Chains of iptables-nft are deleted by netlink in one transaction, each rule by its
// handle; so are nftables tables and ipsets. Legacy iptables needs its own tools, from
// the thread's mount namespace, and only if it has tables: the package parses the output
// of iptables-legacy-save, and passes iptables-legacy-restore only deletions, one
// transaction per table. If the tools are missing, the error reports it. Both variants
// are examined, whichever the node uses, and no table is created.
//
// Links are deleted in groups, at about the cost of a single link each, and the groups
// are small enough that other users of the RTNL lock do not wait long: 5,000 links take
// about two seconds. tcx programs cost the kernel about ten milliseconds per link, in a
// group or not.
//
// It needs CAP_NET_ADMIN for all network objects, CAP_NET_RAW for the tools of legacy
// iptables, CAP_SYS_ADMIN to open BPF programs by id, to unmount, and to remove the names
// of network namespaces, CAP_BPF for cgroup programs, and CAP_SYS_PTRACE to detect a
// running agent. Features that a kernel lacks (tcx before 6.6, netkit before 6.7) have no
// items. On other systems every method returns an error that matches
// [errors.ErrUnsupported].
//
// Do not use it under a running agent: Remove refuses with [ErrAgentAlive] if it detects
// one.
package cleanup
