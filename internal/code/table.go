// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package code

// The codes. One that was released never gets another meaning, and none is used again.
const (
	PlanInvalid      = "plan.invalid"
	PlanNotConverged = "plan.not-converged"
	PlanUnrecorded   = "plan.unrecorded"
	PlanTimeout      = "plan.timeout"
	PlanCanceled     = "plan.canceled"
	PlanPermission   = "plan.permission"
	PlanReadOnly     = "plan.read-only"
	PlanNoSpace      = "plan.no-space"
	PlanUnsupported  = "plan.unsupported"
	PlanFailed       = "plan.failed"

	LockHeld = "lock.held"

	JournalNotOwner    = "journal.not-owner"
	JournalRevoked     = "journal.revoked"
	JournalUnreadable  = "journal.unreadable"
	JournalUntrusted   = "journal.untrusted"
	JournalUnknownKind = "journal.unknown-kind"
	JournalChanged     = "journal.changed"
	JournalConflict    = "journal.conflict"

	HostNotHost     = "host.not-host"
	HostNoProcess   = "host.no-process"
	HostEntryDenied = "host.entry-denied"
	HostUntrusted   = "host.untrusted"

	ConfigSourceMissing = "config.source-missing"
	ConfigInvalid       = "config.invalid"
	ConfigEmpty         = "config.empty"

	KubeForbidden    = "kube.forbidden"
	KubeUnauthorized = "kube.unauthorized"
	KubeUnavailable  = "kube.unavailable"

	GateTimeout = "gate.timeout"

	CgroupForeign = "cgroup.foreign"
	CgroupNotRoot = "cgroup.not-root"

	BPFFSForeign   = "bpffs.foreign"
	BPFFSNotShared = "bpffs.not-shared"
	BPFFSHoldsPins = "bpffs.holds-pins"

	BPFMapNoBPFFS = "bpfmap.no-bpffs"

	SysctlReadOnly          = "sysctl.read-only"
	SysctlKeyMissing        = "sysctl.key-missing"
	SysctlKeyInvalid        = "sysctl.key-invalid"
	SysctlValueRefused      = "sysctl.value-refused"
	SysctlOverridden        = "sysctl.overridden"
	SysctlDirectoryReadOnly = "sysctl.directory-read-only"
	SysctlRouteLost         = "sysctl.route-lost"
	SysctlReloadFailed      = "sysctl.reload-failed"

	HostpathMissing   = "hostpath.missing"
	HostpathWrongType = "hostpath.wrong-type"

	ModuleMissing      = "module.missing"
	ModuleUndetermined = "module.undetermined"
	ModuleNotLoadable  = "module.not-loadable"

	CNIPluginMissing     = "cni.plugin-missing"
	CNINoLoopback        = "cni.no-loopback"
	CNITargetMissing     = "cni.target-missing"
	CNIConfigInvalid     = "cni.config-invalid"
	CNIDirectoryUnusable = "cni.directory-unusable"
	CNIInUse             = "cni.in-use"
	CNIPreceded          = "cni.preceded"

	CRINoRuntime = "cri.no-runtime"
	CRISeveral   = "cri.several"
	CRIUnproven  = "cri.unproven"
	CRINotLoaded = "cri.not-loaded"

	CleanupAgentAlive = "cleanup.agent-alive"
	CleanupReplaced   = "cleanup.replaced"

	PreflightKernelFeature  = "preflight.kernel-feature"
	PreflightNoBTF          = "preflight.no-btf"
	PreflightTableInUse     = "preflight.table-in-use"
	PreflightNetworkd       = "preflight.networkd"
	PreflightServiceAddress = "preflight.service-address"
)

// Meaning is what a code says.
type Meaning struct {
	Code   string
	Cause  string // one sentence
	Remedy string // one sentence
}

// Table returns all codes with what they mean, by package.
func Table() []Meaning {
	return []Meaning{
		{PlanInvalid, "The plan contradicts itself: a name twice, no action, or steps in a wrong order.", "Correct the program that built the plan."},
		{PlanNotConverged, "A change was made without an error, and afterwards the node is still not as it should be.", "Look for another program that sets the same thing back."},
		{PlanUnrecorded, "An action changed something and did not record it, so that it cannot be undone.", "Correct the action, or what wraps it: the context must reach it."},
		{PlanTimeout, "The time for the step or for the run was over, and nothing more specific is known.", "See in the error what was waited for, or give more time."},
		{PlanCanceled, "The run was told to end, as by SIGTERM.", "Run it again."},
		{PlanPermission, "The kernel denied something, and nothing more specific is known.", "Grant the capability that the error names, or look for a security module that denies it."},
		{PlanReadOnly, "A file system that has to be written is read-only.", "Mount it read-write, or name another place."},
		{PlanNoSpace, "A file system has no free space or inodes, or a quota is used up.", "Make room: see df and df -i."},
		{PlanUnsupported, "The kernel or the operating system lacks what the step needs.", "Use a kernel that has it, or leave the step out."},
		{PlanFailed, "The step failed for a reason that has no code of its own.", "Read the error."},

		{LockHeld, "Another process holds the lock for longer than was waited.", "See what hangs in the process that the error names; the lock is free when it ends."},

		{JournalNotOwner, "The node belongs to another owner, so nothing was changed.", "Uninstall the other installation, or take the node over explicitly."},
		{JournalRevoked, "The node was uninstalled or taken over since this process had it.", "End this process; whoever owns the node now goes on."},
		{JournalUnreadable, "The journal is damaged, or of a version that this program does not know.", "Repair or remove the file that the error names, or use the program that wrote it."},
		{JournalUntrusted, "Others than the owner could have written the journal.", "Look at what it holds, then correct owner and mode as the error says."},
		{JournalUnknownKind, "Something is recorded that no part of this program can undo.", "Undo it with the program that recorded it."},
		{JournalConflict, "Another agent of the node wants an object to be different.", "Uninstall or release that agent, change one of the two, or override it."},
		{JournalChanged, "Something is no longer as it was left, so it is kept.", "Remove it by hand, or accept that it stays."},

		{HostNotHost, "What would be changed is this container's and not the host's.", "Mount the host's /proc into the container, or the place itself as a hostPath."},
		{HostNoProcess, "The process whose namespaces are to be entered cannot be found.", "Mount the host's /proc where the program looks for it."},
		{HostEntryDenied, "The kernel denied entry to the host's namespaces.", "Run the container privileged, or with the capabilities that the error names."},
		{HostUntrusted, "Others than root could change what is at a path, hold it, or lead it elsewhere.", "Correct the owner and mode of the path that the error names."},

		{ConfigSourceMissing, "A source of the configuration does not exist.", "Create it, correct its name, or declare it optional."},
		{ConfigInvalid, "A source of the configuration cannot be parsed, or a key is missing or not as it has to be.", "Correct the source and key that the error names."},
		{ConfigEmpty, "The sources set no key, and would replace a configuration that has some.", "Look at the sources: an unset variable, an empty file, a wrong name."},

		{KubeForbidden, "The API server does not allow the request.", "Grant it by the rule that the error names."},
		{KubeUnauthorized, "There are no credentials for the API server, or it does not accept them.", "Mount the ServiceAccount's token, or renew the kubeconfig."},
		{KubeUnavailable, "The API server did not answer, or only with errors, for as long as was tried.", "Look at the network to it and at its own state."},

		{GateTimeout, "What the plan waits for was not there in time.", "See in the error what was seen last, and look at whoever should bring it about."},

		{CgroupForeign, "Another file system is mounted where cgroup2 should be.", "Unmount it, or name another path."},
		{CgroupNotRoot, "The path shows another cgroup than the host's root.", "Unmount it or ask for repair, and enter the host's cgroup namespace."},

		{BPFFSForeign, "Another file system is mounted where the BPF file system should be.", "Unmount it, or name another path."},
		{BPFFSNotShared, "The host would not see a mount that is made there from this container.", "Give the volume mountPropagation: Bidirectional, or enter the host's mount namespace."},
		{BPFFSHoldsPins, "The BPF file system is left mounted, since it holds pins that would be lost.", "Remove the pins first, as by a cleanup."},

		{BPFMapNoBPFFS, "The directory for pinned maps is on no BPF file system.", "Mount one there before, in an earlier step."},

		{SysctlReadOnly, "/proc/sys is read-only here.", "Run the container privileged or with procMount: Unmasked, or act in the host's mount namespace."},
		{SysctlKeyMissing, "The kernel does not have the key.", "Load the module that brings it, or leave the key out."},
		{SysctlKeyInvalid, "What is given is no sysctl key.", "Correct its spelling."},
		{SysctlValueRefused, "The kernel does not take the value.", "Correct the value."},
		{SysctlOverridden, "A value was written without an error, and is another all the same.", "Look for the limit, the other key or the security module that determines it."},
		{SysctlDirectoryReadOnly, "No drop-in can be written, since its directory is read-only.", "Name a directory that is writable and read at boot, or set the values without a file."},
		{SysctlRouteLost, "IPv6 forwarding would remove a default route that was learnt from router advertisements.", "Set accept_ra to 2 on the link that the error names, or its route by hand."},
		{SysctlReloadFailed, "systemd could not apply the sysctl.d files.", "See the log of the unit that the error names."},

		{HostpathMissing, "A path that has to exist does not.", "Create it, or let the step create it by another type."},
		{HostpathWrongType, "A path is there, and is not of the type that it must have.", "Move away what is there."},

		{ModuleMissing, "The kernel does not have the module.", "Install the package with the rest of the kernel's modules, or boot a kernel that has it."},
		{ModuleUndetermined, "The lists of the kernel's modules are not to be seen.", "Enter the host's mount namespace or mount its /lib/modules; after an upgrade of the kernel, reboot."},
		{ModuleNotLoadable, "The module is there and cannot be loaded: that is disabled or denied, or there is no modprobe.", "Have the node load it at boot, by a file in /etc/modules-load.d."},

		{CNIPluginMissing, "A plugin that the CNI configuration names is not there, or not executable.", "Install it, or wait for the installer that brings it."},
		{CNINoLoopback, "The plugin loopback is not there, which the container runtime runs for every pod.", "Install the reference plugins."},
		{CNITargetMissing, "The network to chain onto has no valid configuration yet.", "Look at the other CNI: it may not have started."},
		{CNIConfigInvalid, "The CNI configuration is one that no runtime would take.", "Correct what the error names."},
		{CNIDirectoryUnusable, "CNI files cannot be used in the directory: it is read-only or noexec, or not one for CNI.", "Name another directory, and the same to the container runtime."},
		{CNIInUse, "Plugins or a configuration are kept, since sandboxes need them to be deleted.", "Delete the pods with a network of it, and undo again."},
		{CNIPreceded, "A configuration of another CNI sorts before the agent's, so container runtimes use that one.", "Move it away, or have the agent's sort before it."},

		{CRINoRuntime, "No container runtime listens.", "Start it, or name its socket."},
		{CRISeveral, "Several container runtimes listen, and nothing says which one is the node's.", "Name the socket."},
		{CRIUnproven, "Nothing proves that it is the host's container runtime that listens.", "Run with the host's /proc and CAP_SYS_PTRACE, and look who listens at the socket."},
		{CRINotLoaded, "The container runtime has not loaded the CNI configuration in time.", "See in the error what the runtime says of it."},

		{CleanupAgentAlive, "The agent whose leftovers would be removed is running.", "Stop it first."},
		{CleanupReplaced, "Something else has the place of what was listed, so it is left as it is.", "List again, and look at what is there."},

		{PreflightKernelFeature, "The kernel lacks what the agent's BPF programs need.", "Boot a newer kernel, or one that is built with it."},
		{PreflightNoBTF, "The kernel does not describe its types, which programs need that are compiled once for all kernels.", "Boot a kernel that is built with CONFIG_DEBUG_INFO_BTF."},
		{PreflightTableInUse, "Others have routes in the agent's routing tables, or rules that lead there.", "Give them another table, or see to it that they are the agent's own from before."},
		{PreflightNetworkd, "systemd-networkd removes routes or rules that it did not make, the agent's among them.", "Set ManageForeignRoutes and ManageForeignRoutingPolicyRules to no in a drop-in of networkd.conf."},
		{PreflightServiceAddress, "The agent is to reach the API server by a service that it implements itself.", "Give it an address of the API server that is none of a service."},
	}
}
