// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package cleanup finds what an eBPF CNI agent left on a node, and removes it.
//
// It works in two steps. [Leftovers.Inventory] lists what is there and changes
// nothing; [Leftovers.Remove] removes the items of such a list and nothing else.
// An item stands for one object of the kernel or one path, by its identity (a
// program's id, a link's index, an inode), so that what was printed is what is
// removed: an object that replaced another since then is not touched, and is
// reported. [Leftovers.Check] and [Leftovers.Apply] are the same two steps
// as an action of a plan.
//
// What belongs to the agent is given as data, an [Ownership]. [Cilium] is such
// data for Cilium, package ownershipfile reads that of another agent from a file;
// the zero value owns nothing. How much of it goes is a [Scope]; the zero value is
// an error that matches [ErrNoScope].
//
// It acts on the network namespace and the mount namespace of the calling
// thread, and starts no goroutine but those that feed a tool, which end with
// it. Objects go in an order in which packets still find what they need:
// programs, then routes and links (foreign hops of a shared route are added
// anew), then netfilter's rules, then pins, mounts and directories. Then
// configurations that the agent set aside get their names back, and only after
// them go files, the agent's own configuration among them; where one did not get
// its name back the files beside it are not removed, so that no failure leaves a
// directory without a configuration. A failing item is reported and the rest goes
// on; the error joins an [Error] for each item that is still there. Removing what
// is gone already is success.
//
// Chains of iptables-nft go by netlink in one transaction, each rule by its
// handle; tables of nftables and ipsets go by netlink as well. Legacy iptables
// takes its own tools, of the thread's mount namespace, and only where it has
// tables: what iptables-legacy-save writes is read, and iptables-legacy-restore is given
// nothing but deletions, one transaction for each table; where the tools are
// missing, the error says so. Both variants are looked at, whichever the node
// uses, and tables that do not exist stay so.
//
// Links go in groups, in which the kernel deletes many at about the price of
// one, small enough that nobody else waits long for its RTNL lock: 5,000 take
// about two seconds. Programs on tcx cost the kernel some ten milliseconds for
// each link, in a group or not.
//
// Needed are CAP_NET_ADMIN for everything of the network, CAP_NET_RAW for the
// tools of legacy iptables, CAP_SYS_ADMIN to look at BPF programs by id, to
// unmount and to take names from network namespaces, CAP_BPF for programs of
// cgroups, and CAP_SYS_PTRACE to see whether the agent runs. What a kernel does not know (tcx before 6.6, netkit before 6.7) is
// not there. On other systems every method returns an error that matches
// [errors.ErrUnsupported].
//
// Do not use it under a running agent: Remove refuses with [ErrAgentAlive]
// where it sees one.
package cleanup
