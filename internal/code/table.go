// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package code

// The codes. One that was released never gets another meaning, and none is used again.
const (
	PlanInvalid     = "plan.invalid"
	PlanContested   = "plan.contested"
	PlanTimeout     = "plan.timeout"
	PlanCanceled    = "plan.canceled"
	PlanPermission  = "plan.permission"
	PlanReadOnly    = "plan.read-only"
	PlanNoSpace     = "plan.no-space"
	PlanUnsupported = "plan.unsupported"
	PlanFailed      = "plan.failed"

	LockHeld = "lock.held"

	LedgerNotOwner    = "ledger.not-owner"
	LedgerTwoAgents   = "ledger.two-agents"
	LedgerRevoked     = "ledger.revoked"
	LedgerNotApplied  = "ledger.not-applied"
	LedgerUnreadable  = "ledger.unreadable"
	LedgerUntrusted   = "ledger.untrusted"
	LedgerUnknownKind = "ledger.unknown-kind"
	LedgerChanged     = "ledger.changed"
	LedgerConflict    = "ledger.conflict"
	LedgerRefused     = "ledger.refused"
	LedgerMissing     = "ledger.missing"

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

// Meaning explains a code.
type Meaning struct {
	Code   string
	Cause  string // one sentence
	Remedy string // one sentence
}

// Table returns all codes with their meanings, by package.
func Table() []Meaning {
	return []Meaning{
		{PlanInvalid, "The plan contradicts itself: a name twice, no action, or steps in a wrong order.", "Correct the program that built the plan."},
		{PlanContested, "Another program undoes each repair, so that repairs become rarer.", "Find the program that writes the object, and stop one of the two."},
		{PlanTimeout, "The time for the step or for the run ran out, and no more specific cause is known.", "Look in the error for the awaited condition, or allow more time."},
		{PlanCanceled, "The run was asked to end, such as by SIGTERM.", "Run it again."},
		{PlanPermission, "The kernel denied an operation, and no more specific cause is known.", "Grant the capability that the error names, or look for a security module that denies it."},
		{PlanReadOnly, "A file system that must be writable is read-only.", "Mount it read-write, or name another place."},
		{PlanNoSpace, "A file system has no free space or inodes, or a quota is used up.", "Free space: see df and df -i."},
		{PlanUnsupported, "The kernel or the operating system lacks what the step needs.", "Use a kernel with the feature, or leave the step out."},
		{PlanFailed, "The step failed for a reason without a code of its own.", "Read the error."},

		{LockHeld, "Another process held the lock until the wait timed out.", "Find out what blocks the process that the error names; the lock is released when it ends."},

		{LedgerNotOwner, "The agent belongs to another owner, so nothing was changed.", "Uninstall the other installation, or take the agent over explicitly."},
		{LedgerTwoAgents, "A living agent has applied something else under this agent's name, so nothing was changed.", "Give one of the two a name of its own, or uninstall the other first. If it is the same agent, take it over explicitly."},
		{LedgerRevoked, "The agent was uninstalled or taken over after this process had claimed it.", "End this process; the present owner continues."},
		{LedgerNotApplied, "A process that only keeps what another one has applied found nothing of its agent.", "Apply the agent's plan first."},
		{LedgerUnreadable, "The ledger, or the record of an object, is damaged or of a version that this program does not know.", "If a later version wrote it, use that. Otherwise copy the directory, look at the object, and forget its record, or salvage the records that are whole."},
		{LedgerUntrusted, "Users other than the owner could have written the ledger.", "Look at its content, then correct owner and mode as the error describes."},
		{LedgerUnknownKind, "A record is of a kind that no part of this program can undo.", "Undo it with the program that recorded it."},
		{LedgerConflict, "Another agent of the node wants an object to be different.", "Uninstall or release that agent, change one of the two, or override it."},
		{LedgerRefused, "Something was changed without an error, but is still different.", "Look for the limit, the other program or key, or the security module that determines it."},
		{LedgerMissing, "What another program has to bring first is not there yet.", "Look why that program has not: the step succeeds once it has."},
		{LedgerChanged, "An object is no longer as it was left, so it is kept.", "Remove it by hand, or accept that it stays."},

		{HostNotHost, "The change would affect this container instead of the host.", "Mount the host's /proc into the container, or the path itself as a hostPath."},
		{HostNoProcess, "The process whose namespaces are to be entered cannot be found.", "Mount the host's /proc where the program looks for it."},
		{HostEntryDenied, "The kernel denied entry to the host's namespaces.", "Run the container privileged, or with the capabilities that the error names."},
		{HostUntrusted, "Users other than root could modify, hold or redirect a path.", "Correct the owner and mode of the path that the error names."},

		{ConfigSourceMissing, "A source of the configuration does not exist.", "Create it, or correct its name. A program can declare it optional."},
		{ConfigInvalid, "A source of the configuration cannot be parsed, or a key is missing or invalid.", "Correct the source and key that the error names."},
		{ConfigEmpty, "The sources set no keys, and would replace a configuration that has some.", "Check the sources for an unset variable, an empty file, or a wrong name."},

		{KubeForbidden, "The API server does not allow the request.", "Grant the permission with the rule that the error names."},
		{KubeUnauthorized, "There are no credentials for the API server, or it does not accept them.", "Mount the ServiceAccount's token, or renew the kubeconfig."},
		{KubeUnavailable, "The API server did not answer, or only with errors, until the attempts timed out.", "Check the network to it and its own state."},

		{GateTimeout, "The condition that the plan waits for was not met in time.", "Look in the error for the last observation, and check the component that should meet the condition."},

		{CgroupForeign, "Another file system is mounted where cgroup2 should be.", "Unmount it, or name another path."},
		{CgroupNotRoot, "The path shows a cgroup other than the host's root.", "Unmount it or ask for repair, and enter the host's cgroup namespace."},

		{BPFFSForeign, "Another file system is mounted where the BPF file system should be.", "Unmount it, or name another path."},
		{BPFFSNotShared, "The host would not see a mount made there from this container.", "Give the volume mountPropagation: Bidirectional, or enter the host's mount namespace."},
		{BPFFSHoldsPins, "The BPF file system stays mounted, since it holds pins that would be lost.", "Remove the pins first, for example by a cleanup."},

		{BPFMapNoBPFFS, "The directory for pinned maps is not on a BPF file system.", "Mount one there in an earlier step."},

		{SysctlReadOnly, "/proc/sys is read-only here.", "Run the container privileged or with procMount: Unmasked, or act in the host's mount namespace."},
		{SysctlKeyMissing, "The kernel does not have the key.", "Load the module that provides it, or leave the key out."},
		{SysctlKeyInvalid, "The given text is not a sysctl key.", "Correct its spelling."},
		{SysctlValueRefused, "The kernel rejects the value.", "Correct the value."},
		{SysctlDirectoryReadOnly, "No drop-in can be written, since its directory is read-only.", "Name a directory that is writable and read at boot, or set the values without a file."},
		{SysctlRouteLost, "IPv6 forwarding would remove a default route learned from router advertisements.", "Set accept_ra to 2 on the link that the error names, or add its route by hand."},
		{SysctlReloadFailed, "systemd could not apply the sysctl.d files.", "See the log of the unit that the error names."},

		{HostpathMissing, "A required path does not exist.", "Create it, or choose a type with which the step creates it."},
		{HostpathWrongType, "A path exists, but is not of the required type.", "Move it away."},

		{ModuleMissing, "The kernel does not have the module.", "Install the package with the rest of the kernel's modules, or boot a kernel that has it."},
		{ModuleUndetermined, "The lists of the kernel's modules are not visible.", "Enter the host's mount namespace or mount its /lib/modules; after an upgrade of the kernel, reboot."},
		{ModuleNotLoadable, "The module exists but cannot be loaded: loading is disabled or denied, or there is no modprobe.", "Make the node load it at boot, by a file in /etc/modules-load.d."},

		{CNIPluginMissing, "A plugin that the CNI configuration names is missing, or not executable.", "Install it, or wait for its installer."},
		{CNINoLoopback, "The plugin loopback, which the container runtime runs for every pod, is missing.", "Install the reference plugins."},
		{CNITargetMissing, "The network to chain onto has no valid configuration yet.", "Check the other CNI: it may not have started."},
		{CNIConfigInvalid, "No runtime would accept the CNI configuration.", "Correct the part that the error names."},
		{CNIDirectoryUnusable, "The directory cannot be used for CNI files: it is read-only or noexec, or not a CNI directory.", "Choose another directory, and configure the container runtime to use it."},
		{CNIInUse, "Plugins or a configuration are kept, since sandboxes need them for their deletion.", "Delete the pods with its networks, and undo again; start the container runtime, which tells which still exist."},
		{CNIPreceded, "A configuration of another CNI sorts before the agent's, so container runtimes use that one.", "Move it away, or make the agent's sort before it."},

		{CRINoRuntime, "No container runtime is listening.", "Start it, or name its socket."},
		{CRISeveral, "Several container runtimes listen, and no setting selects the node's.", "Name the socket."},
		{CRIUnproven, "There is no proof that the host's container runtime listens.", "Check that root listens on the socket and that no other user may change its path, or name the socket. Reaching it takes the host's /proc and CAP_SYS_PTRACE."},
		{CRINotLoaded, "The container runtime has not loaded the CNI configuration in time.", "Read the runtime's message in the error."},

		{CleanupAgentAlive, "The agent whose leftovers would be removed is running.", "Stop it first."},
		{CleanupReplaced, "Another object has replaced the listed one, so it is left as it is.", "List again, and look at the new object."},

		{PreflightKernelFeature, "The kernel lacks a feature that the agent's BPF programs need.", "Boot a newer kernel, or one built with the feature."},
		{PreflightNoBTF, "The kernel does not describe its types, which BPF programs compiled for all kernels need.", "Boot a kernel built with CONFIG_DEBUG_INFO_BTF."},
		{PreflightTableInUse, "Others have routes in the agent's routing tables, rules that lead there, or rules for the agent's packet marks.", "Give them another table or mark, or verify that they are from an earlier run of the agent."},
		{PreflightNetworkd, "systemd-networkd removes routes or rules that it did not make, including the agent's.", "Set ManageForeignRoutes and ManageForeignRoutingPolicyRules to no in a drop-in of networkd.conf."},
		{PreflightServiceAddress, "The agent would reach the API server through a service that it implements itself.", "Give it the address of the API server's own endpoint, never that of a load balancer that is a service of this cluster."},
	}
}
